//! Tests the Coalescer: its output equals the concatenation of the filtered batches, cut into batches of the
//! requested size.

use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{
    Array as _, ArrayRef, BooleanArray, DictionaryArray, Int32Array, RecordBatch, StringArray, UInt32Array,
};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use bowstring::compute::{Coalescer, TakeOptions};
use bowstring::{DeviceArray, DeviceBatch, Error, Stream};

use crate::support::*;

/// The input: slices of longer arrays, with and without nulls, empty and long.
fn pushed(data_type: &DataType, seed: u64) -> Vec<(Sample, BooleanArray)> {
    let lengths = [70, 0, 1, 64, 333, 129, 65, 200];
    let sample = |(i, len): (usize, usize)| {
        let nulls = Nulls::ALL[(i + seed as usize) % Nulls::ALL.len()];
        let offset = OFFSETS[(i + seed as usize) % OFFSETS.len()];
        let sample = Sample { data_type: data_type.clone(), len, nulls, offset, seed: seed + i as u64 };
        let kept = mask(MASKS[(i * 3 + seed as usize) % MASKS.len()], len, &mut Random::new(!sample.seed));
        (sample, kept)
    };
    lengths.into_iter().enumerate().map(sample).collect()
}

fn schema_of(data_type: &DataType) -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new("values", data_type.clone(), true)]))
}

fn batch(schema: &SchemaRef, array: DeviceArray) -> DeviceBatch {
    let rows = array.len();
    DeviceBatch::try_new(schema.clone(), vec![array], rows).unwrap()
}

/// Drains all output and checks the sizes: each equals the target, except for the last.
fn drained(mut coalescer: Coalescer, target: usize) -> Result<Vec<DeviceArray>, Error> {
    coalescer.finish_buffered_batch()?;
    let batches: Vec<DeviceBatch> =
        std::iter::from_fn(|| coalescer.next_completed_batch().transpose()).collect::<Result<_, _>>()?;
    assert_eq!(coalescer.buffered_rows(), 0);
    if let Some((last, others)) = batches.split_last() {
        assert!(others.iter().all(|batch| batch.len() == target));
        assert!((1..=target).contains(&last.len()));
    }
    Ok(batches.iter().map(|batch| batch.columns()[0].clone()).collect())
}

fn joined(parts: &[ArrayRef]) -> ArrayRef {
    let parts: Vec<_> = parts.iter().map(|part| &**part).collect();
    arrow_select::concat::concat(&parts).expect("arrow-rs joins every type")
}

#[test]
fn filtered_batches_come_out_joined_and_cut() {
    for target in &devices() {
        for (j, data_type) in types().into_iter().enumerate() {
            let (rows, form) = ([1000, 64, 100, 7, 1][j % 5], Form::ALL[j % Form::ALL.len()]);
            let context = format!("{data_type} in batches of {rows}");
            let all = pushed(&data_type, j as u64);
            let filtered = |(sample, kept): &(Sample, BooleanArray)| {
                arrow_select::filter::filter(&sample.array(), kept).expect("arrow-rs filters every type")
            };
            let expected = joined(&all.iter().map(filtered).collect::<Vec<_>>());
            let schema = schema_of(&data_type);
            let ours = || {
                let mut coalescer = Coalescer::new(schema.clone(), rows, &target.stream)?;
                for (sample, kept) in &all {
                    let values = target.import_as(form, &sample.longer(), sample.offset, sample.len);
                    let kept: ArrayRef = Arc::new(kept.clone());
                    coalescer.push_batch_with_filter(
                        &batch(&schema, values),
                        &target.import_as(form, &kept, 0, kept.len()),
                    )?;
                }
                drained(coalescer, rows)
            };
            let Some(ours) = target.answer(ours(), &context) else { continue };
            let mut first = 0;
            for ours in &ours {
                target.assert_same(ours, &expected.slice(first, ours.len()), &context);
                first += ours.len();
            }
            assert_eq!(first, expected.len(), "{context}");
        }
    }
}

