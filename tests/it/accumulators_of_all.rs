//! Aggregates of all rows as one group: without keys, also in streams, and with filters of their own.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::*;
use arrow_schema::DataType;
use bowstring::array::Batches;
use bowstring::compute::{Query, aggregate};
use bowstring::expr::{
    Aggregation, Expr, Options, bit_xor, bool_or, col, count, count_all, count_distinct, first, last_value,
    lit, max, mean, median, min, stddev, sum, variance,
};
use bowstring::{DeviceBatch, Error, Stream};

use crate::groups::batch_on;
use crate::support::*;

/// All aggregates of a number, a text and a Boolean, with a filter or without.
fn all_aggregates(filter: Option<Expr>) -> Vec<Aggregation> {
    let (n, t, b) = (|| col("n"), || col("t"), || col("b"));
    let all = [
        sum(n()),
        mean(n()),
        min(n()),
        max(t()),
        min(b()),
        count(t()),
        count_all(),
        bool_or(b()),
        bit_xor(n()),
        first(t()),
        last_value(t()),
        variance(n(), 0),
        stddev(n(), 1),
        count_distinct(t()),
        median(n()),
    ];
    all.into_iter()
        .map(|one| if let Some(filter) = &filter { one.filter(filter.clone()) } else { one })
        .collect()
}

#[test]
fn all_rows_are_one_group_without_keys() {
    let mut random = Random::new(65);
    for len in [0, 1, 300] {
        let n = array(&DataType::Int32, len, Nulls::Some, &mut random);
        let t = array(&DataType::Utf8, len, Nulls::Some, &mut random);
        let b = array(&DataType::Boolean, len, Nulls::Some, &mut random);
        let columns = [("n", n), ("t", t), ("b", b)];
        for filter in [None, Some(col("n").gt(0)), Some(col("n").is_null() & col("n").is_not_null())] {
            // One key that is the same everywhere gives the same row, if there are any rows.
            let here = batch_on(&devices()[0], &columns);
            let keyed = Query::new().group_by([col("n").is_null() | col("n").is_not_null()]);
            let keyed = keyed.aggregate(all_aggregates(filter.clone()));
            let keyed = keyed.bind(here.schema(), &Options::default()).unwrap();
            let keyed = keyed.run(&here, &Stream::cpu()).wait().unwrap();
            for target in &devices() {
                let context = format!("{len} rows, {filter:?} on {target:?}");
                let batch = batch_on(target, &columns);
                let ours = aggregate(&batch, &all_aggregates(filter.clone()), None, &target.stream);
                let ours = ours.wait().unwrap();
                assert_eq!(ours.len(), 1, "{context}");
                for (i, field) in ours.schema().fields().iter().enumerate() {
                    let made = target.export(&ours.columns()[i]);
                    let context = format!("{context}: {}", field.name());
                    match len {
                        0 if field.name().starts_with("count") => {
                            assert_eq!(made.as_primitive::<Int64Type>().value(0), 0, "{context}");
                        }
                        0 => assert!(made.is_null(0), "{context}"),
                        _ => {
                            let expected = target_free(&keyed, 1 + i);
                            assert_same_rows(&rows(&made), &rows(&expected), &context);
                        }
                    }
                }
            }
        }
    }
}

/// A stream without batches is all rows of nothing, and one of several batches is like their rows at once.
#[test]
fn streams_are_one_group_without_keys() {
    let mut random = Random::new(66);
    let n = array(&DataType::Int16, 90, Nulls::Some, &mut random);
    let t = array(&DataType::Utf8, 90, Nulls::Some, &mut random);
    for target in &devices() {
        let batch = batch_on(target, &[("n", n.clone()), ("t", t.clone())]);
        let all = [max(col("t")), count_distinct(col("n")), median(col("n")), count_all()];
        let query = Query::new().filter(col("n").gt(0)).aggregate(all);
        let query = query.bind(batch.schema(), &Options::default()).unwrap();
        let place = target.stream.device().place();
        let run = |parts: Vec<DeviceBatch>| {
            let parts = Batches::new(batch.schema().clone(), place, parts.into_iter().map(Ok));
            let mut made = query.run_batches(parts, &target.stream);
            let row = made.next().unwrap().unwrap();
            assert!(made.next().is_none());
            row
        };
        let whole = query.run(&batch, &target.stream).wait().unwrap();
        let cut =
            run(vec![batch.slice(0, 30).unwrap(), batch.slice(30, 0).unwrap(), batch.slice(30, 60).unwrap()]);
        let none = run(vec![]);
        for (i, whole) in whole.columns().iter().enumerate() {
            target.assert_same(&cut.columns()[i], &target.export(whole), &format_args!("{i} on {target:?}"));
            let none = target.export(&none.columns()[i]);
            match none.as_primitive_opt::<Int64Type>() {
                Some(count) => assert_eq!(count.value(0), 0, "{i} on {target:?}"),
                None => assert!(none.is_null(0), "{i} on {target:?}"),
            }
        }
    }
}

/// Values of rows that an aggregate's own filter excludes are computed, as in DataFusion.
#[test]
fn excluded_rows_may_fail() {
    let n: ArrayRef = Arc::new(Int32Array::from(vec![2, 0, 5]));
    for target in &devices() {
        let batch = batch_on(target, &[("n", n.clone())]);
        let failing = sum(lit(10) / col("n")).filter(col("n").neq(0));
        let failed = aggregate(&batch, &[failing], None, &target.stream).wait();
        assert!(matches!(failed, Err(Error::Evaluation { row: 1, .. })), "{failed:?} on {target:?}");
    }
}

/// A column of a batch in host memory.
fn target_free(batch: &DeviceBatch, column: usize) -> ArrayRef {
    RecordBatch::try_from(batch).unwrap().column(column).clone()
}
