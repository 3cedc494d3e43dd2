//! The ranges of the rows that a selection keeps, as [`ranges::Take`](crate::ranges::rows::Take) makes
//! them for indices.
//!
//! The one idea: as in a [`filter`](super::filter), a wave has a tile of rows, and the selection tells it the
//! position of its first kept row. A row's position is its rank in the word that selects it. Lengths are
//! summed by tiles of **kept** rows, so a wave adds its sum to the total of such a tile whenever its rows run
//! into the next one.
//!
//! Bytes moved per row: the selection's bit and two neighbouring offsets (one more cache line access, not
//! more bytes); for each kept row with offsets of 4 bytes, 8 bytes are written. Four words of rows are in
//! flight. Each takes about 45 instructions, with lengths computed at the offsets' own width; in 64 bits it
//! took 75.

use super::selection::{TILE, TileBits};
use crate::memory::{Bits, In, Out};
use crate::ranges::rows::{Edges, Rows, extent};
use crate::reduce::scan::{self, Summand, plus, total};
use crate::target::{Lanes, Mask, Number, Value, Wave};

/// Words of rows that are in flight.
const STEP: usize = 4;

/// A sum of lengths that no array has enough elements for.
pub const TOO_MUCH: u64 = 1 << 63;

/// The limit of what a wave adds to a sum as a number: even all waves that may add to the sum stay below
/// [`TOO_MUCH`] together.
const MOST: u64 = TOO_MUCH / scan::TILE;

kernel! {
    family "ranges";
    /// Computes the ranges of the rows that a selection keeps.
    Keep {
        /// The mask (from `In::bitmap`), or the words that [`Select`](super::selection::Select) wrote.
        words: In<u32>,
        /// The bit offset of `words`.
        words_offset: u64,
        /// The first output row of each tile, from [`Offsets`](super::selection::Offsets).
        tile_offsets: In<u64>,
        /// The number of rows.
        rows: u64,
        /// The validity of the rows, from `In::bitmap`. A null row gets no elements. May be absent.
        valid: In<u32>,
        /// The bit offset of `valid`, from `In::bitmap`.
        valid_offset: u64,
        /// The offsets of the rows.
        offsets: In<u8>,
        /// How many elements the offsets may point into, as in [`ranges::Take`](crate::ranges::rows::Take).
        limit: u64,
        /// The number of elements, from `In::bitmap`, if only the device knows it. May be absent.
        end: In<u32>,
        /// The bit offset of `end`, from `In::bitmap`.
        end_offset: u64,
        /// Receives the first element of each kept row's range, with room for `rows` of them.
        starts: Out<u8>,
        /// Receives the number of elements of each kept row; the buffer extends to a multiple of 16 bytes.
        lens: Out<u8>,
        /// Zeroed before; receives the sum of each [`scan::TILE`] of lengths, or at least [`TOO_MUCH`] if a
        /// tile of rows adds 2^53 elements or more.
        sums: Out<u64>,
        /// Receives the first row, numbered as before the filter, whose offsets are bad; `u64::MAX` before.
        fault: Out<u64>,
    }
    waves |args, _| args.rows.div_ceil(TILE);
    /// By the width in bytes of an offset; 0 means no offsets: see
    /// [`ranges::TAKE`](crate::ranges::rows::TAKE).
    KEEP {
        ranges_keep_b0 [0] = keep::<Rows>,
        ranges_keep_b4 [4] = keep::<u32>,
        ranges_keep_b8 [8] = keep::<u64>,
    }
}

