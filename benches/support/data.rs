//! Makes arrays of a known shape, the same in every run, by all threads: row `i` depends on nothing but `i`.

use std::sync::Arc;

use arrow_array::builder::StringViewBuilder;
use arrow_array::types::*;
use arrow_array::*;
use arrow_buffer::{BooleanBuffer, NullBuffer, OffsetBuffer};
use arrow_schema::DataType;
use rayon::prelude::*;

/// Number `i` of a SplitMix64 sequence.
pub fn random(sequence: u64, i: usize) -> u64 {
    let state = (sequence << 48).wrapping_add((i as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// Number `i` of a sequence, below a limit.
pub fn below(sequence: u64, i: usize, limit: usize) -> usize {
    ((u128::from(random(sequence, i)) * limit as u128) >> 64) as usize
}

/// The spread of the rows that a mask keeps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Spread {
    /// Each row is drawn independently.
    Uniform,
    /// Runs of 1,024 neighbours are drawn together.
    Clustered,
}

impl Spread {
    pub fn name(self) -> &'static str {
        match self {
            Spread::Uniform => "uniform",
            Spread::Clustered => "clustered",
        }
    }
}

/// Bits of which this percentage is set, after `offset` other bits.
pub fn bits(rows: usize, percent: f64, spread: Spread, offset: usize, sequence: u64) -> BooleanBuffer {
    let limit = (percent / 100.0 * 2f64.powi(32)) as u64;
    let bit = |row: usize| {
        let drawn = if spread == Spread::Uniform { row } else { row / 1024 };
        (random(sequence, drawn) >> 32) < limit
    };
    let word = |word: usize| (0..64).fold(0u64, |bits, i| bits | u64::from(bit(word * 64 + i)) << i);
    let words: Vec<u64> = (0..(offset + rows).div_ceil(64)).into_par_iter().map(word).collect();
    BooleanBuffer::new(words.into(), offset, rows)
}

/// A validity with one null in ten rows, or no validity.
pub fn validity(rows: usize, nulls: bool) -> Option<NullBuffer> {
    nulls.then(|| NullBuffer::new(bits(rows, 90.0, Spread::Uniform, 0, 2)))
}

pub fn validity_name(nulls: bool) -> &'static str {
    if nulls { "10%-null" } else { "no-nulls" }
}

/// An array of a type, by name.
pub fn values(name: &str, rows: usize, nulls: bool) -> ArrayRef {
    let validity = validity(rows, nulls);
    match name {
        "int8" => primitive::<Int8Type>(rows, validity, |i| random(3, i) as i8),
        "int16" => primitive::<Int16Type>(rows, validity, |i| random(3, i) as i16),
        "int32" => primitive::<Int32Type>(rows, validity, |i| random(3, i) as i32),
        "int64" => primitive::<Int64Type>(rows, validity, |i| random(3, i) as i64),
        "decimal128" => primitive::<Decimal128Type>(rows, validity, |i| i128::from(random(3, i) as i64)),
        "boolean" => Arc::new(BooleanArray::new(bits(rows, 50.0, Spread::Uniform, 0, 3), validity)),
        "utf8" => Arc::new(strings(rows, validity)),
        "text12" => Arc::new(random_text(rows, validity)),
        "utf8view" => {
            let strings = strings(rows, None);
            let mut views = StringViewBuilder::with_capacity(rows).with_fixed_block_size(8 << 20);
            strings.iter().flatten().for_each(|string| views.append_value(string));
            Arc::new(StringViewArray::from(views.finish()))
        }
        other => panic!("no type {other}"),
    }
}

/// Strings of 0 to 24 bytes each, 12 on average.
fn strings(rows: usize, validity: Option<NullBuffer>) -> StringArray {
    let lengths: Vec<i32> = (0..rows).into_par_iter().map(|i| below(3, i, 25) as i32).collect();
    let mut offsets = Vec::with_capacity(rows + 1);
    let mut end = 0i32;
    offsets.push(end);
    offsets.extend(lengths.into_iter().map(|len| {
        end = end.checked_add(len).expect("strings of less than 2 GiB");
        end
    }));
    let bytes: Vec<u8> = (0..end as usize).into_par_iter().map(|i| b'a' + (i % 23) as u8).collect();
    StringArray::new(OffsetBuffer::new(offsets.into()), bytes.into(), validity)
}

/// Random strings of 12 letters each.
fn random_text(rows: usize, validity: Option<NullBuffer>) -> StringArray {
    let offsets: Vec<i32> = (0..=rows).map(|row| 12 * row as i32).collect();
    let bytes: Vec<u8> = (0..12 * rows).into_par_iter().map(|i| b'a' + below(8, i, 26) as u8).collect();
    StringArray::new(OffsetBuffer::new(offsets.into()), bytes.into(), validity)
}

/// As many 32-bit indices as rows, with one null in ten or none.
pub fn indices(rows: usize, random: bool, nulls: bool) -> UInt32Array {
    let one = |i: usize| if random { below(4, i, rows) } else { i } as u32;
    let numbers: Vec<u32> = (0..rows).into_par_iter().map(one).collect();
    UInt32Array::new(numbers.into(), nulls.then(|| bits(rows, 90.0, Spread::Uniform, 0, 5).into()))
}

/// Numbers of a type that fit every type that the benches cast to; unless `all`, one in a hundred does not
/// fit.
pub fn numbers(from: &DataType, rows: usize, all: bool, nulls: bool) -> ArrayRef {
    let validity = validity(rows, nulls);
    let narrow = matches!(from, DataType::Int8);
    let whole = |i: usize| match below(6, i, 100) {
        0 if !all => random(7, i) as i64 | 1 << 62,
        _ if narrow => i64::from(random(7, i) as i8),
        _ => i64::from(random(7, i) as i32),
    };
    match from {
        DataType::Int8 => primitive::<Int8Type>(rows, validity, |i| whole(i) as i8),
        DataType::Int32 => primitive::<Int32Type>(rows, validity, |i| whole(i) as i32),
        DataType::Int64 => primitive::<Int64Type>(rows, validity, whole),
        DataType::Float64 => primitive::<Float64Type>(rows, validity, |i| whole(i) as f64 * 0.5),
        DataType::Date32 => primitive::<Date32Type>(rows, validity, |i| whole(i) as i32 % 50_000),
        DataType::Decimal128(..) => {
            let values: Vec<i128> = (0..rows).into_par_iter().map(|i| whole(i).into()).collect();
            Arc::new(Decimal128Array::new(values.into(), validity).with_data_type(from.clone()))
        }
        other => panic!("no {other} here"),
    }
}

fn primitive<T: ArrowPrimitiveType>(
    rows: usize,
    validity: Option<NullBuffer>,
    value: impl Fn(usize) -> T::Native + Sync + Send,
) -> ArrayRef {
    let values: Vec<T::Native> = (0..rows).into_par_iter().map(value).collect();
    Arc::new(PrimitiveArray::<T>::new(values.into(), validity))
}

/// The same array without its nulls; it shares the buffers.
pub fn without_nulls(array: &ArrayRef) -> ArrayRef {
    let data = array.to_data().into_builder().nulls(None).build().expect("the same array");
    make_array(data)
}
