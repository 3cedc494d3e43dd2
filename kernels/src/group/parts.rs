//! Parts of rows: the hash of a row's keys chooses one.

pub use super::keys::null_hash;
pub use crate::encoded::equal::mixed;
use crate::encoded::rows::tile;
use crate::memory::{In, Out};
use crate::reduce::scan::TILE;
use crate::target::Wave;

/// The hash of no columns. It is a constant, so that rows of different batches, on different machines, meet
/// in the same part.
pub const SEED: u64 = 0x7061_7274_6974_696f;

kernel! {
    family "group";
    /// Chooses a part for each row.
    Parts {
        /// The word of each row, a hash from [`Words`](super::keys::Words).
        words: In<u64>,
        /// The number of rows.
        rows: u64,
        /// The number of parts, at most 2^32.
        parts: u64,
        /// Receives the part of each row.
        out: Out<u32>,
    }
    waves |args, _| args.rows.div_ceil(TILE);
    /// The only entry of this kernel.
    PARTS {
        group_parts = parts,
    }
}

/// Returns the part of a row with this hash: the upper half of the hash, as a fraction of all parts. So each
/// part is divided further by a multiple of the number of parts.
#[inline(always)]
pub const fn part_of(hash: u64, parts: u64) -> u32 {
    (((hash >> 32) * parts) >> 32) as u32
}

fn parts(args: &Parts, wave: &mut Wave) {
    let Some((mut at, end)) = tile(args.rows, wave) else { return };
    while at < end {
        wave.each(|l| {
            let row = at + u64::from(l.index());
            if row < end {
                args.out.set(l, row, part_of(args.words.get(row), args.parts));
            }
        });
        at += u64::from(wave.width());
    }
}
