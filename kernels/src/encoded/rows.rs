//! Helpers of the kernels for encoded arrays: the rows of a wave, bits one a lane, and the places of the rows
//! that a selection keeps.

use crate::memory::{Bits, In, Out};
use crate::reduce::scan::TILE;
use crate::select::selection;
use crate::target::{Lanes, Wave};

/// The index for a row without a value.
pub const NONE: u64 = u64::MAX;

/// The rows of a wave: the first, and the end. `None` for a wave without rows.
#[inline(always)]
pub(crate) fn tile(rows: u64, wave: &Wave) -> Option<(u64, u64)> {
    let at = wave.index() * TILE;
    if at < rows { Some((at, rows.min(at + TILE))) } else { None }
}

/// Stores the bits of rows `at ..`, one a lane; bits from row `rows` on are unset. `at` is a multiple of the
/// width.
#[inline(always)]
pub(crate) fn store(bits: Lanes<bool>, at: u64, rows: u64, out: Out<u32>, wave: &mut Wave) {
    let mask = wave.ballot(bits);
    let (word, halves) = (at / 32, wave.width() / 32);
    wave.each(|l| {
        if l.index() < halves && (word + u64::from(l.index())) * 32 < rows {
            out.set(l, word + u64::from(l.index()), mask.half(l.index()));
        }
    });
}

/// The rows that a selection keeps, and their places.
#[derive(Clone, Copy)]
pub(crate) struct Selected {
    words: Bits,
    tile_offsets: In<u64>,
}

impl Selected {
    /// Takes the words of a selection of `rows` rows (from `In::bitmap`, with their bit offset), and the
    /// result of [`Offsets`](crate::select::selection::Offsets) for them. Without that result, every row
    /// keeps its place.
    #[inline(always)]
    pub(crate) fn new(words: In<u32>, offset: u64, rows: u64, tile_offsets: In<u64>) -> Selected {
        Selected { words: Bits::new(words, offset, rows), tile_offsets }
    }

    /// Whether the selection keeps a row.
    #[inline(always)]
    pub(crate) fn has(self, row: u64) -> bool {
        self.words.get(row)
    }

    /// How many rows before `row`, which may be the end, the selection keeps.
    #[inline(always)]
    pub(crate) fn rank(self, row: u64) -> u64 {
        if self.tile_offsets.is_absent() {
            return row;
        }
        let (tile, inside) = (row / selection::TILE, (row % selection::TILE) as u32);
        let before = self.tile_offsets.get(tile);
        if inside == 0 {
            return before;
        }
        let blocks = self.words.blocks(tile * selection::TILE);
        let (mut count, mut i) = (0, 0);
        while (i + 1) * 128 <= inside {
            count += blocks.block(i).count_ones();
            i += 1;
        }
        if inside % 128 != 0 {
            count += (blocks.block(i) & !(!0u128 << (inside % 128))).count_ones();
        }
        before + u64::from(count)
    }
}
