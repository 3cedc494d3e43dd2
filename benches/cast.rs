//! cast against arrow-rs, which runs on one thread and allocates with mimalloc. The other peers: `peers/cpu.py`.
//!
//! The fourth part of an id says how much fits: `all` values, or all but one in a hundred (`99%`), and whether the cast
//! is `safe` or `strict`.

mod support;

use std::hint::black_box;
use std::sync::Arc;

use arrow_array::*;
use arrow_schema::{DataType, TimeUnit};
use bowstring::Stream;
use bowstring::compute::{CastOptions, cast};
use bowstring::exchange::from_arrow;
use criterion::{Criterion, criterion_group, criterion_main};

use support::*;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Numbers of a type that fit every other type here, but for one in a hundred where not `all` do.
fn numbers(from: &DataType, rows: usize, all: bool, nulls: bool) -> ArrayRef {
    let mut random = Random(3);
    let validity = validity(rows, nulls);
    let mut whole = || match random.below(100) {
        0 if !all => random.bits() as i64 | 1 << 62,
        _ => random.bits() as i32 as i64,
    };
    match from {
        DataType::Int32 => Arc::new(Int32Array::new((0..rows).map(|_| whole() as i32).collect(), validity)),
        DataType::Int64 => Arc::new(Int64Array::new((0..rows).map(|_| whole()).collect(), validity)),
        DataType::Float64 => {
            Arc::new(Float64Array::new((0..rows).map(|_| whole() as f64 * 0.5).collect(), validity))
        }
        DataType::Date32 => {
            Arc::new(Date32Array::new((0..rows).map(|_| whole() as i32 % 50_000).collect(), validity))
        }
        DataType::Decimal128(..) => {
            let values = Decimal128Array::new((0..rows).map(|_| whole().into()).collect(), validity);
            Arc::new(values.with_data_type(from.clone()))
        }
        other => panic!("no {other} here"),
    }
}

fn casts(criterion: &mut Criterion) {
    use DataType::*;
    copy(criterion);
    let timestamp = |unit| Timestamp(unit, None);
    let pairs = [
        (Int32, Int64),
        (Int64, Int32),
        (Float64, Int32),
        (Int32, Float64),
        (Float64, Float32),
        (Int64, Decimal128(18, 2)),
        (Date32, timestamp(TimeUnit::Millisecond)),
        (Date32, timestamp(TimeUnit::Microsecond)),
        (Int32, Boolean),
        (Float64, Decimal128(18, 2)),
        (Decimal128(18, 4), Decimal128(18, 2)),
    ];
    for rows in [LARGE, BATCH] {
        for (from, to) in &pairs {
            one(criterion, from, to, rows, true, true, false);
        }
        for (from, to) in [(Int64, Int32), (Float64, Int32), (Int64, Decimal128(18, 2))] {
            one(criterion, &from, &to, rows, true, true, true);
            one(criterion, &from, &to, rows, false, true, false);
            one(criterion, &from, &to, rows, true, false, false);
        }
    }
}

fn one(
    criterion: &mut Criterion,
    from: &DataType,
    to: &DataType,
    rows: usize,
    all: bool,
    safe: bool,
    nulls: bool,
) {
    let stream = Stream::cpu();
    let theirs = numbers(from, rows, all, nulls);
    let ours = from_arrow(&theirs).expect("arrow-rs arrays are valid");
    let options = CastOptions { safe, ..CastOptions::default() };
    let name = |data_type: &DataType| data_type.to_string().to_lowercase().replace([' ', '(', ')'], "");
    let id = format!(
        "cast/cpu/{}-{}/{rows}/{}-{}/{}/1",
        name(from),
        name(to),
        if all { "all" } else { "99%" },
        if safe { "safe" } else { "strict" },
        validity_name(nulls)
    );
    let bytes = |array: &dyn Array| match array.data_type() {
        Boolean => rows as u64 / 8,
        _ => bytes(array),
    };
    use DataType::Boolean;
    let casted = arrow_cast::cast_with_options(&theirs, to, &options).expect("cast");
    let mut group = group(criterion, &id, bytes(&theirs) + bytes(&casted));
    drop(casted);
    group.bench_function("bowstring", |bencher| {
        bencher.iter(|| cast(black_box(&ours), to, &options, &stream).expect("cast"));
    });
    group.bench_function("arrow-rs", |bencher| {
        bencher.iter(|| arrow_cast::cast_with_options(black_box(&theirs), to, &options).expect("cast"));
    });
}

criterion_group!(benches, casts);
criterion_main!(benches);
