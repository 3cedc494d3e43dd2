//! Filter: moving the values that a selection keeps, straight from source to destination.
//!
//! One wave moves one tile of one column. What it does depends on how the selected rows lie:
//! - a whole tile, both ends aligned: sixteen bytes a lane;
//! - few rows in every word: each lane walks the set bits of its own word, so empty rows cost nothing;
//! - else 32 or 64 rows at a time: their selection word is the mask of the lanes that load and store, and a lane's place
//!   in the output is its rank in it. Four such steps are in flight; four empty ones are skipped.
//!
//! On paper (SASS of sm_90): the third way is 52 instructions for 128 rows, which keeps up with the memory of an H200 down
//! to two-byte values; the second about 55 for four bits of every lane's word. No ballots, no shared memory, no atomics.

use crate::memory::{In, Out};
use crate::selection::{TILE, WORDS};
use crate::target::{Lanes, Value, Wave};

kernel! {
    family "filter";
    /// Many columns of equal width in one launch. Waves: `columns * tiles`.
    Filter {
        /// A [`FilterRow`] for each column.
        table: In<u64>,
        /// How many columns.
        columns: u64,
        /// `Sizes::tiles`.
        tiles: u64,
        /// From `Select`.
        words: In<u32>,
        /// From `Offsets`.
        offsets: In<u64>,
        /// How many accesses make one value: for widths that are no power of two, or more than 16 bytes.
        pieces: u64,
    }
    /// By width in bytes and whether a value has several pieces of it.
    FILTER {
        filter_b1 [1, 0] = values::<u8>,
        filter_b2 [2, 0] = values::<u16>,
        filter_b4 [4, 0] = values::<u32>,
        filter_b8 [8, 0] = values::<u64>,
        filter_b16 [16, 0] = values::<u128>,
        filter_pieces_b1 [1, 1] = pieces::<u8>,
        filter_pieces_b2 [2, 1] = pieces::<u16>,
        filter_pieces_b4 [4, 1] = pieces::<u32>,
        filter_pieces_b8 [8, 1] = pieces::<u64>,
        filter_pieces_b16 [16, 1] = pieces::<u128>,
    }
}

/// A column in the table of [`Filter`]: naturally aligned for the entry's width.
pub struct FilterRow<T> {
    /// The values.
    pub source: In<T>,
    /// Where the selected ones go: as long as the selection's total.
    pub target: Out<T>,
}

const ROW: u64 = 4;

impl<T: Value> FilterRow<T> {
    /// The row's words.
    pub fn words(&self) -> [u64; ROW as usize] {
        let ([from, from_extent], [to, to_extent]) = (self.source.described(), self.target.described());
        [from, from_extent, to, to_extent]
    }
}

/// Loads a lane has in flight.
const STEP: usize = 4;
/// Up to so many bits in a word, its lane walks them.
const SPARSE: u32 = 8;

/// What a wave works on.
struct Tile<T> {
    source: In<T>,
    target: Out<T>,
    count: u64,
    words: In<u32>,
}

/// `None` for a wave without anything to move. `pieces` are the elements of a value.
#[inline(always)]
fn tile<T: Value>(args: &Filter, wave: &mut Wave, pieces: u64) -> Option<Tile<T>> {
    // In 32 bits, which the limit on waves allows: a 64-bit division is a hundred instructions longer.
    let (index, tiles) = (wave.index() as u32, (args.tiles as u32).max(1));
    let (column, tile) = (u64::from(index / tiles), u64::from(index % tiles));
    if column >= args.columns {
        return None;
    }
    let first = args.offsets.get(tile);
    let count = args.offsets.get(tile + 1) - first;
    if count == 0 {
        return None;
    }
    Some(Tile {
        source: args.table.input::<T>(column * ROW).skip(tile * TILE * pieces),
        target: args.table.output::<T>(column * ROW + 2).skip(first * pieces),
        count,
        words: args.words.skip(tile * WORDS),
    })
}

fn values<T: Value>(args: &Filter, wave: &mut Wave) {
    let Some(tile) = tile::<T>(args, wave, 1) else { return };
    if tile.count == TILE && tile.source.is_aligned::<u128>() && tile.target.is_aligned::<u128>() {
        copy(wave, tile.source.cast(), tile.target.cast(), TILE as u32 / 16 * size_of::<T>() as u32);
        return;
    }
    let mut target = tile.target;
    for k in 0..WORDS as u32 / wave.width() {
        let words = wave.each(|l| tile.words.get(u64::from(k * wave.width() + l.index())));
        let source = tile.source.skip(u64::from(k * wave.width() * 32));
        let dense = wave.each(|l| words.at(l).count_ones() > SPARSE);
        let total = if wave.any(dense) {
            ranked(wave, words, source, target)
        } else {
            sparse(wave, words, source, target)
        };
        target = target.skip(u64::from(total));
    }
}

