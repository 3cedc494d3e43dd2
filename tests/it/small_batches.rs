//! Tests batches of small columns: the number of driver calls of an operation does not grow with the columns,
//! except for launches of kernels that take one column each. The answers equal those for each column by
//! itself.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Int32Array, Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use bowstring::compute::{
    CastOptions, TakeOptions, aggregate, can_cast, cast, filter, filter_where, null_count, take,
};
use bowstring::device::testing::{EmulatedDevice, EmulatorOptions};
use bowstring::exchange::{batch_from_arrow, batch_to_arrow, from_arrow, to_arrow};
use bowstring::expr::{col, count, lit, sum};
use bowstring::{DeviceBatch, Error, Stream};

use crate::support::*;

const ROWS: usize = 8192;

fn emulated() -> EmulatedDevice {
    EmulatedDevice::new(EmulatorOptions::default()).unwrap()
}

/// Columns of 64-bit numbers with nulls, whose null counts are unknown.
fn columns(n: usize, stream: &Stream) -> (RecordBatch, DeviceBatch) {
    let column = |i: usize| array(&DataType::Int64, ROWS, Nulls::Some, &mut Random::new(i as u64));
    let host = RecordBatch::try_from_iter((0..n).map(|i| (i.to_string(), column(i)))).unwrap();
    let there = stream.upload(&batch_from_arrow(&host).unwrap()).unwrap();
    let unknown = there.columns().iter().cloned().map(uncounted);
    let batch = DeviceBatch::try_new(there.schema().clone(), unknown.collect(), ROWS).unwrap();
    (host, batch)
}

/// The driver calls of some work after a warm-up, and the number of synchronisations.
fn asked<T>(
    device: &EmulatedDevice,
    stream: &Stream,
    work: impl Fn() -> T,
) -> (BTreeMap<&'static str, u64>, u64) {
    // Staging memory is still in flight when the second round needs some.
    for _ in 0..3 {
        drop(work());
        stream.synchronise().unwrap();
    }
    let (before, waited) = (device.calls(), device.device().host_synchronisations());
    let result = work();
    let waited = device.device().host_synchronisations() - waited;
    let now = device.calls();
    drop(result);
    let made = now.into_iter().map(|(name, n)| (name, n - before.get(name).unwrap_or(&0)));
    // Discarding costs a call on the emulator's driver but not on the others, and the number of queries is
    // random.
    let made = made.filter(|(name, n)| *n > 0 && !["discard", "query"].contains(name));
    (made.collect(), waited)
}

fn narrow(n: usize) -> SchemaRef {
    let fields: Vec<Field> = (0..n).map(|i| Field::new(i.to_string(), DataType::Int32, true)).collect();
    Arc::new(Schema::new(fields))
}

#[test]
fn a_batch_is_cast_in_one_pass() {
    let device = emulated();
    let stream = device.device().stream().unwrap();
    for n in [1, 10, 100] {
        let (host, there) = columns(n, &stream);
        let to = narrow(n);
        let (calls, waited) =
            asked(&device, &stream, || cast(&there, &to, &CastOptions::default(), &stream).wait().unwrap());
        assert_eq!((calls, waited), ([("launch", n as u64), ("record", 1)].into(), 0), "{n} columns, safe");
        // A cast that can fail is checked: kernels write the first failing row where the host reads it.
        let strict = CastOptions { safe: false, ..Default::default() };
        let small =
            Schema::new(host.schema().fields().iter().map(|f| f.as_ref().clone()).collect::<Vec<_>>());
        let small = batch_from_arrow(
            &RecordBatch::try_new(
                small.into(),
                (0..n).map(|i| Arc::new(Int64Array::from(vec![i as i64; ROWS])) as ArrayRef).collect(),
            )
            .unwrap(),
        );
        let small = stream.upload(&small.unwrap()).unwrap();
        let (calls, waited) = asked(&device, &stream, || cast(&small, &to, &strict, &stream).wait().unwrap());
        let expected = [("launch", n as u64), ("record", 1)];
        assert_eq!((calls, waited), (expected.into(), 0), "{n} columns, strict");
        let casted = cast(&there, &to, &CastOptions::default(), &stream).wait().unwrap();
        let back = batch_to_arrow(&stream.download(&casted).unwrap()).unwrap();
        for (ours, theirs) in back.columns().iter().zip(host.columns()) {
            let theirs = arrow_cast::cast(theirs, &DataType::Int32).unwrap();
            assert_same_rows(&rows(ours), &rows(&theirs), &format_args!("{n} columns"));
        }
    }
    assert_eq!(device.faults(), []);
}

