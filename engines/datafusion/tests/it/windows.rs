//! Window functions with our operators against DataFusion alone.

use std::sync::Arc;

use datafusion::physical_plan::{ExecutionPlan, displayable};
use datafusion::prelude::SessionContext;

use crate::support::*;

/// Different rows that are on a device: an order by all columns is total.
const ROWS: &str = "(SELECT DISTINCT i8, i32, i64, d15, f64, v, day, b FROM t WHERE i32 < 60)";

/// An order in which no two rows are equal.
const ALL: &str = "i32, i64 DESC, d15 NULLS FIRST, f64 DESC NULLS LAST, v, day, b, i8";

async fn two(seed: u64) -> (SessionContext, SessionContext) {
    let (context, plain) = (on("emulator").await, on("off").await);
    for context in [&context, &plain] {
        answer(context, "SET datafusion.sql_parser.parse_float_as_decimal = true").await.unwrap();
    }
    register(&[&context, &plain], "t", batches(seed, seed.is_multiple_of(2)));
    (context, plain)
}

fn only_ours(plan: &Arc<dyn ExecutionPlan>) -> bool {
    fn theirs(plan: &Arc<dyn ExecutionPlan>) -> bool {
        let here = ["WindowAggExec", "BoundedWindowAggExec"].contains(&plan.name());
        here || plan.children().into_iter().any(theirs)
    }
    ours_has(plan, "window=[") && !theirs(plan)
}

/// Checks functions over several windows, each with a total order; returns how many were ours.
async fn check(functions: &[&str], ours: bool) {
    for seed in 0..3 {
        let (context, plain) = two(seed).await;
        for function in functions {
            for parts in ["", "PARTITION BY i8", "PARTITION BY b, v", "PARTITION BY f64"] {
                let over = function.replace("OVER (", &format!("OVER ({parts} "));
                let sql = format!("SELECT *, {over} AS x FROM {ROWS} AS t").replace("ALL_COLUMNS", ALL);
                same(&context, &plain, &sql).await;
                assert_eq!(only_ours(&plan(&context, &sql).await), ours, "{sql}");
            }
        }
    }
}

#[tokio::test]
async fn numbers_and_ranks_are_datafusions() {
    let functions = [
        "row_number() OVER (ORDER BY ALL_COLUMNS)",
        "rank() OVER (ORDER BY i32)",
        "rank() OVER (ORDER BY f64 DESC, v)",
        "dense_rank() OVER (ORDER BY d15 NULLS FIRST)",
        "dense_rank() OVER (ORDER BY f64 NULLS LAST)",
    ];
    check(&functions, true).await;
}

#[tokio::test]
async fn values_of_other_rows_are_datafusions() {
    let functions = [
        "lag(i64) OVER (ORDER BY ALL_COLUMNS)",
        "lag(v, 3) OVER (ORDER BY ALL_COLUMNS)",
        "lead(f64, 2) OVER (ORDER BY ALL_COLUMNS)",
        "lead(d15 * 2, 1, 7.25) OVER (ORDER BY ALL_COLUMNS)",
        "lag(v, 1, 'none') OVER (ORDER BY ALL_COLUMNS)",
        "lag(i32, 100000, -1) OVER (ORDER BY ALL_COLUMNS)",
        "lag(day, -2) OVER (ORDER BY ALL_COLUMNS)",
        "lag(b, 0) OVER (ORDER BY ALL_COLUMNS)",
        "lag(i64, CAST(NULL AS BIGINT)) OVER (ORDER BY ALL_COLUMNS)",
        "lead(v, CAST(NULL AS BIGINT), 'none') OVER (ORDER BY ALL_COLUMNS)",
        "first_value(v) OVER (ORDER BY ALL_COLUMNS)",
        "nth_value(v, 3) OVER (ORDER BY ALL_COLUMNS ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)",
        "nth_value(i32 + 1, 400) OVER (ORDER BY ALL_COLUMNS RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)",
        "last_value(f64) OVER (ORDER BY ALL_COLUMNS ROWS BETWEEN 3 PRECEDING AND 1 PRECEDING)",
        "last_value(i64) OVER (ORDER BY ALL_COLUMNS ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)",
        "first_value(d15) IGNORE NULLS OVER (ORDER BY ALL_COLUMNS ROWS BETWEEN 2 PRECEDING AND 4 FOLLOWING)",
    ];
    check(&functions, true).await;
}

