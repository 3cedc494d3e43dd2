//! Loops over the rows of a chunk, 64 at a time: what a step of a plan does to values. A block is an array, so that every loop has
//! a length that the compiler knows; a constant is a block that is used again and again.

use bowstring_kernels::function::{F16, Native, U256};

use crate::cpu::memory::{numbers, numbers_mut, plain};
use crate::cpu::vectorise::{Loop, VectorLevel, vectorised};

/// Rows of a chunk.
pub(super) const CHUNK: usize = 4096;
/// Rows of a block.
pub(super) const BLOCK: usize = 64;

/// Which rows of a word are among the first `rows`.
pub(super) fn inside(rows: usize, word: usize) -> u64 {
    crate::cpu::rows::ones(rows - (word * 64).min(rows))
}

/// Values of a chunk: as many as there are rows, or a block of the same value.
#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    pub bytes: &'a [u8],
    pub constant: bool,
}

impl<'a> View<'a> {
    fn values<T: Native>(self) -> Blocks<'a, T> {
        let values: &[T] = numbers(self.bytes).expect("chunks are aligned");
        let (whole, rest) = values.as_chunks();
        let mut last = [T::default(); BLOCK];
        last[..rest.len()].copy_from_slice(rest);
        Blocks { whole, last, constant: self.constant }
    }
}

/// Values by blocks, the last one filled up.
struct Blocks<'a, T> {
    whole: &'a [[T; BLOCK]],
    last: [T; BLOCK],
    constant: bool,
}

impl<T> Blocks<'_, T> {
    #[inline(always)]
    fn at(&self, i: usize) -> &[T; BLOCK] {
        self.whole.get(if self.constant { 0 } else { i }).unwrap_or(&self.last)
    }
}

/// How values are compared: as integers are, or by the total order of floats.
pub(super) trait Ordered: Native {
    fn less(self, other: Self) -> bool;
    fn same(self, other: Self) -> bool;
}

macro_rules! ordered {
    ($($t:ty => |$x:ident| $key:expr;)*) => {
        $(impl Ordered for $t {
            #[inline(always)]
            fn less(self, other: $t) -> bool {
                let key = |$x: $t| $key;
                key(self) < key(other)
            }
            #[inline(always)]
            fn same(self, other: $t) -> bool {
                let key = |$x: $t| $key;
                key(self) == key(other)
            }
        })*
    };
}
ordered! {
    i8 => |x| x; i16 => |x| x; i32 => |x| x; i64 => |x| x; u8 => |x| x; u16 => |x| x; u32 => |x| x; u64 => |x| x;
    F16 => |x| { let x = x.0 as i16; x ^ ((x >> 15) as u16 >> 1) as i16 };
    f32 => |x| { let x = x.to_bits() as i32; x ^ ((x >> 31) as u32 >> 1) as i32 };
    f64 => |x| { let x = x.to_bits() as i64; x ^ ((x >> 63) as u64 >> 1) as i64 };
}

impl Ordered for i128 {
    #[inline(always)]
    fn less(self, other: i128) -> bool {
        self < other
    }
    #[inline(always)]
    fn same(self, other: i128) -> bool {
        self == other
    }
}

/// A decimal as its two halves: compilers make vectors of these, and of none of sixteen bytes.
type Halves = [i64; 2];

/// Decimals as numbers of eight bytes, which most are.
#[inline(always)]
fn short(block: &[Halves; BLOCK]) -> Option<[i64; BLOCK]> {
    let mut low = [0i64; BLOCK];
    let mut other = 0;
    for (low, [x, high]) in low.iter_mut().zip(block) {
        *low = *x;
        other |= high ^ (x >> 63);
    }
    (other == 0).then_some(low)
}

impl View<'_> {
    /// The halves of decimals, by blocks; `None` of the last one, if it is not whole.
    fn halves(&self, i: usize) -> Option<&[Halves; BLOCK]> {
        let all: &[Halves] = plain(self.bytes).expect("chunks are aligned");
        all.as_chunks().0.get(if self.constant { 0 } else { i })
    }
}

