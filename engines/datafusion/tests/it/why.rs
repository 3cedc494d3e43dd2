//! Tests the reasons for which nodes are left to DataFusion.

use bowstring_datafusion::why_not;
use datafusion::prelude::SessionContext;

use crate::support::*;

/// The reasons for the nodes of a query's plan, as text.
async fn reasons(context: &SessionContext, sql: &str) -> Vec<String> {
    let plan = plan(context, sql).await;
    let declined = why_not(&plan, context.copied_config().options()).unwrap();
    declined.iter().map(ToString::to_string).collect()
}

async fn check(context: &SessionContext, table: &[(&str, &[&str])]) {
    register(&[context], "t", batches(4, true));
    register(&[context], "u", batches(5, true));
    let mut wrong = vec![];
    for (sql, expected) in table {
        let all = reasons(context, sql).await;
        if all != *expected {
            wrong.push(format!("{sql}: {all:#?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Expressions, keys and functions without a counterpart are named.
#[tokio::test]
async fn the_part_without_a_counterpart_is_named() {
    let table: &[(&str, &[&str])] = &[
        ("SELECT i32 FROM t WHERE i64 < 5 AND d15 > 1.5", &[]),
        (
            "SELECT i32 FROM t WHERE i64 < 5 OR reverse(s) = 'ba'",
            &["FilterExec: reverse(s@2) of Utf8 has no counterpart on devices"],
        ),
        (
            "SELECT CAST(s AS INT) AS x FROM t",
            &["ProjectionExec: CAST(s@0 AS Int32) of Utf8 has no counterpart on devices"],
        ),
        (
            "SELECT f64 / g64 AS x FROM t",
            &["ProjectionExec: f64@0 / g64@1 may be a NaN, whose bits depend on the processor"],
        ),
        (
            "SELECT i8, median(i32) AS m FROM t GROUP BY i8",
            &["AggregateExec: median(t.i32) of Float64 has no counterpart on devices"],
        ),
        (
            "SELECT i8, min(f64) FROM t GROUP BY i8",
            &["AggregateExec: min(t.f64) of Float64 has no counterpart on devices"],
        ),
        (
            "SELECT k, count(*) FROM t GROUP BY k",
            &["AggregateExec: k@0 of Dictionary(Int32, Utf8) is no key on devices"],
        ),
        (
            "SELECT i8, i16, count(i32) FROM t GROUP BY GROUPING SETS ((i8), (i16), (i8))",
            &["AggregateExec: its grouping sets have two steps, a set twice, or no keys"],
        ),
        (
            "SELECT t.i32 FROM t JOIN u ON t.k = u.k",
            &["HashJoinExec: k@0 of Dictionary(Int32, Utf8) is no key on devices"],
        ),
        (
            "SELECT t.i32 FROM t LEFT JOIN u ON t.i32 = u.i32 AND reverse(t.s) < u.v",
            &["HashJoinExec: reverse(s@0) of Utf8 has no counterpart on devices"],
        ),
        (
            "SELECT t.i32 FROM t LEFT JOIN u ON t.i32 = u.i32 AND t.d15 + u.d9 > (SELECT avg(d15) FROM t)",
            &["HashJoinExec: it has a subquery, whose value is not known yet"],
        ),
        (
            "SELECT i8, sum(n * (SELECT max(i64) FROM t)) OVER (ORDER BY i8) AS x \
             FROM (SELECT i8, count(i32) AS n FROM t GROUP BY i8)",
            &["BoundedWindowAggExec: it has a subquery, whose value is not known yet"],
        ),
        (
            "SELECT x, ntile(3) OVER (ORDER BY x) FROM (SELECT DISTINCT i8 AS x FROM t)",
            &[
                "WindowAggExec: ntile(Int64(3)) ORDER BY [x ASC NULLS LAST] RANGE BETWEEN UNBOUNDED PRECEDING AND \
                 CURRENT ROW of Int64 has no counterpart on devices",
            ],
        ),
        (
            "SELECT t.i32 FROM t JOIN u ON t.i32 < u.i32",
            &["NestedLoopJoinExec: there is no such operator on devices"],
        ),
        (
            "SELECT k, i32 FROM t WHERE i64 < 90 ORDER BY k",
            &["SortExec: k@0 of Dictionary(Int32, Utf8) is no key on devices"],
        ),
    ];
    check(&on("emulator").await, table).await;
}

/// Nodes that could run on a device, but would not pay, have the rule's own reasons.
#[tokio::test]
async fn what_does_not_pay_is_said() {
    let context = on("emulator").await;
    answer(&context, "SET bowstring.always = false").await.unwrap();
    register(&[&context], "t", batches(4, true));
    let few = reasons(&context, "SELECT sum(i32) FROM t WHERE i64 < 5 AND b").await;
    let rows = rows(&context, "SELECT count(*) FROM t").await.unwrap().remove(0);
    // The filter's selectivity is an estimate, too.
    assert!(few[0].starts_with("AggregateExec: it reads about "), "{few:?}");
    let expected = format!("it reads about {rows} rows, fewer than bowstring.device_min_rows, 100000");
    assert_eq!(few[1..], [format!("FilterExec: {expected}")]);
    answer(&context, "SET bowstring.device_min_rows = 1").await.unwrap();
    let table: &[(&str, &[&str])] = &[
        ("SELECT i32 FROM t WHERE i64 < 5 AND b", &[]),
        (
            "SELECT i32 + 1 AS x FROM t",
            &["ProjectionExec: its rows are in host memory, and its work is too little to move them"],
        ),
        (
            "SELECT i32, v FROM t ORDER BY i32",
            &["SortExec: its rows are in host memory, and its work is too little to move them"],
        ),
        (
            "SELECT i32, v FROM t WHERE b ORDER BY i32 LIMIT 5",
            &["SortExec(TopK): it needs some rows only, and may skip the others"],
        ),
        (
            "SELECT count(*) FROM t WHERE reverse(s) = 'a'",
            &[
                "AggregateExec: it counts rows, and reads no columns",
                "FilterExec: reverse(s@0) of Utf8 has no counterpart on devices",
            ],
        ),
    ];
    check(&context, table).await;
}

#[tokio::test]
async fn the_cpu_leaves_groups_joins_and_sorts() {
    let context = on("cpu").await;
    answer(&context, "SET bowstring.always = false").await.unwrap();
    let table: &[(&str, &[&str])] = &[
        ("SELECT sum(i64) FROM t WHERE i32 < 5", &[]),
        ("SELECT b, sum(i64) FROM t GROUP BY b", &["AggregateExec: DataFusion is as fast on the CPU"]),
        (
            "SELECT t.i32, u.v FROM t JOIN u ON t.i32 = u.i32 ORDER BY u.v",
            &[
                "HashJoinExec: DataFusion is as fast on the CPU",
                "SortExec: DataFusion is as fast on the CPU",
                "FilterExec: DynamicFilter [ empty ] of Int32 has no counterpart on devices",
            ],
        ),
    ];
    check(&context, table).await;
    // A first step by one integer would be ours, but for a function.
    let all = reasons(&context, "SELECT i16, array_agg(i64 ORDER BY i32) FROM t GROUP BY i16").await;
    assert!(all.iter().any(|one| one.starts_with("AggregateExec: array_agg(")), "{all:?}");
    let context = on("off").await;
    check(&context, &[("SELECT i8, median(i64) FROM t WHERE reverse(s) = 'a' GROUP BY i8", &[])]).await;
}

/// A last step whose rows have to stay where a node above expects them is no secret either.
#[tokio::test]
async fn last_steps_are_explained() {
    let context = on("emulator").await;
    answer(&context, "SET datafusion.optimizer.prefer_hash_join = false").await.unwrap();
    register(&[&context], "t", batches(4, true));
    let sql = "SELECT a.n, b.n FROM (SELECT i8, count(i32) AS n FROM t GROUP BY i8) AS a \
               JOIN (SELECT i8, count(i64) AS n FROM t GROUP BY i8) AS b ON a.i8 = b.i8";
    let all = reasons(&context, sql).await;
    for expected in [
        "SortMergeJoinExec: there is no such operator on devices",
        "AggregateExec: its first step is on the device; a node above relies on how its rows are partitioned",
    ] {
        assert!(all.iter().any(|one| one == expected), "{all:?}");
    }
}

/// `EXPLAIN` lists them below the plan, in its two forms of text.
#[tokio::test]
async fn explain_says_what_is_left() {
    let context = on("emulator").await;
    register(&[&context], "t", batches(4, true));
    let sql = "SELECT i32 FROM t WHERE i64 < 5 OR reverse(s) = 'ba'";
    let reason = "FilterExec: reverse(s@2) of Utf8 has no counterpart on devices";
    for (form, says) in
        [("FORMAT INDENT", true), ("FORMAT TREE", true), ("VERBOSE", true), ("FORMAT PGJSON", false)]
    {
        let shown = rows(&context, &format!("EXPLAIN {form} {sql}")).await.unwrap().join("\n");
        assert_eq!(shown.matches("left to DataFusion:").count(), usize::from(says), "{form}: {shown}");
        assert_eq!(shown.contains(reason), says, "{form}: {shown}");
    }
    let whole = rows(&context, "EXPLAIN SELECT i32 FROM t WHERE i64 < 5").await.unwrap().join("\n");
    assert!(whole.contains("DeviceExec") && !whole.contains("left to"), "{whole}");
    answer(&context, "SET bowstring.device = 'off'").await.unwrap();
    let off = rows(&context, &format!("EXPLAIN {sql}")).await.unwrap().join("\n");
    assert!(off.contains("FilterExec") && !off.contains("left to"), "{off}");
}