#[test]
fn nulls_of_a_batch_are_counted_together() {
    let device = emulated();
    let stream = device.device().stream().unwrap();
    for n in [1, 10, 100] {
        let (host, there) = columns(n, &stream);
        let expected: Vec<usize> = host.columns().iter().map(|column| column.null_count()).collect();
        assert_eq!(null_count(&there, &stream).wait().unwrap(), expected);
        let (calls, waited) = asked(&device, &stream, || null_count(&there, &stream).wait().unwrap());
        let once = [("launch", 1), ("record", 1), ("synchronise_event", 1)];
        assert_eq!((calls, waited), (once.into(), 1), "{n} columns");
        // An operation without a consumer does not wait, and known counts are not computed again.
        let waited = device.device().host_synchronisations();
        let later = null_count(&there, &stream);
        assert_eq!(device.device().host_synchronisations(), waited);
        assert_eq!(later.wait().unwrap(), expected);
        let known = stream.upload(&batch_from_arrow(&host).unwrap()).unwrap();
        let (calls, waited) = asked(&device, &stream, || null_count(&known, &stream).wait().unwrap());
        assert_eq!((calls, waited), (BTreeMap::new(), 0));
    }
    let none = DeviceBatch::try_new(Arc::new(Schema::empty()), vec![], 7).unwrap();
    assert_eq!(null_count(&none, &stream).wait().unwrap(), [0usize; 0]);
    assert_eq!(device.faults(), []);
}

#[test]
fn rows_of_a_batch_are_taken_in_one_launch_for_each_width() {
    let device = emulated();
    let stream = device.device().stream().unwrap();
    let indices: ArrayRef = Arc::new(Int32Array::from_iter_values((0..ROWS as i32).rev()));
    let indices = stream.upload(&from_arrow(&indices).unwrap()).unwrap();
    for n in [1, 10, 100] {
        let (_, there) = columns(n, &stream);
        let take = || take(&there, &indices, &TakeOptions::default(), &stream).wait().unwrap();
        let (calls, waited) = asked(&device, &stream, take);
        let mut expected: BTreeMap<_, _> =
            [("copy_in", 1), ("launch", 1), ("copy_out", 1), ("record", 1)].into();
        // For this many columns the device fills the zeros.
        expected.extend((n == 100).then_some(("fill", 1)));
        assert_eq!((calls, waited), (expected, 0), "{n} columns");
    }
    assert_eq!(device.faults(), []);
}

