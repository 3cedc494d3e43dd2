//! take against arrow-rs, which runs on one thread and allocates with mimalloc. The other peers: `peers/cpu.py`.

mod support;

use std::hint::black_box;

use arrow_array::{Array as _, Int32Array, UInt32Array};
use bowstring::Stream;
use bowstring::compute::{TakeOptions, take};
use bowstring::exchange::from_arrow;
use criterion::{Criterion, criterion_group, criterion_main};

use support::*;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn takes(criterion: &mut Criterion) {
    copy(criterion);
    for name in ["int32", "int64"] {
        for nulls in [false, true] {
            one(criterion, name, LARGE, nulls);
        }
    }
    for name in ["utf8", "utf8view"] {
        one(criterion, name, LARGE, false);
    }
    for name in ["int32", "int64", "utf8", "utf8view"] {
        one(criterion, name, BATCH, false);
    }
    one(criterion, "int32", BATCH, true);
}

/// As many indices as rows, of 32 bits; where there are nulls, one index in ten is null too.
fn one(criterion: &mut Criterion, name: &str, rows: usize, nulls: bool) {
    let stream = Stream::cpu();
    let values = values(name, rows, nulls);
    let ours = from_arrow(&values).expect("arrow-rs arrays are valid");
    for order in ["random", "ascending"] {
        let mut random = Random(4);
        let numbers: Vec<u32> = match order {
            "random" => (0..rows).map(|_| random.below(rows) as u32).collect(),
            _ => (0..rows as u32).collect(),
        };
        let validity = nulls.then(|| bits(rows, 90.0, Spread::Uniform, 5).into());
        let indices = UInt32Array::new(numbers.into(), validity);
        let signed =
            Int32Array::new(indices.values().iter().map(|i| *i as i32).collect(), indices.nulls().cloned());
        let our_indices = from_arrow(&signed).expect("arrow-rs arrays are valid");
        let taken = arrow_select::take::take(&values, &indices, None).expect("take");
        let id = format!("take/cpu/{name}/{rows}/{order}/{}/1", validity_name(nulls));
        // A row read, an index read, a row written.
        let mut group = group(criterion, &id, 2 * bytes(&taken) + bytes(&indices));
        drop(taken);
        group.bench_function("bowstring", |bencher| {
            bencher.iter(|| {
                take(black_box(&ours), black_box(&our_indices), &TakeOptions::default(), &stream)
                    .expect("take")
            });
        });
        group.bench_function("arrow-rs", |bencher| {
            bencher.iter(|| {
                arrow_select::take::take(black_box(&values), black_box(&indices), None).expect("take")
            });
        });
    }
}

criterion_group!(benches, takes);
criterion_main!(benches);
