//! Tests the operations over streams of batches: each batch is treated by itself, lazily, and streams end in
//! order after errors.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow_array::{Array as _, ArrayRef, BooleanArray, Int32Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use bowstring::array::Batches;
use bowstring::compute::batches::{cast_batches, column, filter_batches, in_step, take_batches};
use bowstring::compute::{CastOptions, OutOfBounds, Query, TakeOptions};
use bowstring::exchange::{batch_from_arrow, batch_to_arrow, export_batches, from_arrow};
use bowstring::expr::{Options, col};
use bowstring::{DeviceArray, DeviceBatch, Error, Result, Stream};

use crate::exchange::foreign_stream::read_batches;
use crate::support::devices;

/// Rows as numbers and as text, a third of which are kept.
fn rows(range: std::ops::Range<i32>) -> RecordBatch {
    let keep: BooleanArray = range.clone().map(|i| Some(i % 3 == 1)).collect();
    let text: StringArray = range.clone().map(|i| (i % 5 != 0).then(|| i.to_string())).collect();
    let columns: [ArrayRef; 3] =
        [Arc::new(Int32Array::from_iter_values(range)), Arc::new(text), Arc::new(keep)];
    RecordBatch::try_from_iter_with_nullable(
        ["number", "text", "keep"].into_iter().zip(columns).map(|(name, column)| (name, column, true)),
    )
    .unwrap()
}

/// Batches of many lengths, empty ones among them.
fn batches() -> Vec<RecordBatch> {
    [0..0, 0..70, 70..71, 71..71, 71..1200, 1200..1233].map(rows).into()
}

fn there(stream: &Stream, batches: &[RecordBatch]) -> Batches {
    over(stream, uploaded(stream, batches))
}

fn uploaded(
    stream: &Stream,
    batches: &[RecordBatch],
) -> impl Iterator<Item = Result<DeviceBatch>> + Send + use<> {
    let (stream, batches) = (stream.clone(), batches.to_vec());
    batches.into_iter().map(move |batch| stream.upload(&batch_from_arrow(&batch)?))
}

fn over(stream: &Stream, batches: impl Iterator<Item = Result<DeviceBatch>> + Send + 'static) -> Batches {
    Batches::new(rows(0..0).schema(), stream.device().place(), batches)
}

/// The masks in the batches' last column, on the stream's device.
fn masks(
    stream: &Stream,
    batches: &[RecordBatch],
) -> impl FnMut(&DeviceBatch) -> Result<DeviceArray> + Send + use<> {
    let (stream, batches) = (stream.clone(), batches.to_vec());
    in_step(batches.into_iter().map(move |batch| stream.upload(&from_arrow(batch.column(2))?)))
}

fn here(stream: &Stream, batch: Result<DeviceBatch>) -> RecordBatch {
    batch_to_arrow(&stream.download(&batch.unwrap()).unwrap()).unwrap()
}

#[test]
fn each_batch_is_filtered_as_by_itself() {
    for target in devices() {
        let (stream, batches) = (&target.stream, batches());
        let expected: Vec<_> = batches
            .iter()
            .map(|batch| {
                let mask = batch.column(2).as_any().downcast_ref::<BooleanArray>().unwrap().clone();
                arrow_select::filter::filter_record_batch(batch, &mask).unwrap()
            })
            .collect();
        let got: Vec<_> = filter_batches(there(stream, &batches), column(2), stream)
            .map(|batch| here(stream, batch))
            .collect();
        assert_eq!(got, expected, "{target:?}");

        let got: Vec<_> = filter_batches(there(stream, &batches), masks(stream, &batches), stream)
            .map(|batch| here(stream, batch))
            .collect();
        assert_eq!(got, expected, "{target:?}");
    }
}

#[test]
fn expressions_are_bound_once_for_all_batches() {
    for target in devices() {
        let (stream, batches) = (&target.stream, batches());
        let schema = rows(0..0).schema();
        let (few, twice) = (col("number").gt(70) & col("keep"), (col("number") * 2).alias("twice"));
        let few = Query::new().filter(&few).bind(&schema, &Options::default()).unwrap();
        let twice = Query::new().select(&[twice, col("text")]).bind(&schema, &Options::default()).unwrap();
        let to = twice.schema();
        let kept = few.run_batches(there(stream, &batches), stream);
        let made = twice.run_batches(kept, stream);
        assert_eq!(made.schema(), &to);
        let made: Vec<_> = made.map(|batch| here(stream, batch)).collect();
        assert_eq!(made.len(), batches.len());
        for (made, batch) in made.iter().zip(&batches) {
            let numbers = batch.column(0).as_any().downcast_ref::<Int32Array>().unwrap().values();
            let numbers = numbers.iter().filter(|n| **n > 70 && **n % 3 == 1);
            let text = numbers.clone().map(|n| (n % 5 != 0).then(|| n.to_string()));
            let expected: [ArrayRef; 2] = [
                Arc::new(Int32Array::from_iter_values(numbers.map(|n| n * 2))),
                Arc::new(text.collect::<StringArray>()),
            ];
            assert_eq!((made.schema(), made.columns()), (to.clone(), &expected[..]), "{target:?}");
        }
    }
}

