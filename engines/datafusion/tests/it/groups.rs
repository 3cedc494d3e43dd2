//! Grouped aggregates with our operators against DataFusion alone.

use std::sync::Arc;

use datafusion::arrow::array::*;
use datafusion::datasource::MemTable;
use datafusion::logical_expr::col;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::prelude::SessionContext;

use crate::support::*;

const DEVICES: [&str; 2] = ["cpu", "emulator"];

/// Whether a plan has a partial aggregate of DataFusion's that groups.
fn theirs_groups(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let groups = plan.downcast_ref::<AggregateExec>().is_some_and(|aggregate| {
        *aggregate.mode() == AggregateMode::Partial && !aggregate.group_expr().is_true_no_grouping()
    });
    groups || plan.children().into_iter().any(theirs_groups)
}

/// Whether one of our operators groups.
fn ours_groups(plan: &Arc<dyn ExecutionPlan>) -> bool {
    ours_has(plan, "group=[")
}

async fn check(sql: &[&str], tame: bool) {
    for device in DEVICES {
        check_with(&on(device).await, &on("off").await, sql, tame).await;
    }
}

/// Checks that a session groups by operators of ours, with the answers of another.
async fn check_with(context: &SessionContext, plain: &SessionContext, sql: &[&str], tame: bool) {
    for seed in 0..4 {
        register(&[context, plain], "t", batches(seed, tame));
        for sql in sql {
            same(context, plain, sql).await;
            let plan = plan(context, sql).await;
            assert!(ours_groups(&plan) && !theirs_groups(&plan), "{sql}");
        }
    }
}

#[tokio::test]
async fn groups_have_datafusions_states() {
    let sql = [
        "SELECT i8, count(*), sum(i32), avg(d15), min(day), max(at) FROM t GROUP BY i8",
        "SELECT s, b, sum(d15), sum(d38), count(i64) FROM t GROUP BY s, b",
        "SELECT v, max(w), min(s), max(b) FROM t WHERE i32 < 50 GROUP BY v",
        "SELECT DISTINCT d9, c FROM t",
        "SELECT day, d15, u64, at, sum(u64) FROM t GROUP BY day, d15, u64, at",
        "SELECT i8 + 1 AS x, sum(i32 * 2) FILTER (WHERE b), avg(i8) FROM t GROUP BY i8 + 1",
        "SELECT extract(year FROM day) AS y, count(*) FROM t WHERE v LIKE 'a%' GROUP BY 1",
        "SELECT b, count(DISTINCT i32) FROM t GROUP BY b",
        "SELECT i8, bool_and(b), bool_or(c) FILTER (WHERE i32 > 3) AS o FROM t GROUP BY i8",
    ];
    check(&sql, true).await;
}

/// DataFusion's groups of floats have one zero, and tell NaNs apart by their bits.
#[tokio::test]
async fn groups_of_floats_have_one_zero() {
    let sql = [
        "SELECT f64, count(*) FROM t GROUP BY f64",
        "SELECT f32, g64, count(f64), sum(i32) FROM t WHERE b GROUP BY f32, g64",
    ];
    check(&sql, false).await;
}

/// DataFusion's sums wrap around, where ours are errors.
#[tokio::test]
async fn sums_of_groups_wrap_around() {
    let rows = 700;
    let key = Int32Array::from_iter_values((0..rows).map(|row| row % 3));
    let wide =
        Int64Array::from_iter((0..rows).map(|row| (row % 11 != 0).then_some(i64::MAX - i64::from(row))));
    let most = 10i128.pow(38) - 1;
    let digits = Decimal128Array::from_iter_values((0..rows).map(|row| most - i128::from(row)));
    let digits = digits.with_precision_and_scale(38, 0).unwrap();
    let fields: Vec<(&str, ArrayRef)> =
        vec![("k", Arc::new(key)), ("x", Arc::new(wide)), ("d", Arc::new(digits))];
    let batch = RecordBatch::try_from_iter(fields).unwrap();
    let batches: Vec<_> = (0..7).map(|part| batch.slice(part * 100, 100)).collect();
    for device in DEVICES {
        let (context, plain) = (on(device).await, on("off").await);
        register(&[&context, &plain], "w", batches.clone());
        for sql in [
            "SELECT k, sum(x), count(x), min(x) FROM w GROUP BY k",
            "SELECT k, count(d), max(x) FROM w WHERE d > 7 GROUP BY k",
        ] {
            assert!(same(&context, &plain, sql).await, "{sql}");
        }
        // DataFusion's sum of decimals wraps around beyond 128 bits. A device that finishes groups refuses
        // it.
        let digits = "SELECT k, sum(d), max(d), count(*) FROM w WHERE x > 5 GROUP BY k";
        match device {
            "cpu" => assert!(same(&context, &plain, digits).await),
            _ => assert_eq!(crate::support::rows(&context, digits).await, Err("arrow".to_owned())),
        }
        // Its state has 256 bits, so it stays DataFusion's, with DataFusion's error.
        assert!(!same(&context, &plain, "SELECT k, avg(d) FROM w GROUP BY k").await);
    }
}

