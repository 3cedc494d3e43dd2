//! Small arrays to try operations on. They cover the types of every path through the kernels, and have nulls
//! and bits at odd offsets.

use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Float64Array, Int32Array, Int64Array, ListArray, StructArray};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{ArrowError, DataType, Field, TimeUnit};

/// Number `i` of SplitMix64.
pub(super) fn random(i: usize) -> u64 {
    let state = (i as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// The inputs of an operation.
pub(super) struct Sample {
    pub values: ArrayRef,
    /// The rows that a filter keeps; has nulls.
    pub mask: BooleanArray,
    /// Row numbers of the values, in any order; has nulls.
    pub indices: Int32Array,
}

/// Samples of every type, with so many rows.
pub(super) fn samples(rows: usize) -> Result<Vec<Sample>, ArrowError> {
    let whole: ArrayRef =
        Arc::new(Int64Array::from_iter((0..rows).map(|i| (!random(i).is_multiple_of(9)).then(|| number(i)))));
    let mut all = vec![whole.clone(), fractions(rows), list(rows), structure(&whole, rows)];
    for to in [
        DataType::Int8,
        DataType::Int16,
        DataType::Int32,
        DataType::Float32,
        DataType::Decimal128(20, 2),
        DataType::Timestamp(TimeUnit::Millisecond, None),
        DataType::Utf8,
        DataType::Utf8View,
        DataType::Boolean,
    ] {
        all.push(arrow_cast::cast(&whole, &to)?);
    }
    let keys = arrow_cast::cast(&all[4], &DataType::Utf8)?;
    all.push(arrow_cast::cast(&keys, &DataType::Dictionary(DataType::Int32.into(), DataType::Utf8.into()))?);
    let drawn = |i: usize| random(i + 7 * rows);
    let mask = || {
        BooleanArray::from_iter((0..rows).map(|i| (!drawn(i).is_multiple_of(11)).then(|| drawn(i) & 64 != 0)))
    };
    let index = |i: usize| {
        (!drawn(i).is_multiple_of(13)).then(|| (drawn(i) >> 20) as usize % rows.max(1)).map(|i| i as i32)
    };
    let indices = || Int32Array::from_iter((0..rows).map(index));
    Ok(all.into_iter().map(|values| Sample { values, mask: mask(), indices: indices() }).collect())
}

/// Numbers of every length, and the limits of some types.
fn number(i: usize) -> i64 {
    let drawn = random(i) as i64;
    match i % 5 {
        0 => drawn >> 57,
        1 => drawn >> 33,
        2 => [i64::from(i8::MAX), i64::from(i8::MIN), i64::from(i32::MAX), i64::from(i32::MIN), 0][i / 5 % 5],
        3 => drawn >> 17,
        _ => drawn >> 48,
    }
}

fn fractions(rows: usize) -> ArrayRef {
    let value = |i: usize| match i % 17 {
        3 => f64::NAN,
        5 => f64::INFINITY,
        7 => -0.0,
        _ => number(i) as f64 / 8.0,
    };
    Arc::new(Float64Array::from_iter((0..rows).map(|i| (i % 6 != 5).then(|| value(i)))))
}

fn validity(rows: usize) -> NullBuffer {
    (0..rows).map(|i| !random(i + rows).is_multiple_of(10)).collect()
}

fn list(rows: usize) -> ArrayRef {
    let lengths: Vec<usize> = (0..rows).map(|i| random(i) as usize % 4).collect();
    let items =
        Int32Array::from_iter((0..lengths.iter().sum()).map(|i: usize| (i % 5 != 4).then_some(i as i32)));
    let item = Arc::new(Field::new("item", DataType::Int32, true));
    Arc::new(ListArray::new(item, OffsetBuffer::from_lengths(lengths), Arc::new(items), Some(validity(rows))))
}

fn structure(whole: &ArrayRef, rows: usize) -> ArrayRef {
    let field = Arc::new(Field::new("a", DataType::Int64, true));
    Arc::new(StructArray::new(vec![field].into(), vec![whole.clone()], Some(validity(rows))))
}
