//! Benches parsing and formatting of text on every available device; on the CPU also arrow-rs, which runs on
//! one thread and allocates with mimalloc. The other peers are in `peers/`.

mod support;

use std::hint::black_box;
use std::sync::Arc;

use arrow_array::*;
use arrow_schema::DataType::{self, *};
use arrow_schema::TimeUnit;
use bowstring::compute::{CastOptions, cast};
use criterion::{Criterion, criterion_group, criterion_main};

use support::{Scale, Where, model, wanted};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Values whose texts have usual lengths: 8 digits on average, prices, days and moments of thirty years.
fn values(of: &DataType, rows: usize) -> ArrayRef {
    let mut state = 7u64;
    let mut next = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    };
    let mut numbers = |limit: u64| -> Vec<i64> { (0..rows).map(|_| (next() % limit) as i64).collect() };
    match of {
        Int64 => Arc::new(Int64Array::from(numbers(100_000_000))),
        Float64 => Arc::new(Float64Array::from_iter_values(
            numbers(100_000_000).into_iter().map(|x| x as f64 / 100.0),
        )),
        Date32 => {
            Arc::new(Date32Array::from_iter_values(numbers(11_000).into_iter().map(|x| x as i32 + 8_000)))
        }
        Decimal128(precision, scale) => {
            let unscaled =
                Decimal128Array::from_iter_values(numbers(100_000_000).into_iter().map(i128::from));
            Arc::new(unscaled.with_precision_and_scale(*precision, *scale).expect("a decimal"))
        }
        _ => Arc::new(TimestampMicrosecondArray::from_iter_values(
            numbers(1_000_000_000).into_iter().map(|x| x * 1_000_003 + 700_000_000_000_000),
        )),
    }
}

fn texts(criterion: &mut Criterion) {
    let plain = [Int64, Float64, Date32, Timestamp(TimeUnit::Microsecond, None), Decimal128(18, 2)];
    Where::each(|place| {
        let large = if place.large() < 1 << 22 { place.large() } else { 1 << 22 };
        for of in &plain {
            for rows in [large, place.batch()] {
                both(criterion, place, of, &Utf8, rows);
                if place.scale == Scale::Full {
                    both(criterion, place, of, &Utf8View, rows);
                }
            }
        }
    });
}

fn both(criterion: &mut Criterion, place: &Where, of: &DataType, text: &DataType, rows: usize) {
    let values = values(of, rows);
    let written = arrow_cast::cast(&values, text).expect("text");
    one(criterion, place, &values, text, &written);
    one(criterion, place, &written, of, &values);
}

fn one(criterion: &mut Criterion, place: &Where, theirs: &ArrayRef, to: &DataType, becomes: &ArrayRef) {
    let name = |data_type: &DataType| data_type.to_string().to_lowercase().replace([' ', '(', ')'], "");
    let id = format!(
        "cast/{}/{}-{}/{}/all-safe/no-nulls/1",
        place.name,
        name(theirs.data_type()),
        name(to),
        theirs.len()
    );
    if !wanted(&id) {
        return;
    }
    let Some(ours) = place.import(theirs) else { return };
    let options = CastOptions::default();
    let mut group = place.group(criterion, id, model::written(theirs, becomes));
    group.ours(|| cast(black_box(&ours), to, &options, &place.stream).wait().expect("cast"));
    group
        .theirs("arrow-rs", || arrow_cast::cast_with_options(black_box(theirs), to, &options).expect("cast"));
}

criterion_group!(benches, texts);
criterion_main!(benches);