#[tokio::test]
async fn what_has_no_counterpart_stays() {
    let context = on("cpu").await;
    register(&[&context], "t", batches(3, true));
    for sql in [
        // The least float of a group depends on the order of NaNs in DataFusion.
        "SELECT i8, min(f64) FROM t GROUP BY i8",
        // Grouping sets, and states that are lists.
        "SELECT i8, b, count(*) FROM t GROUP BY ROLLUP (i8, b)",
        "SELECT i8, array_agg(i32) FROM t GROUP BY i8",
        "SELECT f64 / 0.0 AS x, count(*) FROM t GROUP BY 1",
    ] {
        assert!(!ours_groups(&plan(&context, sql).await), "{sql}");
    }
}

/// A device finishes groups: no row comes down before they are filtered, sorted and grouped again.
#[tokio::test]
async fn groups_are_finished_on_the_device() {
    let (context, plain) = (on("emulator").await, on("off").await);
    for seed in 0..4 {
        register(&[&context, &plain], "t", batches(seed, true));
        for sql in [
            "SELECT i8, sum(d15) AS s, avg(d9) FROM t GROUP BY i8 HAVING sum(d15) > 5",
            "SELECT n, count(*) FROM (SELECT v, count(i64) AS n FROM t GROUP BY v) GROUP BY n",
            "SELECT s, b, avg(d15) FROM t WHERE i32 < 50 GROUP BY s, b ORDER BY s, b",
            "SELECT t.s, sum(u.n) FROM t JOIN (SELECT i8, count(*) AS n FROM t GROUP BY i8) AS u \
              ON t.i8 = u.i8 GROUP BY t.s",
        ] {
            same(&context, &plain, sql).await;
            let text = rows(&context, &format!("EXPLAIN ANALYZE {sql}")).await.unwrap().join("\n");
            assert!(!text.contains("AggregateExec") && !text.contains("RepartitionExec"), "{text}");
            let answer = rows(&context, sql).await.unwrap().len() as u64;
            assert_eq!(counted(&text, "rows_down="), answer, "{text}");
        }
    }
}

/// Each set of keys has groups of its own, even if there are no rows.
#[tokio::test]
async fn sets_of_keys_are_grouped_on_the_device() {
    let (context, plain) = (on("emulator").await, on("off").await);
    let sql = [
        "SELECT i8, b, count(*), sum(d15) FROM t GROUP BY ROLLUP (i8, b)",
        "SELECT s, b, c, avg(d9), max(v), grouping(s), grouping(c, b) FROM t GROUP BY CUBE (s, b, c)",
        "SELECT day, i8 + 1 AS x, min(i64) FROM t WHERE i32 < 50 GROUP BY GROUPING SETS ((day, i8 + 1), (), (day))",
        "SELECT v, b, count(*) FILTER (WHERE c) AS n FROM t GROUP BY v, ROLLUP (b, i8) HAVING count(*) > 2",
        "SELECT b, c, count(*) FROM t WHERE i32 > 1000 GROUP BY CUBE (b, c)",
        "SELECT n, sum(i) FROM (SELECT i8 AS i, b, count(*) AS n FROM t GROUP BY CUBE (i8, b)) GROUP BY n",
        "SELECT f64, f32, count(*) FROM t GROUP BY CUBE (f64, f32)",
    ];
    for partitions in [1, 4] {
        for context in [&context, &plain] {
            let set = format!("SET datafusion.execution.target_partitions = {partitions}");
            answer(context, &set).await.unwrap();
        }
        check_with(&context, &plain, &sql, true).await;
    }
    // DataFusion numbers sets that are there twice.
    let twice = "SELECT i8, count(*) FROM t GROUP BY GROUPING SETS ((i8), (i8), ())";
    assert!(!ours_groups(&plan(&context, twice).await));
    same(&context, &plain, twice).await;
}

