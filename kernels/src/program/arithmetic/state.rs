//! The values of a wave that calculates: loads, stores, and operations on all rows of a group.

use crate::column::{ColumnRow, OutputRow};
use crate::memory::{Bits, In, Out, TableRow, ones};
use crate::program::code::{Bad, Operand, UNSIGNED};
use crate::program::task::{Group, Task, Values, pairs};
use crate::program::word::{Word, fit, plain_nan_f32, plain_nan_f64};
use crate::target::{Lane, Lanes, Value, Wave};

/// The values of a group of rows, and which are valid: lane `j` has the bits of the group's rows from row
/// `32 * j` on. Bits past the last row are zero.
///
/// Only a push moves a value, since a move takes as long as an addition: the value before stays where it is
/// when an operation has read it, and nothing reads it again.
pub(super) struct State<V: Copy, const K: usize, const VALUES: usize> {
    group: Group,
    pub(super) there: Lanes<u32>,
    pub(super) a: Values<V, K>,
    pub(super) before: Values<V, K>,
    pub(super) valid: Lanes<u32>,
    pub(super) valid_before: Lanes<u32>,
}

impl<V: Word, const K: usize, const VALUES: usize> State<V, K, VALUES> {
    #[inline(always)]
    pub(super) fn new(wave: &Wave) -> State<V, K, VALUES> {
        let (none, zero) = (wave.each(|_| [V::default(); K]), wave.each(|_| 0));
        let group = Group { first: 0, left: 0 };
        State { group, there: zero, a: none, before: none, valid: zero, valid_before: zero }
    }

    /// Goes on to a group. The values of the last one stay until the code replaces them.
    #[inline(always)]
    pub(super) fn begin(&mut self, group: Group, wave: &Wave) {
        let left = group.left;
        self.there = wave.each(move |l| ones(left.saturating_sub(l.index() * 32).into()));
        self.group = group;
    }

    /// Whether every lane has all its rows.
    #[inline(always)]
    fn is_whole(&self, wave: &Wave) -> bool {
        self.group.left >= wave.width() * K as u32
    }

    /// Fetches the operand of an instruction, and which of its rows are valid.
    #[inline(always)]
    pub(super) fn operand(
        &self,
        args: &Task,
        (operand, slot): (u32, u64),
        constant: V,
        wave: &mut Wave,
    ) -> (Values<V, K>, Lanes<u32>) {
        const NULL: u32 = Operand::Null as u32;
        const BEFORE: u32 = Operand::Before as u32;
        match operand {
            BEFORE if VALUES > 1 => (self.before, self.valid_before),
            _ if operand < Operand::I8 as u32 => {
                let (there, none) = (self.there, operand == NULL);
                (wave.each(|_| [constant; K]), wave.each(move |l| if none { 0 } else { there.at(l) }))
            }
            _ => self.column(args, operand, slot * ColumnRow::ROW, wave),
        }
    }

    #[inline(always)]
    fn column(&self, args: &Task, operand: u32, row: u64, wave: &mut Wave) -> (Values<V, K>, Lanes<u32>) {
        const I8: u32 = Operand::I8 as u32;
        const I16: u32 = Operand::I16 as u32;
        const I32: u32 = Operand::I32 as u32;
        const I64: u32 = Operand::I64 as u32;
        const I128: u32 = Operand::I128 as u32;
        const U8: u32 = Operand::U8 as u32;
        const U16: u32 = Operand::U16 as u32;
        const U32: u32 = Operand::U32 as u32;
        // The group's first value. Computed here, by a width that is known at run time only: one address in
        // each branch would keep five distances in registers.
        let width = operand - if operand < U8 { I8 } else { U8 };
        let from = args.columns.input::<u8>(wave, row).skip(self.group.first << width);
        let values = match operand {
            I8 => self.load(from, |x: i8| V::of_i64(i64::from(x)), wave),
            I16 => self.load(from, |x: i16| V::of_i64(i64::from(x)), wave),
            I32 => self.load(from, |x: i32| V::of_i64(i64::from(x)), wave),
            I64 => self.load(from, V::of_i64, wave),
            U8 => self.load(from, |x: u8| V::of_i64(i64::from(x)), wave),
            U16 => self.load(from, |x: u16| V::of_i64(i64::from(x)), wave),
            U32 => self.load(from, |x: u32| V::of_i64(i64::from(x)), wave),
            I128 if V::WIDE => self.load(from, |x: u128| V::of(x as i128), wave),
            _ => self.load(from, |x: u64| V::of(i128::from(x)), wave),
        };
        (values, self.validity(args, row, wave))
    }

