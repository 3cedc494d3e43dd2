//! The state of a wave that runs a program: its values and truths, and the fetch of operands.

use super::code::{Operand, UNSIGNED};
use super::registers::moved;
use super::rows::{gather, load};
use super::task::{Group, Task, Values, pairs};
use super::word::{Word, plain_nan_f32, plain_nan_f64};
use crate::column::ColumnRow;
use crate::memory::{Bits, TableRow};
use crate::target::{Lanes, Wave};

/// The state of a wave: values and truths of its rows.
pub(super) struct State<V: Copy, const K: usize> {
    /// The group that the wave works on, and the rows of it that a lane has.
    pub(super) group: Group,
    pub(super) rows: Values<u32, K>,
    /// The stack of values: the newest (`a`) and the three before it.
    pub(super) a: Values<V, K>,
    pub(super) s1: Values<V, K>,
    pub(super) s2: Values<V, K>,
    pub(super) s3: Values<V, K>,
    /// Which values are valid: `K` bits a value, the newest lowest.
    pub(super) valid: Lanes<u32>,
    /// The truths, laid out like `valid`: whether each is true, and whether it is known. An unknown truth is
    /// not true.
    pub(super) truth: Lanes<u32>,
    pub(super) known: Lanes<u32>,
    /// The rows that have not been dropped.
    pub(super) active: Lanes<u32>,
}

impl<V: Word, const K: usize> State<V, K> {
    /// All `K` bits of a lane: one for each row.
    pub(super) const ALL: u32 = (1 << K) - 1;

    #[inline(always)]
    pub(super) fn new(group: Group, rows: Values<u32, K>, active: Lanes<u32>, wave: &Wave) -> State<V, K> {
        let zero = wave.each(|_| [V::default(); K]);
        let none = wave.each(|_| 0);
        State {
            group,
            rows,
            a: zero,
            s1: zero,
            s2: zero,
            s3: zero,
            valid: none,
            truth: none,
            known: none,
            active,
        }
    }

    /// Fetches the operand of an instruction, and which of its rows are valid.
    #[inline(always)]
    pub(super) fn operand(
        &mut self,
        args: &Task,
        operand: u32,
        slot: u64,
        constant: V,
        wave: &mut Wave,
    ) -> (Values<V, K>, Lanes<u32>) {
        const I8: u32 = Operand::I8 as u32;
        const I16: u32 = Operand::I16 as u32;
        const I32: u32 = Operand::I32 as u32;
        const I64: u32 = Operand::I64 as u32;
        const I128: u32 = Operand::I128 as u32;
        const U8: u32 = Operand::U8 as u32;
        const U16: u32 = Operand::U16 as u32;
        const U32: u32 = Operand::U32 as u32;
        const NEWEST: u32 = Operand::Newest as u32;
        const BEFORE: u32 = Operand::Before as u32;
        if operand >= I8 {
            let values = match operand {
                I8 => load(args, (self.group, self.rows), slot, |x: i8| V::of_i64(i64::from(x)), wave),
                I16 => load(args, (self.group, self.rows), slot, |x: i16| V::of_i64(i64::from(x)), wave),
                I32 => load(args, (self.group, self.rows), slot, |x: i32| V::of_i64(i64::from(x)), wave),
                I64 => load(args, (self.group, self.rows), slot, V::of_i64, wave),
                U8 => load(args, (self.group, self.rows), slot, |x: u8| V::of_i64(i64::from(x)), wave),
                U16 => load(args, (self.group, self.rows), slot, |x: u16| V::of_i64(i64::from(x)), wave),
                U32 => load(args, (self.group, self.rows), slot, |x: u32| V::of_i64(i64::from(x)), wave),
                I128 if V::WIDE => {
                    load(args, (self.group, self.rows), slot, |x: u128| V::of(x as i128), wave)
                }
                _ => load(args, (self.group, self.rows), slot, |x: u64| V::of(i128::from(x)), wave),
            };
            return (values, self.validity(args, slot, wave));
        }
        match operand {
            NEWEST => {
                let (b, valid) = (moved(self.a, wave), self.newest(wave));
                self.pop(wave);
                (b, valid)
            }
            BEFORE => {
                let b = moved(self.s1, wave);
                let valid = {
                    let valid_ = self.valid;
                    wave.each(move |l| valid_.at(l) >> K & Self::ALL)
                };
                self.valid = {
                    let valid_ = self.valid;
                    wave.each(move |l| {
                        let all = valid_.at(l);
                        all >> (2 * K) << K | all & Self::ALL
                    })
                };
                self.s1 = moved(self.s2, wave);
                self.s2 = moved(self.s3, wave);
                (b, valid)
            }
            // Also without an operand, since nothing reads it then.
            _ => {
                let some = operand != Operand::Null as u32;
                (wave.each(|_| [constant; K]), wave.each(|_| if some { Self::ALL } else { 0 }))
            }
        }
    }

    /// Loads which rows of a column are valid.
    #[inline(always)]
    pub(super) fn validity(&self, args: &Task, slot: u64, wave: &mut Wave) -> Lanes<u32> {
        let row = slot * ColumnRow::ROW;
        let valid = args.columns.input::<u32>(wave, row + ColumnRow::VALID);
        if valid.is_absent() {
            return wave.each(|_| Self::ALL);
        }
        gather(
            Bits::new(valid, args.columns.get(row + ColumnRow::VALID_OFFSET), args.len),
            self.group,
            self.rows,
            wave,
        )
    }

    /// Returns which rows of the newest value are valid.
    #[inline(always)]
    pub(super) fn newest(&self, wave: &Wave) -> Lanes<u32> {
        {
            let valid_ = self.valid;
            wave.each(move |l| valid_.at(l) & Self::ALL)
        }
    }

