//! Filter of small batches, in one launch: no kernel has counted the rows before.
//!
//! Each wave counts the kept rows before its own in the mask. That costs it some loads, where the kernels
//! that count for all take two launches, and the host would wait for their total before it can place the
//! values. The last wave writes the total.

use super::bits::{Part, compact, filter_bits_spans, span};
use super::filter::{DEEP, STEP, Tile, in_pieces, ranked};
use super::selection::{TILE, TileBits, WORDS};
use crate::column::MovedRow;
use crate::memory::{Bits, In, Out, TableRow};
use crate::target::{Value, Wave};

kernel! {
    family "filter_small";
    /// Filters many columns of equal width in one launch.
    FilterSmall {
        /// A [`MovedRow`] without validity for each column. Values are aligned to the entry's width, and the
        /// target has room for as many rows as are kept.
        table: In<u64>,
        /// The number of columns.
        columns: u64,
        /// The number of tiles: `Sizes::tiles`.
        tiles: u64,
        /// The number of rows, at most [`MOST`].
        len: u64,
        /// The mask (from `In::bitmap`), or the words that `Select` wrote.
        words: In<u32>,
        /// The bit offset of `words`.
        words_offset: u64,
        /// Receives the number of kept rows. May be absent.
        total: Out<u64>,
        /// The number of accesses that make up one value.
        pieces: u64,
    }
    waves |args, _| args.columns * args.tiles;
    /// By the width of an access in bytes.
    FILTER_SMALL {
        filter_small_b1 [1] = values::<u8>,
        filter_small_b2 [2] = values::<u16>,
        filter_small_b4 [4] = values::<u32>,
        filter_small_b8 [8] = values::<u64>,
        filter_small_b16 [16] = values::<u128>,
    }
}

kernel! {
    family "filter_small";
    /// Filters many bitmaps in one launch.
    FilterSmallBits {
        /// A [`MovedRow`] for each bitmap: zeroed words for as many bits as are kept.
        table: In<u64>,
        /// The number of bitmaps.
        columns: u64,
        /// The number of rows, at most [`MOST`].
        len: u64,
        /// The mask (from `In::bitmap`), or the words that `Select` wrote.
        words: In<u32>,
        /// The bit offset of `words`.
        words_offset: u64,
        /// Receives the number of kept rows. May be absent.
        total: Out<u64>,
        /// One number for each bitmap, zeroed before: receives how many of the selected bits are unset.
        nulls: Out<u64>,
    }
    waves |args, width| args.columns * filter_bits_spans(args.len, width);
    /// The only entry of this kernel.
    FILTER_SMALL_BITS {
        filter_small_bits = bits,
    }
}

/// The most rows of a small batch.
pub const MOST: u64 = 1 << 16;

/// A mask and its rows, as arguments have them.
type Selection = (In<u32>, u64, u64);

fn values<T: Value>(args: &FilterSmall, wave: &mut Wave) {
    let (index, tiles) = (wave.index() as u32, (args.tiles as u32).max(1));
    let (column, tile) = (u64::from(index / tiles), u64::from(index % tiles));
    if column >= args.columns {
        return;
    }
    let is_last = column == 0 && tile + 1 == args.tiles;
    let selection = (args.words, args.words_offset, args.len);
    let (first, count) = counted(selection, (tile, 1), (args.total, is_last), wave);
    if count == 0 {
        return;
    }
    let row = column * MovedRow::ROW;
    let source = args.table.input::<T>(wave, row).skip(tile * TILE * args.pieces);
    let target = args.table.output::<T>(wave, row + MovedRow::TARGET).skip(first * args.pieces);
    let bits = TileBits::of(args.words, args.words_offset, args.len, tile, wave);
    let tile = Tile { source, target, bits };
    match (args.pieces, size_of::<T>()) {
        (1, ..=8) => ranked::<T, DEEP, false>(wave, tile),
        (1, _) => ranked::<T, STEP, false>(wave, tile),
        _ => in_pieces(wave, tile, args.pieces),
    }
}

fn bits(args: &FilterSmallBits, wave: &mut Wave) {
    let spans = (filter_bits_spans(args.len, wave.width()) as u32).max(1);
    let index = wave.index() as u32;
    let (column, first) = (u64::from(index / spans), u64::from(index % spans) * span(wave.width()));
    if column >= args.columns || first >= args.len {
        return;
    }
    let selection = (args.words, args.words_offset, args.len);
    let is_last = column == 0 && first + span(wave.width()) >= args.len;
    let tiles = (first / TILE, span(wave.width()) / TILE);
    let (to, count) = counted(selection, tiles, (args.total, is_last), wave);
    if count != 0 {
        compact(args.table, selection, Part { column, first, to }, args.nulls, wave);
    }
}

/// Counts the kept rows before `tiles` tiles from `tile` on, and those of these tiles. The last wave writes
/// the sum to `total`.
#[inline(always)]
fn counted(
    (words, words_offset, len): Selection,
    (tile, tiles): (u64, u64),
    (total, is_last): (Out<u64>, bool),
    wave: &mut Wave,
) -> (u64, u64) {
    let selection = Bits::new(words, words_offset, len).window(0);
    let (own, end) = ((tile * WORDS) as u32, ((tile + tiles) * WORDS) as u32);
    // Counts of at most 2^16 rows share a register: those of the tiles are in the upper half.
    let mut counts = wave.each(|_| 0u32);
    let mut at = 0;
    while at < end {
        counts = wave.each(|l| {
            let i = at + l.index();
            let ones = if i < end { selection.word(i).count_ones() } else { 0 };
            counts.at(l) + (ones << if i < own { 0 } else { 16 })
        });
        at += wave.width();
    }
    let both = wave.sum(counts);
    let (before, kept) = (u64::from(both & 0xffff), u64::from(both >> 16));
    if is_last && !total.is_absent() {
        wave.once(|l| total.set(l, 0, before + kept));
    }
    (before, kept)
}