    /// Loads which rows of a column are valid.
    #[inline(always)]
    pub(super) fn validity(&self, args: &Task, row: u64, wave: &mut Wave) -> Lanes<u32> {
        let valid = args.columns.input::<u32>(wave, row + ColumnRow::VALID);
        if valid.is_absent() {
            return self.there;
        }
        self.load_words(valid, args.columns.get(row + ColumnRow::VALID_OFFSET), args.len, wave)
    }

    /// Loads words of a bitmap, for the group's rows.
    #[inline(always)]
    pub(super) fn load_words(&self, from: In<u32>, offset: u64, len: u64, wave: &Wave) -> Lanes<u32> {
        let (bits, there) = (Bits::new(from, offset, len).window(self.group.first), self.there);
        wave.each(move |l| bits.word(l.index()) & there.at(l))
    }

    /// Loads the group's rows of a column, each passed through `widen`.
    #[inline(always)]
    fn load<T: Value>(&self, from: In<u8>, widen: impl Fn(T) -> V, wave: &Wave) -> Values<V, K> {
        let (from, width, left) = (from.cast::<T>(), wave.width(), self.group.left);
        if self.is_whole(wave) {
            wave.each(move |l| {
                let (from, mut out) = (from.skip(l.index().into()), [V::default(); K]);
                for k in 0..K {
                    out[k] = widen(from.stream(k as u64 * u64::from(width)));
                }
                out
            })
        } else {
            wave.each(move |l| {
                let mut out = [V::default(); K];
                for k in 0..K {
                    let row = l.index() + k as u32 * width;
                    if row < left {
                        out[k] = widen(from.stream(row.into()));
                    }
                }
                out
            })
        }
    }

    /// Stores the newest value, each row passed through `narrow`.
    #[inline(always)]
    fn store<T: Value>(&self, out: Out<u8>, narrow: impl Fn(V) -> T, wave: &Wave) {
        let (out, width, left) = (out.cast::<T>(), wave.width(), self.group.left);
        let values = self.a;
        if self.is_whole(wave) {
            wave.each(move |l| {
                let out = out.skip(l.index().into());
                for k in 0..K {
                    out.set(l, k as u64 * u64::from(width), narrow(values.at(l)[k]));
                }
            });
        } else {
            wave.each(move |l| {
                for k in 0..K {
                    let row = l.index() + k as u32 * width;
                    if row < left {
                        out.set(l, row.into(), narrow(values.at(l)[k]));
                    }
                }
            });
        }
    }

    /// Writes the newest value to an output. The next instruction pushes another, or there is none.
    #[inline(always)]
    pub(super) fn stored(&self, args: &Task, (row, width): (u64, u32), wave: &mut Wave) {
        let out = args.outputs.output::<u8>(wave, row).skip(self.group.first << width);
        match width {
            0 => self.store(out, |x| x.low() as u8, wave),
            1 => self.store(out, |x| x.low() as u16, wave),
            2 => self.store(out, |x| x.low() as u32, wave),
            4 if V::WIDE => self.store(out, |x| x.wide() as u128, wave),
            _ => self.store(out, |x| x.low(), wave),
        }
        let out = args.outputs.output::<u32>(wave, row + OutputRow::VALID);
        if !out.is_absent() {
            self.store_words(out, self.valid, wave);
        }
    }

    /// Stores words of bits of the group's rows.
    #[inline(always)]
    pub(super) fn store_words(&self, out: Out<u32>, bits: Lanes<u32>, wave: &Wave) {
        let (out, words, left) = (out.skip(self.group.first / 32), Self::words(wave), self.group.left);
        wave.each(move |l| {
            if l.index() < words && l.index() * 32 < left {
                out.set(l, l.index().into(), bits.at(l));
            }
        });
    }

