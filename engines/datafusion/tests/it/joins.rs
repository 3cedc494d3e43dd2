//! Joins with our operators against DataFusion alone.

use std::sync::Arc;

use datafusion::arrow::array::*;
use datafusion::execution::memory_pool::{GreedyMemoryPool, MemoryPool};
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties as _};
use futures::StreamExt;

use crate::devices::pooled;
use crate::support::*;

const DEVICES: [&str; 2] = ["cpu", "emulator"];

/// Whether a plan has a join of ours, and none of DataFusion's.
fn only_ours_joins(plan: &Arc<dyn ExecutionPlan>) -> bool {
    fn theirs(plan: &Arc<dyn ExecutionPlan>) -> bool {
        plan.is::<HashJoinExec>() || plan.children().into_iter().any(theirs)
    }
    ours_has(plan, "join=") && !theirs(plan)
}

/// Checks queries over two tables of random rows, with the left side shared by the right partitions, and with
/// both sides partitioned.
async fn check(sql: &[&str], tame: bool) {
    for device in DEVICES {
        for shared in [true, false] {
            let (context, plain) = (on(device).await, on("off").await);
            for context in [&context, &plain] {
                if !shared {
                    partition(context).await;
                }
            }
            for seed in 0..3 {
                register(&[&context, &plain], "t", batches(seed, tame));
                register(&[&context, &plain], "u", batches(seed + 50, tame));
                for sql in sql {
                    same(&context, &plain, sql).await;
                    let plan = plan(&context, sql).await;
                    assert!(only_ours_joins(&plan), "{device}, shared {shared}: {sql}");
                }
            }
        }
    }
}

/// Makes a session partition both sides of its joins.
pub async fn partition(context: &datafusion::prelude::SessionContext) {
    for name in ["hash_join_single_partition_threshold", "hash_join_single_partition_threshold_rows"] {
        answer(context, &format!("SET datafusion.optimizer.{name} = 0")).await.unwrap();
    }
}

#[tokio::test]
async fn pairs_are_datafusions() {
    let sql = [
        "SELECT t.i32, u.i64, t.v, u.s FROM t JOIN u ON t.i8 = u.i8",
        "SELECT t.d15, u.d9, u.b FROM t LEFT JOIN u ON t.i32 = u.i32 AND t.b = u.b",
        "SELECT t.at, u.k FROM t RIGHT JOIN u ON t.v = u.v AND t.d9 = u.d9",
        "SELECT t.i64, u.i64, t.c FROM t FULL JOIN u ON t.i64 = u.i64 AND t.s = u.s",
        "SELECT count(*), sum(t.d15) FROM t JOIN u ON t.day = u.day AND t.u8 = u.u8",
        "SELECT t.w FROM t JOIN u ON t.i8 + 1 = u.i8 - 1 WHERE t.i32 < 50 AND u.c",
    ];
    check(&sql, true).await;
}

/// On the CPU, inner and outer joins that return no text pay, and others are DataFusion's.
#[tokio::test]
async fn joins_of_numbers_pay_on_the_cpu() {
    for shared in [true, false] {
        let (context, plain) = (on("cpu").await, on("off").await);
        answer(&context, "SET bowstring.always = false").await.unwrap();
        for context in [&context, &plain] {
            if !shared {
                partition(context).await;
            }
        }
        for seed in 0..4 {
            let tame = seed % 2 == 0;
            register(&[&context, &plain], "t", batches(seed, tame));
            register(&[&context, &plain], "u", batches(seed + 50, tame));
            for (sql, taken) in [
                ("SELECT t.i32, u.d15, t.b FROM t JOIN u ON t.i8 = u.i8 WHERE t.i32 < 30", true),
                ("SELECT t.d15, u.f64, u.b FROM t LEFT JOIN u ON t.i32 = u.i32 AND t.b = u.b", true),
                ("SELECT t.at, u.i16 FROM t RIGHT JOIN u ON t.d9 = u.d9 AND t.u8 = u.u8", true),
                ("SELECT t.i64, u.i64, t.c FROM t FULL JOIN u ON t.i64 = u.i64 AND t.day = u.day", true),
                ("SELECT t.i64, u.f32 FROM t JOIN u ON t.f64 = u.f64 WHERE u.i32 < 70", true),
                (
                    "SELECT t.b, count(u.i64), sum(u.d9) FROM t LEFT JOIN u ON t.i16 = u.i16 AND u.v LIKE '%a%b%' \
                     GROUP BY t.b",
                    true,
                ),
                ("SELECT t.i32, u.s FROM t JOIN u ON t.i8 = u.i8", false),
                ("SELECT t.i32, u.i64 FROM t JOIN u ON t.v = u.v", false),
                ("SELECT t.i32, u.i64 FROM t JOIN u ON t.i8 = u.i8 AND t.i32 < u.i32", false),
                ("SELECT i32 FROM t WHERE i8 IN (SELECT i8 FROM u)", false),
            ] {
                same(&context, &plain, sql).await;
                let plan = plan(&context, sql).await;
                assert_eq!(ours_has(&plan, "join="), taken, "shared {shared}: {sql}");
            }
        }
    }
}

