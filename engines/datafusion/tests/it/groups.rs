//! Grouped aggregates with our operators against DataFusion alone.

use std::sync::Arc;

use bowstring_datafusion::DeviceExec;
use datafusion::arrow::array::*;
use datafusion::datasource::MemTable;
use datafusion::execution::memory_pool::GreedyMemoryPool;
use datafusion::logical_expr::col;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::prelude::SessionContext;

use crate::devices::pooled;
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

/// The rows that the first step of ours has returned.
fn rows_of_first_step(plan: &Arc<dyn ExecutionPlan>) -> Option<usize> {
    match plan.downcast_ref::<DeviceExec>() {
        Some(ours) if format!("{ours:?}").contains("group=[") => ours.metrics()?.output_rows(),
        _ => plan.children().into_iter().find_map(rows_of_first_step),
    }
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
        "SELECT v, max(w), min(s) FROM t WHERE i32 < 50 GROUP BY v",
        "SELECT DISTINCT d9, c FROM t",
        "SELECT day, d15, u64, at, sum(u64) FROM t GROUP BY day, d15, u64, at",
        "SELECT i8 + 1 AS x, sum(i32 * 2) FILTER (WHERE b), avg(i8) FROM t GROUP BY i8 + 1",
        "SELECT extract(year FROM day) AS y, count(*) FROM t WHERE v LIKE 'a%' GROUP BY 1",
        "SELECT b, count(DISTINCT i32) FROM t GROUP BY b",
        "SELECT i8, bool_and(b), bool_or(c) FILTER (WHERE i32 > 3) AS o FROM t GROUP BY i8",
    ];
    check(&sql, true).await;
    // DataFusion has no states of groups for these.
    let extremes = ["SELECT v, max(b), min(c) FROM t WHERE i32 < 50 GROUP BY v"];
    check_with(&on("emulator").await, &on("off").await, &extremes, true).await;
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
        // Its state has 256 bits, so on devices it stays DataFusion's; DataFusion's error is the same.
        assert_eq!(same(&context, &plain, "SELECT k, avg(d) FROM w GROUP BY k").await, device == "cpu");
    }
}

#[tokio::test]
async fn what_has_no_counterpart_stays() {
    let context = on("emulator").await;
    register(&[&context], "t", batches(3, true));
    for sql in [
        // The least float of a group depends on the order of NaNs in DataFusion.
        "SELECT i8, min(f64) FROM t GROUP BY i8",
        // States that are lists.
        "SELECT i8, array_agg(i32) FROM t GROUP BY i8",
        "SELECT f64 / 0.0 AS x, count(*) FROM t GROUP BY 1",
    ] {
        assert!(!ours_groups(&plan(&context, sql).await), "{sql}");
    }
    let context = on("cpu").await;
    register(&[&context], "t", batches(3, true));
    assert!(!ours_groups(&plan(&context, "SELECT i8, b, count(*) FROM t GROUP BY ROLLUP (i8, b)").await));
}

/// The CPU has DataFusion's states, also those that devices have not.
#[tokio::test]
async fn the_cpu_has_all_states() {
    let (context, plain) = (on("cpu").await, on("off").await);
    let sql = [
        "SELECT i32, min(f64), max(f32), sum(g64), avg(f64) FROM t GROUP BY i32",
        "SELECT day, count(v), min(v), max(s), count(*) FILTER (WHERE b), sum(d38) FROM t GROUP BY day",
        "SELECT i64 + j64 AS x, u32, count(DISTINCT u64) FROM t GROUP BY 1, 2",
        "SELECT u64, var_pop(i8), stddev(f64), corr(f64, g64), bit_xor(i16), bool_and(c) FROM t GROUP BY u64",
        "SELECT i16, avg(d9) FROM t WHERE i8 % 3 = 1 GROUP BY i16 HAVING count(*) > 1",
    ];
    check_with(&context, &plain, &sql, false).await;
}

