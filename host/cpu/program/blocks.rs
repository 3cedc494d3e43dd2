//! Loops over the rows of a chunk, 64 at a time: the inner loops of a plan's steps. A block is an array, so
//! the compiler knows every loop's length; a constant is one block that is used repeatedly.

use bowstring_kernels::map::function::{Native, U256};

use crate::cpu::intrinsics::{count_ones, prefetch};
use crate::cpu::memory::{numbers, numbers_mut, plain};
use crate::cpu::vectorise::{Loop, VectorLevel, vectorised};

/// The most rows of a chunk.
pub(super) const CHUNK: usize = 4096;
/// The rows of a chunk of few rows: values of eight bytes then stay in the first cache.
pub(super) const SMALL: usize = 2048;
/// The rows of a block.
pub(super) const BLOCK: usize = 64;

/// Returns the mask of rows in a word that are among the first `rows`.
pub(super) fn inside(rows: usize, word: usize) -> u64 {
    crate::cpu::rows::ones(rows - (word * 64).min(rows))
}

/// The values of a chunk: one for each row, or one block of a constant.
#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    pub bytes: &'a [u8],
    pub constant: bool,
}

impl<'a> View<'a> {
    pub fn values<T: Native>(self) -> Blocks<'a, T> {
        Blocks::new(numbers(self.bytes).expect("chunks are aligned"), self.constant)
    }

    /// Returns decimals as their halves.
    pub fn halves(self) -> Blocks<'a, Halves> {
        Blocks::new(plain(self.bytes).expect("chunks are aligned"), self.constant)
    }
}

/// The values of a chunk, divided into blocks.
#[derive(Clone, Copy)]
pub(super) struct Blocks<'a, T> {
    pub whole: &'a [[T; BLOCK]],
    rest: &'a [T],
    pub constant: bool,
}

impl<'a, T: Copy + Default> Blocks<'a, T> {
    fn new(values: &'a [T], constant: bool) -> Self {
        let (whole, rest) = values.as_chunks();
        Blocks { whole, rest, constant }
    }

    /// Returns a block. A partial last block is padded, in the memory that `last` provides.
    #[inline(always)]
    pub fn at<'s>(&self, i: usize, last: &'s mut Option<[T; BLOCK]>) -> &'s [T; BLOCK]
    where
        'a: 's,
    {
        match self.whole.get(if self.constant { 0 } else { i }) {
            Some(block) => block,
            None => last.insert(filled(self.rest)),
        }
    }
}

#[cold]
#[inline(never)]
fn filled<T: Copy + Default>(rest: &[T]) -> [T; BLOCK] {
    let mut block = [T::default(); BLOCK];
    block[..rest.len()].copy_from_slice(rest);
    block
}

/// A decimal as its two halves: compilers vectorise these, but not values of sixteen bytes.
pub(super) type Halves = [i64; 2];

/// Returns the decimal with these halves.
#[inline(always)]
pub(super) fn whole([low, high]: Halves) -> i128 {
    i128::from(high) << 64 | i128::from(low as u64)
}

/// Clamps decimals to the range of eight-byte integers.
#[inline(always)]
pub(super) fn nearest(block: &[Halves; BLOCK]) -> [i64; BLOCK] {
    block.map(|[low, high]| if high == low >> 63 { low } else { high >> 63 ^ i64::MAX })
}

/// Returns decimals as eight-byte integers, which most are; `None` if one of them is larger.
#[inline(always)]
pub(super) fn short(block: &[Halves; BLOCK]) -> Option<[i64; BLOCK]> {
    let mut low = [0i64; BLOCK];
    let mut other = 0;
    for (low, [x, high]) in low.iter_mut().zip(block) {
        *low = *x;
        other |= high ^ (x >> 63);
    }
    (other == 0).then_some(low)
}

/// Returns a bit for each row of a block.
#[inline(always)]
pub(super) fn bits(f: impl Fn(usize) -> bool) -> u64 {
    (0..BLOCK).fold(0, |word, i| word | u64::from(f(i)) << i)
}