/// On the CPU, the left rows take memory of the session while the join runs.
#[tokio::test]
async fn left_rows_take_memory_on_the_cpu() {
    let pool = Arc::new(GreedyMemoryPool::new(1 << 30));
    let context = pooled(pool.clone(), "cpu").await;
    answer(&context, "SET bowstring.always = false").await.unwrap();
    let rows = |name: &str, factor: i64| {
        let numbers =
            |factor: i64| Arc::new(Int64Array::from_iter_values((0..300_000).map(|row| row * factor)));
        let columns: [(&str, ArrayRef); 2] = [("k", numbers(1)), (name, numbers(factor))];
        let all = RecordBatch::try_from_iter(columns).unwrap();
        (0..300).map(|part| all.slice(part * 1000, 1000)).collect::<Vec<_>>()
    };
    register(&[&context], "t", rows("a", 3));
    register(&[&context], "u", rows("b", 5));
    let plan = plan(&context, "SELECT t.a, u.b FROM t JOIN u ON t.k = u.k").await;
    assert!(ours_has(&plan, "join="));
    let mut stream = datafusion::physical_plan::execute_stream(plan.clone(), context.task_ctx()).unwrap();
    let first = stream.next().await.unwrap().unwrap();
    assert!(first.num_rows() > 0);
    // 300,000 rows of two numbers.
    assert!(pool.reserved() >= 300_000 * 16, "{}", pool.reserved());
    drop((stream, plan));
    // Tasks end when they are polled next.
    for _ in 0..1000 {
        if pool.reserved() > 0 {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    }
    assert_eq!(pool.reserved(), 0);
    // A pool for fewer is an error, or enough if rows are spilled; never another answer.
    for most in [1 << 18, 1 << 20, 1 << 22, 1 << 24] {
        let context = pooled(Arc::new(GreedyMemoryPool::new(most)), "cpu").await;
        answer(&context, "SET bowstring.always = false").await.unwrap();
        register(&[&context], "t", rows("a", 3));
        register(&[&context], "u", rows("b", 5));
        let sql = "SELECT count(*), sum(a + b) FROM t JOIN u ON t.k = u.k";
        match answer(&context, sql).await {
            Ok(made) => {
                assert_eq!(texts(&made[0]), [format!("300000|{}", 8 * 299_999i64 * 150_000)], "{most}")
            }
            Err(error) => assert_eq!(class(&error), "resources", "{most}"),
        }
    }
}

/// On the CPU, the partitions of a join are threads, which a right side in one partition does not take away.
#[tokio::test]
async fn joins_on_the_cpu_keep_their_partitions() {
    let (context, plain) = (on("cpu").await, on("off").await);
    answer(&context, "SET bowstring.always = false").await.unwrap();
    for context in [&context, &plain] {
        partition(context).await;
        answer(context, "SET datafusion.execution.target_partitions = 4").await.unwrap();
    }
    register(&[&context, &plain], "t", batches(1, true));
    register(&[&context, &plain], "u", batches(2, true));
    let sql =
        "SELECT t.i64, u.i64 FROM t JOIN (SELECT * FROM u ORDER BY i64, i32 LIMIT 50) AS u ON t.i8 = u.i8";
    same(&context, &plain, sql).await;
    let (ours, theirs) = (plan(&context, sql).await, plan(&plain, sql).await);
    let partitions = |plan: &Arc<dyn ExecutionPlan>| plan.output_partitioning().partition_count();
    assert_eq!(partitions(&ours), partitions(&theirs));
}

#[tokio::test]
async fn rows_of_one_side_are_datafusions() {
    let sql = [
        "SELECT i32, v FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.i32 = t.i32)",
        "SELECT i32, v FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.i32 = t.i32 AND u.s = t.s)",
        "SELECT i8, s FROM t WHERE i8 IN (SELECT i8 + 1 FROM u WHERE b)",
        "SELECT i64, b FROM t WHERE b OR i64 IN (SELECT i64 FROM u)",
        "SELECT d15 FROM t LEFT SEMI JOIN u ON t.i32 = u.i32",
        "SELECT u.d15 FROM t RIGHT SEMI JOIN u ON t.i32 = u.i32",
        "SELECT d15 FROM t LEFT ANTI JOIN u ON t.i32 = u.i32",
        "SELECT u.d15 FROM t RIGHT ANTI JOIN u ON t.i32 = u.i32",
    ];
    check(&sql, true).await;
}

/// A condition besides the keys decides which pairs count.
#[tokio::test]
async fn conditions_are_datafusions() {
    let sql = [
        "SELECT t.i32, u.i64 FROM t JOIN u ON t.i8 = u.i8 AND t.i64 < u.i64 + 3",
        "SELECT t.i32, u.i32, u.v FROM t LEFT JOIN u ON t.i8 = u.i8 AND t.d15 * 2 > u.d9",
        "SELECT t.v, u.i32 FROM t RIGHT JOIN u ON t.i8 = u.i8 AND t.f64 < u.g64",
        "SELECT t.i32, u.i32 FROM t FULL JOIN u ON t.i8 = u.i8 AND (t.b OR u.c)",
        "SELECT i32 FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.i8 = t.i8 AND u.i64 <> t.i64)",
        "SELECT i32 FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.i8 = t.i8 AND u.s < t.s)",
    ];
    check(&sql, false).await;
}

/// DataFusion's keys have one zero, and tell NaNs apart by their bits.
#[tokio::test]
async fn zeros_and_nulls_are_equal_as_datafusion_has_it() {
    let sql = [
        "SELECT t.f64, u.f64, t.i32 FROM t JOIN u ON t.f64 = u.f64",
        "SELECT t.f32, u.f32 FROM t FULL JOIN u ON t.f32 = u.f32 AND t.b = u.b",
        "SELECT t.f64, u.g64 FROM t JOIN u ON t.f64 IS NOT DISTINCT FROM u.g64",
        "SELECT i8, f32 FROM t INTERSECT SELECT i8, f32 FROM u",
        "SELECT i8, f64, v FROM t EXCEPT SELECT i8, g64, w FROM u",
    ];
    check(&sql, false).await;
}

/// `NOT IN` is true of no row if there is a null among the others.
#[tokio::test]
async fn not_in_is_aware_of_nulls() {
    for device in DEVICES {
        let (context, plain) = (on(device).await, on("off").await);
        register(&[&context, &plain], "t", batches(3, true));
        register(&[&context, &plain], "u", batches(4, true));
        for others in ["i32 > 1000", "i32 < 30", "i32 < 30 OR i32 IS NULL", "i32 IS NULL"] {
            let sql = format!("SELECT i32, s FROM t WHERE i32 NOT IN (SELECT i32 FROM u WHERE {others})");
            same(&context, &plain, &sql).await;
            assert!(only_ours_joins(&plan(&context, &sql).await), "{device}: {sql}");
        }
    }
}

/// Rows come in the order of the right ones, whatever the device, so that orders above stay right.
#[tokio::test]
async fn right_rows_keep_their_order() {
    for device in DEVICES {
        let (context, plain) = (on(device).await, on("off").await);
        register(&[&context, &plain], "t", batches(1, true));
        register(&[&context, &plain], "u", batches(2, true));
        for sql in [
            "SELECT u.i64, t.s FROM t JOIN (SELECT * FROM u ORDER BY i64 LIMIT 90) u ON t.i8 = u.i8 \
             ORDER BY u.i64",
            "SELECT t.i32, u.v FROM t JOIN u ON t.i8 = u.i8 ORDER BY t.i32, u.v LIMIT 20",
        ] {
            let (mut a, mut b) = (rows(&context, sql).await.unwrap(), rows(&plain, sql).await.unwrap());
            let keys = |rows: &[String]| -> Vec<String> {
                rows.iter().map(|row| row.split('|').next().unwrap_or_default().to_owned()).collect()
            };
            assert_eq!(keys(&a), keys(&b), "{device}: {sql}");
            a.sort();
            b.sort();
            assert_eq!(a, b, "{device}: {sql}");
        }
    }
}

#[tokio::test]
async fn sides_may_be_empty_and_limits_end_them() {
    for device in DEVICES {
        let (context, plain) = (on(device).await, on("off").await);
        let none = RecordBatch::new_empty(schema());
        register(&[&context, &plain], "none", vec![none]);
        register(&[&context, &plain], "t", batches(5, true));
        for kind in ["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN"] {
            for (left, right) in [("t", "none"), ("none", "t"), ("none", "none")] {
                let sql = format!("SELECT * FROM {left} AS l {kind} {right} AS r ON l.i32 = r.i32");
                same(&context, &plain, &sql).await;
            }
            let sql = format!("SELECT l.i32 FROM t AS l {kind} t AS r ON l.i32 = r.i32");
            let all = rows(&plain, &sql).await.unwrap().len();
            for limit in [0, 1, 60, 1_000_000] {
                let some = rows(&context, &format!("{sql} LIMIT {limit}")).await.unwrap();
                assert_eq!(some.len(), all.min(limit), "{device}: {sql} LIMIT {limit}");
            }
        }
    }
}

/// An operator of ours reads the rows that another leaves on the device: no row comes down, only sums.
#[tokio::test]
async fn rows_between_operators_stay_on_the_device() {
    let context = on("emulator").await;
    let (t, u) = (batches(1, true), batches(2, true));
    let count = |batches: &[RecordBatch]| batches.iter().map(|batch| batch.num_rows() as u64).sum::<u64>();
    // Each table is uploaded where it is read, once.
    let uploaded = count(&u) + 2 * count(&t);
    register(&[&context], "t", t);
    register(&[&context], "u", u);
    let sql = "SELECT sum(t.d15), count(*) FROM (SELECT i32, i64 FROM u WHERE i8 < 90) AS u \
               JOIN t ON t.i32 = u.i32 JOIN t AS v ON v.i64 = u.i64 WHERE t.i8 < v.i8 + 5";
    for shared in [true, false] {
        if !shared {
            partition(&context).await;
        }
        let text = rows(&context, &format!("EXPLAIN ANALYZE {sql}")).await.unwrap().join("\n");
        assert_eq!(text.matches("join=Inner").count(), 2, "{text}");
        assert!(!text.contains("RepartitionExec: partitioning=Hash"), "{text}");
        assert_eq!(counted(&text, "rows_down="), 0, "{text}");
        assert_eq!(counted(&text, "rows_up="), uploaded, "{text}");
    }
}

/// Groups above a join are partitioned by their own keys, so the partitions of its rows do not matter.
#[tokio::test]
async fn a_join_below_groups_of_datafusion_shares_its_left_side() {
    for device in DEVICES {
        let (context, plain) = (on(device).await, on("off").await);
        for context in [&context, &plain] {
            partition(context).await;
        }
        register(&[&context, &plain], "t", batches(1, true));
        register(&[&context, &plain], "u", batches(2, true));
        let sql = "SELECT t.i8, median(u.i64) FROM t JOIN u ON t.i32 = u.i32 GROUP BY t.i8";
        same(&context, &plain, sql).await;
        let plan = plan(&context, sql).await;
        assert!(ours_has(&plan, "join=Inner, mode=CollectLeft"), "{device}");
        let text = rows(&context, &format!("EXPLAIN {sql}")).await.unwrap().join("\n");
        assert_eq!(text.matches("RepartitionExec: partitioning=Hash").count(), 1, "{device}: {text}");
    }
}

/// The bounds of left keys reach the scan of the right side, which then reads less.
#[tokio::test]
async fn scans_read_what_left_keys_can_match() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("wide.parquet");
    let plain = on("off").await;
    let numbers = Int64Array::from_iter_values(0..20_000);
    let columns: Vec<(&str, ArrayRef)> = vec![("n", Arc::new(numbers.clone())), ("x", Arc::new(numbers))];
    register(&[&plain], "wide", vec![RecordBatch::try_from_iter(columns).unwrap()]);
    answer(&plain, "SET datafusion.execution.parquet.max_row_group_size = 1000").await.unwrap();
    let written = plain.table("wide").await.unwrap().write_parquet(
        path.to_str().unwrap(),
        datafusion::dataframe::DataFrameWriteOptions::new(),
        None,
    );
    written.await.unwrap();
    for device in DEVICES {
        let context = on(device).await;
        let few = Int64Array::from(vec![Some(5_100), None, Some(5_900), Some(5_101)]);
        let few = RecordBatch::try_from_iter([("k", Arc::new(few) as ArrayRef)]).unwrap();
        register(&[&context], "few", vec![few]);
        context.register_parquet("wide", path.to_str().unwrap(), Default::default()).await.unwrap();
        let sql = "SELECT few.k, wide.x FROM few JOIN wide ON few.k = wide.n";
        assert!(only_ours_joins(&plan(&context, sql).await), "{device}");
        let mut found = rows(&context, sql).await.unwrap();
        found.sort();
        assert_eq!(found, ["5100|5100", "5101|5101", "5900|5900"], "{device}");
        let text = rows(&context, &format!("EXPLAIN ANALYZE {sql}")).await.unwrap().join("\n");
        assert!(text.contains("n@0 >= 5100 AND n@0 <= 5900"), "{text}");
        assert!(counted(&text, " input_rows=") <= 2_000, "{text}");
    }
}

