//! Polls operations as a task does, on devices that answer slowly: no poll blocks its thread, and neither
//! does the call that begins an operation. `driver::polls` does the same on the drivers' stand-ins.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt8Type};
use arrow_array::{
    ArrayRef, BooleanArray, DictionaryArray, Int64Array, RecordBatch, StringArray, UInt8Array, UInt32Array,
};
use arrow_cast::cast;
use arrow_schema::DataType;
use bowstring::compute::{
    Coalescer, Query, Selection, SortColumn, SortOptions, TakeOptions, Ties, aggregate, concat, evaluate,
    filter_where, lexsort_to_indices, partition, rank,
};
use bowstring::exchange::{batch_from_arrow, to_arrow};
use bowstring::expr::{Aggregation, Options, col, count, lit, sum};
use bowstring::{DeviceArray, DeviceBatch, Error, Pending, Stream};

use crate::support::operations::{Answer, OPERATIONS};
use crate::support::*;

const ROWS: usize = 150;

struct Unparks(Thread);

impl Wake for Unparks {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Polls an operation whenever it wakes this thread, and returns how often it had to be woken. Fails if the
/// operation has made a call of the driver that blocks.
fn polled<T>(
    target: &Target,
    begin: impl FnOnce() -> Pending<T>,
    context: &dyn std::fmt::Display,
) -> (Result<T, Error>, usize) {
    let before = target.blocking_calls();
    let mut pending = begin();
    let answer = woken(|context| Pin::new(&mut pending).poll(context));
    assert_eq!(target.blocking_calls() - before, 0, "{context} on {target:?}");
    answer
}

/// Polls whenever it wakes this thread, and returns how often it had to be woken.
pub fn woken<T>(mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>) -> (T, usize) {
    let waker = Waker::from(Arc::new(Unparks(thread::current())));
    for wakes in 0.. {
        match poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(result) => return (result, wakes),
            Poll::Pending => thread::park(),
        }
    }
    unreachable!("it is woken too often to count")
}

#[test]
fn no_operation_blocks_before_its_result_is_waited_for() {
    every_operation(&Target::slow_emulator(32));
}

#[test]
fn neither_do_expressions_selections_concatenations_and_many_aggregates() {
    other_operations(&Target::slow_emulator(64));
}

/// Polls each operation of the table on each type.
pub fn every_operation(target: &Target) {
    let mut most = 0;
    for operation in OPERATIONS {
        for (seed, data_type) in (1..).zip(types()) {
            let sample = Sample { data_type, len: ROWS, nulls: Nulls::Some, offset: 3, seed };
            let (values, mut random) = (sample.array(), Random::new(seed));
            let Some(argument) = (operation.argument)(&sample.data_type, ROWS, &mut random) else { continue };
            let context = format!("{} of {sample:?} with {argument:?}", operation.name);
            let Ok(theirs) = (operation.arrow)(&values, &argument) else { continue };
            let ours = uncounted(target.import(&values));
            let Some(there) = target.answer(argument.on(&target.stream), &context) else { continue };
            let begin = || (operation.call)(&ours, &there, &target.stream);
            let (answer, wakes) = polled(target, begin, &context);
            most = most.max(wakes);
            match (target.answer(answer, &context), &theirs) {
                (None, _) => {}
                (Some(Answer::Array(ours)), Answer::Array(theirs)) => {
                    target.assert_same(&ours, theirs, &context);
                }
                (Some(Answer::Count(ours)), Answer::Count(theirs)) => assert_eq!(ours, *theirs, "{context}"),
                (Some(ours), theirs) => panic!("{context}: {ours:?}, {theirs:?}"),
            }
        }
    }
    assert!(most > 1, "some operation looks twice");
}

