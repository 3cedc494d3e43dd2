//! Aggregates over a part of the rows.

use arrow_buffer::i256;
use bowstring_kernels::map::function::{F16, Native, Number};
use bowstring_kernels::program::word::{plain_nan_f32, plain_nan_f64};

use super::blocks::{BLOCK, Blocks, View, set};
use super::compare::Ordered;
use super::numbers::{by_any, by_number, from_raw};
use crate::cpu::vectorise::{Loop, vectorised};
use crate::expr::{Fold, extended};

/// An aggregate's intermediate result over a part of the rows.
#[derive(Default)]
pub(super) struct Sum {
    rows: u64,
    /// Sums of decimals keep the sum of the lower halves in `low` and that of the signed upper halves in
    /// `high`. Sums of integers use `high`; other aggregates keep a value's bits in `low`.
    low: u128,
    high: i128,
}

impl Sum {
    /// Adds the rows of a chunk.
    pub fn add(&mut self, kind: Fold, number: Number, values: (View<'_>, &[u64])) {
        let (view, there) = values;
        let rows = there.iter().map(|word| u64::from(word.count_ones())).sum::<u64>();
        match kind {
            Fold::Count => {}
            Fold::Sum => match number {
                Number::F32 => {
                    let sum = sum_floats(view, there, f32::from_bits(self.low as u32));
                    self.low = plain_nan_f32(sum).to_bits().into();
                }
                Number::F64 => {
                    let sum = sum_floats(view, there, f64::from_bits(self.low as u64));
                    self.low = plain_nan_f64(sum).to_bits().into();
                }
                Number::I128 => {
                    let (low, high) = sum_wide(view, there);
                    (self.low, self.high) = (self.low + low, self.high + high);
                }
                number => {
                    let unsigned = number == Number::U64;
                    let sum = by_number!(
                        number,
                        [I8 i8, I16 i16, I32 i32, I64 i64, U8 u8, U16 u16, U32 u32, U64 u64],
                        T => sum::<T>(view, there, unsigned)
                    );
                    self.high += sum;
                }
            },
            Fold::Min | Fold::Max => by_any!(number, T => {
                let best = (self.rows > 0).then(|| from_raw::<T>(self.low as i128));
                if let Some(best) = extreme(view, there, best, kind == Fold::Max) {
                    self.low = extended(Native::to_bits(best).low, number) as u128;
                }
            }),
        }
        self.rows += rows;
    }

    /// Returns the aggregate as words: sums in pieces of 32 bits, other values as they are.
    pub fn words(&self, kind: Fold, number: Number) -> [u64; 5] {
        let low = 0xffff_ffff;
        match (kind, number) {
            (Fold::Sum, Number::F32 | Number::F64) | (Fold::Min | Fold::Max, _) => {
                [self.low as u64, (self.low >> 64) as u64, 0, 0, self.rows]
            }
            (Fold::Sum, Number::I128) => [
                self.low as u64 & low,
                (self.low >> 32) as u64,
                self.high as u64 & low,
                (self.high >> 32) as u64,
                self.rows,
            ],
            (Fold::Sum, _) => [self.high as u64 & low, (self.high >> 32) as u64, 0, 0, self.rows],
            (Fold::Count, _) => [0, 0, 0, 0, self.rows],
        }
    }
}

/// Returns the words of `rows` equal rows, given the words of one; `None` for sums that depend on the order
/// of rows (floats), and for sums that the words cannot hold.
pub(super) fn repeated(words: &[u64], kind: Fold, number: Number, rows: u64) -> Option<[u64; 5]> {
    let mut all = [words[0], words[1], words[2], words[3], words[4] * rows];
    match (kind, number) {
        (Fold::Sum, _) if words[4] == 0 => {}
        (Fold::Sum, Number::F32 | Number::F64) => return None,
        (Fold::Sum, _) => {
            let limb =
                |i: usize, value: i128| i256::from_i128(value).wrapping_mul(i256::from_i128(1 << (32 * i)));
            let value = limb(0, words[0].into()).wrapping_add(limb(1, (words[1] as i64).into()));
            let value = value.wrapping_add(limb(2, words[2].into()));
            let value = value.wrapping_add(limb(3, (words[3] as i64).into()));
            // The product is at most 2^127 times 2^63.
            let sum = value.wrapping_mul(i256::from_i128(rows.into()));
            let low = sum.as_i128() as u128;
            for (i, word) in all[..3].iter_mut().enumerate() {
                *word = (low >> (32 * i)) as u64 & 0xffff_ffff;
            }
            all[3] = i64::try_from(i256::to_i128(sum >> 96)?).ok()? as u64;
        }
        _ => {}
    }
    Some(all)
}

/// Returns a block with zeros in the rows that are not counted.
#[inline(always)]
fn there<T: Native>(block: &[T; BLOCK], word: u64) -> [T; BLOCK] {
    let mut out = *block;
    for (k, out) in out.iter_mut().enumerate() {
        *out = if word >> k & 1 != 0 { *out } else { T::default() };
    }
    out
}

/// An integer type that sums are computed of.
trait Summed: Native {
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

/// Returns the exact sum of the counted rows.
fn sum<T: Summed>(a: View<'_>, words: &[u64], unsigned: bool) -> i128 {
    struct Sum<'a, T>(Blocks<'a, T>, &'a [u64], bool);
    impl<T: Summed> Loop for Sum<'_, T> {
        type Output = i128;
        #[inline(always)]
        fn run(self) -> i128 {
            let mut sum = 0i128;
            let mut last = None;
            for (i, word) in self.1.iter().enumerate().filter(|(_, word)| **word != 0) {
                // The halves are summed apart: 64 of either fit eight bytes.
                let (mut low, mut high) = (0i64, 0i64);
                for x in there(self.0.at(i, &mut last), *word) {
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

/// Returns the exact sum of counted decimals, as the sums of their lower and of their upper halves.
fn sum_wide(a: View<'_>, words: &[u64]) -> (u128, i128) {
    let a = a.values::<i128>();
    let (mut low, mut high) = (0u128, 0i128);
    let mut last = None;
    for (i, word) in words.iter().enumerate() {
        let block = a.at(i, &mut last);
        for x in set(*word).map(|k| block[k]) {
            low += x as u128 & u128::from(u64::MAX);
            high += x >> 64;
        }
    }
    (low, high)
}

/// Adds the counted floats to `before`: the 64 rows of a block pairwise, then the blocks in order.
fn sum_floats<T: Native + std::ops::Add<Output = T>>(a: View<'_>, words: &[u64], before: T) -> T {
    struct Sum<'a, T>(Blocks<'a, T>, &'a [u64], T);
    impl<T: Native + std::ops::Add<Output = T>> Loop for Sum<'_, T> {
        type Output = T;
        #[inline(always)]
        fn run(self) -> T {
            let mut sum = self.2;
            let mut last = None;
            for (i, word) in self.1.iter().enumerate() {
                let mut rows = there(self.0.at(i, &mut last), *word);
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

/// Returns the least or the greatest of `best` and the counted rows.
fn extreme<T: Ordered>(a: View<'_>, words: &[u64], best: Option<T>, greatest: bool) -> Option<T> {
    struct Extreme<'a, T>(Blocks<'a, T>, &'a [u64], Option<T>, bool);
    impl<T: Ordered> Loop for Extreme<'_, T> {
        type Output = Option<T>;
        #[inline(always)]
        fn run(self) -> Option<T> {
            let Extreme(blocks, words, mut best, greatest) = self;
            let mut last = None;
            for (i, word) in words.iter().enumerate().filter(|(_, word)| **word != 0) {
                let block = blocks.at(i, &mut last);
                let mut found = best.unwrap_or(block[word.trailing_zeros() as usize]);
                for (k, x) in block.iter().enumerate() {
                    let better = if greatest { found.key() < x.key() } else { x.key() < found.key() };
                    found = if better & (word >> k & 1 != 0) { *x } else { found };
                }
                best = Some(found);
            }
            best
        }
    }
    vectorised(Extreme(a.values::<T>(), words, best, greatest))
}
