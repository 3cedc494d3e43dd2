//! Benches filter on every available device, alone and into batches of a given size; on the CPU also
//! arrow-rs, which runs on one thread and allocates with mimalloc. The other peers are in `peers/`.

mod support;

use std::hint::black_box;
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, RecordBatch};
use arrow_schema::{Field, Schema};
use arrow_select::coalesce::BatchCoalescer;
use bowstring::DeviceBatch;
use bowstring::compute::{Coalescer, filter};
use criterion::{Criterion, criterion_group, criterion_main};

use support::data::{Spread, bits, validity_name, values, without_nulls};
use support::{Scale, Where, model, wanted};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A mask: the percentage of rows that it keeps, their spread, and its bit offset.
type Mask = (f64, Spread, usize);

const HALF: Mask = (50.0, Spread::Uniform, 0);
const FEW: &[Mask] =
    &[(1.0, Spread::Uniform, 0), HALF, (99.0, Spread::Uniform, 0), (50.0, Spread::Clustered, 0)];
const ALL: &[Mask] = &[
    (1.0, Spread::Uniform, 0),
    (10.0, Spread::Uniform, 0),
    HALF,
    (90.0, Spread::Uniform, 0),
    (99.0, Spread::Uniform, 0),
    (1.0, Spread::Clustered, 0),
    (10.0, Spread::Clustered, 0),
    (50.0, Spread::Clustered, 0),
    (90.0, Spread::Clustered, 0),
    (99.0, Spread::Clustered, 0),
    (50.0, Spread::Uniform, 3),
];

fn filters(criterion: &mut Criterion) {
    Where::each(|place| {
        place.copy(criterion);
        let (large, batch) = (place.large(), place.batch());
        let full = place.scale == Scale::Full;
        for name in ["int32", "int64"] {
            let (plain, null) = match place.scale {
                Scale::Tiny => (&ALL[9..], &[HALF][..]),
                Scale::Usual if name == "int32" => (&ALL[..10], &[HALF][..]),
                Scale::Usual => (FEW, &[HALF][..]),
                Scale::Full => (ALL, ALL),
            };
            both(criterion, place, name, large, plain, null);
        }
        // Strings on a GPU must stay below 2 GiB.
        let text = if place.on_gpu() && large > 1 << 27 { 1 << 27 } else { large };
        let others = if full { FEW } else { &[HALF] };
        for (name, rows) in [("int8", large), ("boolean", large), ("utf8", text)] {
            both(criterion, place, name, rows, others, if full || place.on_gpu() { &[HALF] } else { &[] });
        }
        if place.scale != Scale::Usual || place.on_gpu() {
            for (name, rows) in [("int16", large), ("decimal128", large), ("utf8view", text / 2)] {
                both(criterion, place, name, rows, others, &[]);
            }
        }
        for rows in place.between() {
            for name in if full { &["int32", "int64", "utf8"][..] } else { &["int32"] } {
                both(criterion, place, name, *rows, &[HALF], &[]);
            }
        }
        for name in if full { &["int32", "int64", "utf8", "utf8view"][..] } else { &["int32", "utf8"] } {
            both(criterion, place, name, batch, if full { FEW } else { &[HALF] }, &[]);
        }
        both(criterion, place, "int32", batch, &[], &[HALF]);
        batches(criterion, place, batch, 10);
        if !place.on_gpu() {
            for (name, nulls, columns) in COALESCED {
                coalesced(criterion, place, name, batch, *nulls, *columns);
            }
        }
        if place.scale != Scale::Usual || place.on_gpu() {
            batches(criterion, place, batch, 100);
            batches(criterion, place, if place.scale == Scale::Tiny { 2_000 } else { 1 << 20 }, 100);
        }
    });
}

fn id(place: &Where, name: &str, rows: usize, mask: &Mask, nulls: bool, columns: usize) -> String {
    let (percent, spread, offset) = mask;
    let offset = if *offset == 0 { String::new() } else { format!("-offset-{offset}") };
    let validity = validity_name(nulls);
    format!("filter/{}/{name}/{rows}/{percent}%-{}{offset}/{validity}/{columns}", place.name, spread.name())
}

/// Runs masks over an array without nulls, and masks over one with nulls.
fn both(criterion: &mut Criterion, place: &Where, name: &str, rows: usize, plain: &[Mask], null: &[Mask]) {
    let is_wanted = |nulls: bool, mask: &Mask| wanted(&id(place, name, rows, mask, nulls, 1));
    let any = |nulls: bool, masks: &[Mask]| masks.iter().any(|mask| is_wanted(nulls, mask));
    if !any(false, plain) && !any(true, null) {
        return;
    }
    // Made once for both kinds of masks.
    let with_nulls = values(name, rows, any(true, null));
    for (nulls, masks) in [(false, plain), (true, null)] {
        if any(nulls, masks) {
            let values = if nulls { with_nulls.clone() } else { without_nulls(&with_nulls) };
            let masks = masks.iter().filter(|mask| is_wanted(nulls, mask));
            arrays(criterion, place, name, nulls, &values, masks);
        }
    }
}