#[test]
fn a_small_batch_is_filtered_taken_and_summed_in_one_trip() {
    let device = emulated();
    let stream = device.device().stream().unwrap();
    let up = |array: ArrayRef| stream.upload(&from_arrow(&array).unwrap()).unwrap();
    let keep = |row: usize| row.is_multiple_of(3);
    let mask = up(Arc::new(BooleanArray::from_iter((0..ROWS).map(|row| Some(keep(row))))));
    let unsure = BooleanArray::from_iter((0..ROWS).map(|row| (row % 5 != 0).then(|| keep(row))));
    let unsure = up(Arc::new(unsure));
    let indices = up(Arc::new(Int32Array::from_iter_values((0..ROWS as i32).rev())));
    for n in [1, 5] {
        let whole = (0..n).map(|i| {
            let values: ArrayRef =
                Arc::new(Int64Array::from_iter_values((0..ROWS as i64).map(|row| row * i)));
            (i.to_string(), values)
        });
        let whole = batch_from_arrow(&RecordBatch::try_from_iter(whole).unwrap()).unwrap();
        let whole = stream.upload(&whole).unwrap();
        let (_, nullable) = columns(n as usize, &stream);
        let once = |launches, copies| {
            let calls = [("copy_in", copies), ("launch", launches), ("record", 1), ("synchronise_event", 1)];
            BTreeMap::from_iter(calls.into_iter().filter(|(_, made)| *made > 0))
        };
        let filtered = |batch, mask| asked(&device, &stream, || filter(batch, mask, &stream).wait().unwrap());
        assert_eq!(filtered(&whole, &mask), (once(1, 0), 1), "{n} columns");
        // Bitmaps have a launch of their own and begin as zeros; so have the mask's values and validity.
        assert_eq!(filtered(&nullable, &mask), (once(2, 1), 1), "{n} columns with nulls");
        assert_eq!(filtered(&nullable, &unsure), (once(3, 1), 1), "{n} columns, by a mask with nulls");
        let taken = || take(&whole, &indices, &TakeOptions::default(), &stream).wait().unwrap();
        let mut calls = BTreeMap::from([("launch", 1), ("record", 1)]);
        // A wave would wait for the rows of many columns, one after the other.
        calls.extend((n > 2).then_some(("copy_in", 1)));
        assert_eq!(asked(&device, &stream, taken), (calls, 0), "{n} columns, taken");
        let predicate = col("0").lt(lit(4000i64));
        let filtered = || filter_where(&whole, &predicate, &stream).wait().unwrap();
        assert_eq!(asked(&device, &stream, filtered), (once(2, 1), 1), "{n} columns, by an expression");
        let summed =
            || aggregate(&whole, &[sum(col("0") + 1), count(col("0"))], None, &stream).wait().unwrap();
        assert_eq!(asked(&device, &stream, summed), (once(1, 1), 1), "{n} columns, aggregated");
    }
    assert_eq!(device.faults(), []);
}

#[test]
fn what_a_plan_needs_is_sent_with_one_copy() {
    let device = emulated();
    let stream = device.device().stream().unwrap();
    let up = |array: ArrayRef| stream.upload(&from_arrow(&array).unwrap()).unwrap();
    let indices = up(Arc::new(Int32Array::from_iter_values((0..ROWS as i32).rev())));
    let mask = up(Arc::new(BooleanArray::from_iter((0..ROWS).map(|row| Some(row % 3 == 0)))));
    for n in [1, 10, 100] {
        // Numbers and strings: bitmaps, counters and tables of both.
        let (numbers, _) = columns(n, &stream);
        let strings = array(&DataType::Utf8, ROWS, Nulls::Some, &mut Random::new(1));
        let named = numbers.columns().iter().chain([&strings]).cloned().enumerate();
        let host = RecordBatch::try_from_iter(named.map(|(i, column)| (i.to_string(), column))).unwrap();
        let there = stream.upload(&batch_from_arrow(&host).unwrap()).unwrap();
        let (calls, waited) = asked(&device, &stream, || {
            take(&there, &indices, &TakeOptions::default(), &stream).wait().unwrap()
        });
        assert_eq!((calls["copy_in"], calls["copy_out"], waited), (1, 1, 1), "take of {n} columns");
        // One more copy, for the places of the kept values, which are known only after counting. Those of few
        // columns are not copied.
        let copies = if n <= 10 { 1 } else { 2 };
        let (calls, waited) = asked(&device, &stream, || filter(&there, &mask, &stream).wait().unwrap());
        assert_eq!((calls["copy_in"], calls["copy_out"], waited), (copies, 1, 1), "filter of {n} columns");
    }
    assert_eq!(device.faults(), []);
}