#[test]
fn whole_and_taken_batches_come_out_joined_and_cut() {
    for target in &devices() {
        for data_type in [DataType::Int32, DataType::Boolean, DataType::Utf8, DataType::Utf8View] {
            let schema = schema_of(&data_type);
            let mut coalescer = Coalescer::new(schema.clone(), 150, &target.stream).unwrap();
            let mut expected = vec![];
            for (i, (sample, _)) in pushed(&data_type, 3).into_iter().enumerate() {
                let values = batch(
                    &schema,
                    target.import_as(Form::ALL[0], &sample.longer(), sample.offset, sample.len),
                );
                let theirs = sample.array();
                if i % 2 == 0 || theirs.is_empty() {
                    coalescer.push_batch(&values).unwrap();
                    expected.push(theirs);
                } else {
                    let count = theirs.len() as u32;
                    let at: UInt32Array =
                        (0..2 * count).map(|i| (i % 5 > 0).then_some(i * 7 % count)).collect();
                    let indices: ArrayRef = Arc::new(at.clone());
                    let indices = target.import(&indices);
                    coalescer.push_batch_with_take(&values, &indices, &TakeOptions::default()).unwrap();
                    expected.push(arrow_select::take::take(&theirs, &at, None).unwrap());
                }
            }
            let expected = joined(&expected);
            let mut first = 0;
            for ours in drained(coalescer, 150).unwrap() {
                target.assert_same(&ours, &expected.slice(first, ours.len()), &data_type);
                first += ours.len();
            }
            assert_eq!(first, expected.len());
        }
    }
}

/// Large enough for threads, and for many chunks of a mask.
#[test]
fn large_batches_are_cut_where_they_should_be() {
    let rows = 300_000;
    let numbers: ArrayRef = Arc::new(Int32Array::from_iter((0..rows).map(|i| (i % 7 > 0).then_some(i))));
    let text: ArrayRef =
        Arc::new(StringArray::from_iter((0..rows).map(|i| (i % 5 > 0).then(|| i.to_string()))));
    let theirs = RecordBatch::try_from_iter([("n", numbers), ("s", text)]).unwrap();
    let kept: BooleanArray = (0..rows).map(|i| Some(i % 3 != 1)).collect();
    let values = DeviceBatch::try_from(&theirs).unwrap();
    let mask: ArrayRef = Arc::new(kept.clone());
    let mut coalescer = Coalescer::new(theirs.schema(), 123_456, &Stream::cpu()).unwrap();
    coalescer.push_batch_with_filter(&values, &DeviceArray::try_from(&mask).unwrap()).unwrap();
    coalescer.finish_buffered_batch().unwrap();
    let expected = arrow_select::filter::filter_record_batch(&theirs, &kept).unwrap();
    let (mut first, mut sizes) = (0, vec![]);
    while let Some(batch) = coalescer.next_completed_batch().unwrap() {
        let ours = RecordBatch::try_from(&batch).unwrap();
        assert_eq!(ours, expected.slice(first, ours.num_rows()));
        first += ours.num_rows();
        sizes.push(ours.num_rows());
    }
    assert_eq!(sizes, [123_456, 200_000 - 123_456]);
}

