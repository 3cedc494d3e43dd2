//! The ranges of the rows that a selection keeps: what [`ranges::Take`](crate::ranges::Take) is for indices.
//!
//! The one idea: as in a [`filter`](crate::filter), a wave has a tile of rows and knows from the selection where its first
//! kept one goes; a row's place is its rank in the word that selects it. Lengths are summed by tiles of **kept** rows, so a
//! wave hands in its sum whenever its rows run into the next of those.
//!
//! Bytes a row: the selection's bit, two neighbouring offsets (one more cache line access, not more bytes); 8 written for
//! each kept row with offsets of 4 bytes. Four words of rows are in flight; about 15 instructions a word of 32 rows, and
//! four empty words cost three.

use crate::memory::{Bits, In, Out};
use crate::ranges::{Edges, Rows, checked, extent};
use crate::scan::{self, Summand};
use crate::selection::{TILE, TileBits};
use crate::target::{Lanes, Mask, Wave};

/// Words of rows in flight.
const STEP: usize = 4;

kernel! {
    family "ranges";
    /// The ranges of the rows that a selection keeps. Waves: `Sizes::tiles`.
    Keep {
        /// The mask (`In::bitmap`), or what [`Select`](crate::selection::Select) wrote.
        words: In<u32>,
        /// Their bit offset.
        words_offset: u64,
        /// From [`Offsets`](crate::selection::Offsets).
        tile_offsets: In<u64>,
        /// How many rows there are.
        rows: u64,
        /// From `In::bitmap`: which rows are valid. Others get no elements. May be absent.
        valid: In<u32>,
        /// From `In::bitmap`.
        valid_offset: u64,
        /// The offsets of the rows.
        offsets: In<u8>,
        /// How many elements the offsets may point into; `u64::MAX` for as many as the last one says.
        limit: u64,
        /// The first element of each kept row's range; there is room for `rows`.
        starts: Out<u8>,
        /// How many elements each has, up to a multiple of 16 bytes.
        lens: Out<u8>,
        /// Zero before; receives the sum of each [`scan::TILE`] of lengths.
        sums: Out<u64>,
        /// Receives the first row, before the filter, whose offsets are bad: `u64::MAX` before.
        fault: Out<u64>,
    }
    /// By the width in bytes of an offset, 0 for none: see [`ranges::TAKE`](crate::ranges::TAKE).
    KEEP {
        ranges_keep_b0 [0] = keep::<Rows>,
        ranges_keep_b4 [4] = keep::<u32>,
        ranges_keep_b8 [8] = keep::<u64>,
    }
}

fn keep<E: Edges>(args: &Keep, wave: &mut Wave) {
    let (tile, width) = (wave.index(), u64::from(wave.width()));
    if tile * TILE >= args.rows {
        return;
    }
    let (mut to, end) = (args.tile_offsets.get(tile), args.tile_offsets.get(tile + 1));
    if to == end {
        return;
    }
    let limit = extent::<E>(args.offsets, args.rows, args.limit);
    let valid = Bits::new(args.valid, args.valid_offset, args.rows);
    let (starts, lens) = (args.starts.cast(), args.lens.cast());
    let bits = TileBits::of(args.words, args.words_offset, args.rows, tile, wave);
    let mut sum = wave.each(|_| 0u64);
    let mut group = to / scan::TILE;
    let mut at = 0;
    while to < end && at < TILE {
        let masks: [Mask; STEP] = core::array::from_fn(|k| bits.mask((at / width) as u32, k, wave));
        let counts = masks.map(|mask| u64::from(mask.count()));
        let kept: u64 = counts.iter().sum();
        if kept > 0 {
            let boundary = (group + 1) * scan::TILE;
            let row = |k: usize, lane: u32| tile * TILE + at + k as u64 * width + u64::from(lane);
            let edges: [Lanes<[u64; 2]>; STEP] = core::array::from_fn(|k| {
                wave.each(|l| {
                    let row = row(k, l.index());
                    if l.has(masks[k]) {
                        [E::edge(args.offsets, row), E::edge(args.offsets, row + 1)]
                    } else {
                        [0; 2]
                    }
                })
            });
            // Before the boundary and after it.
            let sums = wave.each(|l| {
                let (mut below, mut above, mut first) = (0u64, 0u64, to);
                for k in 0..STEP {
                    if l.has(masks[k]) {
                        let (row, place) = (row(k, l.index()), first + u64::from(l.rank(masks[k])));
                        let wanted = !E::NULLS_ARE_EMPTY || valid.is_absent() || valid.get(row);
                        let [start, end_of_row] = edges[k].at(l);
                        let (start, len, good) = checked(start, end_of_row, limit, wanted);
                        starts.set(l, place, E::Word::from_wide(start));
                        lens.set(l, place, E::Word::from_wide(len));
                        if !good {
                            args.fault.min(l, 0, row);
                        }
                        if place < boundary {
                            below = below.wrapping_add(len);
                        } else {
                            above = above.wrapping_add(len);
                        }
                    }
                    first += counts[k];
                }
                [below, above]
            });
            sum = wave.each(|l| sum.at(l).wrapping_add(sums.at(l)[0]));
            to += kept;
            if to > boundary {
                let whole = wave.sum(sum);
                wave.once(|l| args.sums.add(l, group, whole));
                sum = wave.each(|l| sums.at(l)[1]);
                group += 1;
            }
        }
        at += STEP as u64 * width;
    }
    let whole = wave.sum(sum);
    wave.once(|l| args.sums.add(l, group, whole));
}
