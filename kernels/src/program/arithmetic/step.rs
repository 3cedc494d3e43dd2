//! Runs one instruction on the rows of a group.

use super::state::State;
use super::truths::{Truth, Truths};
use crate::column::{ColumnRow, OutputRow};
use crate::memory::TableRow;
use crate::program::code::{Bad, Op, TURNED, UNSIGNED};
use crate::program::registers::moved;
use crate::program::task::Task;
use crate::program::word::{Word, key};
use crate::target::Wave;

/// The bits of `detail` that say to how many bits a result is cut, or that it is not.
const CUT: u32 = 0x78;

impl<V: Word, const K: usize, const VALUES: usize> State<V, K, VALUES> {
    /// Runs an instruction, and returns how many rows it keeps.
    #[inline(always)]
    pub(super) fn step(
        &mut self,
        args: &Task,
        first: u64,
        constant: V,
        truths: &mut Truths,
        wave: &mut Wave,
    ) -> u32 {
        const PUSH: u32 = Op::Push as u32;
        const ADD: u32 = Op::Add as u32;
        const SUB: u32 = Op::Sub as u32;
        const MUL: u32 = Op::Mul as u32;
        const XOR: u32 = Op::Xor as u32;
        const ADD_F64: u32 = Op::AddF64 as u32;
        const SUB_F64: u32 = Op::SubF64 as u32;
        const MUL_F64: u32 = Op::MulF64 as u32;
        const DIV_F64: u32 = Op::DivF64 as u32;
        const ADD_F32: u32 = Op::AddF32 as u32;
        const SUB_F32: u32 = Op::SubF32 as u32;
        const MUL_F32: u32 = Op::MulF32 as u32;
        const DIV_F32: u32 = Op::DivF32 as u32;
        const KEY: u32 = Op::Key as u32;
        const COMPARE: u32 = Op::Compare as u32;
        const STORE: u32 = Op::Store as u32;
        let (op, operand) = (first as u32 & 0xff, first as u32 >> 8 & 0xff);
        let (slot, detail) = (u64::from(first as u32 >> 16), (first >> 32) as u32 & 0xff);
        let then = (first >> 40) as u32 & 0xff;
        let (wraps, unsigned) = (then == Bad::Wraps as u32, !V::WIDE && detail & u32::from(UNSIGNED) != 0);
        if op == STORE {
            self.stored(args, (slot * OutputRow::ROW, detail), wave);
            return 0;
        }
        if op >= Op::Valid as u32 {
            return self.logic(args, (op, slot, detail), truths, wave);
        }
        if op == PUSH {
            if VALUES > 1 {
                // Before the operand is loaded, whose registers are then those of the newest value.
                (self.before, self.valid_before) = (moved(self.a, wave), self.valid);
            }
            (self.a, self.valid) = self.operand(args, (operand, slot), constant, wave);
            return 0;
        }
        let (b, b_valid) = self.operand(args, (operand, slot), constant, wave);
        let valid = self.valid;
        let both = wave.each(move |l| valid.at(l) & b_valid.at(l));
        if op == COMPARE {
            let truth = self.compared(b, detail, unsigned, wave);
            truths.push(Truth::new(truth, both, wave));
            return 0;
        }
        self.valid = both;
        let (cut, turned) = (detail & CUT, detail & u32::from(TURNED) != 0);
        let how = (wraps || cut != 0, unsigned);
        let mut bad = match op {
            ADD => self.integers(b, how, V::add, wave),
            SUB if turned => self.integers(b, how, |a, b, unsigned| b.sub(a, unsigned), wave),
            SUB => self.integers(b, how, V::sub, wave),
            MUL => self.integers(b, how, V::mul, wave),
            XOR => self.each(b, |a, b| (a.xor(b), false), wave),
            KEY => self.each(b, |a, _| (key(a), false), wave),
            ADD_F64 => self.doubles(b, |a, b| a + b, wave),
            SUB_F64 if turned => self.doubles(b, |a, b| b - a, wave),
            SUB_F64 => self.doubles(b, |a, b| a - b, wave),
            MUL_F64 => self.doubles(b, |a, b| a * b, wave),
            DIV_F64 if turned => self.doubles(b, |a, b| b / a, wave),
            DIV_F64 => self.doubles(b, |a, b| a / b, wave),
            ADD_F32 => self.singles(b, |a, b| a + b, wave),
            SUB_F32 if turned => self.singles(b, |a, b| b - a, wave),
            SUB_F32 => self.singles(b, |a, b| a - b, wave),
            MUL_F32 => self.singles(b, |a, b| a * b, wave),
            DIV_F32 if turned => self.singles(b, |a, b| b / a, wave),
            DIV_F32 => self.singles(b, |a, b| a / b, wave),
            _ => wave.each(|_| 0),
        };
        if cut != 0 {
            bad = self.fitted(cut, detail & u32::from(UNSIGNED) != 0, wave);
        }
        let is_bad = wave.each(move |l| bad.at(l) != 0);
        if !wraps && wave.any(is_bad) {
            self.treat(args, bad, (then, first >> 48), wave);
        }
        0
    }

    /// Runs an instruction on truths.
    #[inline(always)]
    fn logic(
        &mut self,
        args: &Task,
        (op, slot, detail): (u32, u64, u32),
        truths: &mut Truths,
        wave: &mut Wave,
    ) -> u32 {
        const VALID: u32 = Op::Valid as u32;
        const BITS: u32 = Op::Bits as u32;
        const AND: u32 = Op::And as u32;
        const OR: u32 = Op::Or as u32;
        const NOT: u32 = Op::Not as u32;
        const TEST: u32 = Op::Test as u32;
        const STORE_TRUTH: u32 = Op::StoreTruth as u32;
        let there = self.there;
        match op {
            VALID => {
                let (valid, null) = (self.valid, detail.wrapping_neg());
                truths.push(Truth::new(wave.each(move |l| valid.at(l) ^ null), there, wave));
            }
            BITS => {
                let row = slot * ColumnRow::ROW;
                let (from, offset) =
                    (args.columns.input(wave, row), args.columns.get(row + ColumnRow::OFFSET));
                let bits = self.load_words(from, offset, args.len, wave);
                truths.push(Truth::new(bits, self.validity(args, row, wave), wave));
            }
            AND => truths.and(wave),
            OR => truths.or(wave),
            NOT => truths.not(wave),
            TEST => truths.newest = truths.newest.tested(detail, there, wave),
            STORE_TRUTH => {
                let (row, made) = (slot * OutputRow::ROW, truths.newest);
                self.store_words(args.outputs.output(wave, row), made.truth, wave);
                let known = args.outputs.output::<u32>(wave, row + OutputRow::VALID);
                if !known.is_absent() {
                    self.store_words(known, made.known, wave);
                }
                truths.pop();
            }
            _ => {
                let (keep, words) = (truths.newest.truth, Self::words(wave));
                self.store_words(args.outputs.output(wave, 0), keep, wave);
                let ones = wave.each(move |l| if l.index() < words { keep.at(l).count_ones() } else { 0 });
                truths.pop();
                return wave.sum(ones);
            }
        }
        0
    }
}
