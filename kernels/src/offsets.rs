//! Looking at what others promised about offsets and dictionary keys, and writing offsets: in another width, or of rows of
//! equal size.
//!
//! The one idea: every row is looked at by itself, and the first bad one of all goes into one word by an atomic minimum:
//! nothing else is shared, and where everything is good nobody writes.
//!
//! Bytes: each offset is read once (its neighbour comes with the same cache line) and written once. Four rows a lane are in
//! flight; about 12 instructions a row in a wave of 32.

use crate::memory::{Bits, In, Out};
use crate::ranges::{Edges, Index, extent};
use crate::scan::{Summand, TILE};
use crate::target::{Lanes, Wave};

/// Rows a lane has in flight.
const ROWS: usize = 4;

kernel! {
    family "offsets";
    /// Checks offsets, and writes them in another width.
    Convert {
        /// One more than there are rows.
        offsets: In<u8>,
        /// How many rows there are.
        rows: u64,
        /// How far offsets may point; where there is an `end`, how many bits that has: see [`extent`].
        limit: u64,
        /// From `In::bitmap`: the number that says how many, where only the device has it. May be absent.
        end: In<u32>,
        /// From `In::bitmap`.
        end_offset: u64,
        /// What is subtracted from each: at most the first.
        base: u64,
        /// The greatest offset that may be written.
        most: u64,
        /// The same numbers, less `base`. May be absent.
        out: Out<u8>,
        /// Receives the first row whose offsets descend or point too far, and the first one whose end would be written as
        /// more than `most`: `u64::MAX` before.
        faults: Out<u64>,
    }
    waves |args, _| (args.rows + 1).div_ceil(TILE);
    /// By the widths in bytes of what is read and what is written.
    CONVERT {
        offsets_convert_b4_b4 [4, 4] = convert::<u32, u32>,
        offsets_convert_b4_b8 [4, 8] = convert::<u32, u64>,
        offsets_convert_b8_b4 [8, 4] = convert::<u64, u32>,
        offsets_convert_b8_b8 [8, 8] = convert::<u64, u64>,
    }
}

kernel! {
    family "offsets";
    /// Checks dictionary keys.
    Keys {
        /// The keys; signed ones MUST come with `values_len` no more than their greatest value plus one.
        keys: In<u8>,
        /// From `In::bitmap`: which are valid. Others may be anything. May be absent.
        valid: In<u32>,
        /// From `In::bitmap`.
        valid_offset: u64,
        /// How many there are.
        rows: u64,
        /// How many values the dictionary has.
        values_len: u64,
        /// Receives the first row whose key is out of bounds: `u64::MAX` before.
        fault: Out<u64>,
    }
    waves |args, _| args.rows.div_ceil(TILE);
    /// By the width of a key in bytes.
    KEYS {
        offsets_keys_b1 [1] = check_keys::<u8>,
        offsets_keys_b2 [2] = check_keys::<u16>,
        offsets_keys_b4 [4] = check_keys::<u32>,
        offsets_keys_b8 [8] = check_keys::<u64>,
    }
}

kernel! {
    family "offsets";
    /// The index in a row that a kernel found: for the error to tell.
    Offender {
        /// The indices.
        indices: In<u8>,
        /// The row, `u64::MAX` for none.
        row: In<u64>,
        /// Receives the index, as an unsigned number.
        index: Out<u64>,
    }
    waves |_, _| 1;
    /// By the width of an index in bytes.
    OFFENDER {
        offsets_offender_b1 [1] = offender::<u8>,
        offsets_offender_b2 [2] = offender::<u16>,
        offsets_offender_b4 [4] = offender::<u32>,
        offsets_offender_b8 [8] = offender::<u64>,
    }
}

