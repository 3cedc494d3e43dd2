//! What the benches share: arrays of a known shape (those of `peers/cpu.py` too), groups with short runs, and a copy
//! to hold the rates against.
//!
//! Ids are `operation/device/type/rows/selectivity/validity/columns` and who ran it; throughput is bytes read and
//! written, each once.

#![allow(dead_code)]

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use arrow_array::builder::StringViewBuilder;
use arrow_array::{ArrayRef, BooleanArray, Int32Array, Int64Array, StringArray, StringViewArray};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use criterion::{BenchmarkGroup, Criterion, Throughput, measurement::WallTime};

/// Rows of a large array: 64 MiB of 4-byte values, more than any cache that one core has.
pub const LARGE: usize = 16_777_216;
/// Rows of a batch as query engines hand them around.
pub const BATCH: usize = 8_192;

/// SplitMix64: the same array in every run.
pub struct Random(pub u64);

impl Random {
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub fn below(&mut self, limit: usize) -> usize {
        ((u128::from(self.bits()) * limit as u128) >> 64) as usize
    }
}

/// How the rows that a mask keeps are spread.
#[derive(Clone, Copy, PartialEq)]
pub enum Spread {
    /// Each row by itself.
    Uniform,
    /// 1,024 neighbours at a time.
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

pub fn bits(rows: usize, percent: f64, spread: Spread, seed: u64) -> BooleanBuffer {
    let mut random = Random(seed);
    let limit = (percent / 100.0 * 2f64.powi(32)) as u64;
    let mut bit = false;
    BooleanBuffer::collect_bool(rows, |row| {
        if spread == Spread::Uniform || row % 1024 == 0 {
            bit = (random.bits() >> 32) < limit;
        }
        bit
    })
}

pub fn mask(rows: usize, percent: f64, spread: Spread) -> BooleanArray {
    BooleanArray::new(bits(rows, percent, spread, 1), None)
}

/// One row in ten is null, or none.
pub fn validity(rows: usize, nulls: bool) -> Option<NullBuffer> {
    nulls.then(|| NullBuffer::new(bits(rows, 90.0, Spread::Uniform, 2)))
}

pub fn validity_name(nulls: bool) -> &'static str {
    if nulls { "10%-null" } else { "no-nulls" }
}

/// An array of a type, by name.
pub fn values(name: &str, rows: usize, nulls: bool) -> ArrayRef {
    let mut random = Random(3);
    let validity = validity(rows, nulls);
    match name {
        "int32" => Arc::new(Int32Array::new((0..rows).map(|_| random.bits() as i32).collect(), validity)),
        "int64" => Arc::new(Int64Array::new((0..rows).map(|_| random.bits() as i64).collect(), validity)),
        "utf8" => Arc::new(strings(rows, &mut random)),
        "utf8view" => {
            let strings = strings(rows, &mut random);
            let mut views = StringViewBuilder::with_capacity(rows).with_fixed_block_size(8 << 20);
            strings.iter().flatten().for_each(|string| views.append_value(string));
            Arc::new(StringViewArray::from(views.finish()))
        }
        other => panic!("no type {other}"),
    }
}

/// 0 to 24 bytes each, 12 on average.
fn strings(rows: usize, random: &mut Random) -> StringArray {
    let mut offsets = vec![0i32];
    let mut bytes = vec![];
    for _ in 0..rows {
        let len = random.below(25);
        bytes.extend((0..len).map(|i| b'a' + (i % 26) as u8));
        offsets.push(bytes.len() as i32);
    }
    StringArray::new(arrow_buffer::OffsetBuffer::new(offsets.into()), bytes.into(), None)
}

/// The bytes that an array holds.
pub fn bytes(array: &dyn arrow_array::Array) -> u64 {
    let data = array.to_data();
    let buffers: usize = match array.data_type() {
        // The data behind views is shared, not moved.
        arrow_schema::DataType::Utf8View => array.len() * 16,
        arrow_schema::DataType::Utf8 => {
            let offsets = data.buffers()[0].typed_data::<i32>();
            array.len() * 4 + (offsets[data.offset() + array.len()] - offsets[data.offset()]) as usize
        }
        other => array.len() * other.primitive_width().unwrap_or(0),
    };
    (buffers + array.nulls().map_or(0, |_| array.len() / 8)) as u64
}

/// A group that takes a second a bench.
pub fn group<'a>(criterion: &'a mut Criterion, id: &str, bytes: u64) -> BenchmarkGroup<'a, WallTime> {
    let mut group = criterion.benchmark_group(id);
    group.sample_size(10);
    group.warm_up_time(Duration::from_millis(150));
    group.measurement_time(Duration::from_millis(500));
    group.throughput(Throughput::Bytes(bytes));
    group
}

/// What the memory allows: one and two threads copying 64 MiB, the result touched before.
pub fn copy(criterion: &mut Criterion) {
    let from = vec![1u8; 64 << 20];
    let mut to = vec![2u8; 64 << 20];
    let mut group = group(criterion, "copy/cpu/bytes/67108864/-/-/1", 128 << 20);
    group.bench_function("one-thread", |bencher| {
        bencher.iter(|| black_box(&mut to).copy_from_slice(black_box(&from)))
    });
    group.bench_function("two-threads", |bencher| {
        bencher.iter(|| {
            let middle = from.len() / 2;
            let (left, right) = to.split_at_mut(middle);
            rayon::join(|| left.copy_from_slice(&from[..middle]), || right.copy_from_slice(&from[middle..]));
        });
    });
}
