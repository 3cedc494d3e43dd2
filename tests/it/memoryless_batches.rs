//! Tests batches of more rows than bytes: without columns, or with nulls of type Null. The result of many
//! identical rows is known at once, on every device; a count beyond any number is an error.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, NullArray, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use bowstring::array::{Batches, Place};
use bowstring::compute::{CastOptions, Coalescer, Query, aggregate, cast, concat, evaluate, filter_where};
use bowstring::exchange::from_arrow;
use bowstring::expr::{Aggregation, Expr, Literal, Options, col, count_all, lit, max, mean, min, sum};
use bowstring::{DeviceArray, DeviceBatch, Error, Result, Stream};

use crate::support::devices;

const MANY: usize = 1 << 50;

fn no_columns(rows: usize) -> DeviceBatch {
    DeviceBatch::try_new(Arc::new(Schema::empty()), vec![], rows).unwrap()
}

fn nulls(rows: usize) -> DeviceArray {
    from_arrow(&NullArray::new(rows)).unwrap()
}

fn of_nulls(rows: usize) -> DeviceBatch {
    let schema = Schema::new(vec![Field::new("n", DataType::Null, true)]);
    DeviceBatch::try_new(Arc::new(schema), vec![nulls(rows)], rows).unwrap()
}

fn decimal(value: i128) -> Expr {
    lit(Literal::of(DataType::Decimal128(38, 2), value))
}

fn all() -> Vec<Aggregation> {
    let null = lit(Literal::null(DataType::Int32));
    vec![
        count_all(),
        sum(lit(3)),
        sum(lit(-5i64)),
        sum(decimal(-123)),
        mean(decimal(250)),
        min(lit(-2i64)),
        max(decimal(7)),
        sum(null.clone()),
        max(null),
    ]
}

fn row(batch: &Result<DeviceBatch>) -> RecordBatch {
    RecordBatch::try_from(batch.as_ref().unwrap()).unwrap()
}

#[test]
fn rows_that_are_alike_are_aggregated_at_once() {
    for target in &devices() {
        // The same for as many rows as can be checked one by one, beside a column.
        let column: ArrayRef = Arc::new(Int64Array::from(vec![1; 3000]));
        let seen = DeviceBatch::try_from(&RecordBatch::try_from_iter([("a", column)]).unwrap()).unwrap();
        let seen = target.stream.upload(&seen).unwrap();
        let beside: Vec<Aggregation> = all().into_iter().chain([sum(col("a"))]).collect();
        let expected = row(&aggregate(&seen, &beside, None, &target.stream).wait());
        let few = row(&aggregate(&no_columns(3000), &all(), None, &target.stream).wait());
        assert_eq!(few.columns(), &expected.columns()[..all().len()], "{target:?}");

        for batch in [no_columns(MANY), target.stream.upload(&of_nulls(MANY)).unwrap()] {
            let many = row(&aggregate(&batch, &all()[..3], None, &target.stream).wait());
            let values: Vec<ArrayRef> = [MANY as i64, 3 * MANY as i64, -5 * MANY as i64]
                .map(|value| Arc::new(Int64Array::from(vec![value])) as ArrayRef)
                .to_vec();
            assert_eq!(many.columns(), values, "{target:?}");
            let none = aggregate(&batch, &[count_all()], Some(&lit(false)), &target.stream).wait();
            assert_eq!(row(&none).column(0).as_ref(), &Int64Array::from(vec![0]), "{target:?}");
            let floats = aggregate(&batch, &[sum(lit(0.1))], None, &target.stream).wait();
            assert!(matches!(floats, Err(Error::Invalid { .. })), "{floats:?}");
            let failing = aggregate(&batch, &[sum(lit(1i64) / 0i64)], None, &target.stream).wait();
            assert!(matches!(failing, Err(Error::Evaluation { row: 0, .. })), "{failing:?}");
            let computed = evaluate(&batch, &[lit(1i64).alias("one")], &target.stream).wait();
            assert!(matches!(computed, Err(Error::OutOfMemory { .. })), "{computed:?}");
            let kept = filter_where(&batch, &lit(true), &target.stream).wait();
            assert!(matches!(kept, Err(Error::OutOfMemory { .. })), "{kept:?}");
        }
    }
}

#[test]
fn rows_of_a_stream_are_counted_as_far_as_they_can_be() {
    for target in &devices() {
        let batches = |rows: usize, count: usize| {
            let batch = no_columns(rows);
            let schema = batch.schema().clone();
            Batches::new(schema, Place::CPU, std::iter::repeat_n(batch, count).map(Ok))
        };
        let bound =
            Query::new().aggregate(&[count_all()]).bind(&Schema::empty(), &Options::default()).unwrap();
        let counted = bound.run_batches(batches(MANY, 3), &target.stream).next().unwrap();
        assert_eq!(row(&counted).column(0).as_ref(), &Int64Array::from(vec![3 * MANY as i64]), "{target:?}");
        for count in [2, 4, 5] {
            let wraps = bound.run_batches(batches(1 << 62, count), &target.stream).next().unwrap();
            assert!(matches!(wraps, Err(Error::Invalid { .. })), "{count}: {wraps:?}");
        }
    }
}

#[test]
fn lengths_do_not_wrap() {
    let stream = Stream::cpu();
    let quarter = nulls(1 << 62);
    for count in [2, 4, 5] {
        let joined = concat(&vec![&quarter; count], &stream).wait();
        assert!(matches!(joined, Err(Error::Invalid { .. })), "{count}: {joined:?}");
    }
    let half = concat(&[&quarter, &nulls((1 << 62) - 1)], &stream).wait().unwrap();
    assert_eq!(half.len(), i64::MAX as usize);
    assert!(DeviceBatch::try_new(Arc::new(Schema::empty()), vec![], usize::MAX).is_err());
    // The result would need eight bytes for each row, 2^64 in total.
    let eight = cast(&nulls(1 << 61), &DataType::Int64, &CastOptions::default(), &stream).wait();
    assert!(matches!(eight, Err(Error::OutOfMemory { .. })), "{eight:?}");
}

#[test]
fn whole_batches_are_cut_when_they_are_asked_for() {
    for target in &devices() {
        for batch in [no_columns(MANY), target.stream.upload(&of_nulls(MANY)).unwrap()] {
            let mut coalescer = Coalescer::new(batch.schema().clone(), 1000, &target.stream).unwrap();
            coalescer.push_batch(&batch.slice(0, 300).unwrap()).unwrap();
            coalescer.push_batch(&batch).unwrap();
            assert_eq!(coalescer.buffered_rows(), (300 + MANY) % 1000);
            for _ in 0..3 {
                let next = coalescer.next_completed_batch().unwrap();
                assert_eq!(next.unwrap().len(), 1000, "{target:?}");
            }
        }
    }
}
