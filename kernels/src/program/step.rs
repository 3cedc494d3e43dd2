//! Runs one instruction on the rows of a group.

use super::code::{Bad, Op, UNSIGNED};
use super::reduce::Sums;
use super::rows::{gather, store, store_bits};
use super::state::State;
use super::task::Task;
use super::word::{Word, civil, fit, floor, key, remainder, ten_to};
use crate::column::{ColumnRow, OutputRow};
use crate::memory::{Bits, TableRow};
use crate::target::Wave;

const fn codes(ops: &[Op]) -> u64 {
    let (mut all, mut i) = (0, 0);
    while i < ops.len() {
        all |= 1 << ops[i] as u64;
        i += 1;
    }
    all
}

/// The operations that may find bad rows; `step` checks no others for them.
const MAY_BE_BAD: u64 = codes(&[Op::Add, Op::Sub, Op::Mul, Op::Div, Op::Rem, Op::Fit]);

impl<V: Word, const K: usize> State<V, K> {
    /// Runs an instruction, and returns how many rows it keeps.
    #[inline(always)]
    #[allow(non_upper_case_globals, reason = "the constants are an enum's values, called as they are")]
    pub fn step(&mut self, args: &Task, first: u64, constant: V, sums: &mut Sums, wave: &mut Wave) -> u32 {
        let rows = self.group;
        let (op, operand) = (first as u32 & 0xff, first as u32 >> 8 & 0xff);
        let (slot, detail) = (u64::from(first as u32 >> 16), (first >> 32) as u32 & 0xff);
        let unsigned = !V::WIDE && detail & u32::from(UNSIGNED) != 0;
        let (b, b_valid) = self.operand(args, operand, slot, constant, wave);
        let mut bad = wave.each(|_| 0u32);

        macro_rules! ops {
            ($($op:ident => $body:expr,)*) => {
                $(const $op: u32 = Op::$op as u32;)*
                match op { $($op => $body,)* _ => {} }
            };
        }
        // The operations whose result is valid where both operands are.
        const OF_TWO: u64 = codes(&[
            Op::Add,
            Op::Sub,
            Op::Mul,
            Op::Div,
            Op::Rem,
            Op::Xor,
            Op::AddF64,
            Op::SubF64,
            Op::MulF64,
            Op::DivF64,
            Op::RemF64,
            Op::AddF32,
            Op::SubF32,
            Op::MulF32,
            Op::DivF32,
            Op::RemF32,
        ]);
        let mut kept = 0;
        ops! {
            Set => { self.a = b; self.set_newest(b_valid, wave); },
            Push => self.push(b, b_valid, wave),
            Drop => self.pop(wave),
            Add => bad = self.each_checked(b, |a, b| a.add(b, unsigned), wave),
            Sub => bad = self.each_checked(b, |a, b| a.sub(b, unsigned), wave),
            Mul => bad = self.each_checked(b, |a, b| a.mul(b, unsigned), wave),
            Div => {
                let by = ten_to(detail & !u32::from(UNSIGNED));
                bad = self.each_checked(b, |a, b| a.quotient(by, b, unsigned), wave);
            },
            Rem => bad = self.each_checked(b, |a, b| {
                let zero = b == V::default();
                (a.div_rem(if zero { V::of_i64(1) } else { b }, unsigned).1, zero)
            }, wave),
            Fit => bad = self.each_checked(b, |a, _| { let cut = fit(a, detail); (cut, cut != a) }, wave),
            Xor => self.each(b, |a, b| a.xor(b), wave),
            Key => self.each(b, |a, _| key(a), wave),
            AddF64 => self.doubles(b, |a, b| a + b, wave),
            SubF64 => self.doubles(b, |a, b| a - b, wave),
            MulF64 => self.doubles(b, |a, b| a * b, wave),
            DivF64 => self.doubles(b, |a, b| a / b, wave),
            RemF64 => self.doubles(b, remainder, wave),
            AddF32 => self.singles(b, |a, b| a + b, wave),
            SubF32 => self.singles(b, |a, b| a - b, wave),
            MulF32 => self.singles(b, |a, b| a * b, wave),
            DivF32 => self.singles(b, |a, b| a / b, wave),
            RemF32 => self.singles(b, |a, b| remainder(f64::from(a), f64::from(b)) as f32, wave),
            PlainF64 => self.doubles(b, |a, _| if a == 0.0 { 0.0 } else { a }, wave),
            PlainF32 => self.singles(b, |a, _| if a == 0.0 { 0.0 } else { a }, wave),
            Compare => {
                let truth = self.compared(b, detail, wave);
                let known = { let valid_ = self.valid; wave.each(move |l| valid_.at(l) & b_valid.at(l)) };
                self.push_truth(truth, known, wave);
            },
            Distinct => {
                let truth = self.compared(b, detail, wave);
                // Two nulls compare as equal values do, a null and a value as unequal ones.
                let (same, other) = (mask::<K>(detail >> 1 & 1), mask::<K>(detail & 1));
                let truth = { let valid_ = self.valid; wave.each(move |l| {
                    let (a, b) = (valid_.at(l), b_valid.at(l));
                    truth.at(l) & a & b | !a & !b & same | (a ^ b) & other
                }) };
                self.push_truth(truth, wave.each(|_| Self::ALL), wave);
            },
            In => {
                let mut found = wave.each(|_| 0u32);
                let (at, mut i) = (constant.low(), 0);
                while i < slot {
                    let low = args.code.get(at + i * 2);
                    let high = if V::WIDE { args.code.get(at + i * 2 + 1) } else { 0 };
                    let value = V::of((u128::from(high) << 64 | u128::from(low)) as i128);
                    found = { let a_ = self.a; wave.each(move |l| {
                        let mut bits = found.at(l);
                        for k in 0..K {
                            bits |= u32::from(a_.at(l)[k] == value) << k;
                        }
                        bits
                    }) };
                    i += 1;
                }
                self.push_truth(found, self.newest(wave), wave);
            },
            Valid => {
                let valid = { let valid_ = self.valid; wave.each(move |l| valid_.at(l) ^ mask::<K>(detail)) };
                self.push_truth(valid, wave.each(|_| Self::ALL), wave);
            },
            Bits => {
                let row = slot * ColumnRow::ROW;
                let bits = Bits::new(args.columns.input(wave, row), args.columns.get(row + ColumnRow::OFFSET), args.len);
                let truth = gather(bits, rows, self.rows, wave);
                let known = self.validity(args, slot, wave);
                self.push_truth(truth, known, wave);
            },
            Truth => self.push_truth(
                wave.each(|_| mask::<K>(detail & 1)),
                wave.each(|_| mask::<K>(detail >> 1)),
                wave,
            ),
            And => {
                let (bt, bk) = self.pop_truth(wave);
                let (at, ak) = self.pop_truth(wave);
                // The result is false where either side is known to be false.
                let no = wave.each(move |l| ak.at(l) & !at.at(l) | bk.at(l) & !bt.at(l));
                let known = wave.each(move |l| ak.at(l) & bk.at(l) | no.at(l));
                self.push_truth(wave.each(move |l| at.at(l) & bt.at(l)), known, wave);
            },
            Or => {
                let (bt, bk) = self.pop_truth(wave);
                let (at, ak) = self.pop_truth(wave);
                let yes = wave.each(move |l| at.at(l) | bt.at(l));
                self.push_truth(yes, wave.each(move |l| ak.at(l) & bk.at(l) | yes.at(l)), wave);
            },
            Not => {
                let (truth, known) = self.pop_truth(wave);
                self.push_truth(wave.each(move |l| !truth.at(l)), known, wave);
            },
            Test => {
                let (truth, known) = self.pop_truth(wave);
                let says = |bit: u32| mask::<K>(detail >> bit & 1);
                let (no, yes, null) = (says(0), says(1), says(2));
                let made = wave.each(move |l| {
                    let (t, n) = (truth.at(l), known.at(l));
                    t & yes | n & !t & no | !n & null
                });
                self.push_truth(made, wave.each(|_| Self::ALL), wave);
            },
            Select => {
                let (condition, _) = self.pop_truth(wave);
                self.choose(b, b_valid, condition, wave);
            },
            SelectTruth => {
                let (et, ek) = self.pop_truth(wave);
                let (tt, tk) = self.pop_truth(wave);
                let (c, _) = self.pop_truth(wave);
                let blend = |c: u32, t: u32, e: u32| c & t | !c & e;
                let truth = wave.each(move |l| blend(c.at(l), tt.at(l), et.at(l)));
                self.push_truth(truth, wave.each(move |l| blend(c.at(l), tk.at(l), ek.at(l))), wave);
            },
            Coalesce => {
                let own = self.newest(wave);
                self.choose(b, b_valid, own, wave);
            },
            CoalesceTruth => {
                let (bt, bk) = self.pop_truth(wave);
                let (at, ak) = self.pop_truth(wave);
                let truth = wave.each(move |l| at.at(l) | !ak.at(l) & bt.at(l));
                self.push_truth(truth, wave.each(move |l| ak.at(l) | bk.at(l)), wave);
            },
            NullIf => {
                let (condition, _) = self.pop_truth(wave);
                self.valid = { let valid_ = self.valid; wave.each(move |l| valid_.at(l) & !condition.at(l)) };
            },
            NullIfTruth => {
                let (condition, _) = self.pop_truth(wave);
                let (truth, known) = self.pop_truth(wave);
                self.push_truth(truth, wave.each(move |l| known.at(l) & !condition.at(l)), wave);
            },
            Value => {
                let (truth, known) = self.pop_truth(wave);
                let value = wave.each(move |l| {
                    let mut out = [V::default(); K];
                    for k in 0..K {
                        out[k] = V::of_i64(i64::from(truth.at(l) >> k & 1));
                    }
                    out
                });
                self.push(value, known, wave);
            },
            Date => self.each(b, |a, _| {
                let (year, month, day) = civil(a.low() as i64);
                V::of_i64(if detail == 0 { year } else if detail == 1 { month } else { day })
            }, wave),
            FloorDiv => self.each(b, |a, b| floor(a, b).0, wave),
            FloorRem => self.each(b, |a, b| floor(a, b).1, wave),
            Where => {
                let (truth, _) = self.pop_truth(wave);
                self.active = { let active_ = self.active; wave.each(move |l| active_.at(l) & truth.at(l)) };
            },
            Store => {
                let row = slot * OutputRow::ROW;
                let valid = args.outputs.output(wave, row + OutputRow::VALID);
                match detail {
                    0 => store(args.outputs.output(wave, row), rows, self.a, |x| x.low() as u8, wave),
                    1 => store(args.outputs.output(wave, row), rows, self.a, |x| x.low() as u16, wave),
                    2 => store(args.outputs.output(wave, row), rows, self.a, |x| x.low() as u32, wave),
                    4 if V::WIDE => {
                        store(args.outputs.output(wave, row), rows, self.a, |x| x.wide() as u128, wave)
                    }
                    _ => store(args.outputs.output(wave, row), rows, self.a, |x| x.low(), wave),
                }
                if !valid.is_absent() {
                    store_bits::<K>(valid, rows, self.newest(wave), wave);
                }
                self.pop(wave);
            },
            StoreTruth => {
                let row = slot * OutputRow::ROW;
                let values = args.outputs.output(wave, row);
                let valid = args.outputs.output(wave, row + OutputRow::VALID);
                let (truth, known) = self.pop_truth(wave);
                store_bits::<K>(values, rows, truth, wave);
                if !valid.is_absent() {
                    store_bits::<K>(valid, rows, known, wave);
                }
            },
            Keep => {
                let (truth, _) = self.pop_truth(wave);
                let keep = { let active_ = self.active; wave.each(move |l| truth.at(l) & active_.at(l)) };
                let words = args.outputs.output(wave, 0);
                kept = store_bits::<K>(words, rows, keep, wave);
            },
            Sum => {
                let there = self.there(wave);
                sums.sum(slot as u32, self.a, there, unsigned, wave);
                self.pop(wave);
            },
            SumF64 => {
                let there = self.there(wave);
                sums.sum_floats::<V, K, true>(slot as u32, self.a, there, wave);
                self.pop(wave);
            },
            SumF32 => {
                let there = self.there(wave);
                sums.sum_floats::<V, K, false>(slot as u32, self.a, there, wave);
                self.pop(wave);
            },
            Min => {
                let there = self.there(wave);
                sums.extreme(slot as u32, self.a, there, false, wave);
                self.pop(wave);
            },
            Max => {
                let there = self.there(wave);
                sums.extreme(slot as u32, self.a, there, true, wave);
                self.pop(wave);
            },
            Count => {
                let there = self.there(wave);
                sums.count(slot as u32, there, wave);
                self.pop(wave);
            },
        }
        if OF_TWO >> op & 1 != 0 {
            let valid = {
                let valid_ = self.valid;
                wave.each(move |l| valid_.at(l) & b_valid.at(l))
            };
            self.set_newest(valid, wave);
        }
        let then = (first >> 40) as u32 & 0xff;
        if MAY_BE_BAD >> op & 1 != 0 && then != Bad::Wraps as u32 {
            let bad = {
                let valid_ = self.valid;
                wave.each(move |l| bad.at(l) & valid_.at(l))
            };
            if then == Bad::Null as u32 {
                self.valid = {
                    let valid_ = self.valid;
                    wave.each(move |l| valid_.at(l) & !bad.at(l))
                };
            } else {
                let node = first >> 48;
                {
                    let (active_, of_lanes) = (self.active, self.rows);
                    wave.each(move |l| {
                        let (bad, of_lanes) = (bad.at(l) & active_.at(l), of_lanes.at(l));
                        if bad != 0 {
                            // Finds the lane's first bad row.
                            let mut row = 0;
                            for k in 0..K {
                                let k = K - 1 - k;
                                row = if bad >> k & 1 != 0 { of_lanes[k] } else { row };
                            }
                            let row = rows.first + u64::from(row);
                            args.failed.min(l, 0, row << 16 | node);
                        }
                    })
                };
            }
        }
        kept
    }
}

/// All `K` bits where the lowest bit of `bit` is set, else none.
#[inline(always)]
fn mask<const K: usize>(bit: u32) -> u32 {
    (bit & 1).wrapping_neg() & ((1 << K) - 1)
}
