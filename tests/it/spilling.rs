//! Rows that wait in a place of the caller's.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow_array::{
    ArrayRef, Int64Array, ListArray, ListViewArray, StringArray, StringViewArray, StructArray,
};
use arrow_buffer::OffsetBuffer;
use arrow_schema::Field;
use bowstring::compute::{JoinBuild, JoinKind, JoinOptions, JoinProbe, Query, SortOptions, Sorting, Spill};
use bowstring::exchange::{from_arrow, to_arrow};
use bowstring::expr::{Options, col, count_distinct, sum};
use bowstring::{DeviceArray, DeviceBatch, Error, Result};

use crate::beyond_memory::{ended, in_any_order};
use crate::groups::batch_on;
use crate::support::*;

/// How a place treats rows.
#[derive(Clone, Copy, Debug)]
enum Does {
    Copies,
    Fails,
    Shortens,
    Retypes,
}

/// A place that copies what it gets, or misbehaves after some calls.
#[derive(Debug)]
struct Copies {
    does: Does,
    after: usize,
    calls: AtomicUsize,
    bytes: AtomicUsize,
}

fn full() -> Error {
    Error::Producer { code: 28, message: "the disk is full".to_owned(), metadata: Default::default() }
}

impl Spill for Copies {
    fn spill(&self, columns: Vec<DeviceArray>, bytes: usize) -> Result<Vec<DeviceArray>> {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        let copied = |column: &DeviceArray| {
            let column = to_arrow(column)?;
            from_arrow(&arrow_select::concat::concat(&[&column, &column.slice(0, 0)]).unwrap())
        };
        match self.does {
            _ if self.calls.fetch_add(1, Ordering::Relaxed) < self.after => {
                columns.iter().map(copied).collect()
            }
            Does::Copies => columns.iter().map(copied).collect(),
            Does::Fails => Err(full()),
            Does::Shortens => columns.iter().map(|column| column.slice(0, column.len() / 2)).collect(),
            Does::Retypes => columns.iter().map(|_| from_arrow(&Int64Array::from(vec![1]))).collect(),
        }
    }
}

fn place(does: Does, after: usize) -> Arc<Copies> {
    Arc::new(Copies { does, after, calls: AtomicUsize::new(0), bytes: AtomicUsize::new(0) })
}

fn batches(target: &Target) -> Vec<DeviceBatch> {
    let mut random = Random::new(410);
    let mut batch = |_| {
        let keys: Vec<usize> = (0..200).map(|_| random.below(900)).collect();
        let texts: ArrayRef =
            Arc::new(StringArray::from_iter_values(keys.iter().map(|key| format!("the key {key}"))));
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(keys.iter().map(|key| *key as i64)));
        let views = arrow_cast::cast(&texts, &arrow_schema::DataType::Utf8View).unwrap();
        batch_on(target, &[("t", texts), ("n", numbers), ("v", views)])
    };
    (0..8).map(&mut batch).collect()
}

/// The rows of a sort, a join and groups of a batch's rows, spilled in this place, if any.
type Run = fn(&[DeviceBatch], Option<Arc<dyn Spill>>, &Target) -> Result<Vec<DeviceBatch>>;

fn sorted(rows: &[DeviceBatch], place: Option<Arc<dyn Spill>>, target: &Target) -> Result<Vec<DeviceBatch>> {
    let mut sorting = Sorting::new(&[(2, SortOptions::default())], &target.stream).memory(20_000);
    if let Some(place) = &place {
        sorting = sorting.spill_to(place.clone());
    }
    rows.iter().try_for_each(|batch| ended(sorting.push(batch)))?;
    let mut made = vec![];
    let mut sorted = ended(sorting.finish())?;
    while let Some(batch) = ended(sorted.next())? {
        made.push(batch);
    }
    Ok(made)
}

fn joined(rows: &[DeviceBatch], place: Option<Arc<dyn Spill>>, target: &Target) -> Result<Vec<DeviceBatch>> {
    let options = JoinOptions { kind: JoinKind::Full, ..JoinOptions::default() };
    let mut build = JoinBuild::new(&options, &target.stream).memory(20_000);
    if let Some(place) = &place {
        build = build.spill_to(place.clone());
    }
    for batch in &rows[..4] {
        ended(build.push(batch, &batch.columns()[..1]))?;
    }
    let built = Arc::new(ended(build.finish(1))?);
    let mut probe = JoinProbe::new(&built, rows[0].schema(), &target.stream);
    for batch in &rows[4..] {
        ended(probe.push(batch, &batch.columns()[..1]))?;
    }
    probe.end()?;
    let mut made = vec![];
    while let Some(batch) = ended(probe.next())? {
        made.push(batch);
    }
    Ok(made)
}

fn grouped(rows: &[DeviceBatch], place: Option<Arc<dyn Spill>>, target: &Target) -> Result<Vec<DeviceBatch>> {
    let query = Query::new().group_by([col("t")]).aggregate([sum(col("n")), count_distinct(col("v"))]);
    let query = query.group_limit(5000).bind(rows[0].schema(), &Options::default())?;
    let mut grouping = query.grouping(&target.stream)?;
    if let Some(place) = &place {
        grouping = grouping.spill_to(place.clone());
    }
    rows.iter().try_for_each(|batch| grouping.push(batch))?;
    grouping.finish()?.collect()
}

const RUNS: [(&str, Run); 3] = [("sort", sorted), ("join", joined), ("groups", grouped)];

