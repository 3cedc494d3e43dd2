//! Limits and unions of rows that are on a device: they stay there.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Int64Array, RecordBatch};
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::physical_plan::union::{InterleaveExec, UnionExec};
use datafusion::physical_plan::{ExecutionPlan, displayable};
use datafusion::prelude::{CsvReadOptions, SessionContext};

use crate::support::*;

async fn two(seed: u64) -> (SessionContext, SessionContext) {
    let (context, plain) = (on("emulator").await, on("off").await);
    register(&[&context, &plain], "t", batches(seed, seed.is_multiple_of(2)));
    register(&[&context, &plain], "u", batches(seed + 9, seed.is_multiple_of(2)));
    (context, plain)
}

/// Whether one of our operators limits rows.
fn ours_limits(plan: &Arc<dyn ExecutionPlan>) -> bool {
    ours_has(plan, "skip=")
}

/// The value of a counter of all our operators, after a query has run.
async fn counted_after(context: &SessionContext, sql: &str, name: &str) -> u64 {
    counted(&rows(context, &format!("EXPLAIN ANALYZE {sql}")).await.unwrap().join("\n"), name)
}

/// Rows that are equal in all columns are the same rows, so that these orders are total.
const ORDERED: &[&str] = &[
    "SELECT i32 AS x, v, d15 FROM t WHERE i64 < 90 ORDER BY 1, 2, 3",
    "SELECT t.i32 AS x, u.d9, u.s FROM t JOIN u ON t.i16 = u.i16 ORDER BY 1, 2, 3",
    "SELECT i8 AS x, sum(i64), count(*) AS n FROM t GROUP BY i8 ORDER BY 1, 2, 3",
    "SELECT i32 + 1 AS x, f64 FROM t WHERE b OR c ORDER BY 1 DESC NULLS LAST, 2",
];

#[tokio::test]
async fn limited_rows_are_datafusions() {
    for seed in 0..3 {
        let (context, plain) = two(seed).await;
        for sql in ORDERED {
            for limit in ["LIMIT 7", "LIMIT 0", "OFFSET 5", "LIMIT 300 OFFSET 2", "LIMIT 9 OFFSET 100000"] {
                let sql = format!("{sql} {limit}");
                assert_eq!(rows(&context, &sql).await, rows(&plain, &sql).await, "{seed}: {sql}");
                let above = format!("SELECT count(*), min(x), max(x) FROM ({sql}) WHERE x <> 5");
                same(&context, &plain, &above).await;
                // Sorts with a limit stay DataFusion's above scans, and groups that have one.
                if limit.contains("OFFSET") && sql.contains("JOIN") {
                    assert!(ours_limits(&plan(&context, &sql).await), "{sql}");
                    assert!(ours_limits(&plan(&context, &above).await), "{above}");
                }
            }
        }
    }
}

/// The rows are not determined, but their number is.
#[tokio::test]
async fn limits_without_an_order_have_as_many_rows() {
    for seed in 0..3 {
        let (context, plain) = two(seed).await;
        for of in ["t WHERE i32 < 50", "t JOIN u ON t.i8 = u.i8", "t LEFT JOIN u ON t.i32 = u.i32"] {
            for limit in ["LIMIT 1", "LIMIT 40 OFFSET 3", "OFFSET 1", "LIMIT 0", "LIMIT 5 OFFSET 1000000"] {
                let sql = format!("SELECT count(*), count(v) >= 0 FROM (SELECT t.v FROM {of} {limit})");
                same(&context, &plain, &sql).await;
                let all = format!("SELECT t.i32, t.v FROM {of} {limit}");
                let lines = |rows: std::result::Result<Vec<String>, String>| rows.map(|rows| rows.len());
                assert_eq!(lines(rows(&context, &all).await), lines(rows(&plain, &all).await), "{all}");
            }
        }
    }
}

/// A limit reads no more once it has its rows, and only these come down.
#[tokio::test]
async fn limits_end_their_inputs() {
    let (context, _) = two(4).await;
    context.sql("SET bowstring.upload_rows = 50").await.unwrap();
    let of = |limit: &str| {
        format!("SELECT count(v) FROM (SELECT t.v FROM t JOIN u ON t.i8 = u.i8 WHERE t.i32 < 90 {limit})")
    };
    let sql = of("LIMIT 3 OFFSET 2");
    assert!(ours_limits(&plan(&context, &sql).await));
    let some = counted_after(&context, &sql, "rows_up=").await;
    let all = counted_after(&context, &of(""), "rows_up=").await;
    assert!(some < all, "{some} of {all}");
    let sql = "SELECT t.i32, t.v FROM t JOIN u ON t.i8 = u.i8 LIMIT 6 OFFSET 11";
    assert!(ours_limits(&plan(&context, sql).await));
    assert_eq!(counted_after(&context, sql, "rows_down=").await, 6);
}

const UNIONS: &[&str] = &[
    // The inputs' columns have other names, and may be null or not.
    "SELECT x, count(*), sum(y) FROM (SELECT i32 AS x, i64 AS y FROM t WHERE i8 < 50 \
     UNION ALL SELECT i32, 1 FROM u WHERE i16 < 50) GROUP BY x",
    "SELECT sum(x), max(v), count(*) FROM (SELECT d15 AS x, v FROM t WHERE b \
     UNION ALL SELECT d15, w FROM u WHERE c UNION ALL SELECT d15, v FROM u WHERE b) WHERE x > 1",
    "SELECT a.v, b.i32 FROM (SELECT i8, v FROM t WHERE b UNION ALL SELECT i8, v FROM u WHERE c) AS a \
     JOIN (SELECT i8, i32 FROM u WHERE i32 < 9) AS b ON a.i8 = b.i8",
    "SELECT DISTINCT k FROM (SELECT s AS k FROM t WHERE i32 < 50 UNION SELECT s FROM u WHERE i32 < 90)",
];

