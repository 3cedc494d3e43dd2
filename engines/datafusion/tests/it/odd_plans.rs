//! Plans that once were translated wrongly, or for too long.

use std::sync::Arc;

use datafusion::arrow::array::Int16Array;
use datafusion::arrow::array::{
    ArrayRef, Decimal128Array, DictionaryArray, Int64Array, RecordBatch, RunArray, StringArray, UInt8Array,
};
use datafusion::arrow::datatypes::{Int16Type, UInt8Type};

use crate::support::*;

/// Each projection uses the one below it twice, so that the whole has 2^40 parts.
#[tokio::test]
async fn projections_that_double_are_datafusions() {
    let (context, plain) = (on("cpu").await, on("off").await);
    register(&[&context, &plain], "t", batches(1, true));
    let mut with = "WITH t0 AS (SELECT i64 AS a FROM t)".to_owned();
    for i in 1..=40 {
        with += &format!(", t{i} AS (SELECT a + a AS a FROM t{})", i - 1);
    }
    for select in
        ["SELECT sum(a) FROM t40", "SELECT a FROM t40", "SELECT a % 7, count(*) FROM t40 GROUP BY 1"]
    {
        same(&context, &plain, &format!("{with} {select}")).await;
    }
}

/// Rows behind a limit are not computed, so they do not fail.
#[tokio::test]
async fn rows_behind_a_limit_do_not_fail() {
    for device in ["cpu", "emulator"] {
        let (context, plain) = (on(device).await, on("off").await);
        let values = |numbers: Vec<i64>| -> ArrayRef { Arc::new(Int64Array::from(numbers)) };
        let batch = || vec![RecordBatch::try_from_iter([("x", values(vec![1, 0]))]).unwrap()];
        register(&[&context, &plain], "t", batch());
        same(&context, &plain, "SELECT 10 / x FROM t WHERE x > -5 LIMIT 1").await;
        // A device tests the rows of many batches together, and joins them.
        let batches: Vec<_> = [vec![1], vec![0]].map(values).into();
        let batches = batches.into_iter().map(|x| RecordBatch::try_from_iter([("x", x)]).unwrap());
        let batches: Vec<_> = batches.collect();
        register(&[&context, &plain], "t", [batches.clone(), batches].concat());
        for context in [&context, &plain] {
            answer(context, "SET datafusion.execution.target_partitions = 1").await.unwrap();
        }
        let tested = "SELECT x FROM (SELECT x FROM t WHERE 10 / x > 5 LIMIT 1)";
        assert_eq!(rows(&context, tested).await, Ok(vec!["1".to_owned()]), "{device}");
        same(&context, &plain, "SELECT l.x FROM t AS l JOIN t AS r ON l.x = r.x AND 10 / r.x > 0 LIMIT 1")
            .await;
    }
}

/// DataFusion rounds long decimals twice on their way to a float.
#[tokio::test]
async fn long_decimals_become_datafusions_floats() {
    let digits = |row: i128| row.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c) % 10i128.pow(19);
    let decimals = Decimal128Array::from_iter((0..3000).map(|row| (row % 17 != 0).then(|| digits(row))));
    let decimals: ArrayRef = Arc::new(decimals.with_precision_and_scale(19, 6).unwrap());
    let batch = RecordBatch::try_from_iter([("d", decimals)]).unwrap();
    for device in ["cpu", "emulator"] {
        let (context, plain) = (on(device).await, on("off").await);
        register(&[&context, &plain], "t", vec![batch.clone()]);
        let sql = "SELECT d, CAST(d AS DOUBLE) AS f, 0.2 * CAST(d AS DOUBLE) AS x FROM t WHERE d > 5";
        assert!(same(&context, &plain, sql).await);
    }
}

/// DataFusion compares nothing with a null, so nothing fails there.
#[tokio::test]
async fn a_case_of_null_compares_nothing() {
    for device in ["cpu", "emulator"] {
        let (context, plain) = (on(device).await, on("off").await);
        let x: ArrayRef = Arc::new(Int64Array::from(vec![None, Some(5)]));
        let y: ArrayRef = Arc::new(Int64Array::from(vec![0, 2]));
        let batch = RecordBatch::try_from_iter([("x", x), ("y", y)]).unwrap();
        register(&[&context, &plain], "t", vec![batch]);
        let sql = "SELECT CASE x WHEN 10 / y THEN 1 ELSE 0 END AS a, x + y AS b FROM t";
        same(&context, &plain, sql).await;
        assert!(rows(&context, sql).await.is_ok(), "{device}");
    }
}

/// DataFusion's arrow-rs cuts integers to the bits of a decimal; so do we.
#[tokio::test]
async fn integers_beyond_short_decimals_are_datafusions() {
    let (context, plain) = (on("cpu").await, on("off").await);
    let values: ArrayRef = Arc::new(Int64Array::from(vec![4_294_967_301, 7]));
    let batch = || vec![RecordBatch::try_from_iter([("x", values.clone())]).unwrap()];
    register(&[&context, &plain], "t", batch());
    for expr in ["arrow_cast(x, 'Decimal32(9, 0)')", "arrow_try_cast(x, 'Decimal32(9, 0)')"] {
        same(&context, &plain, &format!("SELECT min({expr}), max({expr}) FROM t")).await;
    }
}

/// Keys of eight bits number the values of a batch, but not those of several, and ends of sixteen bits not
/// their rows.
#[tokio::test]
async fn uploads_are_of_as_many_batches_as_short_keys_allow() {
    let (context, plain) = (on("emulator").await, on("off").await);
    answer(&context, "SET bowstring.upload_rows = 1000000").await.unwrap();
    let part = |part: usize| {
        let texts = StringArray::from_iter_values((0..200).map(|i| format!("text {}", part * 200 + i)));
        let keys = UInt8Array::from_iter_values((0..8_000usize).map(|i| (i % 200) as u8));
        let codes: ArrayRef = Arc::new(DictionaryArray::<UInt8Type>::try_new(keys, Arc::new(texts)).unwrap());
        let ends = Int16Array::from_iter_values((1..=80).map(|i| i * 100));
        let values = StringArray::from_iter_values((0..80).map(|i| format!("run {}", part + i)));
        let runs: ArrayRef = Arc::new(RunArray::<Int16Type>::try_new(&ends, &values).unwrap());
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values((0..8_000).map(|i| i - 1_000)));
        RecordBatch::try_from_iter([("d", codes), ("r", runs), ("x", numbers)]).unwrap()
    };
    register(&[&context, &plain], "t", (0..6).map(part).collect());
    for sql in [
        "SELECT count(d), sum(x) FROM t",
        "SELECT d, x FROM t WHERE x > 6990",
        "SELECT r, x FROM t WHERE x > 6990",
    ] {
        same(&context, &plain, sql).await;
    }
}
