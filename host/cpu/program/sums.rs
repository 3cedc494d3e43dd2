//! Aggregates of a part of the rows.

use bowstring_kernels::function::{F16, Native, Number};
use bowstring_kernels::program::word::{plain_nan_f32, plain_nan_f64};

use super::blocks::{self, View};
use super::numbers::{by_any, by_number, from_raw};
use crate::expr::{Fold, extended};

/// What an aggregate has come to, of a part of the rows.
#[derive(Default)]
pub(super) struct Sum {
    rows: u64,
    /// Of decimals the sums of lower and of upper halves, the latter with a sign; of integers, the sum in the latter; else a
    /// value's bits, in the former.
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
                    let sum = blocks::sum_floats(view, there, f32::from_bits(self.low as u32));
                    self.low = plain_nan_f32(sum).to_bits().into();
                }
                Number::F64 => {
                    let sum = blocks::sum_floats(view, there, f64::from_bits(self.low as u64));
                    self.low = plain_nan_f64(sum).to_bits().into();
                }
                Number::I128 => {
                    let (low, high) = blocks::sum_wide(view, there);
                    (self.low, self.high) = (self.low + low, self.high + high);
                }
                number => {
                    let unsigned = number == Number::U64;
                    let sum = by_number!(
                        number,
                        [I8 i8, I16 i16, I32 i32, I64 i64, U8 u8, U16 u16, U32 u32, U64 u64],
                        T => blocks::sum::<T>(view, there, unsigned)
                    );
                    self.high += sum;
                }
            },
            Fold::Min | Fold::Max => by_any!(number, T => {
                let best = (self.rows > 0).then(|| from_raw::<T>(self.low as i128));
                if let Some(best) = blocks::extreme(view, there, best, kind == Fold::Max) {
                    self.low = extended(Native::to_bits(best).low, number) as u128;
                }
            }),
        }
        self.rows += rows;
    }

    /// Its words: of a sum 32 bits at a time, of what is no sum its bits.
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
