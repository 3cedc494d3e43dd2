//! Benches cast on every available device; on the CPU also arrow-rs, which runs on one thread and allocates
//! with mimalloc. The other peers are in `peers/`.
//!
//! The fifth part of an id gives the share of values that fit: `all`, or all but one in a hundred (`99%`),
//! and whether the cast is `safe` or `strict`.

mod support;

use std::hint::black_box;

use arrow_schema::DataType::{self, *};
use arrow_schema::TimeUnit;
use bowstring::compute::{CastOptions, cast};
use criterion::{Criterion, criterion_group, criterion_main};

use support::data::{numbers, validity_name};
use support::{Scale, Where, model, wanted};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A cast: whether all values fit, whether it is safe, whether the input has nulls.
#[derive(Clone, Copy)]
struct Kind {
    all: bool,
    safe: bool,
    nulls: bool,
}

const PLAIN: Kind = Kind { all: true, safe: true, nulls: false };
const VARIANTS: [Kind; 4] =
    [PLAIN, Kind { nulls: true, ..PLAIN }, Kind { all: false, ..PLAIN }, Kind { safe: false, ..PLAIN }];

fn casts(criterion: &mut Criterion) {
    let timestamp = |unit| Timestamp(unit, None);
    let checked = [(Int64, Int32), (Float64, Int32), (Int64, Decimal128(18, 2))];
    let usual = [(Int32, Int64), (Float64, Float32), (Date32, timestamp(TimeUnit::Millisecond))];
    let rest = [
        (Int8, Int16),
        (Int8, Int32),
        (Int32, Int8),
        (Int32, Float64),
        (Date32, timestamp(TimeUnit::Microsecond)),
        (Int32, Boolean),
        (Float64, Decimal128(18, 2)),
        (Decimal128(18, 4), Decimal128(18, 2)),
        (Decimal128(38, 10), Decimal128(38, 2)),
        (Decimal128(38, 10), Int64),
    ];
    Where::each(|place| {
        place.copy(criterion);
        let mut one = |(from, to): &(DataType, DataType), rows, kinds: &[Kind]| {
            for kind in kinds {
                array(criterion, place, from, to, rows, *kind);
            }
        };
        let (large, batch) = (place.large(), place.batch());
        let all_kinds = place.scale != Scale::Usual || place.on_gpu();
        for pair in &checked {
            one(pair, large, if all_kinds { &VARIANTS } else { &VARIANTS[..2] });
            one(pair, batch, if place.scale == Scale::Full { &VARIANTS } else { &[PLAIN] });
        }
        for pair in &usual {
            one(pair, large, &[PLAIN]);
            one(pair, batch, &[PLAIN]);
        }
        if all_kinds {
            for pair in &rest {
                one(pair, large, &[PLAIN]);
                one(pair, batch, &[PLAIN]);
            }
        }
        for rows in place.between() {
            one(&checked[0], *rows, &[PLAIN]);
        }
    });
}

fn array(criterion: &mut Criterion, place: &Where, from: &DataType, to: &DataType, rows: usize, kind: Kind) {
    let name = |data_type: &DataType| data_type.to_string().to_lowercase().replace([' ', '(', ')'], "");
    let id = format!(
        "cast/{}/{}-{}/{rows}/{}-{}/{}/1",
        place.name,
        name(from),
        name(to),
        if kind.all { "all" } else { "99%" },
        if kind.safe { "safe" } else { "strict" },
        validity_name(kind.nulls)
    );
    if !wanted(&id) {
        return;
    }
    let theirs = numbers(from, rows, kind.all, kind.nulls);
    let Some(ours) = place.import(&theirs) else { return };
    let options = CastOptions { safe: kind.safe, ..CastOptions::default() };
    let mut group = place.group(criterion, id, model::cast(&theirs, to));
    group.ours(|| cast(black_box(&ours), to, &options, &place.stream).wait().expect("cast"));
    group.theirs("arrow-rs", || {
        arrow_cast::cast_with_options(black_box(&theirs), to, &options).expect("cast")
    });
}

criterion_group!(benches, casts);
criterion_main!(benches);