kernel! {
    family "offsets";
    /// The offsets of rows of equal size.
    Regular {
        /// How many rows there are.
        rows: u64,
        /// How many elements each has; what all of them have MUST fit an offset.
        size: u64,
        /// One more than there are rows, on a 16-byte boundary and writable up to one.
        out: Out<u8>,
    }
    waves |args, _| (args.rows + 1).div_ceil(TILE);
    /// By the width of an offset in bytes.
    REGULAR {
        offsets_regular_b4 [4] = regular::<u32>,
        offsets_regular_b8 [8] = regular::<u64>,
    }
}

fn convert<T: Summand + Edges, S: Summand>(args: &Convert, wave: &mut Wave) {
    let mut at = wave.index() * TILE;
    if at > args.rows {
        return;
    }
    let end = (args.rows + 1).min(at + TILE);
    let limit = extent(args.limit, args.end, args.end_offset);
    let out = args.out.cast::<S>();
    while at < end {
        let index = |k: usize, lane: u32| at + u64::from(k as u32 * wave.width() + lane);
        let edges: [Lanes<[u64; 2]>; ROWS] = core::array::from_fn(|k| {
            wave.each(|l| {
                let i = index(k, l.index()).min(end - 1);
                [T::edge(args.offsets, i.saturating_sub(1)), T::edge(args.offsets, i)]
            })
        });
        for k in 0..ROWS {
            wave.each(|l| {
                let (i, [start, end_of_row]) = (index(k, l.index()), edges[k].at(l));
                if i >= end {
                    return;
                }
                if !args.out.is_absent() {
                    out.set(l, i, S::from_wide(end_of_row.wrapping_sub(args.base)));
                }
                // The row that ends here; for the first offset of all, the row that begins.
                if start > end_of_row || end_of_row > limit {
                    args.faults.min(l, 0, i.saturating_sub(1));
                }
                if end_of_row.wrapping_sub(args.base) > args.most {
                    args.faults.min(l, 1, i.saturating_sub(1));
                }
            });
        }
        at += ROWS as u64 * u64::from(wave.width());
    }
}

fn check_keys<K: Index>(args: &Keys, wave: &mut Wave) {
    let mut at = wave.index() * TILE;
    if at >= args.rows {
        return;
    }
    let end = args.rows.min(at + TILE);
    let (keys, valid) = (args.keys.cast::<K>(), Bits::new(args.valid, args.valid_offset, args.rows));
    while at < end {
        let row = |k: usize, lane: u32| (at + u64::from(k as u32 * wave.width() + lane)).min(end - 1);
        let loaded: [Lanes<u64>; ROWS] =
            core::array::from_fn(|k| wave.each(|l| keys.stream(row(k, l.index())).wide()));
        for k in 0..ROWS {
            wave.each(|l| {
                let row = row(k, l.index());
                if loaded[k].at(l) >= args.values_len && (valid.is_absent() || valid.get(row)) {
                    args.fault.min(l, 0, row);
                }
            });
        }
        at += ROWS as u64 * u64::from(wave.width());
    }
}

fn regular<T: Summand>(args: &Regular, wave: &mut Wave) {
    let (width, per) = (size_of::<T>() as u64, 16 / size_of::<T>() as u64);
    let out = args.out.cast::<u128>();
    let (mut at, blocks) = (wave.index() * (TILE / per), (args.rows + 1).div_ceil(per));
    let end = blocks.min(at + TILE / per);
    while at < end {
        wave.each(|l| {
            let block = at + u64::from(l.index());
            let offset = |k| u128::from(T::from_wide((block * per + k) * args.size).wide());
            if block < end {
                out.set(l, block, (0..per).rev().fold(0, |all, k| all << (8 * width) | offset(k)));
            }
        });
        at += u64::from(wave.width());
    }
}

fn offender<I: Index>(args: &Offender, wave: &mut Wave) {
    let row = args.row.get(0);
    if wave.index() == 0 && row != u64::MAX {
        wave.once(|l| args.index.set(l, 0, args.indices.cast::<I>().get(row).wide()));
    }
}