/// The left rows without partner are those of each run, unless partitions share the left side.
#[tokio::test]
async fn a_plan_that_runs_twice_gives_the_same_rows() {
    for device in DEVICES {
        let context = on(device).await;
        answer(&context, "SET datafusion.execution.target_partitions = 1").await.unwrap();
        register(&[&context], "t", batches(5, true));
        register(&[&context], "u", batches(6, true));
        for kind in ["LEFT", "FULL", "LEFT ANTI", "LEFT SEMI", "INNER"] {
            let sql = format!("SELECT t.i64, t.v FROM t {kind} JOIN u ON t.i32 = u.i32");
            let plan = plan(&context, &sql).await;
            assert!(only_ours_joins(&plan), "{device}: {sql}");
            let mut runs = vec![];
            for _ in 0..3 {
                let batches = run(&context, plan.clone()).await.unwrap();
                let mut found: Vec<String> = batches.iter().flat_map(texts).collect();
                found.sort();
                runs.push(found);
            }
            assert!(!runs[0].is_empty() && runs.iter().all(|one| *one == runs[0]), "{device}: {sql}");
        }
    }
}

#[tokio::test]
async fn what_has_no_counterpart_stays() {
    let context = on("emulator").await;
    register(&[&context], "t", batches(3, true));
    for sql in [
        "SELECT 1 FROM t AS l JOIN t AS r ON l.k = r.k",
        "SELECT 1 FROM t AS l JOIN t AS r ON l.i32 = r.i32 AND upper(l.s) < r.s",
    ] {
        assert!(!ours_has(&plan(&context, sql).await, "join="), "{sql}");
    }
}