fn arrays<'a>(
    criterion: &mut Criterion,
    place: &Where,
    name: &str,
    nulls: bool,
    values: &ArrayRef,
    masks: impl Iterator<Item = &'a Mask>,
) {
    let rows = values.len();
    let Some(ours) = place.import(values) else { return };
    for mask in masks {
        let id = id(place, name, rows, mask, nulls, 1);
        let keep = bits(rows, mask.0, mask.1, mask.2, 1);
        let moved = model::filter(values, &keep, place.sector());
        let Some(our_keep) = place.import_mask(&keep) else { continue };
        let keep = BooleanArray::new(keep, None);
        let mut group = place.group(criterion, id, moved);
        group.ours(|| filter(black_box(&ours), black_box(&our_keep), &place.stream).wait().expect("filter"));
        group.theirs("arrow-rs", || {
            arrow_select::filter::filter(black_box(values), black_box(&keep)).expect("filter")
        });
    }
}

/// A batch of identical columns.
fn batches(criterion: &mut Criterion, place: &Where, rows: usize, columns: usize) {
    let id = id(place, "int32", rows, &HALF, false, columns);
    if !wanted(&id) {
        return;
    }
    let column = values("int32", rows, false);
    let keep = bits(rows, HALF.0, HALF.1, HALF.2, 1);
    let moved = model::filter(&column, &keep, place.sector()).columns(columns, rows as u64 / 8);
    let keep = BooleanArray::new(keep, None);
    let field = |i: usize| Field::new(i.to_string(), column.data_type().clone(), false);
    let schema = Arc::new(Schema::new((0..columns).map(field).collect::<Vec<_>>()));
    let (Some(our_keep), Some(our_columns)) = (
        place.import_mask(keep.values()),
        (0..columns).map(|_| place.import(&column)).collect::<Option<Vec<_>>>(),
    ) else {
        return;
    };
    let ours = DeviceBatch::try_new(schema.clone(), our_columns, rows).expect("a batch");
    // Each column has its own memory, as ours have on a GPU.
    let copied = (0..columns).map(|_| values("int32", rows, false)).collect();
    let theirs = RecordBatch::try_new(schema, copied).expect("a batch");
    let mut group = place.group(criterion, id, moved);
    group.ours(|| filter(black_box(&ours), black_box(&our_keep), &place.stream).wait().expect("filter"));
    group.theirs("arrow-rs", || {
        arrow_select::filter::filter_record_batch(black_box(&theirs), black_box(&keep)).expect("filter")
    });
}

const COALESCED: &[(&str, bool, usize)] = &[
    ("int32", false, 1),
    ("int32", true, 1),
    ("int32", false, 10),
    ("int64", false, 1),
    ("boolean", false, 1),
    ("utf8", false, 1),
    ("utf8view", false, 1),
];

/// Keeps half of the rows of equal batches, and coalesces them into batches of the same size: every other
/// push completes one.
fn coalesced(criterion: &mut Criterion, place: &Where, name: &str, rows: usize, nulls: bool, columns: usize) {
    let id = id(place, name, rows, &HALF, nulls, columns).replacen("filter", "coalesce", 1);
    if !wanted(&id) {
        return;
    }
    let column = values(name, rows, nulls);
    let keep = bits(rows, HALF.0, HALF.1, HALF.2, 1);
    let moved = model::filter(&column, &keep, place.sector()).columns(columns, rows as u64 / 8);
    let field = |i: usize| Field::new(i.to_string(), column.data_type().clone(), nulls);
    let schema = Arc::new(Schema::new((0..columns).map(field).collect::<Vec<_>>()));
    let theirs: Vec<ArrayRef> = (0..columns).map(|_| values(name, rows, nulls)).collect();
    let (Some(our_keep), Some(ours)) = (
        place.import_mask(&keep),
        theirs.iter().map(|column| place.import(column)).collect::<Option<Vec<_>>>(),
    ) else {
        return;
    };
    let ours = DeviceBatch::try_new(schema.clone(), ours, rows).expect("a batch");
    let theirs = RecordBatch::try_new(schema.clone(), theirs).expect("a batch");
    let keep = BooleanArray::new(keep, None);
    let mut group = place.group(criterion, id, moved);
    let mut coalescer = Coalescer::new(schema.clone(), rows, &place.stream).expect("a coalescer");
    group.ours(|| {
        coalescer.push_batch_with_filter(black_box(&ours), black_box(&our_keep)).expect("filter");
        coalescer.next_completed_batch().expect("filter")
    });
    let mut coalescer = BatchCoalescer::new(schema, rows);
    group.theirs("arrow-rs", || {
        coalescer.push_batch_with_filter(black_box(&theirs).clone(), black_box(&keep)).expect("filter");
        coalescer.next_completed_batch()
    });
}

criterion_group!(benches, filters);
criterion_main!(benches);
