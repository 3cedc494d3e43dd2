//! Comparisons of the rows of a chunk, 64 at a time. The one idea: numbers are compared by integer keys, so a
//! comparison with a constant selects the keys between two others.

use bowstring_kernels::map::function::{F16, Native};

use super::blocks::{Blocks, Halves, View, bits, expect, nearest, set, short, sparse, whole};
use crate::cpu::intrinsics::{AHEAD, prefetch};
use crate::cpu::vectorise::{Loop, VectorLevel, vectorised};

/// Defines the order of values: that of integers, or the total order of floats.
pub(super) trait Ordered: Native {
    /// An integer key in the order of the values.
    type Key: Key;
    fn key(self) -> Self::Key;
}

/// An integer that values are compared by.
pub(super) trait Key: Copy + Ord {
    /// Returns the lowest bits of a number, in the width of the key.
    fn lowest(of: i128) -> Self;
    /// Returns whether the key lies between `low` and `high`, inclusive. `low` must not exceed `high`.
    fn is_within(self, low: Self, high: Self) -> bool;
    /// Returns the key in the widest key type.
    fn wide(self) -> i128;
}

macro_rules! keys {
    ($($t:ty, $unsigned:ty;)*) => {
        $(impl Key for $t {
            #[inline(always)]
            fn lowest(of: i128) -> $t {
                of as $t
            }
            #[inline(always)]
            fn wide(self) -> i128 {
                self as i128
            }
            // One unsigned comparison suffices: a key below `low` wraps to far above it. Signs do not matter.
            #[inline(always)]
            fn is_within(self, low: $t, high: $t) -> bool {
                self.wrapping_sub(low) as $unsigned <= high.wrapping_sub(low) as $unsigned
            }
        })*
    };
}
keys! { i8, u8; i16, u16; i32, u32; i64, u64; u8, u8; u16, u16; u32, u32; u64, u64; i128, u128; }

macro_rules! ordered {
    ($($t:ty, $key_type:ty, |$x:ident| $key:expr;)*) => {
        $(impl Ordered for $t {
            type Key = $key_type;
            #[inline(always)]
            fn key(self) -> $key_type {
                let $x = self;
                $key
            }
        })*
    };
}
ordered! {
    i8, i8, |x| x; i16, i16, |x| x; i32, i32, |x| x; i64, i64, |x| x; i128, i128, |x| x;
    u8, u8, |x| x; u16, u16, |x| x; u32, u32, |x| x; u64, u64, |x| x;
    F16, i16, |x| { let x = x.0 as i16; x ^ ((x >> 15) as u16 >> 1) as i16 };
    f32, i32, |x| { let x = x.to_bits() as i32; x ^ ((x >> 31) as u32 >> 1) as i32 };
    f64, i64, |x| { let x = x.to_bits() as i64; x ^ ((x >> 63) as u64 >> 1) as i64 };
}

/// Marks the rows whose keys lie between two others, or the rest.
struct Within<'a, T, K> {
    values: Blocks<'a, T>,
    ends: [K; 2],
    not: u64,
    out: &'a mut [u64],
}

impl<T: Ordered> Loop for Within<'_, T, T::Key> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let [low, high] = self.ends;
        let mut last = None;
        for (i, word) in self.out.iter_mut().enumerate() {
            let block = self.values.at(i, &mut last);
            prefetch(block, AHEAD);
            *word = self.not ^ bits(|k| block[k].key().is_within(low, high));
        }
    }
}

impl Loop for Within<'_, Halves, i64> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let [low, high] = self.ends;
        let mut last = None;
        for (i, word) in self.out.iter_mut().enumerate() {
            let block = self.values.at(i, &mut last);
            prefetch(block, AHEAD);
            let block = nearest(block);
            *word = self.not ^ bits(|k| block[k].is_within(low, high));
        }
    }
}

/// Sets the bits of rows whose keys lie between `ends`, inclusive. If `not` is all ones, sets those of the
/// other rows instead.
pub(super) fn within<T: Ordered>(a: View<'_>, ends: [i128; 2], not: u64, out: &mut [u64]) {
    vectorised(Within { values: a.values::<T>(), ends: ends.map(Key::lowest), not, out });
}

/// As [`within`], for decimals, in the rows that are `asked` for.
pub(super) fn within_wide(a: View<'_>, ends: [i128; 2], not: u64, asked: &[u64], out: &mut [u64]) {
    if sparse(asked, 16) {
        let (values, mut last) = (a.halves(), None);
        expect(values, asked);
        for (i, (word, asked)) in out.iter_mut().zip(asked).enumerate() {
            let block = values.at(i, &mut last);
            let is_within = |k: usize| whole(block[k]).is_within(ends[0], ends[1]);
            *word = not ^ set(*asked).fold(0, |word, k| word | u64::from(is_within(k)) << k);
        }
        return;
    }
    let (least, most) = (i128::from(i64::MIN), i128::from(i64::MAX));
    let [low, high] = ends;
    // If the ends are such values, clamping a decimal to eight bytes does not move it across them.
    let low_is_short = low == i128::MIN || low > least && low <= most;
    let high_is_short = high == i128::MAX || high < most && high >= least;
    if low_is_short && high_is_short {
        let ends = ends.map(|end| end.clamp(least, most) as i64);
        vectorised(Within { values: a.halves(), ends, not, out });
    } else {
        VectorLevel::Plain.run(Within { values: a.values::<i128>(), ends, not, out });
    }
}