/// Writes the result of `f` for each pair, and sets the bits of rows that are bad. `f` marks the rows that
/// may be, and `is_bad` decides for a block that has some: usually no row is bad, and a vector loop detects
/// that faster than it finds which ones are.
pub(super) fn zip<T: Native, F: Fn(T, T) -> (T, bool), B: Fn(T, T) -> bool>(
    level: VectorLevel,
    a: View<'_>,
    b: View<'_>,
    out: &mut [u8],
    bad: &mut [u64],
    f: F,
    is_bad: B,
) {
    struct Zip<'a, T, F, B> {
        a: Blocks<'a, T>,
        b: Blocks<'a, T>,
        out: &'a mut [[T; BLOCK]],
        bad: &'a mut [u64],
        f: F,
        is_bad: B,
    }
    impl<T: Native, F: Fn(T, T) -> (T, bool), B: Fn(T, T) -> bool> Loop for Zip<'_, T, F, B> {
        type Output = ();
        #[inline(always)]
        fn run(self) {
            let (mut a_last, mut b_last) = (None, None);
            for (i, (bad, out)) in self.bad.iter_mut().zip(self.out).enumerate() {
                let (a, b) = (self.a.at(i, &mut a_last), self.b.at(i, &mut b_last));
                let mut any = false;
                for k in 0..BLOCK {
                    let (value, may_be_bad) = (self.f)(a[k], b[k]);
                    out[k] = value;
                    any |= may_be_bad;
                }
                *bad = if any { bits(|k| (self.is_bad)(a[k], b[k])) } else { 0 };
            }
        }
    }
    let out = numbers_mut::<T>(out).expect("chunks are aligned").as_chunks_mut().0;
    level.run(Zip { a: a.values(), b: b.values(), out, bad, f, is_bad });
}

/// Iterates over the positions of a word's set bits.
#[inline(always)]
pub(super) fn set(word: u64) -> impl Iterator<Item = usize> {
    let some = |word: u64| (word != 0).then_some(word);
    std::iter::successors(some(word), move |word| some(word & (word - 1)))
        .map(|word| word.trailing_zeros() as usize)
}

/// Returns whether fewer than one row in `one_in` is set. Then rows are handled one by one, and the others
/// are not read.
pub(super) fn sparse(words: &[u64], one_in: usize) -> bool {
    count_ones(words) * one_in < words.len() * BLOCK
}

/// Prefetches the decimals of some rows, so that their cache misses overlap.
pub(super) fn expect(values: Blocks<'_, Halves>, words: &[u64]) {
    let mut last = None;
    for (i, word) in words.iter().enumerate() {
        let block = values.at(i, &mut last);
        set(*word).for_each(|k| prefetch(&block[k], 0));
    }
}

/// Multiplies decimals in the rows that are `asked` for. Usually both factors are short, and then nothing
/// overflows.
pub(super) fn multiply_wide(a: View<'_>, b: View<'_>, asked: &[u64], out: &mut [u8], bad: &mut [u64]) {
    let (x, y) = (a.halves(), b.halves());
    let sparse = sparse(asked, 4);
    if sparse {
        expect(x, asked);
        expect(y, asked);
    }
    let (mut x_last, mut y_last) = (None, None);
    let out = numbers_mut::<i128>(out).expect("chunks are aligned").as_chunks_mut::<BLOCK>().0;
    for (i, (bad, out)) in bad.iter_mut().zip(out).enumerate() {
        let (x, y) = (x.at(i, &mut x_last), y.at(i, &mut y_last));
        *bad = 0;
        if !sparse && let (Some(x), Some(y)) = (short(x), short(y)) {
            for k in 0..BLOCK {
                out[k] = i128::from(x[k]) * i128::from(y[k]);
            }
            continue;
        }
        for k in set(asked[i]) {
            let (value, is_bad) = match (whole(x[k]), whole(y[k])) {
                (x, y) if x == i128::from(x as i64) && y == i128::from(y as i64) => (x * y, false),
                (x, y) => x.overflowing_mul(y),
            };
            out[k] = value;
            *bad |= u64::from(is_bad) << k;
        }
    }
}

/// Writes the result of `f` for each value.
pub(super) fn each<T: Native, U: Native>(a: View<'_>, out: &mut [u8], f: impl Fn(T) -> U) {
    let a = a.values::<T>();
    let out = numbers_mut::<U>(out).expect("chunks are aligned").as_chunks_mut::<BLOCK>().0;
    let blocks = if a.constant { out.len() } else { a.whole.len() + 1 };
    let mut last = None;
    for (i, out) in out.iter_mut().enumerate().take(blocks) {
        for (out, x) in out.iter_mut().zip(a.at(i, &mut last)) {
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
            let (mut a_last, mut b_last) = (None, None);
            for (i, (word, out)) in self.0.iter().zip(self.3).enumerate() {
                let (a, b) = (self.1.at(i, &mut a_last), self.2.at(i, &mut b_last));
                // This is not written as a choice between two values, because the compiler would turn their
                // addresses into a gather.
                *out = *b;
                for k in 0..BLOCK {
                    if word >> k & 1 != 0 {
                        out[k] = a[k];
                    }
                }
            }
        }
    }
    let out = numbers_mut::<T>(out).expect("chunks are aligned").as_chunks_mut().0;
    vectorised(Choose(words, a.values(), b.values(), out));
}

/// Fills a block with a value, given its bits.
pub(super) fn fill<T: Native>(raw: i128, out: &mut [u8]) {
    let value = T::from_bits(U256::from_low(raw as u128));
    numbers_mut::<T>(out).expect("chunks are aligned")[..BLOCK].fill(value);
}
