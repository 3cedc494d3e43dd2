//! Programs: whole predicates, projections and aggregates over columns of fixed width.
//!
//! The one idea: the computation is data. A program is a list of instructions ([`code`]); a wave reads each
//! instruction once and runs it for all rows of a group, which it holds in registers, several in each lane.
//! So two entries run every expression: one for values of eight bytes, one for values of sixteen. A third
//! entry ([`predicate`]) runs before them or instead of them: it tests columns against constants ([`terms`]),
//! needs no stack of values, and so reads an instruction once for a whole tile. Programs that only calculate
//! and compare have entries of their own ([`arithmetic`]).
//!
//! A wave keeps four values. They are named variables, since a compiler puts an array with a variable index
//! into memory. Truth values and validity are bits of a lane, one for each of its rows; one register holds a
//! whole stack of them.
//!
//! Each wave takes a part, which is a number of whole tiles ([`TILE`]). An aggregate's result for a part
//! depends on the rows alone, not on the number of lanes: a sum of floats adds each 64 rows by halves (row 0
//! and row 32, …), then adds those sums one after another.
//!
//! **The kernel trusts the host with the code**, as kernels trust it with addresses: the binder makes the
//! code, and its tests hold it to these rules. A program reads columns only at rows of the array.

pub mod arithmetic;
mod chosen;
pub mod code;
pub mod predicate;
mod reduce;
mod registers;
mod rows;
mod state;
mod step;
mod task;
pub mod terms;
pub mod word;

use crate::memory::{In, Out};
use crate::select::selection::{TILE, sizes};
use crate::target::Wave;
use chosen::Chosen;
use code::{PART_WORDS, WORDS};
use reduce::Sums;
use state::State;
use task::{COUNTS, GROUP_SUMS, Group, Task};
use word::Word;

kernel! {
    family "program", blocks 2 for program_b8 program_b16, threads 256 for program_b8 program_b16;
    /// A program over the rows of columns.
    Program {
        /// The instructions, followed by the constants.
        code: In<u64>,
        /// The number of instructions in `code`.
        steps: u64,
        /// A [`ColumnRow`](crate::column::ColumnRow) for each column.
        columns: In<u64>,
        /// An [`OutputRow`](crate::column::OutputRow) for each output. A selection has the rows of
        /// [`selection_outputs`]. Aggregates
        /// have one row, whose values are [`PART_WORDS`] words for each aggregate of each part.
        outputs: In<u64>,
        /// The number of rows; not 0.
        len: u64,
        /// The number of tiles in a part.
        tiles: u64,
        /// Not 0 where the program is a selection.
        selects: u64,
        /// The number of aggregates; may be 0.
        aggregates: u64,
        /// The rows to aggregate, as [`Predicate`](predicate::Predicate) leaves them. May be absent.
        chosen: In<u32>,
        /// The most rows of a tile that lanes look up one by one; 0 where a sum depends on the rows'
        /// positions.
        few: u64,
        /// Lowered to the first row that fails, with the failing node in the lowest sixteen bits. May be
        /// absent.
        failed: Out<u64>,
    }
    waves |args, _| if args.selects == 0 { parts(args.len, args.tiles) } else { sizes(args.len).counts.div_ceil(args.tiles) };
    /// The entries, by the bytes of a value.
    PROGRAM {
        program_b8 [8] = run::<i64, 4>,
        program_b16 [16] = run::<i128, 2>,
    }
}

/// The number of parts that `len` rows make, at `tiles` tiles a part.
pub const fn parts(len: u64, tiles: u64) -> u64 {
    len.div_ceil(TILE).div_ceil(tiles)
}

/// The most rows of a tile that lanes should look up one by one: a lookup takes as long as four rows of work.
pub const FEW: u64 = TILE / 4;

/// The number of tiles in a part where aggregates leave a result for each: enough parts to keep a GPU busy,
/// and few enough to read back quickly.
pub const fn tiles(len: u64) -> u64 {
    let tiles = len.div_ceil(TILE).div_ceil(4096);
    if tiles == 0 { 1 } else { tiles }
}

#[inline(always)]
fn run<V: Word, const K: usize>(args: &Program, wave: &mut Wave) {
    // Little state goes from group to group: the widest waves have the fewest registers for what all lanes
    // share.
    let mut first = wave.index() * args.tiles * TILE;
    let mut tiles = args.tiles as u32;
    let mut sums = Sums::new(wave);
    while tiles > 0 {
        let mut kept = 0;
        // A selection counts every tile of a run, also the tiles past the last row.
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
                    sums.add(l, tile / crate::select::selection::GROUP, u64::from(kept));
                }
            });
        }
        first += TILE;
        tiles -= 1;
    }
    let part = wave.index();
    // A block may have more waves than the launch has parts.
    if args.aggregates != 0 && part * args.tiles * TILE < args.len {
        let out = args.outputs.output(wave, 0).skip(part * args.aggregates * PART_WORDS);
        sums.store::<V>(out, args.aggregates as u32, wave);
    }
}

/// Runs the program on the rows of a tile, and returns how many rows it keeps.
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

host_only! {
    pub use task::selection_outputs;

    /// The tables of entries of this module.
    pub(crate) static TABLES: &[&dyn crate::target::Table] = &[&PROGRAM, &predicate::PREDICATE, &arithmetic::ARITHMETIC];
}
