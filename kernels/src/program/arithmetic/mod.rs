//! Programs of arithmetic and comparisons: a few columns and constants, and nothing that chooses among rows.
//!
//! The one idea: most projections add, subtract, multiply and divide, most predicates compare, and both need
//! two values at hand. So a lane has twice the rows that it has in [`run`](super::PROGRAM), and pays for
//! reading an instruction half as often. Validity and truths stay in words of bits, as memory has them: a
//! lane holds one word, and instructions combine words. Rows are told apart only where one of a group is bad,
//! or past the last row.

mod state;
mod step;
mod truths;

use super::code::WORDS;
use super::task::{COUNTS, GROUP_SUMS, Group, Task};
use super::word::Word;
use crate::memory::{In, Out};
use crate::select::selection::{GROUP, sizes};
use crate::target::Wave;
use state::State;
use truths::Truths;

kernel! {
    family "arithmetic", blocks 3 for arithmetic_b8 arithmetic_b16,
        blocks 2 for arithmetic_b8_two arithmetic_b16_two,
        threads 256 for arithmetic_b8 arithmetic_b8_two arithmetic_b16 arithmetic_b16_two;
    /// Arithmetic over the rows of columns.
    Arithmetic {
        /// The instructions: those of `step`, and no others. A `detail` may have [`TURNED`] or [`KEYED`], and
        /// the bits that a result is cut to. An operand may be the value before the newest, which is read
        /// once. After a comparison no value is at hand.
        ///
        /// [`TURNED`]: super::code::TURNED
        /// [`KEYED`]: super::code::KEYED
        code: In<u64>,
        /// The number of instructions in `code`.
        steps: u64,
        /// A [`ColumnRow`](crate::column::ColumnRow) for each column.
        columns: In<u64>,
        /// An [`OutputRow`](crate::column::OutputRow) for each output. A selection has the rows of
        /// [`selection_outputs`](super::selection_outputs).
        outputs: In<u64>,
        /// The number of rows; not 0.
        len: u64,
        /// The number of rows that a wave takes: a multiple of [`ROWS`], and a whole tile in a selection.
        rows: u64,
        /// Not 0 where the program is a selection.
        selects: u64,
        /// Lowered to the first row that fails, with the failing node in the lowest sixteen bits. May be
        /// absent.
        failed: Out<u64>,
    }
    waves |args, _| if args.selects == 0 { args.len.div_ceil(args.rows) } else { sizes(args.len).counts };
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

/// The most truths that a program may have at once.
pub const TRUTHS: u32 = 3;

fn arithmetic<V: Word, const K: usize, const VALUES: usize>(args: &Arithmetic, wave: &mut Wave) {
    let Arithmetic { code, columns, outputs, len, failed, .. } = *args;
    let task = Task { code, columns, outputs, len, failed };
    let mut first = wave.index() * args.rows;
    let end = (first + args.rows).min(len);
    let (mut state, mut kept) = (State::<V, K, VALUES>::new(wave), 0);
    let mut truths = Truths::new(wave);
    // A block may have more waves than the launch has parts.
    while first < end {
        state.begin(Group { first, left: (end - first).min(ROWS) as u32 }, wave);
        let mut step = 0;
        while step < args.steps as u32 {
            let word = |i: u64| code.get(u64::from(step) * WORDS + i);
            let (first, low) = (word(0), word(1));
            let high = if V::WIDE { word(2) } else { 0 };
            let constant = V::of((u128::from(high) << 64 | u128::from(low)) as i128);
            kept += state.step(&task, first, constant, &mut truths, wave);
            step += 1;
        }
        first += u64::from(wave.width()) * K as u64;
    }
    let tile = wave.index();
    if args.selects != 0 && tile < sizes(len).counts {
        let (counts, sums) = (outputs.output(wave, COUNTS), outputs.output(wave, GROUP_SUMS));
        wave.once(|l| {
            counts.set(l, tile, kept);
            if kept != 0 {
                sums.add(l, tile / GROUP, u64::from(kept));
            }
        });
    }
}