    /// The number of words that the bits of a group take.
    #[inline(always)]
    pub(super) fn words(wave: &Wave) -> u32 {
        K as u32 * wave.width() / 32
    }

    /// Makes words of a bit for each row, of which a lane tests its own, by their number.
    #[inline(always)]
    pub(super) fn bits_of_rows(
        &self,
        test: impl Fn(usize, Lane<'_>) -> bool + Copy,
        wave: &mut Wave,
    ) -> Lanes<u32> {
        // One mask at a time: on AMD each takes scalar registers.
        let (halves, mut words) = (wave.width() / 32, wave.each(|_| 0));
        for k in 0..K {
            let is = wave.each(move |l| test(k, l));
            let mask = wave.ballot(is);
            words = wave.each(move |l| {
                if l.index() / halves == k as u32 { mask.half(l.index() % halves) } else { words.at(l) }
            });
        }
        words
    }

    /// Makes bad rows null, or reports the first of each word. Null rows are never bad.
    pub(super) fn treat(&mut self, args: &Task, bad: Lanes<u32>, (then, node): (u32, u64), wave: &mut Wave) {
        let (words, valid) = (self.bits_of_rows(|k, l| bad.at(l) >> k & 1 != 0, wave), self.valid);
        if then == Bad::Null as u32 {
            self.valid = wave.each(move |l| valid.at(l) & !words.at(l));
        } else {
            let (first, failed) = (self.group.first, args.failed);
            wave.each(move |l| {
                let bad = words.at(l) & valid.at(l);
                if bad != 0 {
                    let row = first + u64::from(l.index() * 32 + bad.trailing_zeros());
                    failed.min(l, 0, row << 16 | node);
                }
            });
        }
    }

    /// Sets `a` to `f(a, b)`, row by row, and returns which of a lane's rows are bad.
    #[inline(always)]
    pub(super) fn each(&mut self, b: Values<V, K>, f: impl Fn(V, V) -> (V, bool), wave: &Wave) -> Lanes<u32> {
        let (made, bad) = pairs(self.a, b, f, wave);
        self.a = made;
        bad
    }

    /// Sets `a` to what an operation of integers makes of `a` and `b`.
    #[inline(always)]
    pub(super) fn integers(
        &mut self,
        b: Values<V, K>,
        (wraps, unsigned): (bool, bool),
        f: impl Fn(V, V, bool) -> (V, bool) + Copy,
        wave: &Wave,
    ) -> Lanes<u32> {
        if wraps {
            self.each(b, |a, b| (f(a, b, false).0, false), wave)
        } else if unsigned {
            self.each(b, |a, b| f(a, b, true), wave)
        } else {
            self.each(b, |a, b| f(a, b, false), wave)
        }
    }

    /// Truncates the newest value to a type of `bits` bits, and returns which rows that changes.
    #[inline(always)]
    pub(super) fn fitted(&mut self, bits: u32, unsigned: bool, wave: &Wave) -> Lanes<u32> {
        let cut = |a: V, detail: u32| {
            let cut = fit(a, detail);
            (cut, cut != a)
        };
        if unsigned {
            self.each(self.a, |a, _| cut(a, bits | u32::from(UNSIGNED)), wave)
        } else {
            self.each(self.a, |a, _| cut(a, bits), wave)
        }
    }

    #[inline(always)]
    pub(super) fn doubles(
        &mut self,
        b: Values<V, K>,
        f: impl Fn(f64, f64) -> f64,
        wave: &Wave,
    ) -> Lanes<u32> {
        let call = |a: V, b: V| {
            let made = plain_nan_f64(f(f64::from_bits(a.low()), f64::from_bits(b.low())));
            (V::of_i64(made.to_bits() as i64), false)
        };
        self.each(b, call, wave)
    }

    #[inline(always)]
    pub(super) fn singles(
        &mut self,
        b: Values<V, K>,
        f: impl Fn(f32, f32) -> f32,
        wave: &Wave,
    ) -> Lanes<u32> {
        let call = |a: V, b: V| {
            let made = plain_nan_f32(f(f32::from_bits(a.low() as u32), f32::from_bits(b.low() as u32)));
            (V::of_i64(i64::from(made.to_bits() as i32)), false)
        };
        self.each(b, call, wave)
    }
}
