//! Filter: moves the values that a selection keeps straight from source to destination.
//!
//! One wave moves one tile of one column. The method depends on the distribution of the selected rows:
//! - A whole tile whose ends are both aligned: sixteen bytes a lane.
//! - Few of every lane's rows: each lane walks the set bits of its own rows, so rows that are not kept cost
//!   nothing.
//! - Values of one or two bytes in whole, aligned tiles: each lane loads eight bytes of neighbouring rows and
//!   stores those that are kept, because instructions, not bytes, are the bottleneck.
//! - Otherwise, 32 or 64 rows at a time: their selection word is the mask of the lanes that load and store,
//!   and a lane's position in the output is its rank in it. Several such steps are in flight, and as many
//!   empty ones are skipped at once. If hardly a sector is without a kept row, all rows are loaded: no load
//!   then waits for its condition, and twice as many are in flight, because a processor has fewer predicates
//!   than a step has loads.
//!
//! No ballots, no shared memory, no atomics.

use super::selection::{TILE, TileBits};
use crate::column::MovedRow;
use crate::memory::{In, Out, TableRow};
use crate::target::{Lanes, Value, Wave};

kernel! {
    // More registers than the 48 that five blocks allow gain nothing, and would leave fewer waves.
    family "filter", blocks 5;
    /// Filters many columns of equal width in one launch.
    Filter {
        /// A [`MovedRow`] without validity for each column. Values are aligned to the entry's width, and the
        /// target has room for the selection's total.
        table: In<u64>,
        /// The number of columns.
        columns: u64,
        /// The number of tiles: `Sizes::tiles`.
        tiles: u64,
        /// The number of rows.
        len: u64,
        /// The mask (from `In::bitmap`), or the words that `Select` wrote.
        words: In<u32>,
        /// The bit offset of `words`.
        words_offset: u64,
        /// The first output row of each tile, from the kernel `Offsets`.
        offsets: In<u64>,
        /// The number of accesses that make up one value, for widths that are no power of two or more than 16
        /// bytes.
        pieces: u64,
    }
    waves |args, _| args.columns * args.tiles;
    /// By the width of an access in bytes, and whether a value takes several accesses.
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

/// Loads that a lane has in flight.
pub(crate) const STEP: usize = 4;
/// Loads in flight for values that need more of them: those of four and eight bytes, many of which are kept.
pub(crate) const DEEP: usize = 8;

/// The number of kept rows in sixteen from which on all rows of a tile are loaded, because few sectors are
/// without a kept row. 17 means never.
const fn few_sectors_without<T>() -> u64 {
    match size_of::<T>() {
        4 => 4,
        8 => 12,
        _ => 17,
    }
}
/// A lane walks its set bits if at most one row in this many is kept.
const SPARSE: u32 = 4;

/// A tile of a column: its source and its destination.
#[derive(Clone, Copy)]
pub(crate) struct Tile<T> {
    pub source: In<T>,
    pub target: Out<T>,
    pub bits: TileBits,
}

fn values<T: Value>(args: &Filter, wave: &mut Wave) {
    let Some(of) = tile::<T>(args, wave, 1) else { return };
    let (tile, all) = (of.tile, few_sectors_without::<T>());
    if of.count == TILE && tile.source.is_aligned::<u128>() && tile.target.is_aligned::<u128>() {
        copy(wave, tile.source.cast(), tile.target.cast(), TILE as u32 / 16 * size_of::<T>() as u32);
    } else if all <= 16 && of.whole && of.count >= TILE / 16 * all {
        ranked::<T, DEEP, true>(wave, tile)
    } else if is_sparse(wave, tile) {
        sparse(wave, tile)
    } else if size_of::<T>() <= 2 && of.whole && tile.source.is_aligned::<u64>() {
        neighbours(wave, tile)
    } else if size_of::<T>() == 8 {
        ranked::<T, DEEP, false>(wave, tile)
    } else {
        ranked::<T, STEP, false>(wave, tile)
    }
}

/// The part of a launch that a wave works on.
#[derive(Clone, Copy)]
struct Work<T> {
    tile: Tile<T>,
    count: u64,
    /// Whether the tile has all of its rows.
    whole: bool,
}

/// Returns `None` for a wave with nothing to move. `pieces` is the number of accesses in a value.
#[inline(always)]
fn tile<T: Value>(args: &Filter, wave: &mut Wave, pieces: u64) -> Option<Work<T>> {
    // Divides in 32 bits, which the limit on waves allows: a 64-bit division takes a hundred instructions
    // more.
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
    let source = args.table.input::<T>(wave, column * MovedRow::ROW).skip(tile * TILE * pieces);
    let target = args.table.output::<T>(wave, column * MovedRow::ROW + MovedRow::TARGET).skip(first * pieces);
    let bits = TileBits::of(args.words, args.words_offset, args.len, tile, wave);
    Some(Work { tile: Tile { source, target, bits }, count, whole: (tile + 1) * TILE <= args.len })
}

/// Returns whether no lane keeps many of its rows.
#[inline(always)]
pub(crate) fn is_sparse<T: Value>(wave: &mut Wave, tile: Tile<T>) -> bool {
    let most = TILE as u32 / wave.width() / SPARSE;
    let dense = wave.each(|l| tile.bits.own(l).count_ones() > most);
    !wave.any(dense)
}

/// Moves all of a tile, with `STEP` sixteen-byte loads at a time.
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

/// Moves the rows of each lane's set bits, `STEP` at a time.
#[inline(always)]
pub(crate) fn sparse<T: Value>(wave: &mut Wave, tile: Tile<T>) {
    let mut rest = wave.each(|l| tile.bits.own(l));
    let ones = wave.each(|l| rest.at(l).count_ones());
    let (before, _) = wave.scan(ones);
    let each = TILE as u32 / wave.width();
    let mut done = 0;
    loop {
        let bits = wave.each(|l| {
            let mut bits = [rest.at(l); STEP];
            for k in 1..STEP {
                bits[k] = bits[k - 1] & bits[k - 1].wrapping_sub(1);
            }
            bits
        });
        let loaded = wave.each(|l| {
            bits.at(l).map(|bits| {
                let row = l.index() * each + bits.trailing_zeros();
                if bits != 0 { tile.source.get(u64::from(row)) } else { T::ZERO }
            })
        });
        wave.loads_done();
        wave.each(|l| {
            for k in 0..STEP {
                if bits.at(l)[k] != 0 {
                    tile.target.set(l, u64::from(before.at(l) + done) + k as u64, loaded.at(l)[k]);
                }
            }
        });
        rest = wave.each(|l| bits.at(l)[STEP - 1] & bits.at(l)[STEP - 1].wrapping_sub(1));
        done += STEP as u32;
        let some = wave.each(|l| rest.at(l) != 0);
        if !wave.any(some) {
            return;
        }
    }
}

/// Moves neighbouring rows: `STEP` times, each lane loads eight bytes of them.
#[inline(always)]
fn neighbours<T: Value>(wave: &mut Wave, tile: Tile<T>) {
    let (rows, width) = (8 / size_of::<T>() as u32, wave.width());
    let ones = wave.each(|l| tile.bits.own(l).count_ones());
    let (before, _) = wave.scan(ones);
    let source = tile.source.cast::<u64>();
    let mut at = 0;
    while at < TILE as u32 / rows / width {
        let first = at * width;
        let loaded = wave.each(|l| {
            core::array::from_fn::<u64, STEP, _>(|k| {
                source.stream(u64::from(first + l.index()) + u64::from(k as u32 * width))
            })
        });
        // Written out, because a loop around a collective is not unrolled, and a value it indexes would lie
        // in memory.
        let [a, b, c, d]: [Lanes<u64>; STEP] = core::array::from_fn(|k| wave.each(|l| loaded.at(l)[k]));
        store_neighbours(wave, tile, before, first, a);
        store_neighbours(wave, tile, before, first + width, b);
        store_neighbours(wave, tile, before, first + 2 * width, c);
        store_neighbours(wave, tile, before, first + 3 * width, d);
        at += STEP as u32;
    }
}

/// Stores the kept rows of the eight bytes that each lane has. The first lane's rows begin with number
/// `first` of the tile's groups of eight bytes.
#[inline(always)]
fn store_neighbours<T: Value>(
    wave: &mut Wave,
    tile: Tile<T>,
    before: Lanes<u32>,
    first: u32,
    values: Lanes<u64>,
) {
    let (size, each) = (size_of::<T>() as u32, TILE as u32 / wave.width());
    let rows = 8 / size;
    // The lane that holds these rows' bits, and the position of those bits there.
    let owner = wave.each(|l| (first + l.index()) * rows / each);
    let owned = tile.bits.shuffle(owner, wave);
    let to = wave.shuffle(before, owner);
    wave.each(|l| {
        let begin = l.index() * rows % each;
        let below = owned.at(l) & !(!0 << begin);
        let bits = (owned.at(l) >> begin) as u32;
        let mut to = to.at(l) + below.count_ones();
        for r in 0..rows {
            let value = values.at(l) >> (8 * size * r);
            if bits >> r & 1 != 0 {
                match size {
                    1 => tile.target.cast().set(l, u64::from(to), value as u8),
                    _ => tile.target.cast().set(l, u64::from(to), value as u16),
                }
            }
            to += bits >> r & 1;
        }
    });
}

/// Moves `width` rows at a time: their selection bits are the mask of the lanes that move a value. With
/// `ALL`, the other lanes load too.
#[inline(always)]
pub(crate) fn ranked<T: Value, const LOADS: usize, const ALL: bool>(wave: &mut Wave, tile: Tile<T>) {
    let mut target = tile.target;
    let mut w = 0;
    while w < TILE as u32 / wave.width() {
        let masks: [_; LOADS] = core::array::from_fn(|k| tile.bits.mask(w, k, wave));
        if masks.iter().any(|mask| !mask.is_empty()) {
            let first = w * wave.width();
            let kept: [_; LOADS] = core::array::from_fn(|k| wave.members(masks[k]));
            let loaded = wave.each(|l| {
                core::array::from_fn::<T, LOADS, _>(|k| {
                    let row = u64::from(first + l.index()) + u64::from(k as u32 * wave.width());
                    if ALL || kept[k].at(l) { tile.source.stream(row) } else { T::ZERO }
                })
            });
            wave.loads_done();
            for k in 0..LOADS {
                let kept = wave.members(masks[k]);
                wave.each(|l| {
                    if kept.at(l) {
                        target.set(l, u64::from(l.rank(masks[k])), loaded.at(l)[k]);
                    }
                });
                target = target.skip(u64::from(masks[k].count()));
            }
        }
        w += LOADS as u32;
    }
}

/// Like `values`, for values of several accesses.
fn pieces<T: Value>(args: &Filter, wave: &mut Wave) {
    if let Some(Work { tile, .. }) = tile::<T>(args, wave, args.pieces) {
        in_pieces(wave, tile, args.pieces);
    }
}

/// Moves values of several accesses: one access of all rows after the other.
#[inline(always)]
pub(crate) fn in_pieces<T: Value>(wave: &mut Wave, tile: Tile<T>, pieces: u64) {
    let mut moved = 0;
    let mut w = 0;
    while w < TILE as u32 / wave.width() {
        for k in 0..2 {
            let mask = tile.bits.mask(w, k, wave);
            let kept = wave.members(mask);
            let first = (w + k as u32) * wave.width();
            let mut piece = 0;
            while piece < pieces && !mask.is_empty() {
                let loaded = wave.each(|l| {
                    core::array::from_fn::<T, STEP, _>(|p| {
                        let from = u64::from(first + l.index()) * pieces;
                        let p = piece + p as u64;
                        if kept.at(l) && p < pieces { tile.source.get(from + p) } else { T::ZERO }
                    })
                });
                wave.loads_done();
                wave.each(|l| {
                    let to = u64::from(moved + l.rank(mask)) * pieces;
                    for p in 0..STEP {
                        if kept.at(l) && piece + (p as u64) < pieces {
                            tile.target.set(l, to + piece + p as u64, loaded.at(l)[p]);
                        }
                    }
                });
                piece += STEP as u64;
            }
            moved += mask.count();
        }
        w += 2;
    }
}
