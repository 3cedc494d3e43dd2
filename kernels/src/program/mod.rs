//! Programs: a whole predicate, projection or aggregate over columns of fixed width, in one launch.
//!
//! The one idea: what is to be computed is data. A program is a few instructions ([`code`]); a wave reads each once and does it
//! for all rows of a group, which it has in registers, several in each lane. So every expression there is runs on two
//! entries: values of eight bytes, and of sixteen.
//!
//! There are four values at hand, which are named variables, since what is found by a number would be in memory. Truth values
//! and which values are valid are bits of a lane, one for each of its rows, of which a register holds a whole stack.
//!
//! Rows go in parts of whole tiles ([`TILE`]), a part a wave. What aggregates leave for a part depends on the rows alone, not on
//! how many lanes there are: of sums of floats the order is 64 rows by halves (row 0 and row 32, …), then these one after
//! another.
//!
//! **The host is trusted with the code** (the binder made it, and its tests hold it to what is said here), as kernels trust it
//! with addresses. Columns are read at rows of the array only.

pub mod code;
mod reduce;
mod rows;
mod state;
mod step;
mod task;
pub mod word;

use crate::memory::{In, Out};
use crate::selection::{TILE, sizes};
use crate::target::Wave;
use code::{PART_WORDS, WORDS};
use reduce::Sums;
use state::State;
pub use task::{ColumnRow, OutputRow};
use task::{Group, Task};
use word::Word;

kernel! {
    family "program", blocks 2, threads 256 for program_b8 program_b16;
    /// A program over the rows of columns.
    Program {
        /// Instructions, and behind them constants.
        code: In<u64>,
        /// How many instructions.
        steps: u64,
        /// A [`ColumnRow`] for each column.
        columns: In<u64>,
        /// An [`OutputRow`] for each output.
        outputs: In<u64>,
        /// How many rows; not 0.
        len: u64,
        /// How many tiles a part has.
        tiles: u64,
        /// Kept rows, a bit each, as the words of a selection. May be absent.
        words: Out<u32>,
        /// How many each tile keeps, as a selection's.
        counts: Out<u32>,
        /// Their sums, as a selection's, zeroed before.
        sums: Out<u64>,
        /// How many aggregates.
        aggregates: u64,
        /// What each part leaves of each: [`PART_WORDS`] words. May be absent.
        parts: Out<u64>,
        /// Lowered to the first row that fails, and in the lowest sixteen bits who says so. May be absent.
        failed: Out<u64>,
    }
    waves |args, _| if args.words.is_absent() { parts(args.len, args.tiles) } else { sizes(args.len).counts.div_ceil(args.tiles) };
    /// By bytes of a value.
    PROGRAM {
        program_b8 [8] = run::<i64, 4>,
        program_b16 [16] = run::<i128, 2>,
    }
}

/// How many parts there are of so many rows, if each has so many tiles.
pub const fn parts(len: u64, tiles: u64) -> u64 {
    len.div_ceil(TILE).div_ceil(tiles)
}

/// How many tiles a part has where aggregates leave something for each: as many parts as keep a GPU busy, and no more than are
/// soon read.
pub const fn tiles(len: u64) -> u64 {
    let tiles = len.div_ceil(TILE).div_ceil(4096);
    if tiles == 0 { 1 } else { tiles }
}

fn run<V: Word, const K: usize>(args: &Program, wave: &mut Wave) {
    // Little is carried from group to group: the widest waves have the fewest registers for what all lanes share.
    let mut first = wave.index() * args.tiles * TILE;
    let mut tiles = args.tiles as u32;
    let mut sums = Sums::new(wave);
    while tiles > 0 {
        let mut kept = 0;
        loop {
            // A selection has a count for tiles that are not there, too: all of a run.
            if first < args.len {
                let left = (args.len - first).min(1 << 30) as u32;
                kept += group::<V, K>(args, Group { first, left }, &mut sums, wave);
            }
            first += u64::from(wave.width()) * K as u64;
            if first % TILE == 0 {
                break;
            }
        }
        if !args.words.is_absent() {
            let tile = first / TILE - 1;
            wave.once(|l| {
                args.counts.set(l, tile, kept);
                if kept != 0 {
                    args.sums.add(l, tile / crate::selection::GROUP, u64::from(kept));
                }
            });
        }
        tiles -= 1;
    }
    let part = wave.index();
    // A block has more waves than there may be parts.
    if !args.parts.is_absent() && part * args.tiles * TILE < args.len {
        let out = args.parts.skip(part * args.aggregates * PART_WORDS);
        sums.store::<V>(out, args.aggregates as u32, wave);
    }
}

/// Runs the program on a group, and says how many rows it keeps.
#[inline(always)]
fn group<V: Word, const K: usize>(args: &Program, rows: Group, sums: &mut Sums, wave: &mut Wave) -> u32 {
    let Program { code, columns, outputs, len, words, failed, .. } = *args;
    let task = Task { code, columns, outputs, len, words, failed };
    let mut state = State::<V, K>::new(rows, wave);
    let mut kept = 0;
    let mut step = 0;
    while step < args.steps as u32 {
        let word = |i: u64| args.code.get(u64::from(step) * WORDS + i);
        let (first, low) = (word(0), word(1));
        let high = if V::WIDE { word(2) } else { 0 };
        let constant = V::of((u128::from(high) << 64 | u128::from(low)) as i128);
        kept += state.step(&task, rows, first, constant, sums, wave);
        step += 1;
    }
    kept
}
