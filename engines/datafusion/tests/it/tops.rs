//! Sorts with a limit: a device returns only the first rows of each upload, and DataFusion's sort keeps the
//! first of these.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Int64Array, RecordBatch, StringViewArray};
use datafusion::physical_plan::ExecutionPlan;

use crate::support::*;

/// Whether one of our operators returns the first rows of an order.
fn ours_tops(plan: &Arc<dyn ExecutionPlan>) -> bool {
    ours_has(plan, "top=")
}

/// The first `keys` columns of rows, which the query sorts by.
fn keys(rows: &[String], keys: usize) -> Vec<Vec<String>> {
    rows.iter().map(|row| row.split('|').take(keys).map(str::to_owned).collect()).collect()
}

/// Queries, without their limit, and the number of their keys, which come first.
const QUERIES: &[(&str, usize)] = &[
    ("SELECT i32, d15, v FROM t WHERE i64 < 50 ORDER BY i32", 1),
    ("SELECT f64, i32, s FROM t WHERE b OR c ORDER BY f64 DESC", 1),
    ("SELECT v, d38, day FROM t WHERE i32 < 50 ORDER BY v NULLS FIRST, d38 DESC NULLS LAST", 2),
    ("SELECT b, at, f32, w FROM t ORDER BY b DESC, at, f32 NULLS FIRST", 3),
    ("SELECT i64 + 1 AS x, j64 * 2 AS y FROM t ORDER BY x DESC, y", 2),
    ("SELECT s, d9 FROM (SELECT * FROM t WHERE i8 > 3) WHERE i32 > 5 ORDER BY s DESC", 1),
];

#[tokio::test]
async fn the_first_rows_are_datafusions() {
    let (context, plain) = (on("emulator").await, on("off").await);
    for seed in 0..4 {
        register(&[&context, &plain], "t", batches(seed, seed % 2 == 0));
        for (sql, count) in QUERIES {
            let all: HashSet<String> = rows(&plain, sql).await.unwrap().into_iter().collect();
            for limit in [1, 7, 100, 100_000] {
                let sql = format!("{sql} LIMIT {limit}");
                let (ours, theirs) = (rows(&context, &sql).await.unwrap(), rows(&plain, &sql).await.unwrap());
                assert_eq!(keys(&ours, *count), keys(&theirs, *count), "{seed}: {sql}");
                assert!(ours.iter().all(|row| all.contains(row)), "{seed}: {sql}");
                assert!(ours_tops(&plan(&context, &sql).await), "{sql}");
            }
        }
    }
}

/// Only the first rows of each upload come down.
#[tokio::test]
async fn other_rows_stay_on_the_device() {
    let context = on("emulator").await;
    register(&[&context], "t", batches(4, true));
    let sql = "EXPLAIN ANALYZE SELECT i32, v FROM t WHERE i64 < 90 ORDER BY i32 LIMIT 5";
    let text = rows(&context, sql).await.unwrap().join("\n");
    let count = |name: &str| counted(&text, name);
    let uploads = 6;
    assert!(count("rows_down=") > 0 && count("rows_down=") <= 5 * uploads, "{text}");
    assert!(count("rows_up=") > 10 * count("rows_down="), "{text}");
}

/// The bytes that all operators of a plan that has run have downloaded.
fn bytes_down(plan: &Arc<dyn ExecutionPlan>) -> usize {
    let own = plan.metrics().and_then(|metrics| metrics.sum_by_name("bytes_down"));
    let below: usize = plan.children().into_iter().map(bytes_down).sum();
    own.map_or(0, |bytes| bytes.as_usize()) + below
}

/// Views share the text of all rows of their upload. Only that of the rows that are returned comes down.
#[tokio::test]
async fn text_of_other_rows_stays_on_the_device() {
    let (context, plain) = (on("emulator").await, on("off").await);
    answer(&context, "SET bowstring.upload_rows = 100000").await.unwrap();
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..3000));
    let texts = (0..3000).map(|row| format!("{row} {}", "long ".repeat(200)));
    let texts: ArrayRef = Arc::new(StringViewArray::from_iter_values(texts));
    let batch = RecordBatch::try_from_iter([("n", numbers), ("t", texts)]).unwrap();
    register(&[&context, &plain], "long", vec![batch]);
    for sql in [
        "SELECT t FROM long WHERE n % 100 = 7",
        "SELECT l.t, r.n FROM long AS l JOIN long AS r ON l.n = r.n + 5 WHERE r.n % 100 = 1",
        "SELECT t, n FROM long WHERE n > 10 ORDER BY n LIMIT 30",
    ] {
        assert!(same(&context, &plain, sql).await, "{sql}");
        let plan = plan(&context, sql).await;
        run(&context, plan.clone()).await.unwrap();
        // 30 rows of 1,000 bytes, and their views.
        assert!((30_000..100_000).contains(&bytes_down(&plan)), "{sql}: {}", bytes_down(&plan));
    }
}

/// A device sorts the rows that operators of ours leave there.
#[tokio::test]
async fn rows_that_are_there_are_sorted_there() {
    let (context, plain) = (on("emulator").await, on("off").await);
    for seed in 0..4 {
        register(&[&context, &plain], "t", batches(seed, seed % 2 == 0));
        for (sql, count) in QUERIES {
            let (ours, theirs) = (rows(&context, sql).await.unwrap(), rows(&plain, sql).await.unwrap());
            assert_eq!(keys(&ours, *count), keys(&theirs, *count), "{seed}: {sql}");
            let sorts = ours_has(&plan(&context, sql).await, "sort=[");
            assert_eq!(sorts, sql.contains("WHERE") || sql.contains("+ 1"), "{sql}");
        }
        let join = "SELECT l.i64, r.d15 FROM t AS l JOIN t AS r ON l.i8 = r.i8 ORDER BY l.i64 DESC";
        for limit in ["", " LIMIT 1", " LIMIT 20", " LIMIT 100000"] {
            let sql = format!("{join}{limit}");
            let (ours, theirs) = (rows(&context, &sql).await.unwrap(), rows(&plain, &sql).await.unwrap());
            assert_eq!(keys(&ours, 1), keys(&theirs, 1), "{seed}: {sql}");
            assert!(ours_has(&plan(&context, &sql).await, "sort=["), "{sql}");
        }
    }
}

/// Sorts on the CPU, by keys that devices do not sort by or of rows in an order are DataFusion's alone.
#[tokio::test]
async fn other_sorts_stay() {
    let context = on("emulator").await;
    register(&[&context], "t", batches(4, true));
    for sql in [
        "SELECT i32, count(*) AS n FROM t GROUP BY i32 ORDER BY n LIMIT 0",
        "SELECT k, i32 FROM t WHERE i64 < 90 ORDER BY k LIMIT 3",
    ] {
        assert!(!ours_tops(&plan(&context, sql).await), "{sql}");
    }
    let context = on("cpu").await;
    register(&[&context], "t", batches(4, true));
    let sql = "SELECT i32, v FROM t WHERE i64 < 90 ORDER BY i32 LIMIT 3";
    assert!(!ours_tops(&plan(&context, sql).await));
}
