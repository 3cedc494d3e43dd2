//! Lists as text: each item is the four bytes of its rank, the highest first.

use crate::memory::{In, Out};
use crate::ranges::rows::Index;
use crate::reduce::scan::TILE;
use crate::target::Wave;

kernel! {
    family "sort";
    /// Writes the text of lists: its bytes, and where each row's begin.
    ListBytes {
        /// The ranks of the items.
        ranks: In<u32>,
        /// The number of items.
        items: u64,
        /// The offsets of the rows, in items: one more than there are rows, ascending, none above `items`.
        offsets: In<u8>,
        /// The number of rows.
        rows: u64,
        /// Receives the ranks, the highest byte first.
        out_bytes: Out<u32>,
        /// Receives the offsets, in bytes.
        out_offsets: Out<u64>,
    }
    waves |args, _| args.items.max(args.rows + 1).div_ceil(TILE);
    /// By the width of an offset in bytes.
    LIST_BYTES {
        sort_list_bytes_b4 [4] = list_bytes::<u32>,
        sort_list_bytes_b8 [8] = list_bytes::<u64>,
    }
}

fn list_bytes<T: Index>(args: &ListBytes, wave: &mut Wave) {
    let (mut at, offsets) = (wave.index() * TILE, args.offsets.cast::<T>());
    let end = args.items.max(args.rows + 1).min(at + TILE);
    while at < end {
        wave.each(|l| {
            let i = at + u64::from(l.index());
            if i < args.items {
                args.out_bytes.set(l, i, args.ranks.get(i).swap_bytes());
            }
            if i <= args.rows {
                args.out_offsets.set(l, i, 4 * offsets.get(i).wide());
            }
        });
        at += u64::from(wave.width());
    }
}