#[test]
fn strings_may_be_taken_without_waiting() {
    for target in &devices() {
        let host = array(&DataType::Utf8, 500, Nulls::Some, &mut Random::new(3));
        let batch = RecordBatch::try_from_iter_with_nullable([("s", host.clone(), true)]).unwrap();
        let there = target.stream.upload(&batch_from_arrow(&batch).unwrap()).unwrap();
        let indices: ArrayRef = Arc::new(Int32Array::from(vec![Some(499), None, Some(0), Some(0)]));
        let by = target.import(&indices);
        let device = target.stream.device();
        let waited = device.host_synchronisations();
        let later = take(&there, &by, &TakeOptions::default(), &target.stream);
        drop((there, by));
        assert_eq!(device.host_synchronisations(), waited, "{target:?}");
        let taken = later.wait().unwrap();
        let theirs = arrow_select::take::take(&host, &indices, None).unwrap();
        target.assert_same(&taken.columns()[0], &theirs, &"strings, later");
        let bad: ArrayRef = Arc::new(Int32Array::from(vec![Some(499), Some(-500)]));
        let there = target.stream.upload(&batch_from_arrow(&batch).unwrap()).unwrap();
        let later = take(&there, &target.import(&bad), &TakeOptions::default(), &target.stream);
        drop(there);
        let expected = Error::IndexOutOfBounds { row: 1, index: -500, len: 500 };
        assert_eq!(later.wait().unwrap_err(), expected, "{target:?}");
    }
}

#[test]
fn a_bad_index_is_told_also_where_the_indices_are_gone() {
    for target in &devices() {
        let values = target.import(&array(&DataType::Int64, 300, Nulls::Some, &mut Random::new(1)));
        let indices: ArrayRef =
            Arc::new(Int32Array::from_iter_values((0..300).map(|i| if i == 77 { -3 } else { i })));
        let by = target.import(&indices).slice(5, 200).unwrap();
        let taken = bowstring::compute::take(&values, &by, &TakeOptions::default(), &target.stream).wait();
        drop(by);
        // Meanwhile the columns' memory would be reused, if it were not kept.
        for i in 0..20 {
            drop(target.import(&array(&DataType::Int32, 300, Nulls::None, &mut Random::new(i))));
        }
        let error = taken.and_then(|taken| taken.wait()).unwrap_err();
        assert_eq!(error, Error::IndexOutOfBounds { row: 72, index: -3, len: 300 }, "{target:?}");
    }
}

#[test]
fn small_results_share_memory_and_large_ones_do_not() {
    let device = emulated();
    let stream = device.device().stream().unwrap();
    let usage = || device.device().memory_usage();
    let indices = |len: usize| {
        let indices: ArrayRef = Arc::new(Int32Array::from_iter_values((0..len).map(|i| (i % 100) as i32)));
        stream.upload(&from_arrow(&indices).unwrap()).unwrap()
    };
    let (_, there) = columns(10, &stream);
    let small = indices(1000);
    let before = usage();
    let taken = take(&there, &small, &TakeOptions::default(), &stream).wait().unwrap();
    stream.synchronise().unwrap();
    let blocks = usage().hits + usage().misses - before.hits - before.misses;
    assert!(blocks <= 3, "{blocks} blocks for ten columns of 8 kB");
    drop(taken);
    // Each column has 800 kB: dropped columns are freed, although another column is still in use.
    let large = indices(100_000);
    let taken = take(&there, &large, &TakeOptions::default(), &stream).wait().unwrap();
    stream.synchronise().unwrap();
    let all = usage().in_use;
    let first = taken.columns()[0].clone();
    drop(taken);
    assert!(
        usage().in_use + 9 * 800_000 <= all,
        "{} of {all} bytes are in use for one column",
        usage().in_use
    );
    drop(first);
}

#[test]
fn what_nobody_asks_for_is_not_written_over_earlier_results() {
    let device = emulated();
    // A new device has no memory yet for the counts that a safe cast does not request: the first column with
    // counts allocates it, here after a column without any.
    let stream = device.device().stream().unwrap();
    let (host, there) = columns(2, &stream);
    let targets = [DataType::Float64, DataType::Int8];
    let fields = targets.iter().enumerate().map(|(i, to)| Field::new(i.to_string(), to.clone(), true));
    let to: SchemaRef = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let cast = || cast(&there, &to, &CastOptions::default(), &stream).wait().unwrap();
    let first = cast();
    drop((cast(), cast()));
    let back = batch_to_arrow(&stream.download(&first).unwrap()).unwrap();
    for ((ours, theirs), to) in back.columns().iter().zip(host.columns()).zip(&targets) {
        assert_eq!(ours, &arrow_cast::cast(theirs, to).unwrap());
    }
}

