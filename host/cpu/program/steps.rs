//! The steps of a plan on a chunk of rows, and the memory for their results.

use bowstring_kernels::map::function::{F16, Number};
use bowstring_kernels::program::code::Bad;
use bowstring_kernels::program::word::{civil, plain_nan_f32, plain_nan_f64};

use super::asked::{Asked, Rows, asked};
use super::blocks::{self, BLOCK, CHUNK, SMALL, inside};
use super::compare;
use super::numbers::{by_any, by_number, from_raw};
use super::ranges::{Range, ranges};
use super::slots::{Scratch, Slot, WORDS};
use super::values::{arithmetic, choose, each_to, multiply, negate, scaled_quotients, widen};
use crate::array::{Buffer, DeviceArray};
use crate::cpu::bitmap::Bits;
use crate::cpu::selection::PARALLEL;
use crate::cpu::{intrinsics, memory, rows};
use crate::device::{HostPool, Reserved};
use crate::expr::plan::{Bound, Id, Op, Plan};
use crate::expr::print::short;
use crate::expr::range::in_order;
use crate::expr::{Arithmetic, DatePart};
use crate::{Error, Failure, Result};

/// The longest list whose values are compared with each row one by one, in vectors; longer lists are
/// searched.
const FEW: usize = 64;

/// A column in the form that steps read.
enum Column<'a> {
    Unread,
    Truths(Bits<'a>, Option<Bits<'a>>),
    Numbers(Buffer, usize, Option<Bits<'a>>),
}

/// A plan bound to its columns.
pub(super) struct Machine<'a> {
    plan: &'a Plan,
    columns: Vec<Column<'a>>,
    ranges: Vec<Option<Range>>,
    asked: Vec<Asked>,
    /// The rows of a chunk.
    pub chunk: usize,
    pool: &'a HostPool,
    /// Accounts for the plan's own memory.
    _plan: Reserved,
}