/// Sets the bits of rows where `a` compares with `b` as `how` says: the sum of 1 (less), 2 (equal) and 4
/// (greater).
pub(super) fn compare<T: Ordered>(how: u8, a: View<'_>, b: View<'_>, out: &mut [u64]) {
    struct Compare<'a, T> {
        a: Blocks<'a, T>,
        b: Blocks<'a, T>,
        equal: bool,
        not: u64,
        out: &'a mut [u64],
    }
    impl<T: Ordered> Loop for Compare<'_, T> {
        type Output = ();
        #[inline(always)]
        fn run(self) {
            let (mut a_last, mut b_last) = (None, None);
            for (i, word) in self.out.iter_mut().enumerate() {
                let (a, b) = (self.a.at(i, &mut a_last), self.b.at(i, &mut b_last));
                *word = self.not
                    ^ match self.equal {
                        true => bits(|k| a[k].key() == b[k].key()),
                        false => bits(|k| a[k].key() < b[k].key()),
                    };
            }
        }
    }
    let (a, b, equal, not) = two_ways(how, a, b);
    vectorised(Compare::<T> { a: a.values(), b: b.values(), equal, not, out });
}

/// As [`compare`], for decimals.
pub(super) fn compare_wide(how: u8, a: View<'_>, b: View<'_>, out: &mut [u64]) {
    struct Compare<'a> {
        a: Blocks<'a, Halves>,
        b: Blocks<'a, Halves>,
        equal: bool,
        not: u64,
        out: &'a mut [u64],
    }
    impl Loop for Compare<'_> {
        type Output = ();
        #[inline(always)]
        fn run(self) {
            let (mut a_last, mut b_last) = (None, None);
            for (i, word) in self.out.iter_mut().enumerate() {
                let (a, b) = (self.a.at(i, &mut a_last), self.b.at(i, &mut b_last));
                *word = self.not
                    ^ match (short(a), short(b), self.equal) {
                        (_, _, true) => bits(|k| a[k] == b[k]),
                        (Some(a), Some(b), false) => bits(|k| a[k] < b[k]),
                        // All halves are compared, whatever the upper ones say: the compiler turns a second
                        // look at some rows into gathers.
                        (_, _, false) => bits(|k| {
                            let ([a_low, a_high], [b_low, b_high]) = (a[k], b[k]);
                            (a_high < b_high) | ((a_high == b_high) & ((a_low as u64) < (b_low as u64)))
                        }),
                    };
            }
        }
    }
    let (a, b, equal, not) = two_ways(how, a, b);
    vectorised(Compare { a: a.halves(), b: b.halves(), equal, not, out });
}

/// Reduces a comparison to one of two, less or equal, with operands swapped or the result inverted.
fn two_ways<'a>(how: u8, a: View<'a>, b: View<'a>) -> (View<'a>, View<'a>, bool, u64) {
    let (swapped, not) = match how {
        3 | 4 => (true, how == 3),
        _ => (false, how > 4),
    };
    let (a, b) = if swapped { (b, a) } else { (a, b) };
    (a, b, how == 2 || how == 5, if not { !0 } else { 0 })
}

/// Sets the bits of rows whose key `is_one` accepts.
pub(super) fn among_many<T: Ordered>(a: View<'_>, is_one: impl Fn(i128) -> bool, out: &mut [u64]) {
    let (values, mut last) = (a.values::<T>(), None);
    for (i, word) in out.iter_mut().enumerate() {
        let block = values.at(i, &mut last);
        *word = bits(|k| is_one(block[k].key().wide()));
    }
}

/// Sets the bits of rows that equal one of the values.
pub(super) fn among<T: Ordered>(a: View<'_>, values: &[T], out: &mut [u64]) {
    struct Among<'a, T>(Blocks<'a, T>, &'a [T], &'a mut [u64]);
    impl<T: Ordered> Loop for Among<'_, T> {
        type Output = ();
        #[inline(always)]
        fn run(self) {
            let mut last = None;
            for (i, word) in self.2.iter_mut().enumerate() {
                let block = self.0.at(i, &mut last);
                let is = |value: &T| bits(|k| block[k].key() == value.key());
                *word = self.1.iter().fold(0, |word, value| word | is(value));
            }
        }
    }
    vectorised(Among(a.values(), values, out));
}