#[test]
fn a_batch_is_cast_as_its_columns_are() {
    let types = types();
    for target in &devices() {
        let rng = &mut Random::new(5);
        for round in 0..6 {
            let (mut values, mut theirs, mut fields) = (vec![], vec![], vec![]);
            while values.len() < 12 {
                let (from, to) = (&types[rng.below(types.len())], &types[rng.below(types.len())]);
                let host = array(from, 90, Nulls::Some, rng);
                let ours = target.import_as(Form::SlicedAfter, &host, 7, 70);
                // Some pairs do not exist, some are not supported on every device, some arrow-rs refuses for
                // any values.
                let by_itself = cast(&ours, to, &CastOptions::default(), &target.stream).wait();
                if !can_cast(from, to) || by_itself.is_err() {
                    continue;
                }
                theirs.push(arrow_cast::cast(&host.slice(7, 70), to).unwrap());
                fields.push((Field::new("f", from.clone(), true), Field::new("t", to.clone(), true)));
                values.push(ours);
            }
            let (from, to): (Vec<Field>, Vec<Field>) = fields.into_iter().unzip();
            let batch = DeviceBatch::try_new(Arc::new(Schema::new(from)), values, 70).unwrap();
            let to = Arc::new(Schema::new(to));
            let casted = cast(&batch, &to, &CastOptions::default(), &target.stream).wait().unwrap();
            assert_eq!(casted.schema(), &to);
            for (ours, theirs) in casted.columns().iter().zip(&theirs) {
                target.assert_same(ours, theirs, &format_args!("round {round}, to {}", theirs.data_type()));
            }
        }
        let wrong = cast(
            &DeviceBatch::try_new(Arc::new(Schema::empty()), vec![], 3).unwrap(),
            &narrow(1),
            &CastOptions::default(),
            &target.stream,
        )
        .wait();
        assert!(matches!(wrong, Err(Error::Invalid { operation: "cast", .. })), "{wrong:?}");
    }
}

#[test]
fn a_value_that_does_not_fit_fails_its_batch() {
    let strict = CastOptions { safe: false, ..Default::default() };
    for target in &devices() {
        let small: ArrayRef = Arc::new(Int64Array::from_iter_values(0..200));
        let large: ArrayRef = Arc::new(Int64Array::from_iter_values((0..200).map(|i| i << 26)));
        let host = RecordBatch::try_from_iter([("0", small.clone()), ("1", large), ("2", small)]).unwrap();
        let there = target.stream.upload(&batch_from_arrow(&host).unwrap()).unwrap();
        let casted = cast(&there, &narrow(3), &strict, &target.stream).wait();
        let first_wait = |batch: DeviceBatch, i: usize| batch.columns()[i].wait();
        for i in 0..3 {
            let error = casted.clone().and_then(|batch| first_wait(batch, i)).unwrap_err();
            assert!(matches!(error, Error::Cast { row: 32, .. }), "{error} on {target:?}");
        }
        // The values themselves remain valid.
        assert_eq!(null_count(&there.columns()[1], &target.stream).wait().unwrap(), 0);
        let back = to_arrow(&target.stream.download(&there.columns()[1]).unwrap()).unwrap();
        assert_eq!(&back, host.column(1));
    }
}

#[test]
fn columns_that_are_cast_to_text_are_looked_at_together() {
    let device = emulated();
    let stream = device.device().stream().unwrap();
    let (_, batch) = columns(20, &stream);
    let fields: Vec<Field> = (0..20).map(|i| Field::new(i.to_string(), DataType::Utf8, true)).collect();
    let to = Arc::new(Schema::new(fields));
    let casted = || cast(&batch, &to, &CastOptions::default(), &stream).wait().unwrap();
    let (_, waited) = asked(&device, &stream, casted);
    assert_eq!(waited, 1);
}