#[tokio::test]
async fn aggregates_of_frames_are_datafusions() {
    let functions = [
        "sum(i64) OVER (ORDER BY ALL_COLUMNS ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)",
        "sum(d15) OVER (ORDER BY i32)",
        "avg(d15) OVER (ORDER BY ALL_COLUMNS ROWS BETWEEN 5 PRECEDING AND 2 FOLLOWING)",
        "count(v) OVER (ORDER BY f64 RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)",
        "count(*) OVER (ORDER BY v RANGE BETWEEN CURRENT ROW AND CURRENT ROW)",
        "count(f64) OVER (ORDER BY ALL_COLUMNS ROWS BETWEEN 9 PRECEDING AND 3 PRECEDING)",
        "min(v) OVER (ORDER BY ALL_COLUMNS ROWS BETWEEN 1 FOLLOWING AND 3 FOLLOWING)",
        "max(i32) OVER (ORDER BY day)",
        "sum(i8) OVER (ORDER BY ALL_COLUMNS ROWS BETWEEN 2 PRECEDING AND CURRENT ROW)",
        "min(day) OVER ()",
        "sum(i64) OVER ()",
    ];
    check(&functions, true).await;
}

/// Functions that depend on the order of additions or on distances of values, and others that devices lack.
#[tokio::test]
async fn other_functions_stay() {
    let functions = [
        "sum(f64) OVER (ORDER BY ALL_COLUMNS)",
        "avg(i32) OVER (ORDER BY ALL_COLUMNS)",
        "max(f64) OVER (ORDER BY i32)",
        "sum(i64) FILTER (WHERE b) OVER (ORDER BY i32)",
        "sum(i64) OVER (ORDER BY i32 RANGE BETWEEN 5 PRECEDING AND CURRENT ROW)",
        "sum(i64) OVER (ORDER BY i32 GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW)",
        "ntile(3) OVER (ORDER BY ALL_COLUMNS)",
        "percent_rank() OVER (ORDER BY i32)",
        "nth_value(i32, 2) OVER (ORDER BY ALL_COLUMNS)",
        "nth_value(i32, -2) OVER (ORDER BY ALL_COLUMNS ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)",
        "nth_value(i32, 2) IGNORE NULLS OVER (ORDER BY ALL_COLUMNS ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)",
        "lag(v) IGNORE NULLS OVER (ORDER BY ALL_COLUMNS)",
    ];
    check(&functions, false).await;
}