/// All of a tile, `STEP` sixteen-byte loads at a time.
#[inline(always)]
fn copy(wave: &Wave, source: In<u128>, target: Out<u128>, chunks: u32) {
    let mut at = 0;
    while at < chunks {
        let place = |k: usize, lane: u32| at + k as u32 * wave.width() + lane;
        let loaded = wave.each(|l| {
            core::array::from_fn::<u128, STEP, _>(|k| {
                source.stream(u64::from(place(k, l.index()).min(chunks - 1)))
            })
        });
        wave.each(|l| {
            for (k, chunk) in loaded.at(l).into_iter().enumerate() {
                if place(k, l.index()) < chunks {
                    target.set(l, u64::from(place(k, l.index())), chunk);
                }
            }
        });
        at += STEP as u32 * wave.width();
    }
}

/// Every lane walks the set bits of its word, `STEP` at a time.
#[inline(always)]
fn sparse<T: Value>(wave: &mut Wave, words: Lanes<u32>, source: In<T>, target: Out<T>) -> u32 {
    let ones = wave.each(|l| words.at(l).count_ones());
    let (before, total) = wave.scan(ones);
    let mut rest = words;
    let mut done = 0;
    loop {
        let some = wave.each(|l| rest.at(l) != 0);
        if !wave.any(some) {
            return total;
        }
        let bits = wave.each(|l| {
            let mut bits = [rest.at(l); STEP];
            for k in 1..STEP {
                bits[k] = bits[k - 1] & bits[k - 1].wrapping_sub(1);
            }
            bits
        });
        let loaded = wave.each(|l| {
            bits.at(l).map(|bits| {
                let row = l.index() * 32 + bits.trailing_zeros();
                if bits != 0 { source.get(u64::from(row)) } else { T::ZERO }
            })
        });
        wave.loads_done();
        wave.each(|l| {
            for k in 0..STEP {
                if bits.at(l)[k] != 0 {
                    target.set(l, u64::from(before.at(l) + done + k as u32), loaded.at(l)[k]);
                }
            }
        });
        rest = wave.each(|l| bits.at(l)[STEP - 1] & bits.at(l)[STEP - 1].wrapping_sub(1));
        done += STEP as u32;
    }
}

/// `width` rows at a time: their selection bits are the mask of the lanes that move a value.
#[inline(always)]
fn ranked<T: Value>(wave: &mut Wave, words: Lanes<u32>, source: In<T>, target: Out<T>) -> u32 {
    let halves = wave.width() / 32;
    let mut moved = 0;
    let mut w = 0;
    while w < wave.width() {
        let masks: [_; STEP] = core::array::from_fn(|k| wave.mask(words, w + k as u32 * halves));
        if masks.iter().any(|mask| !mask.is_empty()) {
            let first = w * 32;
            let loaded = wave.each(|l| {
                core::array::from_fn::<T, STEP, _>(|k| {
                    let row = first + k as u32 * wave.width() + l.index();
                    if l.has(masks[k]) { source.stream(u64::from(row)) } else { T::ZERO }
                })
            });
            wave.loads_done();
            for k in 0..STEP {
                wave.each(|l| {
                    if l.has(masks[k]) {
                        target.set(l, u64::from(moved + l.rank(masks[k])), loaded.at(l)[k]);
                    }
                });
                moved += masks[k].count();
            }
        }
        w += STEP as u32 * halves;
    }
    moved
}

/// As `values`, for values of several accesses: one piece of all rows after the other.
fn pieces<T: Value>(args: &Filter, wave: &mut Wave) {
    let Some(tile) = tile::<T>(args, wave, args.pieces) else { return };
    let halves = wave.width() / 32;
    let mut moved = 0;
    for k in 0..WORDS as u32 / wave.width() {
        let words = wave.each(|l| tile.words.get(u64::from(k * wave.width() + l.index())));
        let mut w = 0;
        while w < wave.width() {
            let mask = wave.mask(words, w);
            let first = (k * wave.width() + w) * 32;
            let mut piece = 0;
            while piece < args.pieces && !mask.is_empty() {
                let loaded = wave.each(|l| {
                    core::array::from_fn::<T, STEP, _>(|p| {
                        let from = u64::from(first + l.index()) * args.pieces;
                        let p = piece + p as u64;
                        if l.has(mask) && p < args.pieces { tile.source.get(from + p) } else { T::ZERO }
                    })
                });
                wave.loads_done();
                wave.each(|l| {
                    let to = u64::from(moved + l.rank(mask)) * args.pieces;
                    for p in 0..STEP {
                        if l.has(mask) && piece + (p as u64) < args.pieces {
                            tile.target.set(l, to + piece + p as u64, loaded.at(l)[p]);
                        }
                    }
                });
                piece += STEP as u64;
            }
            moved += mask.count();
            w += halves;
        }
    }
}
