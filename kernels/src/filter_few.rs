//! Filter where few rows of many are kept: a wave has several tiles and looks at those only that have any.
//!
//! What a wave of [`filter`](crate::filter) does for a tile with twenty kept rows is mostly waiting: for its place, for its
//! selection, for the rows. Here a wave has `RUN` tiles, knows of all of them at once where their rows go, skips those
//! without any, and loads the selection of the next while it moves the rows of one. Few registers are needed for that, so
//! more waves can wait.

use crate::filter::{ROW, STEP, Tile, is_sparse, ranked, sparse};
use crate::memory::{In, Out};
use crate::selection::{TILE, TileBits};
use crate::target::{Value, Wave};

kernel! {
    family "filter_few", blocks 5;
    /// Many columns of equal width in one launch, few rows of which are kept.
    FilterFew {
        /// A [`FilterRow`](crate::filter::FilterRow) for each column.
        table: In<u64>,
        /// How many columns.
        columns: u64,
        /// `Sizes::tiles`.
        tiles: u64,
        /// Rows.
        len: u64,
        /// The mask (`In::bitmap`), or what `Select` wrote.
        words: In<u32>,
        /// Their bit offset.
        words_offset: u64,
        /// From `Offsets`.
        offsets: In<u64>,
    }
    waves |args, _| args.columns * args.tiles.div_ceil(RUN);
    /// By width in bytes.
    FILTER_FEW {
        filter_few_b1 [1] = few::<u8>,
        filter_few_b2 [2] = few::<u16>,
        filter_few_b4 [4] = few::<u32>,
        filter_few_b8 [8] = few::<u64>,
        filter_few_b16 [16] = few::<u128>,
    }
}

/// Tiles of a wave.
const RUN: u64 = 4;

fn few<T: Value>(args: &FilterFew, wave: &mut Wave) {
    // In 32 bits, which the limit on waves allows: a 64-bit division is a hundred instructions longer.
    let (tiles, run) = (args.tiles as u32, RUN as u32);
    let (index, runs) = (wave.index() as u32, tiles.div_ceil(run).max(1));
    let (column, first) = (u64::from(index / runs), index % runs * run);
    if column >= args.columns {
        return;
    }
    let (source, target): (In<T>, Out<T>) =
        (args.table.input(wave, column * ROW), args.table.output(wave, column * ROW + 2));
    let left = (tiles - first).min(run);
    let offset = |i: u32| args.offsets.get(u64::from(first + i.min(left)));
    let to = wave.each(|l| offset(l.index()));
    let end = wave.each(|l| offset(l.index() + 1));
    let any = wave.each(|l| end.at(l) != to.at(l));
    let mut rest = wave.ballot(any).half(0);
    if rest == 0 {
        return;
    }
    let bits = |i: u32, wave: &Wave| {
        TileBits::of(args.words, args.words_offset, args.len, u64::from(first + i), wave)
    };
    let mut own = bits(rest.trailing_zeros(), wave);
    while rest != 0 {
        let i = rest.trailing_zeros();
        rest &= rest - 1;
        let tile = Tile {
            source: source.skip(u64::from(first + i) * TILE),
            target: target.skip(wave.broadcast(to, i)),
            bits: own,
        };
        if rest != 0 {
            own = bits(rest.trailing_zeros(), wave);
        }
        if is_sparse(wave, tile) { sparse(wave, tile) } else { ranked::<T, STEP, false>(wave, tile) }
    }
}
