//! Checks of imported offsets and dictionary keys; and output of offsets, in another width or of rows of
//! equal size.
//!
//! The one idea: every row is checked by itself, and an atomic minimum puts the first bad row into one word.
//! Rows share nothing else, and if all of them are good, nothing is written to that word.
//!
//! Bytes moved: each offset is read once (its neighbour comes with the same cache line) and written once.
//! Each lane has four rows in flight; a row takes about 12 instructions in a wave of 32.

use super::rows::{Edges, Index, extent};
use crate::memory::{Bits, In, Out};
use crate::reduce::scan::{Summand, TILE};
use crate::target::{Lanes, Wave};

/// Rows that a lane has in flight.
const ROWS: usize = 4;

kernel! {
    family "offsets";
    /// Checks offsets, and writes them in another width.
    Convert {
        /// The offsets: one more than the number of rows.
        offsets: In<u8>,
        /// The number of rows.
        rows: u64,
        /// The greatest valid offset; if `end` is present, the width in bits of the number there: see
        /// [`extent`].
        limit: u64,
        /// The number of elements, from `In::bitmap`, if only the device knows it. May be absent.
        end: In<u32>,
        /// The bit offset of `end`, from `In::bitmap`.
        end_offset: u64,
        /// The number that is subtracted from each offset; at most the first one.
        base: u64,
        /// The greatest offset that may be written.
        most: u64,
        /// Receives the offsets, less `base`. May be absent.
        out: Out<u8>,
        /// Receives the first row whose offsets descend or exceed the limit, and the first row whose end
        /// exceeds `most` once `base` is subtracted; both `u64::MAX` before.
        faults: Out<u64>,
    }
    waves |args, _| (args.rows + 1).div_ceil(TILE);
    /// By the widths in bytes of the offsets read and of those written.
    CONVERT {
        offsets_convert_b4_b4 [4, 4] = convert::<u32, u32>,
        offsets_convert_b4_b8 [4, 8] = convert::<u32, u64>,
        offsets_convert_b8_b4 [8, 4] = convert::<u64, u32>,
        offsets_convert_b8_b8 [8, 8] = convert::<u64, u64>,
    }
}

kernel! {
    family "offsets";
    /// Checks that the keys of a dictionary are in bounds.
    Keys {
        /// The keys. For signed ones, `values_len` MUST be at most their greatest value plus one.
        keys: In<u8>,
        /// The validity of the keys, from `In::bitmap`. A null key may have any value. May be absent.
        valid: In<u32>,
        /// The bit offset of `valid`, from `In::bitmap`.
        valid_offset: u64,
        /// The number of keys.
        rows: u64,
        /// The number of values in the dictionary.
        values_len: u64,
        /// Receives the first row whose key is out of bounds; `u64::MAX` before.
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
    /// Reads the index in a row that a kernel found bad, for the error message.
    Offender {
        /// The indices that the kernel checked.
        indices: In<u8>,
        /// The row; `u64::MAX` for none.
        row: In<u64>,
        /// Receives the index as an unsigned number, if there is a row.
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
    /// Writes the offsets of rows of equal size.
    Regular {
        /// The number of rows.
        rows: u64,
        /// The offset of the first row.
        first: u64,
        /// The number of elements in each row. The last offset MUST fit its width.
        size: u64,
        /// Receives the offsets, one more than the number of rows, on a 16-byte boundary and writable up to
        /// one.
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
                // The row that ends here; for the first offset, the row that begins here.
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
            let offset = |k| u128::from(T::from_wide(args.first + (block * per + k) * args.size).wide());
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
