//! The functions of folds: how a value changes a sum, a least value, or a count.

use crate::program::word::{plain_nan_f32, plain_nan_f64};
use crate::target::Value;

/// The bits of values that flip; see [`Fold`](super::fold::Fold) and [`BITS`](super::fold::BITS).
#[derive(Clone, Copy)]
pub(super) struct Flips {
    pub always: u64,
    pub negative: u64,
    pub descending: u64,
}

/// A fold of values.
pub(super) trait Folder {
    /// A value in memory.
    type From: Value;
    /// The result of a fold in memory.
    type To: Value;
    /// Whether values are read.
    const READS: bool = true;
    /// The result without values.
    fn empty(flips: Flips) -> Self::To;
    fn add(flips: Flips, state: Self::To, value: Self::From) -> Self::To;
    /// Like `add`, for folds that read no values.
    #[inline(always)]
    fn add_row(flips: Flips, state: Self::To, _row: u64) -> Self::To {
        Self::add(flips, state, <Self::From as Value>::ZERO)
    }
}

macro_rules! sums {
    ($($name:ident: $from:ty => $to:ty, $zero:expr, |$state:ident, $value:ident| $sum:expr;)*) => { $(
        pub(super) struct $name;

        impl Folder for $name {
            type From = $from;
            type To = $to;

            #[inline(always)]
            fn empty(_: Flips) -> $to {
                $zero
            }

            #[inline(always)]
            fn add(_: Flips, $state: $to, $value: $from) -> $to {
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
pub(super) struct Least<T>(T);

/// A value of one word.
pub(super) trait Word: Value {
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
    fn empty(flips: Flips) -> T {
        let greatest = !flips.descending;
        let negative = (greatest ^ flips.always) << (64 - T::BITS);
        let negative = (negative as i64 >> 63) as u64;
        T::narrow(greatest ^ flips.always ^ (flips.negative & negative))
    }

    #[inline(always)]
    fn add(flips: Flips, state: T, value: T) -> T {
        let key = |value: T| {
            let value = value.wide();
            let negative = ((value << (64 - T::BITS)) as i64 >> 63) as u64;
            value ^ flips.always ^ (flips.negative & negative) ^ flips.descending
        };
        if key(value) < key(state) { value } else { state }
    }
}

/// The least of signed integers of 16 bytes.
pub(super) struct LeastWide;

impl Folder for LeastWide {
    type From = u128;
    type To = u128;

    #[inline(always)]
    fn empty(flips: Flips) -> u128 {
        if flips.descending == 0 { i128::MAX as u128 } else { i128::MIN as u128 }
    }

    #[inline(always)]
    fn add(flips: Flips, state: u128, value: u128) -> u128 {
        let less = (value as i128) < state as i128;
        let greater = (value as i128) > state as i128;
        if if flips.descending == 0 { less } else { greater } { value } else { state }
    }
}

/// The number of valid values.
pub(super) struct Count;

impl Folder for Count {
    type From = u8;
    type To = u64;
    const READS: bool = false;

    #[inline(always)]
    fn empty(_: Flips) -> u64 {
        0
    }

    #[inline(always)]
    fn add(_: Flips, state: u64, _: u8) -> u64 {
        state + 1
    }
}

/// The first row, or the last one.
pub(super) struct Row;

impl Folder for Row {
    type From = u8;
    type To = u32;
    const READS: bool = false;

    #[inline(always)]
    fn empty(flips: Flips) -> u32 {
        !(flips.descending as u32)
    }

    #[inline(always)]
    fn add(_: Flips, state: u32, _: u8) -> u32 {
        state
    }

    #[inline(always)]
    fn add_row(flips: Flips, state: u32, row: u64) -> u32 {
        let descending = flips.descending as u32;
        if row as u32 ^ descending < state ^ descending { row as u32 } else { state }
    }
}

/// An operation on bits.
pub(super) struct Bitwise<T>(T);

impl<T: Word> Folder for Bitwise<T> {
    type From = T;
    type To = T;

    /// All bits, if only those stay that both values have.
    #[inline(always)]
    fn empty(flips: Flips) -> T {
        T::narrow(flips.always & !flips.negative)
    }

    #[inline(always)]
    fn add(flips: Flips, state: T, value: T) -> T {
        let (state, value) = (state.wide(), value.wide());
        T::narrow((state & value & flips.always) | ((state ^ value) & flips.negative))
    }
}
