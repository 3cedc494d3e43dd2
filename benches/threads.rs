//! Benches several threads that run operations on small batches at once, as engines do: on the CPU, and
//! arrow-rs beside it. All threads read the same batch, so they also share the counts of its owners. A time
//! is that of one run on every thread, so it stays the same from one thread to as many as there are
//! processors, if threads do not wait for each other.

mod support;

use std::hint::black_box;
use std::thread;

use arrow_arith::numeric::add_wrapping;
use arrow_array::BooleanArray;
use arrow_schema::{DataType, Field, Schema};
use arrow_select::filter::filter as arrow_filter;
use bowstring::DeviceBatch;
use bowstring::compute::{Query, filter, is_null};
use bowstring::expr::{Options, Overflow, col};
use criterion::{Criterion, criterion_group, criterion_main};

use support::data::{Spread, bits, numbers};
use support::{Moved, Where, wanted};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn all(criterion: &mut Criterion) {
    Where::each(|place| {
        let processors = thread::available_parallelism().map_or(1, usize::from);
        let mut threads = 1;
        // A GPU's stream is one queue, whatever the threads.
        while !place.on_gpu() && threads <= 2 * processors {
            for rows in [64, place.batch()] {
                for_rows(criterion, place, rows, threads);
            }
            threads *= 2;
        }
    });
}

fn for_rows(criterion: &mut Criterion, place: &Where, rows: usize, threads: usize) {
    let id = |name: &str| format!("{name}/{}/int64/{rows}/{threads}-threads/10%-null/1", place.name);
    let array = numbers(&DataType::Int64, rows, true, true);
    let mask = bits(rows, 50.0, Spread::Uniform, 0, 1);
    let theirs = BooleanArray::new(mask.clone(), None);
    let (Some(ours), Some(our_mask)) = (place.import(&array), place.import_mask(&mask)) else { return };
    let schema = Schema::new(vec![Field::new("x", DataType::Int64, true)]);
    let batch = DeviceBatch::try_new(schema.into(), vec![ours.clone()], rows).expect("one column");
    let options = Options::default().overflow(Overflow::Wrap);
    let sum = Query::new().select([col("x") + col("x")]).bind(batch.schema(), &options).expect("it fits");
    let stream = &place.stream;
    let moved = |bits: usize| Moved::bytes((threads * rows * bits / 8) as u64);
    if wanted(&id("filter_on_threads")) {
        let mut group = place.group(criterion, id("filter_on_threads"), moved(99));
        group.on_threads("bowstring", threads, || {
            filter(black_box(&ours), &our_mask, stream).wait().expect("a mask of as many rows")
        });
        group.on_threads("arrow-rs", threads, || arrow_filter(black_box(&array), &theirs).expect("as ours"));
    }
    if wanted(&id("add_on_threads")) {
        let mut group = place.group(criterion, id("add_on_threads"), moved(130));
        group.on_threads("bowstring", threads, || sum.run(black_box(&batch), stream).wait().expect("a sum"));
        group.on_threads("arrow-rs", threads, || add_wrapping(black_box(&array), &array).expect("a sum"));
    }
    if wanted(&id("is_null_on_threads")) {
        let mut group = place.group(criterion, id("is_null_on_threads"), moved(2));
        group.on_threads("bowstring", threads, || is_null(black_box(&ours), stream).wait().expect("bits"));
        group.on_threads("arrow-rs", threads, || arrow_arith::boolean::is_null(black_box(&array)));
    }
}

criterion_group!(benches, all);
criterion_main!(benches);