/// A first step leaves the groups that it has as soon as they take more memory than there is, and groups no
/// more if nearly each row has its own. The last step has the same answers.
#[tokio::test]
async fn the_first_step_gives_up_what_does_not_pay() {
    let rows = 40_000i64;
    let key = Int64Array::from_iter((0..rows).map(|row| (row % 31 != 0).then_some(row * 7 % 30_011)));
    let value = Int32Array::from_iter_values((0..rows).map(|row| row as i32 % 1000));
    let unique = Int64Array::from_iter_values((0..rows).map(|row| row * 1_000_003));
    let fields: Vec<(&str, ArrayRef)> =
        vec![("k", Arc::new(key)), ("x", Arc::new(value)), ("one", Arc::new(unique))];
    let batch = RecordBatch::try_from_iter(fields).unwrap();
    let batches: Vec<_> = (0..40).map(|part| batch.slice(part * 1000, 1000)).collect();
    let (context, plain) = (on("cpu").await, on("off").await);
    register(&[&context, &plain], "t", batches.clone());
    let skips = "SET datafusion.execution.skip_partial_aggregation_probe_rows_threshold = 3000";
    answer(&context, skips).await.unwrap();
    for sql in [
        "SELECT one, count(*), sum(x), avg(x), min(x) FILTER (WHERE x > 500) FROM t GROUP BY one",
        "SELECT k, count(*), sum(x) FROM t GROUP BY k",
    ] {
        assert!(same(&context, &plain, sql).await, "{sql}");
        let text =
            crate::support::rows(&context, &format!("EXPLAIN ANALYZE {sql}")).await.unwrap().join("\n");
        let skipped =
            text.split("skipped_aggregation_rows=").nth(1).and_then(|rest| rest.split([',', ']']).next());
        assert_ne!(skipped, Some("0"), "{text}");
    }
    // A pool that is too small for all groups of the first step.
    let limited = pooled(Arc::new(GreedyMemoryPool::new(1 << 20)), "cpu").await;
    register(&[&limited], "t", batches);
    answer(&limited, "SET datafusion.execution.skip_partial_aggregation_probe_ratio_threshold = 1")
        .await
        .unwrap();
    let sql = "SELECT k, sum(x), avg(x) FROM t GROUP BY k";
    assert!(same(&limited, &plain, sql).await);
    let made = plan(&limited, sql).await;
    let groups = run(&limited, made.clone()).await.unwrap().iter().map(RecordBatch::num_rows).sum();
    assert!(rows_of_first_step(&made) > Some(groups));
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

/// Groups that take more memory than a session allows are spilled to host memory.
#[tokio::test]
async fn groups_beyond_a_limit_are_spilled() {
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

/// In one step, DataFusion answers these differently than in two. So one step stays one.
#[tokio::test]
async fn single_steps_stay_single_if_two_answer_differently() {
    let columns = [
        ("k", Arc::new(Int64Array::from(vec![1, 1, 2, 2, 3])) as ArrayRef),
        (
            "x",
            Arc::new(Float64Array::from(vec![f64::NAN, f64::INFINITY, f64::NAN, f64::NEG_INFINITY, 1e200])),
        ),
        ("n", Arc::new(Int64Array::from(vec![3, 3, 5, 9, 0]))),
    ];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let contexts = [on("cpu").await, on("off").await];
    for context in &contexts {
        context.sql("SET datafusion.execution.target_partitions = 1").await.unwrap();
        let table = MemTable::try_new(batch.schema(), vec![vec![batch.clone()]]).unwrap();
        context.register_table("t", Arc::new(table)).unwrap();
    }
    for (sql, is_ours) in [
        ("SELECT k, min(x) FROM t GROUP BY k", false),
        ("SELECT k, max(x), sum(n) FROM t GROUP BY k", false),
        ("SELECT k, var_pop(x), stddev_pop(x) FROM t GROUP BY k", false),
        ("SELECT k, bit_xor(DISTINCT n) FILTER (WHERE n > 0) FROM t GROUP BY k", false),
        ("SELECT k, min(n), max(n), sum(n), avg(n), count(x), bit_or(n) FROM t GROUP BY k", true),
    ] {
        assert_eq!(same(&contexts[0], &contexts[1], sql).await, is_ours, "{sql}");
    }
}