/// A bit for each row of a block.
#[inline(always)]
fn bits<T: Copy, U: Copy>(a: &[T; BLOCK], b: &[U; BLOCK], f: impl Fn(T, U) -> bool) -> u64 {
    let mut word = 0;
    for i in 0..BLOCK {
        word |= u64::from(f(a[i], b[i])) << i;
    }
    word
}

/// Sets the bits of rows where `a` and `b` are as `how` says: 1 less, 2 equal, 4 greater.
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
            for (i, word) in self.out.iter_mut().enumerate() {
                let (a, b) = (self.a.at(i), self.b.at(i));
                *word = self.not ^ if self.equal { bits(a, b, T::same) } else { bits(a, b, T::less) };
            }
        }
    }
    let (a, b, equal, not) = two_ways(how, a, b);
    vectorised(Compare::<T> { a: a.values(), b: b.values(), equal, not, out });
}

/// The same of decimals.
pub(super) fn compare_wide(how: u8, a: View<'_>, b: View<'_>, out: &mut [u64]) {
    struct Compare<'a> {
        a: View<'a>,
        b: View<'a>,
        equal: bool,
        not: u64,
        out: &'a mut [u64],
    }
    impl Loop for Compare<'_> {
        type Output = ();
        #[inline(always)]
        fn run(self) {
            let of = |view: &View<'_>, i: usize| view.halves(i).and_then(short);
            let constant = |view: &View<'_>| of(view, 0).filter(|_| view.constant);
            let (left, right) = (constant(&self.a), constant(&self.b));
            let (a, b) = (self.a.values::<i128>(), self.b.values::<i128>());
            for (i, word) in self.out.iter_mut().enumerate() {
                let (x, y) = (left.or_else(|| of(&self.a, i)), right.or_else(|| of(&self.b, i)));
                *word = self.not
                    ^ match (x, y, self.equal) {
                        (Some(x), Some(y), true) => bits(&x, &y, |x, y| x == y),
                        (Some(x), Some(y), false) => bits(&x, &y, |x, y| x < y),
                        (_, _, true) => bits(a.at(i), b.at(i), |x, y| x == y),
                        (_, _, false) => bits(a.at(i), b.at(i), |x, y| x < y),
                    };
            }
        }
    }
    let (a, b, equal, not) = two_ways(how, a, b);
    vectorised(Compare { a, b, equal, not, out });
}

/// Comparisons as two: what is less and what is equal, of either order, or not.
fn two_ways<'a>(how: u8, a: View<'a>, b: View<'a>) -> (View<'a>, View<'a>, bool, u64) {
    let (swapped, not) = match how {
        3 | 4 => (true, how == 3),
        _ => (false, how > 4),
    };
    let (a, b) = if swapped { (b, a) } else { (a, b) };
    (a, b, how == 2 || how == 5, if not { !0 } else { 0 })
}

/// Sets the bits of rows that are one of the values.
pub(super) fn among<T: Ordered>(a: View<'_>, values: &[T], out: &mut [u64]) {
    struct Among<'a, T>(Blocks<'a, T>, &'a [T], &'a mut [u64]);
    impl<T: Ordered> Loop for Among<'_, T> {
        type Output = ();
        #[inline(always)]
        fn run(self) {
            for (i, word) in self.2.iter_mut().enumerate() {
                let block = self.0.at(i);
                *word = self.1.iter().fold(0, |word, value| word | bits(block, &[*value; BLOCK], T::same));
            }
        }
    }
    vectorised(Among(a.values(), values, out));
}

/// Writes what `f` makes of each pair, and sets the bits of rows that it says are bad.
pub(super) fn zip<T: Native, F: Fn(T, T) -> (T, bool)>(
    level: VectorLevel,
    a: View<'_>,
    b: View<'_>,
    out: &mut [u8],
    bad: &mut [u64],
    f: F,
) {
    struct Zip<'a, T, F> {
        a: Blocks<'a, T>,
        b: Blocks<'a, T>,
        out: &'a mut [[T; BLOCK]],
        bad: &'a mut [u64],
        f: F,
    }
    impl<T: Native, F: Fn(T, T) -> (T, bool)> Loop for Zip<'_, T, F> {
        type Output = ();
        #[inline(always)]
        fn run(self) {
            for (i, (bad, out)) in self.bad.iter_mut().zip(self.out).enumerate() {
                let (a, b) = (self.a.at(i), self.b.at(i));
                let mut any = false;
                for k in 0..BLOCK {
                    let (value, is_bad) = (self.f)(a[k], b[k]);
                    out[k] = value;
                    any |= is_bad;
                }
                // Mostly none is, and a vector finds that out sooner than which are.
                *bad = if any { bits(a, b, |a, b| (self.f)(a, b).1) } else { 0 };
            }
        }
    }
    let out = numbers_mut::<T>(out).expect("chunks are aligned").as_chunks_mut().0;
    level.run(Zip { a: a.values(), b: b.values(), out, bad, f });
}

