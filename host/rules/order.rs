//! How values order, the same on every device: the order of a type of fixed width is that of unsigned
//! numbers, once its words are flipped.
//!
//! The one idea: a value is words, the first of which decides. A signed word flips its sign bit, and a
//! negative float all of its bits, which is the total order of IEEE 754. So one comparison of unsigned
//! numbers serves all types, and every device can sort by digits.

use arrow_schema::{DataType, IntervalUnit};

use crate::{Error, Result};

/// A word of a value: some of its bytes, and how they order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Word {
    /// The position of the word's first byte in the value.
    pub at: usize,
    /// The number of bytes, at most 8.
    pub width: usize,
    pub order: Order,
}

/// The order of the bits of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Unsigned,
    Signed,
    /// The total order of floats, bit by bit: -NaN, -inf, ..., -0.0, +0.0, ..., inf, NaN.
    Float,
}

impl Order {
    /// Returns two masks for the word of so many bytes: the bits that flip in every value, and those that
    /// flip besides if the highest is set.
    pub(crate) fn flips(self, width: usize) -> [u64; 2] {
        let all = u64::MAX >> (64 - 8 * width);
        let highest = all ^ all >> 1;
        match self {
            Order::Unsigned => [0, 0],
            Order::Signed => [highest, 0],
            Order::Float => [highest, all ^ highest],
        }
    }
}

/// Returns the words of a type's values, the one that decides first; `None` if they have no fixed width, or
/// are bits.
pub(crate) fn words(of: &DataType) -> Option<Vec<Word>> {
    use DataType::*;
    use Order::*;
    let word = |at, width, order| Word { at, width, order };
    // A wide integer in the order of its halves; the lowest word comes first in memory.
    let integer = |words: usize| {
        let order = |i| if i == words - 1 { Signed } else { Unsigned };
        (0..words).rev().map(|i| word(8 * i, 8, order(i))).collect()
    };
    Some(match of {
        UInt8 | UInt16 | UInt32 | UInt64 => vec![word(0, of.primitive_width()?, Unsigned)],
        Float16 | Float32 | Float64 => vec![word(0, of.primitive_width()?, Float)],
        // Days come before milliseconds: a month, and a day, are longer than whatever follows.
        Interval(IntervalUnit::DayTime) => vec![word(0, 4, Signed), word(4, 4, Signed)],
        Interval(IntervalUnit::MonthDayNano) => {
            vec![word(0, 4, Signed), word(4, 4, Signed), word(8, 8, Signed)]
        }
        Decimal128(..) => integer(2),
        Decimal256(..) => integer(4),
        _ => vec![word(0, of.primitive_width()?, Signed)],
    })
}

/// Checks that UInt32 can number the rows.
pub(crate) fn check_rows(operation: &'static str, rows: usize) -> Result<()> {
    if u32::try_from(rows).is_err() { Err(too_many_rows(operation, rows)) } else { Ok(()) }
}

/// Makes the error for more rows than UInt32 can number.
pub(crate) fn too_many_rows(operation: &'static str, rows: usize) -> Error {
    Error::invalid(operation, format!("{rows} rows, more than UInt32 can number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flipped(value: u64, width: usize, order: Order) -> u64 {
        let [always, negative] = order.flips(width);
        let highest = value >> (8 * width - 1) & 1;
        value ^ always ^ (negative & highest.wrapping_neg())
    }

    #[test]
    fn flipped_words_order_as_their_values() {
        let signed = [i32::MIN, -7, -1, 0, 1, i32::MAX];
        assert!(signed.map(|x| flipped(x as u32 as u64, 4, Order::Signed)).is_sorted());
        let narrow = [i8::MIN, -1, 0, i8::MAX];
        assert!(narrow.map(|x| flipped(x as u8 as u64, 1, Order::Signed)).is_sorted());
        let floats = [-f64::NAN, f64::NEG_INFINITY, -1.0, -0.0, 0.0, 1e-300, 1.0, f64::INFINITY, f64::NAN];
        let floats = floats.map(|x| flipped(x.to_bits(), 8, Order::Float));
        assert!(floats.windows(2).all(|pair| pair[0] < pair[1]));
    }

    #[test]
    fn words_cover_their_values() {
        for of in [DataType::Int8, DataType::Decimal256(76, 0), DataType::Interval(IntervalUnit::DayTime)] {
            let words = words(&of).unwrap();
            assert_eq!(words.iter().map(|word| word.width).sum::<usize>(), of.primitive_width().unwrap());
        }
        assert_eq!(words(&DataType::Boolean), None);
        assert_eq!(words(&DataType::Utf8), None);
    }
}
