//! Benches groups and joins on the CPU: sums of a column by the keys of another, and rows of one batch beside
//! those of another with the same key. arrow-rs has neither; the peers are in `peers/`.

mod support;

use std::hint::black_box;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use bowstring::compute::{JoinOptions, Query, join};
use bowstring::expr::{Expr, Options, col, sum};
use bowstring::{DeviceBatch, Stream};
use criterion::{Criterion, criterion_group, criterion_main};

use support::data::below;
use support::{Moved, Scale, Where, wanted};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The rows of the peers' benches, too.
const LARGE: usize = 10_000_000;

fn batch(columns: Vec<(&str, ArrayRef)>) -> DeviceBatch {
    let batch = RecordBatch::try_from_iter(columns).expect("columns of one length");
    DeviceBatch::try_from(&batch).expect("a batch")
}

/// Numbers below a limit, drawn from a sequence.
fn numbers(rows: usize, limit: usize, sequence: u64) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values((0..rows).map(|i| below(sequence, i, limit) as i64)))
}

fn groups(criterion: &mut Criterion) {
    Where::each(|place| {
        if place.on_gpu() {
            return;
        }
        let large = if place.scale == Scale::Tiny { 5_000 } else { LARGE };
        for (rows, limit) in [(large, 100), (large, large / 100), (large, large), (place.batch(), 100)] {
            for name in ["int64", "text", "letters"] {
                if name == "letters" && limit != 100 {
                    continue;
                }
                grouped(criterion, place, name, rows, limit);
            }
        }
        for limit in [100, large / 100, large] {
            in_batches(criterion, place, large, limit);
        }
        for (probed, built, apart) in [
            (large, large / 10, 1),
            (place.batch(), 1000, 1),
            (large, large / 100, 40),
            (place.batch(), 100, 40),
        ] {
            joined(criterion, place, (probed, built), apart);
        }
        for &rows in place.growing() {
            grouped(criterion, place, "int64", rows, rows / 100);
            joined(criterion, place, (rows, rows / 10), 1);
        }
    });
}

/// The sum of a number for each key below a limit, of rows that come in batches.
fn in_batches(criterion: &mut Criterion, place: &Where, rows: usize, limit: usize) {
    let id = format!("group_batches/{}/int64/{rows}/{limit}/no-nulls/1", place.name);
    if !wanted(&id) {
        return;
    }
    let all = batch(vec![("k", numbers(rows, limit, 5)), ("x", numbers(rows, 1 << 40, 6))]);
    let size = place.batch();
    let part = |first: usize| all.slice(first, size.min(rows - first)).expect("rows of the batch");
    let parts: Vec<DeviceBatch> = (0..rows).step_by(size).map(part).collect();
    let query = Query::new().group_by([col("k")]).aggregate([sum(col("x"))]);
    let query = query.bind(all.schema(), &Options::default()).expect("a query");
    let mut group = place.group(criterion, id, Moved::bytes(16 * rows as u64));
    group.ours(|| {
        let mut grouping = query.grouping(&place.stream).expect("groups");
        parts.iter().for_each(|part| grouping.push(black_box(part)).expect("rows"));
        grouping.finish().expect("groups").collect::<Vec<_>>()
    });
}

/// The sum of a number for each key below a limit. Letters are two keys, as TPC-H's first query has them.
fn grouped(criterion: &mut Criterion, place: &Where, name: &str, rows: usize, limit: usize) {
    let id = format!("group/{}/{name}/{rows}/{limit}/no-nulls/1", place.name);
    if !wanted(&id) {
        return;
    }
    let text = |text: &mut dyn Iterator<Item = String>| -> ArrayRef {
        Arc::new(StringArray::from_iter_values(text))
    };
    let letters =
        |sequence: u64, of: &[&str]| text(&mut (0..rows).map(|i| of[below(sequence, i, of.len())].into()));
    let mut columns = match name {
        "int64" => vec![("k", numbers(rows, limit, 5))],
        "text" => vec![("k", text(&mut (0..rows).map(|i| format!("key {:08}", below(5, i, limit)))))],
        _ => vec![("k", letters(7, &["A", "N", "R"])), ("l", letters(8, &["F", "O"]))],
    };
    let keys: Vec<Expr> = columns.iter().map(|(name, _)| col(*name)).collect();
    columns.push(("x", numbers(rows, 1 << 40, 6)));
    let batch = batch(columns);
    let query = Query::new().group_by(keys).aggregate([sum(col("x"))]);
    let query = query.bind(batch.schema(), &Options::default()).expect("a query");
    let mut group = place.group(criterion, id, Moved::bytes(16 * rows as u64));
    group.ours(|| query.run(black_box(&batch), &place.stream).wait().expect("groups"));
}

/// Rows beside the one row that has their key: three columns. One in `apart` rows has such a partner.
fn joined(criterion: &mut Criterion, place: &Where, (probed, built): (usize, usize), apart: usize) {
    let name = if apart == 1 { "join" } else { "join_few" };
    let id = format!("{name}/{}/int64/{probed}/{built}/no-nulls/3", place.name);
    if !wanted(&id) {
        return;
    }
    // Each key once, in no order: an odd number has an inverse modulo the size.
    let unique = (0..built).map(|i| (i * 7919 % built * apart) as i64);
    let left = batch(vec![
        ("id", Arc::new(Int64Array::from_iter_values(unique))),
        ("y", numbers(built, 1 << 40, 8)),
    ]);
    let keys = numbers(probed, built * apart, 7);
    let right = batch(vec![("k", keys), ("x", numbers(probed, 1 << 40, 6))]);
    let bytes = if apart == 1 { 40 } else { 8 };
    let mut group = place.group(criterion, id, Moved::bytes(bytes * probed as u64));
    let stream: &Stream = &place.stream;
    group.ours(|| {
        let on = (&left.columns()[..1], &right.columns()[..1]);
        // The key of one side only.
        let values = left_values(&left);
        join(&values, black_box(&right), on, &JoinOptions::default(), stream).wait().expect("a join")
    });
}

/// The columns of the left side that a join returns: not the key, which the right side has too.
fn left_values(left: &DeviceBatch) -> DeviceBatch {
    let schema = Arc::new(left.schema().project(&[1]).expect("a column"));
    DeviceBatch::try_new(schema, left.columns()[1..].to_vec(), left.len()).expect("a batch")
}

criterion_group!(benches, groups);
criterion_main!(benches);
