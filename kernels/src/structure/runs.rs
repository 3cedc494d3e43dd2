//! Runs: which one each row is in, what a filter leaves of them, and runs made of rows.
//!
//! Where runs end is data of a stranger: an end less than nothing is 0, a row that no run has and ends that go back are reported.
//! A row finds its run by a search, so rows cost the logarithm of the runs, in any order.

use super::{NONE, Selected, store, tile};
use crate::memory::{Bits, In, Out};
use crate::scan::TILE;
use crate::target::{Value, Wave};

kernel! {
    family "structure";
    /// The run of each row, by its number.
    Find {
        /// Where runs end.
        ends: In<u8>,
        /// How many there are; not 0.
        runs: u64,
        /// How many rows of the runs come before the first.
        offset: u64,
        /// The rows that are looked for; signed ones MUST come with `limit` no more than their greatest value plus one. Absent
        /// where that is all rows, one after the other.
        indices: In<u8>,
        /// Bytes of an index.
        width: u64,
        /// From `In::bitmap`: which indices are valid. May be absent.
        valid: In<u32>,
        /// From `In::bitmap`.
        valid_offset: u64,
        /// How many rows are looked for.
        rows: u64,
        /// How many rows there are.
        limit: u64,
        /// The run of each, [`NONE`] where the index is null or no row, or no run has the row.
        out: Out<u64>,
        /// Receives the first row whose index is out of bounds: `u64::MAX` before.
        index_fault: Out<u64>,
        /// Receives the first row that no run has: `u64::MAX` before.
        fault: Out<u64>,
    }
    waves |args, _| args.rows.div_ceil(TILE);
    /// By the width of an end in bytes.
    FIND {
        structure_find_b2 [2] = find::<u16>,
        structure_find_b4 [4] = find::<u32>,
        structure_find_b8 [8] = find::<u64>,
    }
}

kernel! {
    family "structure";
    /// Where the runs of rows end among those that a selection keeps, and which runs that leaves any of.
    Kept {
        /// Where runs end.
        ends: In<u8>,
        /// How many there are; not 0.
        runs: u64,
        /// How many rows of the runs come before the first.
        offset: u64,
        /// The selection (`In::bitmap`).
        words: In<u32>,
        /// Its bit offset.
        words_offset: u64,
        /// From [`Offsets`](crate::selection::Offsets). Absent where all rows are kept: then nobody looks at the selection.
        tile_offsets: In<u64>,
        /// How many rows there are; not 0.
        rows: u64,
        /// Where each run ends then.
        out: Out<u8>,
        /// Whole words: a bit for each run that has rows left.
        left: Out<u32>,
        /// Receives the first run that ends before the one before it, and the first row that no run has: `u64::MAX` before.
        faults: Out<u64>,
    }
    waves |args, _| args.runs.div_ceil(TILE);
    /// By the width of an end in bytes.
    KEPT {
        structure_kept_b2 [2] = kept::<u16>,
        structure_kept_b4 [4] = kept::<u32>,
        structure_kept_b8 [8] = kept::<u64>,
    }
}

kernel! {
    family "structure";
    /// Runs of rows, by a selection that has each run's last row.
    Ends {
        /// The selection (`In::bitmap`).
        words: In<u32>,
        /// Its bit offset.
        words_offset: u64,
        /// From [`Offsets`](crate::selection::Offsets).
        tile_offsets: In<u64>,
        /// How many rows there are.
        rows: u64,
        /// A number of each row. Absent where that is its own.
        of: In<u64>,
        /// Where each run ends. May be absent.
        ends: Out<u8>,
        /// The number of a row of each.
        picked: Out<u64>,
    }
    waves |args, _| args.rows.div_ceil(TILE);
    /// By the width of an end in bytes.
    ENDS {
        structure_ends_b2 [2] = ends::<u16>,
        structure_ends_b4 [4] = ends::<u32>,
        structure_ends_b8 [8] = ends::<u64>,
    }
}

kernel! {
    family "structure";
    /// How many rows a selection keeps before each of some.
    Ranks {
        /// The selection (`In::bitmap`).
        words: In<u32>,
        /// Its bit offset.
        words_offset: u64,
        /// From [`Offsets`](crate::selection::Offsets).
        tile_offsets: In<u64>,
        /// Rows of the selection.
        of: u64,
        /// The rows that are asked for; those beyond get 0.
        at: In<u64>,
        /// How many.
        rows: u64,
        /// The number for each. What does not fit wraps: ask the total first.
        out: Out<u8>,
    }
    waves |args, _| args.rows.div_ceil(TILE);
    /// By the width of a number in bytes.
    RANKS {
        structure_ranks_b1 [1] = ranks::<u8>,
        structure_ranks_b2 [2] = ranks::<u16>,
        structure_ranks_b4 [4] = ranks::<u32>,
        structure_ranks_b8 [8] = ranks::<u64>,
    }
}

