//! Programs of arithmetic alone: a few columns and constants, and nothing that asks about a row.
//!
//! The one idea: most projections add, subtract, multiply and divide, and need two values at hand and no
//! truths. So a lane has twice the rows that it has in [`run`](super::PROGRAM), and pays for reading an
//! instruction half as often. Validity stays in words of bits, as memory has it: a lane holds one word, and
//! instructions combine words. Rows are told apart only where one of a group is bad, or past the last row.

use super::code::{Bad, Op, Operand, UNSIGNED, WORDS};
use super::task::{Group, Task, Values, pairs};
use super::word::{Word, fit, plain_nan_f32, plain_nan_f64};
use crate::column::{ColumnRow, OutputRow};
use crate::memory::{Bits, In, Out, TableRow, ones};
use crate::target::{Lanes, Value, Wave};

kernel! {
    family "arithmetic", blocks 3 for arithmetic_b8 arithmetic_b16, blocks 2 for arithmetic_b8_two arithmetic_b16_two,
        threads 256 for arithmetic_b8 arithmetic_b8_two arithmetic_b16 arithmetic_b16_two;
    /// Arithmetic over the rows of columns.
    Arithmetic {
        /// The instructions: pushes and stores, the operations of `step`, and no others. A `detail` may have
        /// [`TURNED`], and the bits that a result is cut to; of the values at hand, only that before the newest is
        /// an operand, once.
        code: In<u64>,
        /// The number of instructions in `code`.
        steps: u64,
        /// A [`ColumnRow`](crate::column::ColumnRow) for each column.
        columns: In<u64>,
        /// An [`OutputRow`](crate::column::OutputRow) for each output.
        outputs: In<u64>,
        /// The number of rows; not 0.
        len: u64,
        /// The number of rows that a wave takes: a multiple of [`ROWS`].
        rows: u64,
        /// Lowered to the first row that fails, with the failing node in the lowest sixteen bits. May be
        /// absent.
        failed: Out<u64>,
    }
    waves |args, _| args.len.div_ceil(args.rows);
    /// The entries, by the bytes of a value and the number of values at hand.
    ARITHMETIC {
        arithmetic_b8 [8, 1] = arithmetic::<i64, 8, 1>,
        arithmetic_b8_two [8, 2] = arithmetic::<i64, 8, 2>,
        arithmetic_b16 [16, 1] = arithmetic::<i128, 4, 1>,
        arithmetic_b16_two [16, 2] = arithmetic::<i128, 4, 2>,
    }
}

/// The rows that the widest wave works on at once.
pub const ROWS: u64 = 64 * 8;

fn arithmetic<V: Word, const K: usize, const VALUES: usize>(args: &Arithmetic, wave: &mut Wave) {
    let Arithmetic { code, columns, outputs, len, failed, .. } = *args;
    let task = Task { code, columns, outputs, len, failed };
    let mut first = wave.index() * args.rows;
    let end = (first + args.rows).min(len);
    let mut state = State::<V, K, VALUES>::new(wave);
    // A block may have more waves than the launch has parts.
    while first < end {
        state.begin(Group { first, left: (end - first).min(ROWS) as u32 }, wave);
        let mut step = 0;
        while step < args.steps as u32 {
            let word = |i: u64| code.get(u64::from(step) * WORDS + i);
            let (first, low) = (word(0), word(1));
            let high = if V::WIDE { word(2) } else { 0 };
            state.step(&task, first, V::of((u128::from(high) << 64 | u128::from(low)) as i128), wave);
            step += 1;
        }
        first += u64::from(wave.width()) * K as u64;
    }
}

/// The values of a group of rows, and which are valid: lane `j` has the bits of the group's rows from `32 * j`
/// on. Bits past the last row are zero.
///
/// Only a push moves a value, since a move takes as long as an addition: the value before stays where it is when
/// an operation has read it, and nothing reads it again.
struct State<V: Copy, const K: usize, const VALUES: usize> {
    group: Group,
    there: Lanes<u32>,
    a: Values<V, K>,
    before: Values<V, K>,
    valid: Lanes<u32>,
    valid_before: Lanes<u32>,
}

impl<V: Word, const K: usize, const VALUES: usize> State<V, K, VALUES> {
    #[inline(always)]
    fn new(wave: &Wave) -> State<V, K, VALUES> {
        let (none, zero) = (wave.each(|_| [V::default(); K]), wave.each(|_| 0));
        let group = Group { first: 0, left: 0 };
        State { group, there: zero, a: none, before: none, valid: zero, valid_before: zero }
    }

