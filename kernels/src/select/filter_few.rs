//! Filter for masks that keep few rows: a wave has several tiles, and only looks at those that keep any.
//!
//! For a tile with twenty kept rows, a wave of [`filter`](super::filter) mostly waits: for its position, for
//! its selection, for the rows. Here a wave has `RUN` tiles. It loads the positions of all of them at once,
//! skips the tiles that keep no rows, and loads the selection of the next tile while it moves the rows of
//! one. This needs few registers, so more waves can wait at the same time.

use super::filter::{STEP, Tile, is_sparse, ranked, sparse};
use super::selection::{TILE, TileBits};
use crate::column::MovedRow;
use crate::memory::{In, Out, TableRow};
use crate::target::{Value, Wave};

kernel! {
    family "filter_few", blocks 5;
    /// Filters many columns of equal width in one launch, for masks that keep few rows.
    FilterFew {
        /// A [`MovedRow`] for each column.
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

/// The number of tiles of a wave.
const RUN: u64 = 4;

fn few<T: Value>(args: &FilterFew, wave: &mut Wave) {
    // Divides in 32 bits, which the limit on waves allows: a 64-bit division takes a hundred instructions
    // more.
    let (tiles, run) = (args.tiles as u32, RUN as u32);
    let (index, runs) = (wave.index() as u32, tiles.div_ceil(run).max(1));
    let (column, first) = (u64::from(index / runs), index % runs * run);
    if column >= args.columns {
        return;
    }
    let row = column * MovedRow::ROW;
    let (source, target): (In<T>, Out<T>) =
        (args.table.input(wave, row), args.table.output(wave, row + MovedRow::TARGET));
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
