//! Benches sorting on the CPU; also arrow-rs, which runs on one thread and allocates with mimalloc. The other
//! peers are in `peers/`.

mod support;

use std::hint::black_box;

use bowstring::compute::{SortColumn, SortOptions, lexsort_to_indices, sort_to_indices};
use criterion::{Criterion, criterion_group, criterion_main};

use support::data::{validity_name, values};
use support::{Moved, Scale, Where, model, wanted};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The rows of the peers' benches, too.
const LARGE: usize = 10_000_000;
/// The rows that a limit asks for.
const FIRST: usize = 100;

fn sorts(criterion: &mut Criterion) {
    Where::each(|place| {
        if place.on_gpu() {
            return;
        }
        let large = if place.scale == Scale::Tiny { 5_000 } else { LARGE };
        for name in ["int32", "int64", "text12"] {
            for (rows, nulls) in [(large, false), (place.batch(), false), (place.batch(), true)] {
                one(criterion, place, name, rows, nulls, None);
            }
        }
        one(criterion, place, "int32", large, true, None);
        one(criterion, place, "decimal128", large, false, None);
        one(criterion, place, "utf8", large, false, None);
        for name in ["int32", "text12"] {
            one(criterion, place, name, large, false, Some(FIRST));
        }
        one(criterion, place, "int32", place.batch(), false, Some(FIRST));
        for rows in [large, place.batch()] {
            two(criterion, place, rows);
        }
        for &rows in place.growing() {
            one(criterion, place, "int64", rows, false, None);
        }
    });
}

fn moved(values: &dyn arrow_array::Array, indices: usize) -> Moved {
    Moved::bytes(model::bytes(values) + 4 * indices as u64)
}

fn one(criterion: &mut Criterion, place: &Where, name: &str, rows: usize, nulls: bool, limit: Option<usize>) {
    let which = limit.map_or("all".into(), |limit| format!("first-{limit}"));
    let id = format!("sort/{}/{name}/{rows}/{which}/{}/1", place.name, validity_name(nulls));
    if !wanted(&id) {
        return;
    }
    let values = values(name, rows, nulls);
    let Some(ours) = place.import(&values) else { return };
    let mut group = place.group(criterion, id, moved(&values, limit.unwrap_or(rows)));
    let options = SortOptions::default();
    group.ours(|| sort_to_indices(black_box(&ours), options, limit, &place.stream).wait().expect("sort"));
    group.theirs("arrow-rs", || {
        arrow_ord::sort::sort_to_indices(black_box(&values), Some(options), limit).expect("sort")
    });
}

/// By two columns: bytes, descending, and numbers.
fn two(criterion: &mut Criterion, place: &Where, rows: usize) {
    let id = format!("sort/{}/int8-int64/{rows}/all/no-nulls/2", place.name);
    if !wanted(&id) {
        return;
    }
    let down = SortOptions { descending: true, nulls_first: true };
    let columns = [("int8", down), ("int64", SortOptions::default())];
    let values = columns.map(|(name, options)| (values(name, rows, false), options));
    let [Some(first), Some(second)] = values.each_ref().map(|(values, _)| place.import(values)) else {
        return;
    };
    let bytes = values.iter().map(|(values, _)| model::bytes(values)).sum::<u64>();
    let mut group = place.group(criterion, id, Moved::bytes(bytes + 4 * rows as u64));
    let by = [SortColumn::new(&first, columns[0].1), SortColumn::new(&second, columns[1].1)];
    group.ours(|| lexsort_to_indices(black_box(&by), None, &place.stream).wait().expect("sort"));
    let theirs =
        values.map(|(values, options)| arrow_ord::sort::SortColumn { values, options: Some(options) });
    group.theirs("arrow-rs", || arrow_ord::sort::lexsort_to_indices(black_box(&theirs), None).expect("sort"));
}

criterion_group!(benches, sorts);
criterion_main!(benches);