#[test]
fn rows_that_were_moved_are_the_same_rows() {
    for target in &devices() {
        let rows = batches(target);
        for (name, run) in RUNS {
            let expected = in_any_order(&run(&rows, None, target).unwrap(), target);
            let place = place(Does::Copies, 0);
            let made = in_any_order(&run(&rows, Some(place.clone()), target).unwrap(), target);
            assert!(made == expected, "{name} on {target:?}");
            // The text of all rows is about so long.
            assert!(place.bytes.load(Ordering::Relaxed) > 20_000, "{name} on {target:?}: {place:?}");
            // No one but this test has the place.
            assert_eq!(Arc::strong_count(&place), 1, "{name} on {target:?}");
        }
    }
}

#[test]
fn a_place_that_fails_or_lies_is_an_error() {
    for target in &devices() {
        let rows = batches(target);
        for (name, run) in RUNS {
            for after in [0, 1] {
                let wrong = |does| run(&rows, Some(place(does, after)), target).unwrap_err();
                assert_eq!(wrong(Does::Fails), full(), "{name} on {target:?}");
                for does in [Does::Shortens, Does::Retypes] {
                    let error = wrong(does);
                    assert!(
                        matches!(error, Error::Invalid { .. }),
                        "{does:?}, {name} on {target:?}: {error}"
                    );
                }
            }
        }
    }
}

/// Rows that are spilled have no contents but their own: sorted in ranges, views and lists of views would
/// each bring those of all rows.
#[test]
fn what_is_spilled_fits_whatever_type_it_has() {
    let text = |view: bool| -> ArrayRef {
        let text = StringArray::from_iter_values((0..400).map(|i| format!("{i}{}", "x".repeat(150))));
        if view { Arc::new(StringViewArray::from_iter(text.iter())) } else { Arc::new(text) }
    };
    let field = |name: &str, of: &ArrayRef| Arc::new(Field::new(name, of.data_type().clone(), true));
    let structs = Arc::new(StructArray::new(vec![field("t", &text(true))].into(), vec![text(true)], None));
    let offsets = OffsetBuffer::from_lengths([1; 400]);
    let lists = Arc::new(ListArray::new(field("item", &text(true)), offsets, text(true), None));
    let starts: Vec<i32> = (0..400).rev().collect();
    let sizes = vec![1; 400];
    let of_views =
        ListViewArray::new(field("item", &text(false)), starts.into(), sizes.into(), text(false), None);
    let payloads: [ArrayRef; 4] = [text(true), structs, lists, Arc::new(of_views)];
    for payload in payloads {
        let target = Target::emulator(32);
        target.stream.device().set_memory_limit(1 << 20);
        let mut sorting = Sorting::new(&[(0, SortOptions::default())], &target.stream).memory(100_000);
        for seed in 0..24i64 {
            let keys: ArrayRef =
                Arc::new(Int64Array::from_iter_values((0..400).map(|i| (i * 24 + seed) % 997)));
            let batch = batch_on(&target, &[("k", keys), ("p", payload.clone())]);
            ended(sorting.push(&batch)).unwrap();
        }
        let mut sorted = ended(sorting.finish()).unwrap();
        let mut found = 0;
        while let Some(batch) = ended(sorted.next()).unwrap() {
            assert_eq!(batch.columns()[1].data_type(), payload.data_type());
            found += target.stream.download(&batch).unwrap().len();
        }
        assert_eq!(found, 24 * 400, "{}", payload.data_type());
    }
}

/// The first rows of the order stay on the device if they fit, however many rows come.
#[test]
fn few_first_rows_are_not_spilled() {
    for target in &devices() {
        let mut sorting = Sorting::new(&[(0, SortOptions::default())], &target.stream);
        sorting = sorting.limit(10).memory(5_000);
        for seed in 0..20i64 {
            let keys: ArrayRef = Arc::new(Int64Array::from_iter_values((0..500).map(|i| i * 20 + seed)));
            ended(sorting.push(&batch_on(target, &[("k", keys)]))).unwrap();
        }
        assert_eq!(sorting.spilled_bytes(), 0, "{target:?}");
        let mut sorted = ended(sorting.finish()).unwrap();
        let first = ended(sorted.next()).unwrap().unwrap();
        let expected: ArrayRef = Arc::new(Int64Array::from_iter_values(0..10));
        assert_same_rows(
            &rows(&target.export(&first.columns()[0])),
            &rows(&expected),
            &format_args!("{target:?}"),
        );
    }
}

/// Right rows that could not be spilled have not been seen: their null key leaves left rows of `NOT IN`
/// alone.
#[test]
fn rows_that_could_not_be_spilled_were_not_seen() {
    let target = &devices()[0];
    let keys =
        |keys: Vec<Option<i64>>| batch_on(target, &[("k", Arc::new(Int64Array::from(keys)) as ArrayRef)]);
    let left = keys((0..500).map(Some).collect());
    let options = JoinOptions { kind: JoinKind::LeftAnti, null_aware: true, ..JoinOptions::default() };
    let failing = place(Does::Fails, 1);
    let mut build = JoinBuild::new(&options, &target.stream).memory(100).spill_to(failing);
    ended(build.push(&left, left.columns())).unwrap();
    let built = Arc::new(ended(build.finish(1)).unwrap());
    let right = keys(vec![Some(3), None]);
    let mut probe = JoinProbe::new(&built, right.schema(), &target.stream);
    ended(probe.push(&right, right.columns())).unwrap_err();
    probe.end().unwrap();
    let mut found = 0;
    while let Some(rows) = ended(probe.next()).unwrap() {
        found += rows.len();
    }
    assert_eq!(found, 500);
}