/// Polls expressions with steps that run before their program: casts, long lists, tests of text in views and
/// in dictionaries.
fn expressions(target: &Target) {
    let words = StringArray::from_iter((0..ROWS).map(|i| (i % 5 > 0).then(|| format!("the word {i}"))));
    let columns: [(&str, ArrayRef); 3] = [
        ("n", Arc::new(Int64Array::from_iter_values(0..ROWS as i64))),
        ("v", cast(&words, &DataType::Utf8View).unwrap()),
        ("d", cast(&words, &DataType::Dictionary(DataType::Int16.into(), DataType::Utf8.into())).unwrap()),
    ];
    let here = batch_from_arrow(&RecordBatch::try_from_iter(columns).unwrap()).unwrap();
    let there = target.stream.upload(&here).unwrap();
    let text = || col("n").cast(DataType::Utf8);
    let exprs = [
        text().cast(DataType::Int32) + 1,
        text().eq("77"),
        col("n").in_list((0..600).map(|i| i * 3)),
        col("v").like("%1_%"),
        col("d").contains("word 1"),
        lit("a text").alias("text"),
    ];
    let (made, wakes) = polled(target, || evaluate(&there, &exprs, &target.stream), &"evaluate");
    same(target, &made.unwrap(), &evaluate(&here, &exprs, &Stream::cpu()).wait().unwrap());
    assert!(wakes > 1, "a cast looks at the device");
    let keep = text().like("%1%") & col("v").is_not_null();
    let (kept, wakes) = polled(target, || filter_where(&there, &keep, &target.stream), &"filter_where");
    same(target, &kept.unwrap(), &filter_where(&here, &keep, &Stream::cpu()).wait().unwrap());
    assert!(wakes > 1, "a cast looks at the device, and so does the filter");
    let query = Query::new().filter(&keep).select(&exprs).bind(there.schema(), &Options::default()).unwrap();
    let (made, wakes) = polled(target, || query.run(&there, &target.stream), &"query");
    same(target, &made.unwrap(), &query.run(&here, &Stream::cpu()).wait().unwrap());
    assert!(wakes > 2, "a cast looks at the device, and so do the filter and the casts of the kept rows");
    let (selected, _) = polled(target, || query.selection(&there, &target.stream), &"selection");
    assert_eq!(selected.unwrap().len(), query.selection(&here, &Stream::cpu()).wait().unwrap().len());
    let all = [sum(text().cast(DataType::Int64)), count(col("v"))];
    let begin = || aggregate(&there, &all, Some(&keep), &target.stream);
    let (row, wakes) = polled(target, begin, &"aggregate");
    same(target, &row.unwrap(), &aggregate(&here, &all, Some(&keep), &Stream::cpu()).wait().unwrap());
    assert!(wakes > 1, "a cast looks at the device, and so does the aggregate");
}

fn same(target: &Target, ours: &DeviceBatch, theirs: &DeviceBatch) {
    assert_eq!(ours.len(), theirs.len());
    for (ours, theirs) in ours.columns().iter().zip(theirs.columns()) {
        assert_eq!(&target.export(ours), &to_arrow(theirs).unwrap());
    }
}

/// Polls sorts, ranks and groups: of text, which takes a look for some bytes, then of a dictionary.
fn sorts(target: &Target) {
    let words: ArrayRef = Arc::new(StringArray::from_iter(
        (0..ROWS).map(|i| (i % 5 > 0).then(|| format!("the same beginning {}", i * 7 % 40))),
    ));
    let keys = cast(&words, &DataType::Dictionary(DataType::Int16.into(), DataType::Utf8.into())).unwrap();
    let here = [&words, &keys].map(|values| DeviceArray::try_from(values).unwrap());
    let there = [&words, &keys].map(|values| target.import(values));
    let options = SortOptions { descending: true, nulls_first: false };
    let begin = |on: &[DeviceArray; 2], stream: &Stream| {
        lexsort_to_indices(&on.each_ref().map(|values| SortColumn::new(values, options)), None, stream)
    };
    let (order, wakes) = polled(target, || begin(&there, &target.stream), &"lexsort_to_indices");
    let expected = to_arrow(&begin(&here, &Stream::cpu()).wait().unwrap()).unwrap();
    target.assert_same(&order.unwrap(), &expected, &"lexsort_to_indices");
    assert!(wakes > 4, "words of equal text are looked at one by one");
    let ranks = polled(target, || rank(&there[1], options, Ties::Dense, &target.stream), &"rank").0;
    let expected = rank(&here[1], options, Ties::Dense, &Stream::cpu()).wait().unwrap();
    target.assert_same(&ranks.unwrap(), &to_arrow(&expected).unwrap(), &"rank");
    let groups = polled(target, || partition(&there, &target.stream), &"partition").0;
    let expected = partition(&here, &Stream::cpu()).wait().unwrap();
    target.assert_same(&groups.unwrap(), &to_arrow(&expected).unwrap(), &"partition");
}