/// The products of decimals in the rows that are `asked` for. Mostly both are short, and then nothing overflows.
pub(super) fn multiply_wide(
    a: View<'_>,
    b: View<'_>,
    asked: impl Fn(usize) -> u64,
    out: &mut [u8],
    bad: &mut [u64],
) {
    /// So few rows of a block are multiplied by themselves.
    const FEW: u32 = 16;
    let (x, y) = (a.values::<i128>(), b.values::<i128>());
    let out = numbers_mut::<i128>(out).expect("chunks are aligned").as_chunks_mut::<BLOCK>().0;
    for (i, (bad, out)) in bad.iter_mut().zip(out).enumerate() {
        let (x, y) = (x.at(i), y.at(i));
        *bad = 0;
        let mut left = asked(i);
        if left.count_ones() > FEW {
            if let (Some(a), Some(b)) = (a.halves(i).and_then(short), b.halves(i).and_then(short)) {
                for k in 0..BLOCK {
                    out[k] = i128::from(a[k]) * i128::from(b[k]);
                }
                continue;
            }
            left = !0;
        }
        while left != 0 {
            let k = left.trailing_zeros() as usize;
            let (value, is_bad) = match (i64::try_from(x[k]), i64::try_from(y[k])) {
                (Ok(x), Ok(y)) => (i128::from(x) * i128::from(y), false),
                _ => x[k].overflowing_mul(y[k]),
            };
            out[k] = value;
            *bad |= u64::from(is_bad) << k;
            left &= left - 1;
        }
    }
}

/// Writes what `f` makes of each value.
pub(super) fn each<T: Native, U: Native>(a: View<'_>, out: &mut [u8], f: impl Fn(T) -> U) {
    let a = a.values::<T>();
    let out = numbers_mut::<U>(out).expect("chunks are aligned").as_chunks_mut::<BLOCK>().0;
    let blocks = if a.constant { out.len() } else { a.whole.len() + 1 };
    for (i, out) in out.iter_mut().enumerate().take(blocks) {
        for (out, x) in out.iter_mut().zip(a.at(i)) {
            *out = f(*x);
        }
    }
}

/// Writes `a` where the bit is set, else `b`.
pub(super) fn choose<T: Native>(words: &[u64], a: View<'_>, b: View<'_>, out: &mut [u8]) {
    struct Choose<'a, T>(&'a [u64], Blocks<'a, T>, Blocks<'a, T>, &'a mut [[T; BLOCK]]);
    impl<T: Native> Loop for Choose<'_, T> {
        type Output = ();
        #[inline(always)]
        fn run(self) {
            for (i, (word, out)) in self.0.iter().zip(self.3).enumerate() {
                let (a, b) = (self.1.at(i), self.2.at(i));
                for k in 0..BLOCK {
                    out[k] = if word >> k & 1 != 0 { a[k] } else { b[k] };
                }
            }
        }
    }
    let out = numbers_mut::<T>(out).expect("chunks are aligned").as_chunks_mut().0;
    vectorised(Choose(words, a.values(), b.values(), out));
}

/// Fills a block with a value by its bits.
pub(super) fn fill<T: Native>(raw: i128, out: &mut [u8]) {
    let value = T::from_bits(U256::from_low(raw as u128));
    numbers_mut::<T>(out).expect("chunks are aligned")[..BLOCK].fill(value);
}