impl<'a> Machine<'a> {
    pub fn new(
        plan: &'a Plan,
        columns: &'a [DeviceArray],
        rows: usize,
        pool: &'a HostPool,
    ) -> Result<Machine<'a>> {
        let taken = pool.reserve(plan.bytes())?;
        let mut read: Vec<Column<'a>> = columns.iter().map(|_| Column::Unread).collect();
        for (id, node) in plan.nodes.iter().enumerate() {
            let Some(index) = node.column() else { continue };
            let column = &columns[index];
            let valid = rows::validity(column);
            read[index] = match plan.number(id) {
                Number::Bit => Column::Truths(rows::booleans(column), valid),
                number => {
                    let width = number.width();
                    let values =
                        column.buffers()[0].slice(column.offset() * width, Some(column.len() * width));
                    Column::Numbers(memory::aligned(&values, width, pool)?, width, valid)
                }
            };
        }
        let ranges = ranges(plan);
        let asked = asked(plan, &ranges);
        let chunk = chunk(plan, rows);
        Ok(Machine { plan, columns: read, ranges, asked, chunk, pool, _plan: taken })
    }

    /// Reserves the bitmaps of `threads` threads; numbers are in the pool's own memory.
    pub fn room(&self, threads: usize) -> Result<Reserved> {
        let asked = self.asked.iter().filter(|asked| **asked != Asked::Nothing).count();
        self.pool.reserve((asked * 16 * WORDS).saturating_mul(threads))
    }

    /// Allocates the results of a chunk, and fills in constants.
    pub fn scratch<'o>(&self) -> Result<Scratch<'_, 'o>> {
        let slot = |(id, node): (Id, &Bound)| {
            if self.asked[id] == Asked::Nothing {
                return Ok(Slot::default());
            }
            let number = self.plan.number(id);
            let mut slot = Slot { all_valid: true, valid: vec![0; WORDS], ..Slot::default() };
            let rows = own_rows(&node.op, self.chunk);
            if number == Number::Bit {
                slot.truth = vec![0; WORDS];
            } else {
                slot.width = number.width();
                slot.own = if rows > 0 { Some(self.pool.alloc(rows * slot.width)?) } else { None };
            }
            if let Op::Literal(value) = node.op {
                slot.constant = true;
                slot.all_valid = value.is_some();
                let raw = value.unwrap_or(0);
                match number {
                    Number::Bit => slot.truth.fill(if raw != 0 { !0 } else { 0 }),
                    number => {
                        by_any!(number, T => blocks::fill::<T>(raw, slot.numbers()))
                    }
                }
            }
            Ok(slot)
        };
        Ok(Scratch { slots: self.plan.nodes.iter().enumerate().map(slot).collect::<Result<_>>()? })
    }

    /// Computes all needed nodes, for `count` rows from `first` on. The first row that fails is an error.
    pub fn run<'s>(&'s self, scratch: &mut Scratch<'s, '_>, first: usize, count: usize) -> Result<()> {
        let words = count.div_ceil(64);
        let mut failed: Option<(usize, Id)> = None;
        let mut bad = [0u64; WORDS];
        let all = Rows::all(count);
        let mut some = None;
        for (id, asked) in self.asked.iter().enumerate() {
            let (before, rest) = scratch.slots.split_at_mut(id);
            let slot = &mut rest[0];
            let rows = match asked {
                Asked::Nothing => continue,
                Asked::All => &all,
                Asked::Where(guard) => {
                    // The mask is usually that of the node before.
                    if some.as_ref().is_none_or(|(of, _)| of != guard) {
                        let (of, unknown) = (&before[guard.of], mask(u8::from(guard.unknown)));
                        let rows = Rows::of(count, |k| of.truth[k] | !of.known(k) & unknown);
                        some = Some((*guard, rows));
                    }
                    &some.as_ref().expect("there now").1
                }
            };
            if rows.asked == 0 {
                slot.skipped();
                continue;
            }
            let then = self.step(id, before, slot, first, rows, &mut bad[..words]);
            let is_bad = |bad: &[u64; WORDS]| bad[..words].iter().any(|word| *word != 0);
            if then == Bad::Wraps || !is_bad(&bad) {
                continue;
            }
            for (k, word) in bad[..words].iter_mut().enumerate() {
                *word &= slot.known(k) & inside(count, k);
            }
            if !is_bad(&bad) {
                continue;
            }
            if then == Bad::Null {
                let known: [u64; WORDS] = std::array::from_fn(|k| slot.known(k));
                slot.set_valid(|k| known[k] & !bad.get(k).filter(|_| k < words).unwrap_or(&0));
                continue;
            }
            let counts = |k: usize| {
                // Nodes of the condition itself are bound before it and fail at any row; later nodes fail
                // only at rows that it keeps.
                self.plan.condition.filter(|condition| *condition < id).map_or(!0, |condition| {
                    let slot = &scratch.slots[condition];
                    slot.truth[k] & slot.known(k)
                })
            };
            let row = (0..words).find_map(|k| {
                let word = bad[k] & counts(k);
                (word != 0).then(|| k * 64 + word.trailing_zeros() as usize)
            });
            if let Some(row) = row
                && failed.is_none_or(|(earlier, _)| row < earlier)
            {
                failed = Some((row, id));
            }
        }
        match failed {
            None => Ok(()),
            Some((row, id)) => {
                let (node, width) = (&self.plan.nodes[id], self.plan.number(id).width());
                let failure = match self.plan.failure(id) {
                    Failure::Either => {
                        let divisors = scratch.slots[node.inputs[1]].view().bytes;
                        let is_zero = divisors[row * width..][..width].iter().all(|byte| *byte == 0);
                        if is_zero { Failure::DivisionByZero } else { Failure::Overflow }
                    }
                    known => known,
                };
                Err(Error::Evaluation { row: first + row, expression: short(&node.written), failure })
            }
        }
    }

    /// Computes a node. Sets the bits of bad rows, and returns how those are treated.
    fn step<'s>(
        &'s self,
        id: Id,
        before: &[Slot<'s, '_>],
        slot: &mut Slot<'s, '_>,
        first: usize,
        rows: &Rows,
        bad: &mut [u64],
    ) -> Bad {
        let node = &self.plan.nodes[id];
        let number = self.plan.number(id);
        let (one, two, three);
        let inputs: &[&Slot<'s, '_>] = match node.inputs[..] {
            [] => &[],
            [a] => {
                one = [&before[a]];
                &one
            }
            [a, b] => {
                two = [&before[a], &before[b]];
                &two
            }
            [a, b, c, ..] => {
                three = [&before[a], &before[b], &before[c]];
                &three
            }
        };
        let (count, words) = (rows.all, rows.all.div_ceil(64));
        let asked = &rows.words[..words];
        if let Some(range) = &self.ranges[id] {
            let of = &before[range.of];
            self.within(range, of, asked, &mut slot.truth[..words]);
            slot.valid_as(&[of]);
            slot.masked();
            return Bad::Wraps;
        }
        match (&node.op, inputs) {
            (Op::Literal(_), _) => {}
            (Op::Column(index) | Op::Checked(index), _) => self.column(*index, slot, first, count),
            (Op::Compare(how), &[a, b]) => {
                self.compare(*how, node.inputs[0], a, b, &mut slot.truth[..words]);
                slot.valid_as(&[a, b]);
                slot.masked();
            }
            (Op::Distinct(how), &[a, b]) => {
                self.compare(*how, node.inputs[0], a, b, &mut slot.truth[..words]);
                slot.all_valid = true;
                let (same, other) = (mask(how >> 1 & 1), mask(how & 1));
                for (k, word) in slot.truth[..words].iter_mut().enumerate() {
                    let (a, b) = (a.known(k), b.known(k));
                    *word = *word & a & b | !a & !b & same | (a ^ b) & other;
                }
            }
            (Op::In(values), &[a]) => {
                let of = self.plan.number(node.inputs[0]);
                let out = &mut slot.truth[..words];
                by_any!(of, T => match values.len() {
                    ..=FEW => {
                        let values: Vec<T> = values.iter().map(|raw| from_raw::<T>(*raw)).collect();
                        compare::among(a.view(), &values, out);
                    }
                    _ => compare::among_many::<T>(a.view(), |key| {
                        values.binary_search_by_key(&key, |value| in_order(*value, of)).is_ok()
                    }, out),
                });
                slot.valid_as(&[a]);
                slot.masked();
            }
            (Op::Valid(null), &[a]) => {
                let flip = mask(u8::from(*null));
                slot.truth.iter_mut().enumerate().for_each(|(k, word)| *word = a.known(k) ^ flip);
            }
            (Op::And, &[a, b]) => {
                slot.logic(&[a, b], |[at, ak], [bt, bk]| {
                    let no = ak & !at | bk & !bt;
                    [at & bt, ak & bk | no]
                });
            }
            (Op::Or, &[a, b]) => slot.logic(&[a, b], |[at, ak], [bt, bk]| [at | bt, ak & bk | at | bt]),
            (Op::Not, &[a]) => slot.logic(&[a, a], |[t, k], _| [!t & k, k]),
            (Op::Test(bits), &[a]) => {
                let [no, yes, null] = [0, 1, 2].map(|bit| mask(bits >> bit & 1));
                slot.logic(&[a, a], |[t, k], _| [t & yes | k & !t & no | !k & null, !0]);
            }
            (Op::Select, &[c, a, b]) if number == Number::Bit => {
                let blend = |c: u64, a: u64, b: u64| c & a | !c & b;
                for k in 0..words {
                    slot.truth[k] = blend(c.truth[k], a.truth[k], b.truth[k]);
                }
                slot.set_valid(|k| blend(c.truth[k], a.known(k), b.known(k)));
            }
            (Op::Coalesce, &[a, b]) if number == Number::Bit => {
                slot.logic(&[a, b], |[at, ak], [bt, bk]| [at | !ak & bt, ak | bk]);
            }
            (Op::NullIf, &[a, c]) if number == Number::Bit => {
                slot.logic(&[a, c], |[t, k], [ct, _]| [t & !ct, k & !ct]);
            }
            (Op::Select, &[c, a, b]) => {
                choose(number, &c.truth[..words], a, b, slot);
                slot.all_valid = a.all_valid && b.all_valid;
                if !slot.all_valid {
                    slot.set_valid(|k| c.truth[k] & a.known(k) | !c.truth[k] & b.known(k));
                }
            }
            (Op::Coalesce, &[a, b]) => {
                let own: [u64; WORDS] = std::array::from_fn(|k| a.known(k));
                choose(number, &own[..words], a, b, slot);
                slot.all_valid = a.all_valid || b.all_valid;
                if !slot.all_valid {
                    slot.set_valid(|k| a.known(k) | b.known(k));
                }
            }
            (Op::NullIf, &[a, c]) => {
                let all = [!0; WORDS];
                choose(number, &all[..words], a, a, slot);
                slot.set_valid(|k| a.known(k) & !c.truth[k]);
            }
            (Op::Arithmetic(op, then), &[a, b]) => {
                slot.valid_as(&[a, b]);
                let out = slot.numbers();
                match op {
                    Arithmetic::Mul => multiply(number, a.view(), b.view(), asked, out, bad),
                    op => arithmetic(*op, number, a.view(), b.view(), out, bad),
                }
                return *then;
            }
            (Op::Arithmetic(_, then), &[a, b, by]) => {
                slot.valid_as(&[a, b]);
                scaled_quotients(number, [a, b, by].map(Slot::view), slot.numbers(), bad);
                return *then;
            }
            (Op::Scaled(then), &[a, power, other]) => {
                slot.valid_as(&[a, other]);
                let out = slot.numbers();
                multiply(number, a.view(), power.view(), asked, out, bad);
                return *then;
            }
            (Op::Negate(then), &[a]) => {
                slot.valid_as(&[a]);
                let out = slot.numbers();
                negate(number, a.view(), out, bad);
                if matches!(number, Number::F16 | Number::F32 | Number::F64) {
                    return Bad::Wraps;
                }
                return *then;
            }
            (Op::Plain, &[a]) => {
                slot.valid_as(&[a]);
                let out = slot.numbers();
                match number {
                    Number::F32 => {
                        blocks::each(a.view(), out, |x: f32| if x == 0.0 { 0.0 } else { plain_nan_f32(x) })
                    }
                    _ => blocks::each(a.view(), out, |x: f64| if x == 0.0 { 0.0 } else { plain_nan_f64(x) }),
                }
            }
            (Op::Widen, &[a]) => {
                slot.valid_as(&[a]);
                widen(self.plan.number(node.inputs[0]), number, a.view(), count, slot);
            }
            (Op::Within(low, high), &[a]) => {
                let (of, ends) = (a.view(), [i128::from(*low), i128::from(*high)]);
                let mut within = [0; WORDS];
                match number {
                    Number::I32 => compare::within::<i32>(of, ends, 0, &mut within[..words]),
                    _ => compare::within::<i64>(of, ends, 0, &mut within[..words]),
                }
                choose(number, &[!0; WORDS][..words], a, a, slot);
                slot.set_valid(|k| a.known(k) & within[k]);
            }
            (Op::FloorDiv(by), &[a]) => {
                slot.valid_as(&[a]);
                let by = *by;
                each_to(number, a.view(), slot, |x| x.div_euclid(by));
            }
            (Op::FloorRem(by), &[a]) => {
                slot.valid_as(&[a]);
                let by = *by;
                each_to(number, a.view(), slot, |x| x.rem_euclid(by));
            }
            (Op::Date(part), &[a]) => {
                slot.valid_as(&[a]);
                let part = *part;
                each_to(number, a.view(), slot, |x| {
                    let (year, month, day) = civil(x);
                    match part {
                        DatePart::Year => year,
                        DatePart::Month => month,
                        _ => day,
                    }
                });
            }
            (op, _) => unreachable!("{op:?} is no step"),
        }
        Bad::Wraps
    }

    fn column<'s>(&'s self, index: usize, slot: &mut Slot<'s, '_>, first: usize, count: usize) {
        let read = |bits: &Bits<'_>, out: &mut [u64]| {
            let (skip, bits) = (first % 64, bits);
            debug_assert_eq!(skip, 0, "chunks start at whole words");
            intrinsics::read_words(*bits, first / 64, &mut out[..count.div_ceil(64)], |_, word| word);
        };
        let valid = match &self.columns[index] {
            Column::Truths(bits, valid) => {
                read(bits, &mut slot.truth);
                valid
            }
            Column::Numbers(buffer, width, valid) => {
                slot.shared = Some(&memory::bytes(buffer)[first * width..][..count * width]);
                valid
            }
            Column::Unread => unreachable!("a plan's columns are read"),
        };
        if let Some(valid) = valid {
            slot.all_valid = false;
            read(valid, &mut slot.valid);
        }
        if slot.width == 0 {
            slot.masked();
        }
    }

    fn compare(&self, how: u8, of: Id, a: &Slot<'_, '_>, b: &Slot<'_, '_>, out: &mut [u64]) {
        match self.plan.number(of) {
            Number::Bit => {
                for (k, word) in out.iter_mut().enumerate() {
                    let (a, b) = (a.truth[k], b.truth[k]);
                    *word = !a & b & mask(how & 1) | !(a ^ b) & mask(how >> 1 & 1) | a & !b & mask(how >> 2);
                }
            }
            Number::I128 => compare::compare_wide(how, a.view(), b.view(), out),
            number => by_any!(number, T => compare::compare::<T>(how, a.view(), b.view(), out)),
        }
    }

    fn within(&self, range: &Range, of: &Slot<'_, '_>, asked: &[u64], out: &mut [u64]) {
        let (values, not) = (of.view(), mask(u8::from(range.not)));
        // The test is the same for unsigned integers, so the code for signed ones serves both.
        match self.plan.number(range.of).signed() {
            Number::I128 => compare::within_wide(values, range.ends, not, asked, out),
            number => by_number!(
                number,
                [I8 i8, I16 i16, I32 i32, I64 i64, F16 F16, F32 f32, F64 f64],
                T => compare::within::<T>(values, range.ends, not, out)
            ),
        }
    }
}

/// Returns the rows of a chunk. Many rows come from memory, whatever a chunk's size, and one column of
/// numbers is not read again, so fewer chunks are better.
fn chunk(plan: &Plan, rows: usize) -> usize {
    let numbers = |(id, node): &(Id, &Bound)| plan.number(*id) != Number::Bit && computes(&node.op);
    if rows >= PARALLEL || plan.nodes.iter().enumerate().filter(numbers).count() < 2 { CHUNK } else { SMALL }
}

/// Whether a node's results are computed for each row.
fn computes(op: &Op) -> bool {
    !matches!(op, Op::Literal(_) | Op::Column(_) | Op::Checked(_))
}

/// Returns the rows that a node's results need memory for.
fn own_rows(op: &Op, chunk: usize) -> usize {
    match op {
        Op::Literal(_) => BLOCK,
        _ if computes(op) => chunk,
        _ => 0,
    }
}

/// Returns a word of all ones or all zeros.
fn mask(bit: u8) -> u64 {
    u64::from(bit & 1).wrapping_neg()
}