    /// Goes on to a group. The values of the last one stay until the code replaces them.
    #[inline(always)]
    fn begin(&mut self, group: Group, wave: &Wave) {
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
    fn operand(
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
            NULL => (wave.each(|_| [V::default(); K]), wave.each(|_| 0)),
            _ if operand < Operand::I8 as u32 => (wave.each(|_| [constant; K]), self.there),
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
        let from = args.columns.input::<u8>(wave, row);
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
        let valid = args.columns.input::<u32>(wave, row + ColumnRow::VALID);
        if valid.is_absent() {
            return (values, self.there);
        }
        let offset = args.columns.get(row + ColumnRow::VALID_OFFSET);
        let (bits, there) = (Bits::new(valid, offset, args.len).window(self.group.first), self.there);
        (values, wave.each(move |l| bits.word(l.index()) & there.at(l)))
    }

    /// Loads the rows of a column, each passed through `widen`.
    #[inline(always)]
    fn load<T: Value>(&self, from: In<u8>, widen: impl Fn(T) -> V, wave: &Wave) -> Values<V, K> {
        let (from, width, left) = (from.cast::<T>().skip(self.group.first), wave.width(), self.group.left);
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
        let (out, width, left) = (out.cast::<T>().skip(self.group.first), wave.width(), self.group.left);
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

    /// Runs an instruction.
    #[inline(always)]
    fn step(&mut self, args: &Task, first: u64, constant: V, wave: &mut Wave) {
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
        const STORE: u32 = Op::Store as u32;
        let (op, operand) = (first as u32 & 0xff, first as u32 >> 8 & 0xff);
        let (slot, detail) = (u64::from(first as u32 >> 16), (first >> 32) as u32 & 0xff);
        let then = (first >> 40) as u32 & 0xff;
        let (wraps, unsigned) = (then == Bad::Wraps as u32, !V::WIDE && detail & u32::from(UNSIGNED) != 0);
        if op == STORE {
            return self.stored(args, (slot * OutputRow::ROW, detail), wave);
        }
        let (b, b_valid) = self.operand(args, (operand, slot), constant, wave);
        if op == PUSH {
            if VALUES > 1 {
                (self.before, self.valid_before) = (self.a, self.valid);
            }
            (self.a, self.valid) = (b, b_valid);
            return;
        }
        let valid = self.valid;
        self.valid = wave.each(move |l| valid.at(l) & b_valid.at(l));
        let (cut, turned) = (detail & CUT, detail & u32::from(TURNED) != 0);
        let how = (wraps || cut != 0, unsigned);
        let mut bad = match op {
            ADD => self.integers(b, how, V::add, wave),
            SUB if turned => self.integers(b, how, |a, b, unsigned| b.sub(a, unsigned), wave),
            SUB => self.integers(b, how, V::sub, wave),
            MUL => self.integers(b, how, V::mul, wave),
            XOR => self.each(b, |a, b| (a.xor(b), false), wave),
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
    }

    /// Makes bad rows null, or reports the first of each word. Null rows are never bad.
    fn treat(&mut self, args: &Task, bad: Lanes<u32>, (then, node): (u32, u64), wave: &mut Wave) {
        let mut masks = [wave.ballot(wave.each(|_| false)); K];
        for k in 0..K {
            let of_row = wave.each(move |l| bad.at(l) >> k & 1 != 0);
            masks[k] = wave.ballot(of_row);
        }
        let (words, valid) = (wave.words(&masks), self.valid);
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

    /// Writes the newest value to an output. The next instruction pushes another, or there is none.
    #[inline(always)]
    fn stored(&mut self, args: &Task, (row, width): (u64, u32), wave: &mut Wave) {
        let out = args.outputs.output::<u8>(wave, row);
        match width {
            0 => self.store(out, |x| x.low() as u8, wave),
            1 => self.store(out, |x| x.low() as u16, wave),
            2 => self.store(out, |x| x.low() as u32, wave),
            4 if V::WIDE => self.store(out, |x| x.wide() as u128, wave),
            _ => self.store(out, |x| x.low(), wave),
        }
        let out = args.outputs.output::<u32>(wave, row + OutputRow::VALID);
        if !out.is_absent() {
            let (out, valid) = (out.skip(self.group.first / 32), self.valid);
            let (words, left) = (K as u32 * wave.width() / 32, self.group.left);
            wave.each(move |l| {
                if l.index() < words && l.index() * 32 < left {
                    out.set(l, l.index().into(), valid.at(l));
                }
            });
        }
    }

    /// Sets `a` to `f(a, b)`, row by row, and returns which of a lane's rows are bad.
    #[inline(always)]
    fn each(&mut self, b: Values<V, K>, f: impl Fn(V, V) -> (V, bool), wave: &Wave) -> Lanes<u32> {
        let (made, bad) = pairs(self.a, b, f, wave);
        self.a = made;
        bad
    }

    /// Sets `a` to what an operation of integers makes of `a` and `b`.
    #[inline(always)]
    fn integers(
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
    fn fitted(&mut self, bits: u32, unsigned: bool, wave: &Wave) -> Lanes<u32> {
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
    fn doubles(&mut self, b: Values<V, K>, f: impl Fn(f64, f64) -> f64, wave: &Wave) -> Lanes<u32> {
        let call = |a: V, b: V| {
            let made = plain_nan_f64(f(f64::from_bits(a.low()), f64::from_bits(b.low())));
            (V::of_i64(made.to_bits() as i64), false)
        };
        self.each(b, call, wave)
    }

    #[inline(always)]
    fn singles(&mut self, b: Values<V, K>, f: impl Fn(f32, f32) -> f32, wave: &Wave) -> Lanes<u32> {
        let call = |a: V, b: V| {
            let made = plain_nan_f32(f(f32::from_bits(a.low() as u32), f32::from_bits(b.low() as u32)));
            (V::of_i64(i64::from(made.to_bits() as i32)), false)
        };
        self.each(b, call, wave)
    }
}

/// A flag in `detail` of differences and quotients: the operand is the left one, and the newest value the right
/// one.
pub const TURNED: u8 = 1;

/// The bits of `detail` that say to how many bits a result is cut, or that it is not.
const CUT: u32 = 0x78;