#[test]
fn what_cannot_be_pushed_is_said_and_changes_nothing() {
    let stream = Stream::cpu();
    let schema = schema_of(&DataType::Utf8);
    assert!(matches!(Coalescer::new(schema.clone(), 0, &stream), Err(Error::Invalid { .. })));
    let mut coalescer = Coalescer::new(schema.clone(), 10, &stream).unwrap();
    let text: ArrayRef = Arc::new(StringArray::from(vec!["one", "two", "three"]));
    let (mask, short): (ArrayRef, ArrayRef) =
        (Arc::new(BooleanArray::from(vec![true; 3])), Arc::new(BooleanArray::from(vec![true; 2])));
    let [text, mask, short] = [text, mask, short].map(|array| DeviceArray::try_from(&array).unwrap());
    coalescer.push_batch_with_filter(&batch(&schema, text.clone()), &mask).unwrap();

    let number: ArrayRef = Arc::new(Int32Array::from(vec![1, 2, 3]));
    let number = DeviceArray::try_from(&number).unwrap();
    let numbers = batch(&schema_of(&DataType::Int32), number.clone());
    let invalid =
        |result: Result<(), Error>| assert!(matches!(result, Err(Error::Invalid { .. })), "{result:?}");
    invalid(coalescer.push_batch(&numbers));
    invalid(coalescer.push_batch_with_filter(&batch(&schema, text.clone()), &short));
    invalid(coalescer.push_batch_with_filter(&batch(&schema, text.clone()), &number));
    let none = DeviceBatch::try_new(Arc::new(Schema::empty()), vec![], 3).unwrap();
    invalid(coalescer.push_batch(&none));

    // The second batch has decreasing offsets.
    let mut parts = text.clone().into_parts();
    let back: ArrayRef = Arc::new(Int32Array::from(vec![0, 8, 3, 11]));
    parts.buffers[0] = DeviceArray::try_from(&back).unwrap().buffers()[0].clone();
    let bad = batch(&schema, DeviceArray::try_new(parts).unwrap());
    let refused = coalescer.push_batch_with_filter(&bad, &mask);
    assert!(matches!(refused, Err(Error::OutOfSpec { .. })), "{refused:?}");

    assert_eq!(coalescer.buffered_rows(), 3);
    coalescer.push_batch_with_filter(&batch(&schema, text), &mask).unwrap();
    coalescer.finish_buffered_batch().unwrap();
    let all = RecordBatch::try_from(&coalescer.next_completed_batch().unwrap().unwrap()).unwrap();
    let expected = StringArray::from(vec!["one", "two", "three", "one", "two", "three"]);
    assert_eq!(all.column(0).as_ref(), &expected as &dyn arrow_array::Array);
}

/// A push fails on one column after another column has taken its rows: none of those rows may remain.
#[test]
fn pieces_of_a_push_that_failed_are_not_joined() {
    let stream = Stream::cpu();
    let keys: ArrayRef = Arc::new(DictionaryArray::<Int32Type>::from_iter(["a", "b", "c"]));
    let text: ArrayRef = Arc::new(StringArray::from(vec!["one", "two", "three"]));
    let theirs = RecordBatch::try_from_iter([("keys", keys), ("text", text)]).unwrap();
    let good = DeviceBatch::try_from(&theirs).unwrap();
    let back: ArrayRef = Arc::new(Int32Array::from(vec![0, 8, 3, 11]));
    let mut parts = good.columns()[1].clone().into_parts();
    parts.buffers[0] = DeviceArray::try_from(&back).unwrap().buffers()[0].clone();
    let columns = vec![good.columns()[0].clone(), DeviceArray::try_new(parts).unwrap()];
    let bad = DeviceBatch::try_new(good.schema().clone(), columns, 3).unwrap();
    let masks: [ArrayRef; 2] = [vec![true, true, false], vec![false, true, true]]
        .map(|mask| Arc::new(BooleanArray::from(mask)) as _);
    let [first, last] = masks.map(|mask| DeviceArray::try_from(&mask).unwrap());

    for rows in [4, 2] {
        let mut coalescer = Coalescer::new(good.schema().clone(), 10, &stream).unwrap();
        coalescer.push_batch_with_filter(&good, &first).unwrap();
        let refused = coalescer.push_batch_with_filter(&bad, &first);
        assert!(matches!(refused, Err(Error::OutOfSpec { .. })), "{refused:?}");
        if rows == 4 {
            coalescer.push_batch_with_filter(&good, &last).unwrap();
        }
        coalescer.finish_buffered_batch().unwrap();
        let all = RecordBatch::try_from(&coalescer.next_completed_batch().unwrap().unwrap()).unwrap();
        let keys = arrow_cast::cast(all.column(0), &DataType::Utf8).unwrap();
        let expected = StringArray::from(["a", "b", "b", "c"][..rows].to_vec());
        assert_eq!(keys.as_ref(), &expected as &dyn arrow_array::Array);
        let expected = StringArray::from(["one", "two", "two", "three"][..rows].to_vec());
        assert_eq!(all.column(1).as_ref(), &expected as &dyn arrow_array::Array);
    }
}
