//! Groups on the CPU as sessions have them by default: which first steps are ours, and what they compute.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Int64Array, ListArray, RecordBatch};
use datafusion::arrow::datatypes::Int64Type;
use datafusion::physical_plan::displayable;

use crate::support::*;

/// On the CPU, groups by integers, dates, decimals and text pay, and others are DataFusion's.
#[tokio::test]
async fn groups_pay_on_the_cpu() {
    let (context, plain) = (on("cpu").await, on("off").await);
    answer(&context, "SET bowstring.always = false").await.unwrap();
    for seed in 5..9 {
        register(&[&context, &plain], "t", batches(seed, seed.is_multiple_of(2)));
        for key in
            ["i16", "i32", "i64", "u32", "u64", "day", "i64 % 7", "i8", "u8", "d15", "s", "v", "d38", "w"]
        {
            let sql = format!("SELECT {key} AS k, count(*), sum(d15), min(i8) FROM t GROUP BY 1");
            assert!(same(&context, &plain, &sql).await, "{sql}");
            assert!(ours_has(&plan(&context, &sql).await, "group=["), "{key}");
        }
        for keys in ["i32, i64", "s, v", "i8, day, d9", "v, u8, i16, s"] {
            let sql = format!("SELECT {keys}, count(*), min(f64) FROM t GROUP BY {keys}");
            assert!(same(&context, &plain, &sql).await, "{sql}");
            assert!(ours_has(&plan(&context, &sql).await, "group=["), "{keys}");
        }
        for keys in ["at", "b", "f64", "i8, k", "i8, i16, i32, i64, s"] {
            let sql = format!("SELECT {keys}, count(*) FROM t GROUP BY {keys}");
            same(&context, &plain, &sql).await;
            assert!(!ours_has(&plan(&context, &sql).await, "group=["), "{keys}");
        }
    }
}

/// On the CPU, arguments are computed where rows are filtered, if that is ours.
#[tokio::test]
async fn arguments_are_computed_with_the_filter() {
    let (context, plain) = (on("cpu").await, on("off").await);
    answer(&context, "SET bowstring.always = false").await.unwrap();
    for seed in 0..4 {
        register(&[&context, &plain], "t", batches(seed, seed.is_multiple_of(2)));
        for (sql, taken) in [
            ("SELECT b, sum(d9 * d9), sum(d9 * d9 + 1), avg(d9) FROM t WHERE i32 < 50 GROUP BY b", true),
            ("SELECT i8 AS k, sum(i32 + i16), count(i32 - 1) FROM t WHERE i64 > 5 GROUP BY i8", true),
            (
                "SELECT i8 + 1 AS k, min(i32 + i64) FILTER (WHERE i16 > 3), max(i64 * 2), count(*) \
                 FROM (SELECT * FROM t WHERE i64 < 90) GROUP BY i8 + 1",
                true,
            ),
            ("SELECT b, count(DISTINCT i32 % 5), sum(i32 % 5) FROM t WHERE i64 < 90 GROUP BY b", true),
            // No filter of ours is below.
            ("SELECT b, sum(i32 + 1) FROM t GROUP BY b", false),
            // Another function may look at its argument.
            ("SELECT b, var_pop(i32 + 1) FROM t WHERE i64 < 90 GROUP BY b", false),
        ] {
            same(&context, &plain, sql).await;
            let plan = plan(&context, sql).await;
            let computes = ours_has(&plan, "project=[")
                && [" * ", " + ", " % "].iter().any(|sign| {
                    let text = displayable(plan.as_ref()).indent(false).to_string();
                    text.split("project=[").nth(1).is_some_and(|text| {
                        text.split(']').next().is_some_and(|columns| columns.contains(sign))
                    })
                });
            assert_eq!(computes, taken, "{sql}\n{}", displayable(plan.as_ref()).indent(false));
        }
    }
}

/// Functions of elements number their parameters behind the input's columns.
#[tokio::test]
async fn elements_are_not_taken_for_columns() {
    let (context, plain) = (on("cpu").await, on("off").await);
    answer(&context, "SET bowstring.always = false").await.unwrap();
    let numbers =
        |of: fn(i64) -> i64| Arc::new(Int64Array::from_iter((0..60).map(|row| Some(of(row))))) as ArrayRef;
    let lists = (0..60).map(|row| Some((0..row % 4).map(|item| Some(item + row % 3)).collect::<Vec<_>>()));
    let lists = Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(lists)) as ArrayRef;
    let columns = [
        ("x", numbers(|row| row % 5)),
        ("i", numbers(|row| row)),
        ("j", numbers(|row| row * 3)),
        ("l", lists),
    ];
    register(&[&context, &plain], "t", vec![RecordBatch::try_from_iter(columns).unwrap()]);
    for context in [&context, &plain] {
        answer(context, "SET datafusion.sql_parser.dialect = 'duckdb'").await.unwrap();
    }
    for sums in ["sum(i * 2 + 1)", "sum(i * 2 + 1), sum(i * i)", "sum(i * 2 + 1), sum(i * i), sum(i - 1)"] {
        let sql = format!(
            "SELECT x, {sums}, count(*) FILTER (WHERE array_any_match(l, x -> x > 2)) \
             FROM (SELECT * FROM t WHERE j < 90) GROUP BY x"
        );
        assert!(same(&context, &plain, &sql).await, "{sql}");
    }
}