/// The values of a block's rows that are there, and zeros.
#[inline(always)]
fn there<T: Native>(block: &[T; BLOCK], word: u64) -> [T; BLOCK] {
    let mut out = *block;
    for (k, out) in out.iter_mut().enumerate() {
        *out = if word >> k & 1 != 0 { *out } else { T::default() };
    }
    out
}

/// An integer that sums are made of.
pub(super) trait Summed: Native {
    fn wide(self) -> i64;
}
macro_rules! summed {
    ($($t:ty)*) => { $(impl Summed for $t {
        #[inline(always)]
        fn wide(self) -> i64 {
            self as i64
        }
    })* };
}
summed! { i8 i16 i32 i64 u8 u16 u32 u64 }

/// The exact sum of the rows that are there.
pub(super) fn sum<T: Summed>(a: View<'_>, words: &[u64], unsigned: bool) -> i128 {
    struct Sum<'a, T>(Blocks<'a, T>, &'a [u64], bool);
    impl<T: Summed> Loop for Sum<'_, T> {
        type Output = i128;
        #[inline(always)]
        fn run(self) -> i128 {
            let mut sum = 0i128;
            for (i, word) in self.1.iter().enumerate().filter(|(_, word)| **word != 0) {
                // By halves: 64 of either are a number of eight bytes.
                let (mut low, mut high) = (0i64, 0i64);
                for x in there(self.0.at(i), *word) {
                    let x = x.wide();
                    low += x & 0xffff_ffff;
                    high += if self.2 { (x as u64 >> 32) as i64 } else { x >> 32 };
                }
                sum += i128::from(low) + (i128::from(high) << 32);
            }
            sum
        }
    }
    vectorised(Sum(a.values::<T>(), words, unsigned))
}

/// The exact sum of decimals that are there, as the sums of their lower and their upper halves.
pub(super) fn sum_wide(a: View<'_>, words: &[u64]) -> (u128, i128) {
    let a = a.values::<i128>();
    let (mut low, mut high) = (0u128, 0i128);
    for (i, word) in words.iter().enumerate() {
        let (block, mut left) = (a.at(i), *word);
        while left != 0 {
            let x = block[left.trailing_zeros() as usize];
            low += x as u128 & u128::from(u64::MAX);
            high += x >> 64;
            left &= left - 1;
        }
    }
    (low, high)
}

/// Adds the floats that are there to `before`: 64 rows by halves, then these one after another.
pub(super) fn sum_floats<T: Native + std::ops::Add<Output = T>>(a: View<'_>, words: &[u64], before: T) -> T {
    struct Sum<'a, T>(Blocks<'a, T>, &'a [u64], T);
    impl<T: Native + std::ops::Add<Output = T>> Loop for Sum<'_, T> {
        type Output = T;
        #[inline(always)]
        fn run(self) -> T {
            let mut sum = self.2;
            for (i, word) in self.1.iter().enumerate() {
                let mut rows = there(self.0.at(i), *word);
                let mut by = BLOCK / 2;
                while by > 0 {
                    for k in 0..by {
                        rows[k] = rows[k] + rows[k + by];
                    }
                    by /= 2;
                }
                sum = sum + rows[0];
            }
            sum
        }
    }
    vectorised(Sum(a.values::<T>(), words, before))
}

/// The least of those that are there and `best`, or the greatest.
pub(super) fn extreme<T: Ordered>(a: View<'_>, words: &[u64], best: Option<T>, greatest: bool) -> Option<T> {
    struct Extreme<'a, T>(Blocks<'a, T>, &'a [u64], Option<T>, bool);
    impl<T: Ordered> Loop for Extreme<'_, T> {
        type Output = Option<T>;
        #[inline(always)]
        fn run(self) -> Option<T> {
            let Extreme(blocks, words, mut best, greatest) = self;
            for (i, word) in words.iter().enumerate().filter(|(_, word)| **word != 0) {
                let block = blocks.at(i);
                let mut found = best.unwrap_or(block[word.trailing_zeros() as usize]);
                for (k, x) in block.iter().enumerate() {
                    let better = if greatest { found.less(*x) } else { x.less(found) };
                    found = if better & (word >> k & 1 != 0) { *x } else { found };
                }
                best = Some(found);
            }
            best
        }
    }
    vectorised(Extreme(a.values::<T>(), words, best, greatest))
}
