//! Benches take on every available device; on the CPU also arrow-rs, which runs on one thread and allocates
//! with mimalloc. The other peers are in `peers/`.

mod support;

use std::hint::black_box;
use std::sync::Arc;

use arrow_array::{Array as _, ArrayRef, Int32Array};
use arrow_schema::{Field, Schema};
use bowstring::DeviceBatch;
use bowstring::compute::{TakeOptions, take};
use criterion::{Criterion, criterion_group, criterion_main};

use support::data::{indices, validity_name, values};
use support::{Scale, Where, model, wanted};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const BOTH: &[&str] = &["random", "ascending"];
const RANDOM: &[&str] = &["random"];

fn takes(criterion: &mut Criterion) {
    Where::each(|place| {
        place.copy(criterion);
        let (large, batch) = (place.large(), place.batch());
        let mut one = |name: &str, rows: usize, nulls: bool, orders: &[&str]| {
            arrays(criterion, place, name, rows, nulls, orders);
        };
        let full = place.scale == Scale::Full;
        one("int32", large, false, BOTH);
        one("int32", large, true, if full { BOTH } else { RANDOM });
        one("int64", large, false, if full { BOTH } else { RANDOM });
        if place.scale != Scale::Usual || place.on_gpu() {
            let text = large.min(1 << 27);
            for (name, rows) in [
                ("int8", large),
                ("int16", large),
                ("decimal128", large),
                ("boolean", large),
                ("utf8", text),
                ("utf8view", text / 2),
            ] {
                one(name, rows, false, BOTH);
            }
            one("int64", large, true, BOTH);
            one("utf8", text, true, RANDOM);
        }
        for rows in place.between() {
            for name in if full { &["int32", "int64", "utf8"][..] } else { &["int32"] } {
                one(name, *rows, false, RANDOM);
            }
        }
        for name in if full { &["int32", "int64", "utf8", "utf8view"][..] } else { &["int32", "utf8"] } {
            one(name, batch, false, if full { BOTH } else { RANDOM });
        }
        one("int32", batch, true, RANDOM);
        batches(criterion, place, batch, 10);
        if place.scale != Scale::Usual || place.on_gpu() {
            batches(criterion, place, batch, 100);
        }
    });
}

fn id(place: &Where, name: &str, rows: usize, order: &str, nulls: bool, columns: usize) -> String {
    format!("take/{}/{name}/{rows}/{order}/{}/{columns}", place.name, validity_name(nulls))
}

/// Uses as many 32-bit indices as rows; with nulls, one index in ten is null too.
fn arrays(criterion: &mut Criterion, place: &Where, name: &str, rows: usize, nulls: bool, orders: &[&str]) {
    let id = |order: &str| id(place, name, rows, order, nulls, 1);
    if !orders.iter().any(|order| wanted(&id(order))) {
        return;
    }
    let values: ArrayRef = values(name, rows, nulls);
    let Some(ours) = place.import(&values) else { return };
    for order in orders.iter().filter(|order| wanted(&id(order))) {
        let indices = indices(rows, *order == "random", nulls);
        let signed = Int32Array::new(indices.values().inner().clone().into(), indices.nulls().cloned());
        let Some(our_indices) = place.import(&signed) else { continue };
        // A CPU's caches hold tables as large as many real ones, so sectors count only on GPUs.
        let sector = (place.on_gpu() && *order == "random").then(|| place.sector());
        let moved = model::take(&values, &indices, sector);
        let mut group = place.group(criterion, id(order), moved);
        let options = TakeOptions::default();
        group.ours(|| {
            take(black_box(&ours), black_box(&our_indices), &options, &place.stream).wait().expect("take")
        });
        group.theirs("arrow-rs", || {
            arrow_select::take::take(black_box(&values), black_box(&indices), None).expect("take")
        });
    }
}

/// A batch of identical columns.
fn batches(criterion: &mut Criterion, place: &Where, rows: usize, columns: usize) {
    let id = id(place, "int32", rows, "random", false, columns);
    if !wanted(&id) {
        return;
    }
    let column = values("int32", rows, false);
    let indices = indices(rows, true, false);
    let moved = model::take(&column, &indices, None).columns(columns, 4 * rows as u64);
    let signed = Int32Array::new(indices.values().inner().clone().into(), None);
    let field = |i: usize| Field::new(i.to_string(), column.data_type().clone(), false);
    let schema = Arc::new(Schema::new((0..columns).map(field).collect::<Vec<_>>()));
    let their_columns: Vec<ArrayRef> = (0..columns).map(|_| values("int32", rows, false)).collect();
    let theirs = arrow_array::RecordBatch::try_new(schema.clone(), their_columns).expect("a batch");
    let (Some(our_indices), Some(our_columns)) =
        (place.import(&signed), (0..columns).map(|_| place.import(&column)).collect::<Option<Vec<_>>>())
    else {
        return;
    };
    let ours = DeviceBatch::try_new(schema, our_columns, rows).expect("a batch");
    let mut group = place.group(criterion, id, moved);
    let options = TakeOptions::default();
    group.ours(|| {
        take(black_box(&ours), black_box(&our_indices), &options, &place.stream).wait().expect("take")
    });
    group.theirs("arrow-rs", || {
        arrow_select::take::take_record_batch(black_box(&theirs), black_box(&indices)).expect("take")
    });
}

criterion_group!(benches, takes);
criterion_main!(benches);