/// Groups that take more memory than a session allows are parked in host memory.
#[tokio::test]
async fn groups_beyond_a_limit_are_parked() {
    let (context, plain) = (on("emulator").await, on("off").await);
    register(&[&context, &plain], "t", batches(2, true));
    answer(&context, "SET bowstring.device_bytes = 2000").await.unwrap();
    for sql in [
        "SELECT i64, v, count(*), sum(d15), max(w) FROM t GROUP BY i64, v",
        "SELECT count(*) FROM (SELECT DISTINCT i64, j64, s FROM t)",
    ] {
        assert!(same(&context, &plain, sql).await, "{sql}");
        assert!(ours_has(&plan(&context, sql).await, "mode=Single"), "{sql}");
    }
}

/// With one partition, DataFusion groups in one step, of which ours is the first half.
#[tokio::test]
async fn one_partition_is_grouped_in_two_steps() {
    for device in DEVICES {
        let (context, plain) = (on(device).await, on("off").await);
        register(&[&context, &plain], "t", batches(4, true));
        for context in [&context, &plain] {
            answer(context, "SET datafusion.execution.target_partitions = 1").await.unwrap();
        }
        for sql in [
            "SELECT i8, count(*), avg(d15), sum(i32) FILTER (WHERE b) AS f FROM t GROUP BY i8",
            "SELECT v, s, max(w) FROM t WHERE i32 < 50 GROUP BY v, s",
            "SELECT DISTINCT day, c FROM t",
        ] {
            same(&context, &plain, sql).await;
            assert!(ours_groups(&plan(&context, sql).await), "{device}: {sql}");
        }
    }
}

#[tokio::test]
async fn no_rows_have_no_groups() {
    for device in DEVICES {
        let context = on(device).await;
        register(&[&context], "t", batches(3, true));
        for sql in [
            "SELECT i8, count(*) FROM t WHERE i32 > 1000 GROUP BY i8",
            "SELECT s, sum(d15) FROM t WHERE i32 > 1000 AND v LIKE 'q%' GROUP BY s",
        ] {
            assert_eq!(rows(&context, sql).await, Ok(vec![]), "{device}: {sql}");
        }
    }
}

/// Rows that come sorted by a key leave sorted, so these aggregates stay DataFusion's.
#[tokio::test]
async fn sorted_groups_stay_sorted() {
    for device in DEVICES {
        let (context, plain) = (on(device).await, on("off").await);
        register(&[&context, &plain], "t", batches(6, true));
        let sql =
            "SELECT i32, count(*) FROM (SELECT * FROM t ORDER BY i32 LIMIT 500) GROUP BY i32 ORDER BY i32";
        assert_eq!(rows(&context, sql).await, rows(&plain, sql).await, "{device}");
    }
    // Here, each partition of the table is sorted, and no sort follows.
    let first = Int64Array::from_iter_values((0..300).map(|row| 50 + row / 7));
    let second = Int64Array::from_iter_values((0..200).map(|row| row / 3));
    let batches =
        [first, second].map(|k| RecordBatch::try_from_iter([("k", Arc::new(k) as ArrayRef)]).unwrap());
    let answers = "SELECT k, count(*) FROM sorted GROUP BY k ORDER BY k";
    let mut all = vec![];
    for device in ["off", "cpu", "emulator"] {
        let context = on(device).await;
        let table =
            MemTable::try_new(batches[0].schema(), batches.iter().map(|one| vec![one.clone()]).collect());
        let table = table.unwrap().with_sort_order(vec![vec![col("k").sort(true, false)]]);
        context.register_table("sorted", Arc::new(table)).unwrap();
        all.push(rows(&context, answers).await.unwrap());
    }
    assert_eq!((&all[0], &all[0]), (&all[1], &all[2]));
}
