//! The ranges of the rows that a selection keeps: what [`ranges::Take`](crate::ranges::Take) is for indices.
//!
//! The one idea: as in a [`filter`](crate::filter), a wave has a tile of rows and knows from the selection where its first
//! kept one goes; a row's place is its rank in the word that selects it. Lengths are summed by tiles of **kept** rows, so a
//! wave hands in its sum whenever its rows run into the next of those.
//!
//! Bytes a row: the selection's bit, two neighbouring offsets (one more cache line access, not more bytes); 8 written for
//! each kept row with offsets of 4 bytes. Four words of rows are in flight, some 45 instructions each, with offsets as wide as they
//! are: in 64 bits it was 75.

use crate::memory::{Bits, In, Out};
use crate::ranges::{Edges, Rows, extent};
use crate::scan::{self, Summand, plus, total};
use crate::selection::{TILE, TileBits};
use crate::target::{Lanes, Mask, Number, Value, Wave};

/// Words of rows in flight.
const STEP: usize = 4;

/// A sum of lengths that no array of elements has.
pub const TOO_MUCH: u64 = 1 << 63;

/// What a wave may add to a sum: as often as is possible, less than [`TOO_MUCH`].
const MOST: u64 = TOO_MUCH / scan::TILE;

kernel! {
    family "ranges";
    /// The ranges of the rows that a selection keeps.
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
        /// As in [`ranges::Take`](crate::ranges::Take).
        limit: u64,
        /// From `In::bitmap`: the number that says how many, where only the device has it. May be absent.
        end: In<u32>,
        /// From `In::bitmap`.
        end_offset: u64,
        /// The first element of each kept row's range; there is room for `rows`.
        starts: Out<u8>,
        /// How many elements each has, up to a multiple of 16 bytes.
        lens: Out<u8>,
        /// Zero before; receives the sum of each [`scan::TILE`] of lengths, or [`TOO_MUCH`] and more where a tile of rows adds
        /// 2^53 elements.
        sums: Out<u64>,
        /// Receives the first row, before the filter, whose offsets are bad: `u64::MAX` before.
        fault: Out<u64>,
    }
    waves |args, _| args.rows.div_ceil(TILE);
    /// By the width in bytes of an offset, 0 for none: see [`ranges::TAKE`](crate::ranges::TAKE).
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
    // Compared as narrow as offsets are: a greater limit is none.
    let most = E::Word::from_wide(!0);
    let limit = if limit < most.wide() { E::Word::from_wide(limit) } else { most };
    let valid = Bits::new(args.valid, args.valid_offset, args.rows);
    let (starts, lens) = (args.starts.cast::<E::Word>().skip(first), args.lens.cast::<E::Word>().skip(first));
    let bits = TileBits::of(args.words, args.words_offset, args.rows, tile, wave);
    let mut sum = wave.each(|_| 0u64);
    // Places are counted from the tile's first; the next group of sums begins at `boundary`.
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
            // Flags are bits of one register.
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
                // Some are behind the boundary: they are the next group's.
                let above = wave.each(|l| {
                    (0..STEP).fold(0u64, |sum, k| {
                        let place = to - kept + before[k] + l.rank(masks[k]);
                        let len = if place >= boundary { found[k].at(l).wide() } else { 0 };
                        plus(sum, len, E::LONG)
                    })
                });
                // Where `sum` is not exact, what is below or what is above is too much by itself.
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

/// Adds what a wave has of a group's lengths to the group's sum. At most [`scan::TILE`] waves do, so that what is less than
/// [`MOST`] each cannot wrap; what is more becomes a bit that stays.
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