/// Where a run ends, as it lies in memory.
pub trait End: Value {
    /// As a number; less than nothing is nothing.
    fn wide(self) -> u64;
    /// A number that fits.
    fn from_wide(wide: u64) -> Self;
}

macro_rules! end {
    ($($t:ty)*) => { $(impl End for $t {
        #[inline(always)]
        fn wide(self) -> u64 {
            if self >> (<$t>::BITS - 1) == 0 { self as u64 } else { 0 }
        }
        #[inline(always)]
        fn from_wide(wide: u64) -> $t {
            wide as $t
        }
    })* };
}
end! { u8 u16 u32 u64 }

/// An index of any width.
#[inline(always)]
pub(super) fn index(indices: In<u8>, width: u64, i: u64) -> u64 {
    match width {
        1 => u64::from(indices.get(i)),
        2 => u64::from(indices.cast::<u16>().get(i)),
        4 => u64::from(indices.cast::<u32>().get(i)),
        _ => indices.cast::<u64>().get(i),
    }
}

fn find<E: End>(args: &Find, wave: &mut Wave) {
    let Some((mut at, end)) = tile(args.rows, wave) else { return };
    let (ends, valid) = (args.ends.cast::<E>(), Bits::new(args.valid, args.valid_offset, args.rows));
    while at < end {
        wave.each(|l| {
            let row = at + u64::from(l.index());
            if row >= end {
                return;
            }
            let live = valid.is_absent() || valid.get(row);
            let wanted = if args.indices.is_absent() { row } else { index(args.indices, args.width, row) };
            if !live || wanted >= args.limit {
                args.out.set(l, row, NONE);
                if live {
                    args.index_fault.min(l, 0, row);
                }
                return;
            }
            let logical = wanted + args.offset;
            let (mut low, mut high) = (0, args.runs);
            while low < high {
                let middle = low + (high - low) / 2;
                if ends.get(middle).wide() <= logical { low = middle + 1 } else { high = middle }
            }
            let found = low < args.runs;
            args.out.set(l, row, if found { low } else { NONE });
            if !found {
                args.fault.min(l, 0, row);
            }
        });
        at += u64::from(wave.width());
    }
}

fn kept<E: End>(args: &Kept, wave: &mut Wave) {
    let Some((mut at, end)) = tile(args.runs, wave) else { return };
    let (ends, out) = (args.ends.cast::<E>(), args.out.cast::<E>());
    let selected = Selected::new(args.words, args.words_offset, args.rows, args.tile_offsets);
    // Of the rows that there are.
    let upto = |run: u64| {
        let end = ends.get(run).wide();
        let end = end.saturating_sub(args.offset);
        if end < args.rows { end } else { args.rows }
    };
    while at < end {
        let left = wave.each(|l| {
            let run = at + u64::from(l.index());
            if run >= end {
                return false;
            }
            let (before, after) = (if run == 0 { 0 } else { upto(run - 1) }, upto(run));
            let (from, to) = (selected.rank(before), selected.rank(after));
            out.set(l, run, E::from_wide(to));
            if after < before {
                args.faults.min(l, 0, run);
            }
            if run == args.runs - 1 && after < args.rows {
                args.faults.min(l, 1, after);
            }
            to > from
        });
        store(left, at, args.runs, args.left, wave);
        at += u64::from(wave.width());
    }
}

fn ends<E: End>(args: &Ends, wave: &mut Wave) {
    let Some((mut at, end)) = tile(args.rows, wave) else { return };
    let ends = args.ends.cast::<E>();
    let selected = Selected::new(args.words, args.words_offset, args.rows, args.tile_offsets);
    while at < end {
        wave.each(|l| {
            let row = at + u64::from(l.index());
            if row < end && selected.has(row) {
                let place = selected.rank(row);
                if !args.ends.is_absent() {
                    ends.set(l, place, E::from_wide(row + 1));
                }
                args.picked.set(l, place, if args.of.is_absent() { row } else { args.of.get(row) });
            }
        });
        at += u64::from(wave.width());
    }
}

fn ranks<K: End>(args: &Ranks, wave: &mut Wave) {
    let Some((mut at, end)) = tile(args.rows, wave) else { return };
    let selected = Selected::new(args.words, args.words_offset, args.of, args.tile_offsets);
    let out = args.out.cast::<K>();
    while at < end {
        wave.each(|l| {
            let i = at + u64::from(l.index());
            if i < end {
                let row = args.at.get(i);
                out.set(l, i, K::from_wide(if row < args.of { selected.rank(row) } else { 0 }));
            }
        });
        at += u64::from(wave.width());
    }
}