#[test]
fn each_batch_is_taken_from_as_by_itself() {
    for target in devices() {
        let (stream, batches) = (&target.stream, batches());
        let indices = Int32Array::from(vec![Some(0), None, Some(69), Some(0)]);
        let options = TakeOptions { out_of_bounds: OutOfBounds::Null };
        let (on, at) = (stream.clone(), indices.clone());
        let all = std::iter::repeat_with(move || on.upload(&from_arrow(&at)?));
        let taken = take_batches(there(stream, &batches), in_step(all), &options, stream);
        for (got, batch) in taken.zip(&batches) {
            let known = |i: &i32| (*i as usize) < batch.num_rows();
            let known: Int32Array = indices.iter().map(|i| i.filter(known)).collect();
            let expected = arrow_select::take::take_record_batch(batch, &known).unwrap();
            assert_eq!(here(stream, got), expected, "{target:?}");
        }
    }
}

#[test]
fn each_batch_is_cast_as_by_itself() {
    let to = Arc::new(Schema::new(vec![
        Field::new("wide", DataType::Int64, true),
        Field::new("text", DataType::Utf8, true),
        Field::new("bytes", DataType::UInt8, true),
    ]));
    for target in devices() {
        let (stream, batches) = (&target.stream, batches());
        let options = CastOptions::default();
        let casted = cast_batches(there(stream, &batches), to.clone(), &options, stream);
        for (got, batch) in casted.zip(&batches) {
            let got = here(stream, got);
            assert_eq!(got.schema(), to);
            for (i, column) in got.columns().iter().enumerate() {
                let expected = arrow_cast::cast(batch.column(i), to.field(i).data_type()).unwrap();
                assert_eq!(column, &expected, "{target:?}");
            }
        }
        let two = Arc::new(to.project(&[0, 1]).unwrap());
        let mut casted = cast_batches(there(stream, &batches), two, &options, stream);
        assert!(matches!(casted.next(), Some(Err(Error::Invalid { operation: "cast", .. }))));
        assert!(casted.next().is_none());
    }
}

#[test]
fn nothing_is_read_before_it_is_asked_for() {
    for target in devices() {
        let stream = target.stream.clone();
        let asked = Arc::new(AtomicUsize::new(0));
        let (count, on) = (asked.clone(), stream.clone());
        let endless = std::iter::repeat_with(move || {
            count.fetch_add(1, Ordering::SeqCst);
            on.upload(&batch_from_arrow(&rows(0..100))?)
        });
        // Export through the C interface and import again, as another library would.
        let filtered = filter_batches(over(&stream, endless), column(2), &stream);
        let mut exported = export_batches(filtered);
        let mut reader = read_batches(&mut exported, stream.device()).unwrap();
        assert_eq!(asked.load(Ordering::SeqCst), 0);
        let ahead = if stream.native_handle().is_some() { 2 } else { 0 };
        for n in 1..4 {
            assert_eq!(here(&stream, reader.next().unwrap()).num_rows(), 33);
            assert_eq!(asked.load(Ordering::SeqCst), n + ahead, "{target:?}");
        }
    }
}

#[test]
fn the_first_error_comes_in_its_turn_and_is_the_last_item() {
    for target in devices() {
        let (stream, batches) = (&target.stream, batches());
        let failure = || Error::Invalid { operation: "source", problem: "no more".into() };
        let broken =
            uploaded(stream, &batches).take(3).chain([Err(failure())]).chain(uploaded(stream, &batches));
        let mut filtered = filter_batches(over(stream, broken), column(2), stream);
        for _ in 0..3 {
            here(stream, filtered.next().unwrap());
        }
        assert_eq!(filtered.next().unwrap().err(), Some(failure()), "{target:?}");
        assert!(filtered.next().is_none());

        let mut filtered = filter_batches(there(stream, &batches), masks(stream, &batches[..2]), stream);
        for _ in 0..2 {
            here(stream, filtered.next().unwrap());
        }
        assert!(matches!(filtered.next(), Some(Err(Error::Invalid { operation: "stream", .. }))));
        assert!(filtered.next().is_none());

        let mut filtered = filter_batches(there(stream, &batches), column(7), stream);
        assert!(matches!(filtered.next(), Some(Err(Error::Invalid { operation: "column", .. }))));
    }
}