    #[inline(always)]
    pub(super) fn set_newest(&mut self, valid: Lanes<u32>, wave: &Wave) {
        self.valid = {
            let valid_ = self.valid;
            wave.each(move |l| valid_.at(l) & !Self::ALL | valid.at(l) & Self::ALL)
        };
    }

    #[inline(always)]
    pub(super) fn push(&mut self, value: Values<V, K>, valid: Lanes<u32>, wave: &Wave) {
        self.s3 = moved(self.s2, wave);
        self.s2 = moved(self.s1, wave);
        self.s1 = moved(self.a, wave);
        self.a = value;
        self.valid = {
            let valid_ = self.valid;
            wave.each(move |l| valid_.at(l) << K | valid.at(l))
        };
    }

    #[inline(always)]
    pub(super) fn pop(&mut self, wave: &Wave) {
        self.a = moved(self.s1, wave);
        self.s1 = moved(self.s2, wave);
        self.s2 = moved(self.s3, wave);
        self.valid = {
            let valid_ = self.valid;
            wave.each(move |l| valid_.at(l) >> K)
        };
    }

    #[inline(always)]
    pub(super) fn push_truth(&mut self, truth: Lanes<u32>, known: Lanes<u32>, wave: &Wave) {
        self.truth = {
            let truth_ = self.truth;
            wave.each(move |l| truth_.at(l) << K | truth.at(l) & known.at(l) & Self::ALL)
        };
        self.known = {
            let known_ = self.known;
            wave.each(move |l| known_.at(l) << K | known.at(l) & Self::ALL)
        };
    }

    /// Pops the newest truth: whether it is true, and whether it is known.
    #[inline(always)]
    pub(super) fn pop_truth(&mut self, wave: &Wave) -> (Lanes<u32>, Lanes<u32>) {
        let newest = (
            {
                let truth_ = self.truth;
                wave.each(move |l| truth_.at(l) & Self::ALL)
            },
            {
                let known_ = self.known;
                wave.each(move |l| known_.at(l) & Self::ALL)
            },
        );
        self.truth = {
            let truth_ = self.truth;
            wave.each(move |l| truth_.at(l) >> K)
        };
        self.known = {
            let known_ = self.known;
            wave.each(move |l| known_.at(l) >> K)
        };
        newest
    }

    /// Sets `a` to `f(a, b)`, row by row, and returns which rows are bad.
    #[inline(always)]
    pub(super) fn each_checked(
        &mut self,
        b: Values<V, K>,
        f: impl Fn(V, V) -> (V, bool),
        wave: &Wave,
    ) -> Lanes<u32> {
        let (made, bad) = pairs(self.a, b, f, wave);
        self.a = made;
        bad
    }

    /// Sets `a` to `f(a, b)`, row by row, where no row can be bad.
    #[inline(always)]
    pub(super) fn each(&mut self, b: Values<V, K>, f: impl Fn(V, V) -> V, wave: &Wave) {
        self.each_checked(b, |a, b| (f(a, b), false), wave);
    }

    #[inline(always)]
    pub(super) fn doubles(&mut self, b: Values<V, K>, f: impl Fn(f64, f64) -> f64, wave: &Wave) {
        let call = |a: V, b: V| {
            let made = plain_nan_f64(f(f64::from_bits(a.low()), f64::from_bits(b.low())));
            V::of_i64(made.to_bits() as i64)
        };
        self.each(b, call, wave);
    }

    #[inline(always)]
    pub(super) fn singles(&mut self, b: Values<V, K>, f: impl Fn(f32, f32) -> f32, wave: &Wave) {
        let call = |a: V, b: V| {
            let made = plain_nan_f32(f(f32::from_bits(a.low() as u32), f32::from_bits(b.low() as u32)));
            V::of_i64(i64::from(made.to_bits() as i32))
        };
        self.each(b, call, wave);
    }

    /// Sets a bit for each row where `a` compares with `b` as the lowest three bits of `detail` ask.
    #[inline(always)]
    pub(super) fn compared(&self, b: Values<V, K>, detail: u32, wave: &Wave) -> Lanes<u32> {
        let flip = if !V::WIDE && detail & u32::from(UNSIGNED) != 0 { V::MIN } else { V::default() };
        let a = self.a;
        wave.each(move |l| {
            let mut bits = 0;
            for k in 0..K {
                let (x, y) = (a.at(l)[k].xor(flip), b.at(l)[k].xor(flip));
                // Computes the bit's index, instead of choosing one of three bits: compilers turn that choice
                // into an indexed load from memory.
                let bit = u32::from(x >= y) + u32::from(x > y);
                bits |= (detail >> bit & 1) << k;
            }
            bits
        })
    }

    /// Returns the rows of the newest value that an aggregate takes: valid and not dropped.
    #[inline(always)]
    pub(super) fn there(&self, wave: &Wave) -> Lanes<u32> {
        {
            let active_ = self.active;
            let valid_ = self.valid;
            wave.each(move |l| valid_.at(l) & active_.at(l) & Self::ALL)
        }
    }

    /// Keeps `a` where the bits are set, else sets it to `b`.
    #[inline(always)]
    pub(super) fn choose(&mut self, b: Values<V, K>, b_valid: Lanes<u32>, bits: Lanes<u32>, wave: &Wave) {
        let a = self.a;
        self.a = wave.each(move |l| {
            let mut out = [V::default(); K];
            for k in 0..K {
                out[k] = if bits.at(l) >> k & 1 != 0 { a.at(l)[k] } else { b.at(l)[k] };
            }
            out
        });
        let valid = {
            let valid_ = self.valid;
            wave.each(move |l| valid_.at(l) & bits.at(l) | b_valid.at(l) & !bits.at(l))
        };
        self.set_newest(valid, wave);
    }
}
