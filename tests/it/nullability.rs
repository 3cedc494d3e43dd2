//! Tests the nullability of schemas: a field that is not nullable has no nulls, whichever operation made the
//! column, and checking this never waits for a device.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::{Array as _, ArrayRef, Int32Array, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use bowstring::array::Batches;
use bowstring::compute::batches::{cast_batches, in_step, take_batches};
use bowstring::compute::{CastOptions, OutOfBounds, TakeOptions, cast, filter, nullable, take};
use bowstring::exchange::{batch_from_arrow, batch_to_arrow, export_batches, from_arrow};
use bowstring::{DeviceArray, DeviceBatch, Error, Result, Stream};

use crate::exchange::foreign_stream::read_batches;
use crate::support::devices;

const NULL: TakeOptions = TakeOptions { out_of_bounds: OutOfBounds::Null };

fn schema(number: DataType, nullable: bool) -> SchemaRef {
    let fields = vec![Field::new("number", number, nullable), Field::new("text", DataType::Utf8, true)];
    let said = HashMap::from([("who".to_owned(), "test".to_owned())]);
    Arc::new(Schema::new_with_metadata(fields, said))
}

/// Numbers that are never null, and text.
fn rows() -> RecordBatch {
    let text: StringArray = [Some("a"), None, Some("c")].into_iter().collect();
    let columns: Vec<ArrayRef> = vec![Arc::new(Int64Array::from(vec![1, 300, 3])), Arc::new(text)];
    RecordBatch::try_new(schema(DataType::Int64, false), columns).unwrap()
}

/// The same rows with a null, and a field that allows it.
fn rows_with_a_null() -> RecordBatch {
    let number: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None, Some(3)]));
    let columns = vec![number, rows().column(1).clone()];
    RecordBatch::try_new(schema(DataType::Int64, true), columns).unwrap()
}

fn there(stream: &Stream, batch: &RecordBatch) -> DeviceBatch {
    stream.upload(&batch_from_arrow(batch).unwrap()).unwrap()
}

/// The batch as arrow-rs', which checks every field.
fn here(stream: &Stream, batch: &DeviceBatch) -> Result<RecordBatch> {
    batch_to_arrow(&stream.download(batch)?)
}

fn indices(stream: &Stream, indices: Vec<Option<i32>>) -> DeviceArray {
    stream.upload(&from_arrow(&Int32Array::from(indices)).unwrap()).unwrap()
}

/// Checks that the error reports nulls in the field of this name.
fn refused(result: Result<()>, name: &str) {
    match result {
        Err(Error::Invalid { operation: "cast", problem }) => {
            assert_eq!(problem, format!("1 nulls in {name:?}, which is not nullable"));
        }
        other => panic!("{other:?}"),
    }
}

/// The outcome of a cast, whether it fails at once or when it is awaited.
fn outcome(casted: Result<DeviceBatch>) -> Result<()> {
    casted?.columns().iter().try_for_each(DeviceArray::wait)
}

#[test]
fn rows_that_are_taken_may_be_null() {
    for target in devices() {
        let stream = &target.stream;
        let batch = there(stream, &rows());
        let take =
            |at: &DeviceArray, options: &TakeOptions| take(&batch, at, options, stream).wait().unwrap();
        // Indices that are known to be valid leave the schema alone, with or without a bitmap.
        let all = indices(stream, vec![Some(2), Some(0)]);
        assert_eq!(take(&all, &TakeOptions::default()).schema(), batch.schema(), "{target:?}");
        for (at, options) in [(indices(stream, vec![Some(2), None]), TakeOptions::default()), (all, NULL)] {
            let taken = take(&at, &options);
            assert_eq!(*taken.schema(), schema(DataType::Int64, true), "{target:?}");
            let arrow = here(stream, &taken).unwrap();
            assert_eq!(arrow.column(0).null_count(), at.known_null_count().unwrap(), "{target:?}");
        }
        // An unknown null count is not waited for.
        let safe = CastOptions::default();
        let uncounted =
            cast(&indices(stream, vec![Some(2), None]), &DataType::Int8, &safe, stream).wait().unwrap();
        let taken = take(&uncounted, &TakeOptions::default());
        assert!(taken.schema().field(0).is_nullable(), "{target:?}");
        assert_eq!(here(stream, &taken).unwrap().column(0).null_count(), 1, "{target:?}");
    }
}