/// Pushes filtered, taken and whole batches, then polls the batches that they make.
fn coalesced(target: &Target) {
    let words = StringArray::from_iter((0..ROWS).map(|i| (i % 5 > 0).then(|| format!("the word {i}"))));
    let here = batch_from_arrow(&RecordBatch::try_from_iter([("w", Arc::new(words) as _)]).unwrap()).unwrap();
    let there = target.stream.upload(&here).unwrap();
    let kept: ArrayRef = Arc::new(BooleanArray::from_iter((0..ROWS).map(|i| Some(i % 3 == 0))));
    let indices: ArrayRef = Arc::new(UInt32Array::from_iter_values((0..99).map(|i| i * 7 % ROWS as u32)));
    let pushed = |on: &DeviceBatch, [kept, indices]: [DeviceArray; 2], stream: &Stream| {
        let mut coalescer = Coalescer::new(on.schema().clone(), 64, stream).unwrap();
        coalescer.push_batch_with_filter(on, &kept).unwrap();
        coalescer.push_batch_with_take(on, &indices, &TakeOptions::default()).unwrap();
        coalescer.finish_buffered_batch().unwrap();
        coalescer.push_batch(on).unwrap();
        coalescer.finish_buffered_batch().unwrap();
        coalescer
    };
    let imported = [&kept, &indices].map(|array| DeviceArray::try_from(array).unwrap());
    let mut expected = pushed(&here, imported, &Stream::cpu());
    let (imported, before) = ([&kept, &indices].map(|array| target.import(array)), target.blocking_calls());
    let mut ours = pushed(&there, imported, &target.stream);
    let (mut wakes, mut made) = (0, vec![]);
    loop {
        let (next, more) = woken(|context| ours.poll_next_completed_batch(context));
        wakes += more;
        let Some(next) = next.unwrap() else { break };
        made.push(next);
    }
    assert_eq!(target.blocking_calls() - before, 0, "{target:?}");
    assert!(wakes > 1, "a filter looks at the device, and so does a batch of text");
    let sizes: Vec<usize> = made.iter().map(DeviceBatch::len).collect();
    assert_eq!(sizes, [64, 64, 21, 64, 64, 22], "{target:?}");
    for ours in &made {
        same(target, ours, &expected.next_completed_batch().unwrap().unwrap());
    }
    assert!(expected.next_completed_batch().unwrap().is_none());
}

/// Polls the operations that the table lacks.
pub fn other_operations(target: &Target) {
    expressions(target);
    sorts(target);
    coalesced(target);
    for (seed, data_type) in (1..).zip(types()) {
        let context = format!("{data_type}");
        let mut random = Random::new(seed);
        let values = array(&data_type, ROWS, Nulls::Some, &mut random);
        let parts = [target.import(&values), target.import(&values)];
        let both = || concat(&[&parts[0], &parts[1]], &target.stream);
        if let Some(both) = target.answer(polled(target, both, &context).0, &context) {
            let theirs = arrow_select::concat::concat(&[&values, &values]).unwrap();
            target.assert_same(&both, &theirs, &context);
        }
        let keep = mask(Mask { percent: 50.0, run: 2, nulls: Nulls::None }, ROWS, &mut random);
        let theirs = arrow_select::filter::filter(&values, &keep).unwrap();
        let keep: ArrayRef = Arc::new(keep);
        let keep = target.import(&keep);
        let selection = polled(target, || Selection::of_mask(&keep, &target.stream), &context).0.unwrap();
        let kept = polled(target, || selection.filter(&parts[0]), &context).0;
        if let Some(kept) = target.answer(kept, &context) {
            target.assert_same(&kept, &theirs, &context);
        }
    }
    // Too many values for the keys, unless equal ones are merged.
    let dictionary = |()| -> ArrayRef {
        let words = StringArray::from_iter_values((0..200).map(|word| (word % 7).to_string()));
        let keys = UInt8Array::from_iter_values(0..200);
        Arc::new(DictionaryArray::<UInt8Type>::new(keys, Arc::new(words)))
    };
    let parts = [(), ()].map(|part| target.import(&dictionary(part)));
    let merged = polled(target, || concat(&[&parts[0], &parts[1]], &target.stream), &"dictionaries").0;
    assert_eq!(merged.unwrap().len(), 400);
    let column: ArrayRef = Arc::new(Int64Array::from_iter_values(0..ROWS as i64));
    let rows = RecordBatch::try_from_iter([("n", column)]).unwrap();
    let rows = target.stream.upload(&batch_from_arrow(&rows).unwrap()).unwrap();
    let sums: Vec<Aggregation> = (0..80).map(|i| sum(col("n")).alias(i.to_string())).collect();
    let sums = polled(target, || aggregate(&rows, &sums, None, &target.stream), &"aggregates").0.unwrap();
    let last = target.export(&sums.columns()[79]);
    assert_eq!(last.as_primitive::<Int64Type>().value(0), (0..ROWS as i64).sum::<i64>());
}