#[tokio::test]
async fn unions_stay_on_the_device() {
    fn unions(plan: &Arc<dyn ExecutionPlan>) -> bool {
        let here = plan.is::<UnionExec>() || plan.is::<InterleaveExec>();
        here || plan.children().into_iter().any(unions)
    }
    for seed in 0..3 {
        let (context, plain) = two(seed).await;
        for sql in UNIONS {
            same(&context, &plain, sql).await;
            assert!(unions(&plan(&context, sql).await), "{sql}");
            let result = rows(&context, sql).await.unwrap().len() as u64;
            assert!(counted_after(&context, sql, "rows_down=").await <= result, "{seed}: {sql}");
        }
    }
}

/// Inputs that are not on the device are uploaded, beside those that are.
#[tokio::test]
async fn unions_of_other_rows_are_right() {
    for seed in 0..3 {
        let (context, plain) = two(seed).await;
        for sql in [
            "SELECT i32, sum(i64) FROM (SELECT i32, i64 FROM t WHERE b UNION ALL SELECT i32, i64 FROM u) GROUP BY i32",
            "SELECT count(*), max(v) FROM (SELECT v FROM t UNION ALL SELECT v FROM u WHERE c) WHERE v < 'b'",
            "SELECT x FROM (SELECT reverse(s) AS x FROM t WHERE b UNION ALL SELECT s FROM u WHERE c) WHERE x > 'a'",
            "SELECT i32, v FROM t WHERE b UNION ALL SELECT i32, v FROM u WHERE c",
            // Here DataFusion interleaves partitions, by whose hash the groups are merged.
            "SELECT i8, n FROM (SELECT i8, count(*) AS n FROM t GROUP BY i8 \
             UNION ALL SELECT i8, count(*) FROM u GROUP BY i8) ORDER BY n, i8",
        ] {
            assert!(same(&context, &plain, sql).await, "{sql}");
        }
    }
}

#[tokio::test]
async fn limits_and_unions_of_no_rows_have_none() {
    let (context, plain) = (on("emulator").await, on("off").await);
    let none = datafusion::arrow::array::RecordBatch::new_empty(schema());
    register(&[&context, &plain], "t", vec![none]);
    register(&[&context, &plain], "u", batches(1, true));
    for sql in ORDERED {
        same(&context, &plain, &format!("{sql} LIMIT 3 OFFSET 1")).await;
    }
    for sql in UNIONS {
        same(&context, &plain, sql).await;
    }
}

/// An input that fails behind the rows that a limit wants does not fail the query.
#[tokio::test]
async fn errors_behind_a_limit_are_not_met() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bad.csv");
    let lines: Vec<_> =
        (0..1000).map(|row| if row == 450 { "bad".to_owned() } else { row.to_string() }).collect();
    std::fs::write(&path, format!("a\n{}\n", lines.join("\n"))).unwrap();
    let fields = vec![Field::new("a", DataType::Int64, true)];
    let schema = Schema::new(fields);
    let (context, plain) = (on("emulator").await, on("off").await);
    for context in [&context, &plain] {
        context.sql("SET datafusion.execution.target_partitions = 1").await.unwrap();
        let options = CsvReadOptions::new().schema(&schema);
        context.register_csv("bad", path.to_str().unwrap(), options).await.unwrap();
    }
    // Uploads have 300 rows; those of the second one that come before the error are uploaded as well.
    for limit in [5, 120, 300] {
        let sql = format!("SELECT a * 2 AS b FROM bad WHERE a > 5 LIMIT {limit}");
        assert!(same(&context, &plain, &sql).await, "{sql}");
        assert_eq!(rows(&context, &sql).await.unwrap().len(), limit);
    }
    assert!(rows(&context, "SELECT a * 2 AS b FROM bad WHERE a > 5").await.is_err());
    // Nor do filters by the keys of joins keep the rows back.
    let filtered = on("cpu").await;
    for setting in ["bowstring.always = false", "datafusion.execution.target_partitions = 1"] {
        answer(&filtered, &format!("SET {setting}")).await.unwrap();
    }
    let options = CsvReadOptions::new().schema(&schema);
    filtered.register_csv("bad", path.to_str().unwrap(), options).await.unwrap();
    let numbers = |numbers: &[i64]| Arc::new(Int64Array::from(numbers.to_vec())) as ArrayRef;
    let few = [("c", numbers(&[3, 300, 9, 8])), ("d", numbers(&[1, 1, 9, 9]))];
    register(&[&filtered, &plain], "few", vec![RecordBatch::try_from_iter(few).unwrap()]);
    for limit in [1, 2] {
        let sql = format!("SELECT bad.a FROM few JOIN bad ON few.c = bad.a WHERE few.d < 5 LIMIT {limit}");
        let made = displayable(plan(&filtered, &sql).await.as_ref()).indent(false).to_string();
        assert!(made.contains("KeyFilterExec: filter"), "{made}");
        assert!(same(&filtered, &plain, &sql).await, "{sql}");
        assert_eq!(rows(&filtered, &sql).await.unwrap().len(), limit);
    }
}
