//! Runs: the run of each row, the part of each run that a filter leaves, and runs made of rows.
//!
//! The ends of runs come from imported, untrusted data: an end below 0 counts as 0, and the kernels report a
//! row without a run and ends that decrease. Each row finds its run by a search, so a row costs the logarithm
//! of the number of runs, in any order.

use super::rows::{NONE, Selected, store, tile};
use crate::memory::{Bits, In, Out};
use crate::reduce::scan::TILE;
use crate::target::{Value, Wave};

kernel! {
    family "structure";
    /// Finds the run of each row, by its number.
    Find {
        /// The end of each run.
        ends: In<u8>,
        /// The number of runs; not 0.
        runs: u64,
        /// The number of rows in the runs before the array's first row.
        offset: u64,
        /// The rows to look for. Signed indices MUST come with a `limit` no more than their greatest value
        /// plus one. Absent to look for all rows in order.
        indices: In<u8>,
        /// Bytes of an index.
        width: u64,
        /// A bit for each valid index, from `In::bitmap`. May be absent.
        valid: In<u32>,
        /// The bit offset of `valid`, from `In::bitmap`.
        valid_offset: u64,
        /// The number of rows to look for.
        rows: u64,
        /// The number of rows of the array.
        limit: u64,
        /// The run of each row, or [`NONE`] where the index is null or out of bounds, or no run has the row.
        out: Out<u64>,
        /// Lowered to the first row whose index is out of bounds; `u64::MAX` before the launch.
        index_fault: Out<u64>,
        /// Lowered to the first row that no run has; `u64::MAX` before the launch.
        fault: Out<u64>,
    }
    waves |args, _| args.rows.div_ceil(TILE);
    /// The entries, by the width of an end in bytes.
    FIND {
        structure_find_b2 [2] = find::<u16>,
        structure_find_b4 [4] = find::<u32>,
        structure_find_b8 [8] = find::<u64>,
    }
}

kernel! {
    family "structure";
    /// Finds the ends of runs among the rows that a selection keeps, and the runs that keep any row.
    Kept {
        /// The end of each run.
        ends: In<u8>,
        /// The number of runs; not 0.
        runs: u64,
        /// The number of rows in the runs before the array's first row.
        offset: u64,
        /// The words of the selection, from `In::bitmap`.
        words: In<u32>,
        /// The bit offset of `words`, from `In::bitmap`.
        words_offset: u64,
        /// The `offsets` of [`Offsets`](crate::select::selection::Offsets). Absent where all rows are
        /// kept; the kernel then ignores the selection.
        tile_offsets: In<u64>,
        /// The number of rows; not 0.
        rows: u64,
        /// The end of each run among the rows kept.
        out: Out<u8>,
        /// A bit, in whole words, for each run that keeps a row.
        left: Out<u32>,
        /// Two words, `u64::MAX` before the launch. The first is lowered to the first run that ends before
        /// its predecessor, the second to the first row that no run has.
        faults: Out<u64>,
    }
    waves |args, _| args.runs.div_ceil(TILE);
    /// The entries, by the width of an end in bytes.
    KEPT {
        structure_kept_b2 [2] = kept::<u16>,
        structure_kept_b4 [4] = kept::<u32>,
        structure_kept_b8 [8] = kept::<u64>,
    }
}

kernel! {
    family "structure";
    /// Makes runs of rows, by a selection of each run's last row.
    Ends {
        /// The words of the selection, from `In::bitmap`.
        words: In<u32>,
        /// The bit offset of `words`, from `In::bitmap`.
        words_offset: u64,
        /// The `offsets` of [`Offsets`](crate::select::selection::Offsets) for the selection.
        tile_offsets: In<u64>,
        /// The number of rows.
        rows: u64,
        /// A number for each row. Absent where that is the row's own index.
        of: In<u64>,
        /// The end of each run. May be absent.
        ends: Out<u8>,
        /// The number of each run's last row.
        picked: Out<u64>,
    }
    waves |args, _| args.rows.div_ceil(TILE);
    /// The entries, by the width of an end in bytes.
    ENDS {
        structure_ends_b2 [2] = ends::<u16>,
        structure_ends_b4 [4] = ends::<u32>,
        structure_ends_b8 [8] = ends::<u64>,
    }
}

kernel! {
    family "structure";
    /// Counts the rows that a selection keeps before each of some rows.
    Ranks {
        /// The words of the selection, from `In::bitmap`.
        words: In<u32>,
        /// The bit offset of `words`, from `In::bitmap`.
        words_offset: u64,
        /// The `offsets` of [`Offsets`](crate::select::selection::Offsets) for the selection.
        tile_offsets: In<u64>,
        /// The number of rows of the selection.
        of: u64,
        /// The rows to count up to; those from the selection's end on get 0.
        at: In<u64>,
        /// The number of rows in `at`.
        rows: u64,
        /// The count for each row. A count that does not fit wraps, so callers check the total first.
        out: Out<u8>,
    }
    waves |args, _| args.rows.div_ceil(TILE);
    /// The entries, by the width of a count in bytes.
    RANKS {
        structure_ranks_b1 [1] = ranks::<u8>,
        structure_ranks_b2 [2] = ranks::<u16>,
        structure_ranks_b4 [4] = ranks::<u32>,
        structure_ranks_b8 [8] = ranks::<u64>,
    }
}

/// The end of a run, as it is in memory.
pub trait End: Value {
    /// The end as a number; negative ends are 0.
    fn wide(self) -> u64;
    /// Converts a number, which must fit.
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

/// Loads an index of `width` bytes.
#[inline(always)]
pub(crate) fn index(indices: In<u8>, width: u64, i: u64) -> u64 {
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
    // The end of a run within the array's rows.
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
