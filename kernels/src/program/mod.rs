//! Programs: whole predicates, projections and aggregates over columns of fixed width.
//!
//! The one idea: what is to be computed is data. A program is a few instructions ([`code`]); a wave reads each once and does it
//! for all rows of a group, which it has in registers, several in each lane. So every expression there is runs on two
//! entries: values of eight bytes, and of sixteen. Before them, or instead of them, goes a third ([`predicate`]): tests of columns
//! against constants ([`terms`]), which need no values at hand and so read an instruction once for a whole tile.
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

mod chosen;
pub mod code;
pub mod predicate;
mod reduce;
mod rows;
mod state;
mod step;
mod task;
pub mod terms;
pub mod word;

use crate::memory::{In, Out};
use crate::selection::{TILE, sizes};
use crate::target::Wave;
use chosen::Chosen;
use code::{PART_WORDS, WORDS};
use reduce::Sums;
use state::State;
use task::{COUNTS, GROUP_SUMS, Group, Task};
pub use task::{ColumnRow, OutputRow};
use word::Word;

kernel! {
    family "program", blocks 2 for program_b8 program_b16, threads 256 for program_b8 program_b16;
    /// A program over the rows of columns.
    Program {
        /// Instructions, and behind them constants.
        code: In<u64>,
        /// How many instructions.
        steps: u64,
        /// A [`ColumnRow`] for each column.
        columns: In<u64>,
        /// An [`OutputRow`] for each output; of a selection the rows [`OutputRow::selection`]; of aggregates, as values of the
        /// first, what each part leaves of each: [`PART_WORDS`] words.
        outputs: In<u64>,
        /// How many rows; not 0.
        len: u64,
        /// How many tiles a part has.
        tiles: u64,
        /// Whether it is a selection.
        selects: u64,
        /// How many aggregates. May be none.
        aggregates: u64,
        /// Which rows aggregates are of, as [`Predicate`](predicate::Predicate) leaves them. May be absent.
        chosen: In<u32>,
        /// How many of a tile are so few that lanes look theirs up; none where a sum depends on where rows are.
        few: u64,
        /// Lowered to the first row that fails, and in the lowest sixteen bits who says so. May be absent.
        failed: Out<u64>,
    }
    waves |args, _| if args.selects == 0 { parts(args.len, args.tiles) } else { sizes(args.len).counts.div_ceil(args.tiles) };
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

/// Of a tile, as many rows as lanes had better look up: to look for one is as long as to do something to four.
pub const FEW: u64 = TILE / 4;

/// How many tiles a part has where aggregates leave something for each: as many parts as keep a GPU busy, and no more than are
/// soon read.
pub const fn tiles(len: u64) -> u64 {
    let tiles = len.div_ceil(TILE).div_ceil(4096);
    if tiles == 0 { 1 } else { tiles }
}

#[inline(always)]
fn run<V: Word, const K: usize>(args: &Program, wave: &mut Wave) {
    // Little is carried from group to group: the widest waves have the fewest registers for what all lanes share.
    let mut first = wave.index() * args.tiles * TILE;
    let mut tiles = args.tiles as u32;
    let mut sums = Sums::new(wave);
    while tiles > 0 {
        let mut kept = 0;
        // A selection has a count for tiles that are not there, too: all of a run.
        if first < args.len {
            let left = (args.len - first).min(TILE) as u32;
            kept = tile::<V, K>(args, Group { first, left }, &mut sums, wave);
        }
        if args.selects != 0 {
            let tile = first / TILE;
            let (counts, sums) = (args.outputs.output(wave, COUNTS), args.outputs.output(wave, GROUP_SUMS));
            wave.once(|l| {
                counts.set(l, tile, kept);
                if kept != 0 {
                    sums.add(l, tile / crate::selection::GROUP, u64::from(kept));
                }
            });
        }
        first += TILE;
        tiles -= 1;
    }
    let part = wave.index();
    // A block has more waves than there may be parts.
    if args.aggregates != 0 && part * args.tiles * TILE < args.len {
        let out = args.outputs.output(wave, 0).skip(part * args.aggregates * PART_WORDS);
        sums.store::<V>(out, args.aggregates as u32, wave);
    }
}

/// Runs the program on the rows of a tile, and says how many it keeps.
#[inline(always)]
fn tile<V: Word, const K: usize>(args: &Program, tile: Group, sums: &mut Sums, wave: &mut Wave) -> u32 {
    let Program { code, columns, outputs, len, failed, .. } = *args;
    let task = Task { code, columns, outputs, len, failed };
    let chosen =
        if args.chosen.is_absent() { Chosen::all(wave) } else { Chosen::of(args.chosen, tile, wave) };
    let few = chosen.total <= args.few as u32;
    let end = if few { chosen.total } else { tile.left };
    let (mut kept, mut at) = (0, 0);
    while at < end {
        let rows = if few { tile } else { Group { first: tile.first + u64::from(at), left: tile.left - at } };
        let (of_lanes, active) = if few {
            chosen.looked_up::<K>(at, wave)
        } else {
            let (rows, there) = rows.all::<K>(wave);
            (rows, if chosen.are_all() { there } else { chosen.bits::<K>(there, at, wave) })
        };
        let mut state = State::<V, K>::new(rows, of_lanes, active, wave);
        let mut step = 0;
        while step < args.steps as u32 {
            let word = |i: u64| args.code.get(u64::from(step) * WORDS + i);
            let (first, low) = (word(0), word(1));
            let high = if V::WIDE { word(2) } else { 0 };
            let constant = V::of((u128::from(high) << 64 | u128::from(low)) as i128);
            kept += state.step(&task, first, constant, sums, wave);
            step += 1;
        }
        at += wave.width() * K as u32;
    }
    kept
}