fn keep<E: Edges>(args: &Keep, wave: &mut Wave) {
    let (tile, width) = (wave.index(), wave.width());
    if tile * TILE >= args.rows {
        return;
    }
    let (first, end) = (args.tile_offsets.get(tile), args.tile_offsets.get(tile + 1));
    if first == end {
        return;
    }
    let limit = extent(args.limit, args.end, args.end_offset);
    // Compares at the width of the offsets: a limit that this width cannot hold never applies.
    let most = E::Word::from_wide(!0);
    let limit = if limit < most.wide() { E::Word::from_wide(limit) } else { most };
    let valid = Bits::new(args.valid, args.valid_offset, args.rows);
    let (starts, lens) = (args.starts.cast::<E::Word>().skip(first), args.lens.cast::<E::Word>().skip(first));
    let bits = TileBits::of(args.words, args.words_offset, args.rows, tile, wave);
    let mut sum = wave.each(|_| 0u64);
    // Positions are counted from the tile's first; the next group of sums begins at `boundary`.
    let (mut to, end) = (0, (end - first) as u32);
    let mut group = first / scan::TILE;
    let mut boundary = ((group + 1) * scan::TILE - first) as u32;
    let mut at = 0;
    while to < end && at < TILE as u32 {
        let masks: [Mask; STEP] = core::array::from_fn(|k| bits.mask(at / width, k, wave));
        let [a, b, c, d] = masks.map(Mask::count);
        let (before, kept) = ([0, a, a + b, a + b + c], a + b + c + d);
        if kept > 0 {
            let own = tile * TILE + u64::from(at);
            let selected: [Lanes<bool>; STEP] = masks.map(|mask| wave.members(mask));
            let row = |k: usize, lane: u32| own + u64::from(lane) + u64::from(k as u32 * width);
            let edges: [Lanes<[E::Word; 2]>; STEP] = core::array::from_fn(|k| {
                wave.each(|l| {
                    let row = row(k, l.index());
                    if selected[k].at(l) {
                        [row, row + 1].map(|i| E::Word::from_wide(E::edge(args.offsets, i)))
                    } else {
                        [<E::Word as Value>::ZERO; 2]
                    }
                })
            });
            // The flags are bits of one register.
            let mut wanted = wave.each(|_| !0u32);
            if E::NULLS_ARE_EMPTY && !valid.is_absent() {
                wanted = wave.each(|l| {
                    (0..STEP).fold(0, |bits, k| {
                        let valid = selected[k].at(l) && valid.get(row(k, l.index()));
                        bits | u32::from(valid) << k
                    })
                });
            }
            let found: [Lanes<E::Word>; STEP] = core::array::from_fn(|k| {
                wave.each(|l| {
                    let ([start, end_of_row], some) = (edges[k].at(l), wanted.at(l) >> k & 1 != 0);
                    let good = start <= end_of_row && end_of_row <= limit && some;
                    if good { end_of_row.minus(start) } else { <E::Word as Value>::ZERO }
                })
            });
            let bad = wave.each(|l| {
                (0..STEP).fold(0u32, |bits, k| {
                    let [start, end_of_row] = edges[k].at(l);
                    bits | u32::from(start > end_of_row || end_of_row > limit) << k
                }) & wanted.at(l)
            });
            wave.each(|l| {
                for k in 0..STEP {
                    if selected[k].at(l) {
                        let place = u64::from(to + before[k] + l.rank(masks[k]));
                        let [start, _] = edges[k].at(l);
                        let bad = (bad.at(l) | !wanted.at(l)) >> k & 1 != 0;
                        starts.set(l, place, if bad { <E::Word as Value>::ZERO } else { start });
                        lens.set(l, place, found[k].at(l));
                    }
                }
                if bad.at(l) != 0 {
                    args.fault.min(l, 0, row(bad.at(l).trailing_zeros() as usize, l.index()));
                }
            });
            let all = wave.each(|l| found.iter().fold(0, |sum, len| plus(sum, len.at(l).wide(), E::LONG)));
            sum = wave.each(|l| plus(sum.at(l), all.at(l), E::LONG));
            to += kept;
            if to > boundary {
                // The rows at or past the boundary belong to the next group.
                let above = wave.each(|l| {
                    (0..STEP).fold(0u64, |sum, k| {
                        let place = to - kept + before[k] + l.rank(masks[k]);
                        let len = if place >= boundary { found[k].at(l).wide() } else { 0 };
                        plus(sum, len, E::LONG)
                    })
                });
                // If `sum` is not exact, the part below or the part above is too much by itself.
                let below = wave.each(|l| sum.at(l).wrapping_sub(above.at(l)));
                hand_in::<E>(args, group, below, wave);
                sum = above;
                group += 1;
                boundary += scan::TILE as u32;
            }
        }
        at += STEP as u32 * width;
    }
    hand_in::<E>(args, group, sum, wave);
}

/// Adds the lengths that a wave has of a group to the group's sum. At most [`scan::TILE`] waves add to it, so
/// sums below [`MOST`] cannot wrap together; a larger one sets a bit that stays set.
#[inline(always)]
fn hand_in<E: Edges>(args: &Keep, group: u64, sum: Lanes<u64>, wave: &mut Wave) {
    let sum = total(sum, E::LONG, wave);
    wave.once(|l| {
        if E::LONG && sum >= MOST {
            args.sums.or(l, group, TOO_MUCH);
        } else {
            args.sums.add(l, group, sum);
        }
    });
}
