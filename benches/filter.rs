//! filter against arrow-rs, which runs on one thread and allocates with mimalloc. The other peers: `peers/cpu.py`.

mod support;

use std::hint::black_box;

use bowstring::Stream;
use bowstring::compute::filter;
use bowstring::exchange::from_arrow;
use criterion::{Criterion, criterion_group, criterion_main};

use support::*;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn filters(criterion: &mut Criterion) {
    copy(criterion);
    for name in ["int32", "int64"] {
        for nulls in [false, true] {
            let spreads = [Spread::Uniform, Spread::Clustered];
            one(criterion, name, LARGE, nulls, &[1.0, 10.0, 50.0, 90.0, 99.0], &spreads);
        }
    }
    for name in ["utf8", "utf8view"] {
        one(criterion, name, LARGE, false, &[1.0, 50.0, 99.0], &[Spread::Uniform]);
        one(criterion, name, LARGE, false, &[50.0], &[Spread::Clustered]);
    }
    for name in ["int32", "int64", "utf8", "utf8view"] {
        one(criterion, name, BATCH, false, &[1.0, 50.0, 99.0], &[Spread::Uniform]);
    }
    one(criterion, "int32", BATCH, true, &[1.0, 50.0, 99.0], &[Spread::Uniform]);
}

fn one(
    criterion: &mut Criterion,
    name: &str,
    rows: usize,
    nulls: bool,
    percents: &[f64],
    spreads: &[Spread],
) {
    let stream = Stream::cpu();
    let values = values(name, rows, nulls);
    let ours = from_arrow(&values).expect("arrow-rs arrays are valid");
    for spread in spreads {
        for percent in percents {
            let mask = mask(rows, *percent, *spread);
            let our_mask = from_arrow(&mask).expect("arrow-rs arrays are valid");
            let kept = arrow_select::filter::filter(&values, &mask).expect("filter");
            let validity = validity_name(nulls);
            let id = format!("filter/cpu/{name}/{rows}/{percent}%-{}/{validity}/1", spread.name());
            let moved = bytes(&values) + rows as u64 / 8 + bytes(&kept);
            drop(kept);
            let mut group = group(criterion, &id, moved);
            group.bench_function("bowstring", |bencher| {
                bencher.iter(|| filter(black_box(&ours), black_box(&our_mask), &stream).expect("filter"));
            });
            group.bench_function("arrow-rs", |bencher| {
                bencher.iter(|| {
                    arrow_select::filter::filter(black_box(&values), black_box(&mask)).expect("filter")
                });
            });
        }
    }
}

criterion_group!(benches, filters);
criterion_main!(benches);