/// Several functions, in one window and in several, below and above other operators.
#[tokio::test]
async fn windows_are_between_other_operators() {
    for seed in 0..4 {
        let (context, plain) = two(seed).await;
        for sql in [
            "SELECT i8, n, rank() OVER (ORDER BY n), sum(n) OVER (ORDER BY n, i8), lag(n, 1, 0) OVER (ORDER BY n, i8) \
             FROM (SELECT i8, count(*) AS n FROM t GROUP BY i8)",
            "SELECT i8, v, n, row_number() OVER (PARTITION BY i8 ORDER BY n, v) AS a, \
             dense_rank() OVER (PARTITION BY v ORDER BY n) AS b, count(*) OVER (PARTITION BY i8) AS c \
             FROM (SELECT i8, v, count(*) AS n FROM t GROUP BY i8, v)",
            "SELECT i8, v, n FROM (SELECT i8, v, n, rank() OVER (PARTITION BY i8 ORDER BY n DESC) AS r \
             FROM (SELECT i8, v, sum(d15) AS n FROM t WHERE b GROUP BY i8, v)) WHERE r <= 2",
            "SELECT x, count(*) FROM (SELECT dense_rank() OVER (ORDER BY l.d15, r.d15) AS x FROM t AS l \
             JOIN t AS r ON l.i64 = r.i64 AND l.i32 < r.i32) GROUP BY x",
            "SELECT a.i8, a.r, b.n FROM (SELECT i8, rank() OVER (ORDER BY s) AS r FROM \
             (SELECT i8, sum(i64) AS s FROM t GROUP BY i8)) AS a \
             JOIN (SELECT i8, count(*) AS n FROM t GROUP BY i8) AS b ON a.i8 = b.i8 ORDER BY 1, 2 LIMIT 9 OFFSET 1",
        ] {
            same(&context, &plain, sql).await;
            let plan = plan(&context, sql).await;
            assert!(only_ours(&plan), "{sql}: {}", displayable(plan.as_ref()).indent(true));
        }
    }
}

/// Rows that are in host memory are not moved for windows.
#[tokio::test]
async fn windows_of_rows_in_host_memory_stay() {
    let (context, plain) = two(1).await;
    let sql = "SELECT i32, rank() OVER (PARTITION BY i8 ORDER BY i64) FROM t";
    assert!(!ours_has(&plan(&context, sql).await, "window=["));
    same(&context, &plain, sql).await;
}

#[tokio::test]
async fn windows_of_no_rows_have_none() {
    let (context, plain) = (on("emulator").await, on("off").await);
    register(&[&context, &plain], "t", vec![datafusion::arrow::array::RecordBatch::new_empty(schema())]);
    for function in ["row_number()", "lag(v, 1, 'x')", "sum(i64)", "last_value(d15)"] {
        let sql = format!("SELECT *, {function} OVER (PARTITION BY b ORDER BY i32) AS x FROM {ROWS} AS t");
        assert!(same(&context, &plain, &sql).await);
        assert!(only_ours(&plan(&context, &sql).await), "{sql}");
    }
}

/// The value of a subquery is not known when a plan is made.
#[tokio::test]
async fn functions_of_subqueries_stay() {
    let (context, plain) = two(2).await;
    for function in [
        "sum(n * (SELECT max(i64) FROM t)) OVER (ORDER BY i8)",
        "first_value(n + (SELECT max(i64) FROM t)) OVER (ORDER BY i8)",
        "lag(n + (SELECT max(i64) FROM t)) OVER (ORDER BY i8)",
    ] {
        let sql = format!("SELECT i8, {function} AS x FROM (SELECT i8, count(*) AS n FROM t GROUP BY i8)");
        assert!(same(&context, &plain, &sql).await);
        assert!(!ours_has(&plan(&context, &sql).await, "window=["), "{sql}");
    }
}

/// The time of planning grows with the number of windows, and does not double with each.
#[tokio::test]
async fn stacked_windows_are_planned_in_time() {
    let (context, _) = two(1).await;
    for always in [true, false] {
        answer(&context, &format!("SET bowstring.always = {always}")).await.unwrap();
        for rows in
            ["(SELECT i8, i64, count(*) AS n FROM t GROUP BY i8, i64)", "(SELECT i8, i64, i32 AS n FROM t)"]
        {
            let mut sql = rows.to_owned();
            for i in 0..20 {
                let by = ["i8", "i64"][i % 2];
                let n = format!("sum(n) OVER (PARTITION BY {by} ORDER BY n) AS n");
                sql = format!("(SELECT i8, i64 + 1 AS i64, {n} FROM {sql} WHERE n > {i})");
            }
            let plan = plan(&context, &format!("SELECT * FROM {sql}")).await;
            assert_eq!(only_ours(&plan), always);
        }
    }
}
