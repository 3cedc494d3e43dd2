//! Folds of the values of groups: sums, least values, and counts.
//!
//! A lane folds the rows of a piece one after the other. So the order of additions does not depend on how
//! many lanes there are, and sums of floats are the same everywhere. No lane waits for another, and none
//! updates what another does.

use core::array::from_fn;

use super::folders::{Bitwise, F32, F64, Flips, Folder, Least, LeastWide, Row, Wider};
use super::segments::{PIECE, segment};
use crate::encoded::rows::store;
use crate::memory::{Bits, In, Out};
use crate::target::Wave;

/// The rows whose values a lane loads before it uses the first.
const LOADS: u64 = 4;

kernel! {
    family "group";
    /// Folds the values of each piece.
    Fold {
        /// The values. Absent if only rows are counted.
        values: In<u8>,
        /// A bit for each valid value, from `In::bitmap`. May be absent.
        valid: In<u32>,
        /// The bit offset of `valid`, from `In::bitmap`.
        valid_offset: u64,
        /// The number of values.
        rows: u64,
        /// The rows in the order of their groups. Absent if they are in it.
        order: In<u32>,
        /// The segments of groups, as for [`Pieces`](super::segments::Pieces).
        spans: In<u32>,
        /// The `stride` of [`Pieces`](super::segments::Pieces).
        stride: u64,
        /// The number of groups.
        groups: u64,
        /// The number of pieces before each group, and of all. Absent if each group is a piece.
        pieces: In<u32>,
        /// The most pieces that there may be.
        bound: u64,
        /// The bits that flip in every value, and so make numbers that order as values do; see [`BITS`].
        always: u64,
        /// The bits that flip besides if the highest bit is set; see [`BITS`].
        negative: u64,
        /// The bits that flip if the greatest value is wanted, or else zero.
        descending: u64,
        /// Receives a value for each piece.
        out: Out<u8>,
        /// Receives a bit, in whole words, for each piece that has a valid value.
        out_valid: Out<u32>,
    }
    // A lane takes a piece, which is up to 1,024 rows: as many waves as there are.
    waves |args, width| args.bound.div_ceil(u64::from(width));
    /// By a number for the fold, and the bytes of a value: [`SUM`], [`SUM_FLOATS`], [`LEAST`], [`ROW`] and
    /// [`BITS`]. Counts and other sums of integers are [`tally`](super::tally)'s.
    FOLD {
        group_sum_b32 [SUM, 32] = fold::<Wider>,
        group_sum_f32 [SUM_FLOATS, 4] = fold::<F32>,
        group_sum_f64 [SUM_FLOATS, 8] = fold::<F64>,
        group_least_b1 [LEAST, 1] = fold::<Least<u8>>,
        group_least_b2 [LEAST, 2] = fold::<Least<u16>>,
        group_least_b4 [LEAST, 4] = fold::<Least<u32>>,
        group_least_b8 [LEAST, 8] = fold::<Least<u64>>,
        group_least_b16 [LEAST, 16] = fold::<LeastWide>,
        group_row [ROW, 0] = fold::<Row>,
        group_bits_b1 [BITS, 1] = fold::<Bitwise<u8>>,
        group_bits_b2 [BITS, 2] = fold::<Bitwise<u16>>,
        group_bits_b4 [BITS, 4] = fold::<Bitwise<u32>>,
        group_bits_b8 [BITS, 8] = fold::<Bitwise<u64>>,
    }
}

/// Sums of signed integers, in a wider type.
pub const SUM: u32 = 0;
/// Sums of unsigned integers, in a wider type.
pub const SUM_UNSIGNED: u32 = 1;
/// Sums of floats, in the order of rows.
pub const SUM_FLOATS: u32 = 2;
/// Sums of integers, modulo the numbers of their own type.
pub const SUM_WRAPPING: u32 = 3;
/// Least values, or greatest ones.
pub const LEAST: u32 = 4;
/// Numbers of valid values.
pub const COUNT: u32 = 5;
/// The number of the first row whose value is valid, or of the last one.
pub const ROW: u32 = 6;
/// Operations on the bits of integers: of bits that both values have, those of `always` stay, and of bits
/// that one of them has, those of `negative`.
pub const BITS: u32 = 7;

/// Returns the group of a piece, which MUST have one.
#[inline(always)]
fn group_of(pieces: In<u32>, groups: u64, piece: u64) -> u64 {
    let (mut from, mut to) = (0, groups);
    while to - from > 1 {
        let middle = from + (to - from) / 2;
        if u64::from(pieces.get(middle)) <= piece {
            from = middle;
        } else {
            to = middle;
        }
    }
    from
}

fn fold<F: Folder>(args: &Fold, wave: &mut Wave) {
    let at = wave.index() * u64::from(wave.width());
    if at >= args.bound {
        return;
    }
    let flips = Flips { always: args.always, negative: args.negative, descending: args.descending };
    let values = args.values.cast::<F::From>();
    let out = args.out.cast::<F::To>();
    let valid = Bits::new(args.valid, args.valid_offset, args.rows);
    let count = if args.pieces.is_absent() { args.groups } else { args.pieces.get(args.groups).into() };
    let has = wave.each(|l| {
        let piece = at + u64::from(l.index());
        if piece >= count {
            return false;
        }
        let (group, number) = if args.pieces.is_absent() {
            (piece, 0)
        } else {
            let group = group_of(args.pieces, args.groups, piece);
            (group, piece - u64::from(args.pieces.get(group)))
        };
        let [first, after] = segment(args.spans, args.stride, group);
        let first = first + number * PIECE;
        let after = if after - first < PIECE { after } else { first + PIECE };
        let row = |place: u64| {
            if args.order.is_absent() { place } else { u64::from(args.order.get(place)) }
        };
        let (mut state, mut any, mut place) = (F::empty(flips), false, first);
        while place < after {
            // Places past the end repeat the last one.
            let rows = from_fn::<u64, { LOADS as usize }, _>(|k| row((place + k as u64).min(after - 1)));
            let counts = from_fn::<bool, { LOADS as usize }, _>(|k| {
                place + (k as u64) < after && (valid.is_absent() || valid.get(rows[k]))
            });
            if F::READS {
                let loaded = from_fn::<F::From, { LOADS as usize }, _>(|k| values.get(rows[k]));
                for k in 0..LOADS as usize {
                    if counts[k] {
                        state = F::add(flips, state, loaded[k]);
                        any = true;
                    }
                }
            } else {
                for k in 0..LOADS as usize {
                    if counts[k] {
                        state = F::add_row(flips, state, rows[k]);
                        any = true;
                    }
                }
            }
            place += LOADS;
        }
        out.set(l, piece, state);
        any
    });
    store(has, at, args.bound, args.out_valid, wave);
}
