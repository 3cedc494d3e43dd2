//! Counting and showing nulls against arrow-rs, whose count is that of making a null buffer, and whose `is_null` (of
//! arrow-arith) is what is written out here. Other peers: `peers/cpu.py`.

mod support;

use std::hint::black_box;

use arrow_array::{Array as _, BooleanArray, Int8Array};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use bowstring::compute::{is_null, null_count};
use bowstring::exchange::from_arrow;
use bowstring::{Array, Stream};
use criterion::{Criterion, criterion_group, criterion_main};

use support::*;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Rows whose bitmap, 64 MiB, no cache of a core holds.
const HUGE: usize = 512 << 20;

fn counts(criterion: &mut Criterion) {
    copy(criterion);
    for rows in [HUGE, LARGE, BATCH] {
        for offset in [0, 3] {
            one(criterion, rows, offset);
        }
    }
}

fn one(criterion: &mut Criterion, rows: usize, offset: usize) {
    let stream = Stream::cpu();
    let mut random = Random(2);
    let words: Vec<u64> = (0..rows / 64 + 1).map(|_| random.bits() | random.bits()).collect();
    let bits = BooleanBuffer::new(words.into(), offset, rows);
    let theirs = Int8Array::new(vec![0; rows].into(), Some(NullBuffer::new(bits.clone())));
    let mut parts = from_arrow(&theirs).expect("arrow-rs arrays are valid").into_parts();
    parts.null_count = None;
    let ours = Array::try_new(parts).expect("the same array");
    assert_eq!(null_count(&ours, &stream), Ok(theirs.null_count()));

    let mut group =
        group(criterion, &format!("null_count/cpu/bits/{rows}/offset-{offset}/-/1"), rows as u64 / 8);
    group.bench_function("bowstring", |bencher| {
        bencher.iter(|| null_count(black_box(&ours), &stream).expect("count"));
    });
    group.bench_function("arrow-rs", |bencher| {
        bencher.iter(|| rows - black_box(&bits).count_set_bits());
    });
    group.finish();
    if rows == HUGE {
        return;
    }
    let mut group =
        support::group(criterion, &format!("is_null/cpu/bits/{rows}/offset-{offset}/-/1"), rows as u64 / 4);
    group.bench_function("bowstring", |bencher| {
        bencher.iter(|| is_null(black_box(&ours), &stream).expect("bits"));
    });
    group.bench_function("arrow-rs", |bencher| {
        bencher.iter(|| {
            let nulls = black_box(&theirs).logical_nulls().expect("there are some");
            BooleanArray::new(!nulls.inner(), None)
        });
    });
}

criterion_group!(benches, counts);
criterion_main!(benches);