#[test]
fn a_cast_makes_no_nulls_where_there_may_be_none() {
    let never = schema(DataType::Int8, false);
    for target in devices() {
        let (stream, safe) = (&target.stream, CastOptions::default());
        let batch = there(stream, &rows());
        let before = stream.device().host_synchronisations();
        let casted = cast(&batch, &never, &safe, stream).wait();
        assert_eq!(stream.device().host_synchronisations(), before, "{target:?}");
        refused(outcome(casted), "number");
        // A later operation on the result reports the error too.
        if let Ok(casted) = cast(&batch, &never, &safe, stream).wait() {
            let mask = arrow_array::BooleanArray::from(vec![true, false, true]);
            let mask = stream.upload(&from_arrow(&mask).unwrap()).unwrap();
            refused(filter(&casted, &mask, stream).wait().map(drop), "number");
        }
        // Nulls that exist before the cast: casts that keep the bits, and casts that change them.
        let nulls = there(stream, &rows_with_a_null());
        for to in [DataType::Int64, DataType::Int8, DataType::Timestamp(arrow_schema::TimeUnit::Second, None)]
        {
            for safe in [true, false] {
                let options = CastOptions { safe, ..CastOptions::default() };
                refused(outcome(cast(&nulls, &schema(to.clone(), false), &options, stream).wait()), "number");
            }
        }
        // A cast whose values all fit succeeds.
        let first =
            take(&batch, &indices(stream, vec![Some(2), Some(0)]), &TakeOptions::default(), stream).wait();
        let casted = cast(&first.unwrap(), &never, &safe, stream).wait().unwrap();
        assert_eq!(*casted.schema(), never);
        let got = here(stream, &casted).unwrap();
        let expected = arrow_array::Int8Array::from(vec![3, 1]);
        assert_eq!(got.column(0).as_ref(), &expected, "{target:?}");
        let none = take(&batch, &indices(stream, vec![]), &TakeOptions::default(), stream).wait().unwrap();
        assert_eq!(here(stream, &cast(&none, &never, &safe, stream).wait().unwrap()).unwrap().num_rows(), 0);
        let allowed = cast(&batch, &schema(DataType::Int8, true), &safe, stream).wait().unwrap();
        assert_eq!(here(stream, &allowed).unwrap().column(0).null_count(), 1, "{target:?}");
    }
}

#[test]
fn streams_keep_to_the_schema_that_they_announce() {
    for target in devices() {
        let (stream, device) = (&target.stream, target.stream.device());
        let [full, gaps] = [vec![Some(0), Some(2)], vec![None, Some(1)]].map(|at| indices(stream, at));
        let batches = vec![Ok(there(stream, &rows())); 2];
        let at = [full, gaps].into_iter().map(Ok);
        let over = |batches: Vec<Result<DeviceBatch>>| {
            Batches::new(rows().schema(), device.place(), batches.into_iter())
        };
        let schema_of_taken = nullable(&rows().schema());
        assert_eq!(schema_of_taken, schema(DataType::Int64, true));
        assert!(Arc::ptr_eq(&nullable(&schema_of_taken), &schema_of_taken));
        let taken = take_batches(over(batches), in_step(at), &TakeOptions::default(), stream);
        let mut exported = export_batches(taken);
        let got = read_batches(&mut exported, device).unwrap();
        let nulls = got.map(|batch| here(stream, &batch.unwrap()).unwrap().column(0).null_count());
        assert_eq!(nulls.collect::<Vec<_>>(), [0, 1], "{target:?}");

        let batches = vec![Ok(there(stream, &rows())), Ok(there(stream, &rows_with_a_null()))];
        let never = schema(DataType::Int64, false);
        let mut casted = cast_batches(over(batches), never.clone(), &CastOptions::default(), stream);
        assert_eq!(*casted.next().unwrap().unwrap().schema(), never);
        refused(outcome(casted.next().unwrap()), "number");
    }
}
