//! Folds of the values of groups: sums, least values, and counts.
//!
//! A lane folds the rows of a piece one after the other. So the order of additions does not depend on how
//! many lanes there are, and sums of floats are the same everywhere. No lane waits for another, and none
//! updates what another does.

use core::array::from_fn;

use super::segments::{PIECE, segment};
use crate::encoded::rows::store;
use crate::memory::{Bits, In, Out};
use crate::program::word::{plain_nan_f32, plain_nan_f64};
use crate::target::{Value, Wave};

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
    /// By a number for the fold, and the bytes of a value: sums ([`SUM`] signed, [`SUM_UNSIGNED`],
    /// [`SUM_FLOATS`], [`SUM_WRAPPING`]), [`LEAST`], [`COUNT`], [`ROW`] and [`BITS`].
    FOLD {
        group_sum_i64 [SUM, 8] = fold::<I64>,
        group_sum_b16 [SUM, 16] = fold::<Wide>,
        group_sum_b32 [SUM, 32] = fold::<Wider>,
        group_sum_u64 [SUM_UNSIGNED, 8] = fold::<U64>,
        group_sum_f32 [SUM_FLOATS, 4] = fold::<F32>,
        group_sum_f64 [SUM_FLOATS, 8] = fold::<F64>,
        group_sum_wrapping [SUM_WRAPPING, 8] = fold::<Wrapping>,
        group_join_sums [SUM_WRAPPING, 16] = fold::<Joined>,
        group_least_b1 [LEAST, 1] = fold::<Least<u8>>,
        group_least_b2 [LEAST, 2] = fold::<Least<u16>>,
        group_least_b4 [LEAST, 4] = fold::<Least<u32>>,
        group_least_b8 [LEAST, 8] = fold::<Least<u64>>,
        group_least_b16 [LEAST, 16] = fold::<LeastWide>,
        group_count [COUNT, 0] = fold::<Count>,
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

/// A fold of values.
trait Folder {
    /// A value in memory.
    type From: Value;
    /// The result of a fold in memory.
    type To: Value;
    /// Whether values are read.
    const READS: bool = true;
    /// The result without values.
    fn empty(args: &Fold) -> Self::To;
    fn add(args: &Fold, state: Self::To, value: Self::From) -> Self::To;
    /// Like `add`, for folds that read no values.
    #[inline(always)]
    fn add_row(args: &Fold, state: Self::To, _row: u64) -> Self::To {
        Self::add(args, state, <Self::From as Value>::ZERO)
    }
}

macro_rules! sums {
    ($($name:ident: $from:ty => $to:ty, $zero:expr, |$state:ident, $value:ident| $sum:expr;)*) => { $(
        struct $name;

        impl Folder for $name {
            type From = $from;
            type To = $to;

            #[inline(always)]
            fn empty(_: &Fold) -> $to {
                $zero
            }

            #[inline(always)]
            fn add(_: &Fold, $state: $to, $value: $from) -> $to {
                $sum
            }
        }
    )* };
}

sums! {
    I64: u64 => u128, 0, |sum, x| sum.wrapping_add(x as i64 as i128 as u128);
    U64: u64 => u128, 0, |sum, x| sum.wrapping_add(u128::from(x));
    Wide: u128 => [u128; 2], [0; 2], |sum, x| both(sum, [x, ((x as i128) >> 127) as u128]);
    Wider: [u128; 2] => [u128; 2], [0; 2], |sum, x| both(sum, x);
    Joined: u128 => u128, 0, |sum, x| sum.wrapping_add(x);
    Wrapping: u64 => u64, 0, |sum, x| sum.wrapping_add(x);
    F32: f32 => f32, 0.0, |sum, x| plain_nan_f32(sum + x);
    F64: f64 => f64, 0.0, |sum, x| plain_nan_f64(sum + x);
}

/// Adds numbers of 256 bits.
#[inline(always)]
fn both([low, high]: [u128; 2], [other_low, other_high]: [u128; 2]) -> [u128; 2] {
    let (low, carry) = low.overflowing_add(other_low);
    [low, high.wrapping_add(other_high).wrapping_add(u128::from(carry))]
}

/// The least of values of one word.
struct Least<T>(T);

/// A value of one word.
trait Word: Value {
    const BITS: u32 = 8 * size_of::<Self>() as u32;
    fn wide(self) -> u64;
    fn narrow(wide: u64) -> Self;
}

macro_rules! words {
    ($($t:ty)*) => { $(impl Word for $t {
        #[inline(always)]
        fn wide(self) -> u64 {
            self as u64
        }

        #[inline(always)]
        fn narrow(wide: u64) -> $t {
            wide as $t
        }
    })* };
}
words! { u8 u16 u32 u64 }

impl<T: Word> Folder for Least<T> {
    type From = T;
    type To = T;

    /// No value is greater in the order.
    #[inline(always)]
    fn empty(args: &Fold) -> T {
        let greatest = !args.descending;
        let negative = (greatest ^ args.always) << (64 - T::BITS);
        let negative = (negative as i64 >> 63) as u64;
        T::narrow(greatest ^ args.always ^ (args.negative & negative))
    }

    #[inline(always)]
    fn add(args: &Fold, state: T, value: T) -> T {
        let key = |value: T| {
            let value = value.wide();
            let negative = ((value << (64 - T::BITS)) as i64 >> 63) as u64;
            value ^ args.always ^ (args.negative & negative) ^ args.descending
        };
        if key(value) < key(state) { value } else { state }
    }
}

/// The least of signed integers of 16 bytes.
struct LeastWide;

impl Folder for LeastWide {
    type From = u128;
    type To = u128;

    #[inline(always)]
    fn empty(args: &Fold) -> u128 {
        if args.descending == 0 { i128::MAX as u128 } else { i128::MIN as u128 }
    }

    #[inline(always)]
    fn add(args: &Fold, state: u128, value: u128) -> u128 {
        let less = (value as i128) < state as i128;
        let greater = (value as i128) > state as i128;
        if if args.descending == 0 { less } else { greater } { value } else { state }
    }
}

/// The number of valid values.
struct Count;

impl Folder for Count {
    type From = u8;
    type To = u64;
    const READS: bool = false;

    #[inline(always)]
    fn empty(_: &Fold) -> u64 {
        0
    }

    #[inline(always)]
    fn add(_: &Fold, state: u64, _: u8) -> u64 {
        state + 1
    }
}

/// The first row, or the last one.
struct Row;

impl Folder for Row {
    type From = u8;
    type To = u32;
    const READS: bool = false;

    #[inline(always)]
    fn empty(args: &Fold) -> u32 {
        !(args.descending as u32)
    }

    #[inline(always)]
    fn add(_: &Fold, state: u32, _: u8) -> u32 {
        state
    }

    #[inline(always)]
    fn add_row(args: &Fold, state: u32, row: u64) -> u32 {
        let descending = args.descending as u32;
        if row as u32 ^ descending < state ^ descending { row as u32 } else { state }
    }
}

/// An operation on bits.
struct Bitwise<T>(T);

impl<T: Word> Folder for Bitwise<T> {
    type From = T;
    type To = T;

    /// All bits, if only those stay that both values have.
    #[inline(always)]
    fn empty(args: &Fold) -> T {
        T::narrow(args.always & !args.negative)
    }

    #[inline(always)]
    fn add(args: &Fold, state: T, value: T) -> T {
        let (state, value) = (state.wide(), value.wide());
        T::narrow((state & value & args.always) | ((state ^ value) & args.negative))
    }
}

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
        let (mut state, mut any, mut place) = (F::empty(args), false, first);
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
                        state = F::add(args, state, loaded[k]);
                        any = true;
                    }
                }
            } else {
                for k in 0..LOADS as usize {
                    if counts[k] {
                        state = F::add_row(args, state, rows[k]);
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
