//! What the structure of arrays needs that no other family moves: which run or member a row is in, which rows are alike, and where a
//! row goes among those that a selection keeps.
//!
//! The one idea: whatever the encoding, the question is where a row's value lies, and the answer is an index. With indices the
//! kernels that move rows ([`take`](crate::take), [`filter`](crate::filter)) do the rest, whatever the values are. So an array of
//! runs becomes the run of each row ([`runs`]), a union its member's row ([`unions`]), lists their items' places ([`lists`]), and
//! an array that is to be encoded the first row that is alike ([`alike`]).
//!
//! A lane has a row, a wave [`TILE`] of them one after the other. What is found here is checked here: an index that is written
//! is one of what it indexes, or [`NONE`].

pub mod alike;
pub mod lists;
pub mod runs;
pub mod unions;

use crate::memory::{Bits, In, Out};
use crate::scan::TILE;
use crate::selection;
use crate::target::{Lanes, Wave};

/// An index of nothing.
pub const NONE: u64 = u64::MAX;

/// The rows of a wave: the first, and the one behind the last. `None` for a wave without any.
#[inline(always)]
fn tile(rows: u64, wave: &Wave) -> Option<(u64, u64)> {
    let at = wave.index() * TILE;
    if at < rows { Some((at, rows.min(at + TILE))) } else { None }
}

/// Writes the bits of rows `at ..`, one a lane, of which those from row `rows` on are unset. `at` is a multiple of the width.
#[inline(always)]
fn store(bits: Lanes<bool>, at: u64, rows: u64, out: Out<u32>, wave: &mut Wave) {
    let mask = wave.ballot(bits);
    let (word, halves) = (at / 32, wave.width() / 32);
    wave.each(|l| {
        if l.index() < halves && (word + u64::from(l.index())) * 32 < rows {
            out.set(l, word + u64::from(l.index()), mask.half(l.index()));
        }
    });
}

/// Which rows a selection keeps, and where they go.
#[derive(Clone, Copy)]
struct Selected {
    words: Bits,
    tile_offsets: In<u64>,
}

impl Selected {
    /// The words (`In::bitmap`, and their bit offset) of a selection of `rows` rows, and what
    /// [`Offsets`](crate::selection::Offsets) made of them; without that, all rows.
    #[inline(always)]
    fn new(words: In<u32>, offset: u64, rows: u64, tile_offsets: In<u64>) -> Selected {
        Selected { words: Bits::new(words, offset, rows), tile_offsets }
    }

    /// Whether it keeps a row.
    #[inline(always)]
    fn has(self, row: u64) -> bool {
        self.words.get(row)
    }

    /// How many rows it keeps of those before `row`, which may be the end.
    #[inline(always)]
    fn rank(self, row: u64) -> u64 {
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
