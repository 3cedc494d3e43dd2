//! Tests which plans get our operators, and that these report the same properties as DataFusion's.

use std::sync::Arc;

use bowstring_datafusion::{DeviceExec, session};
use datafusion::physical_plan::displayable;
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties as _};
use datafusion::prelude::{SessionConfig, SessionContext};

use crate::support::*;

const SIX: &str = "SELECT sum(d15 * d9) FROM t WHERE day >= DATE '1970-01-02' AND day < DATE '1970-03-01' \
                   AND d9 BETWEEN 0.05 AND 70.07 AND i32 < 24";

async fn usual(device: &str) -> SessionContext {
    let context = session(SessionConfig::new().with_target_partitions(2));
    context.sql(&format!("SET bowstring.device = '{device}'")).await.unwrap();
    register(&[&context], "t", batches(1, true));
    context
}

fn text(plan: &Arc<dyn ExecutionPlan>) -> String {
    displayable(plan.as_ref()).indent(true).to_string()
}

fn found(plan: &Arc<dyn ExecutionPlan>) -> Option<&DeviceExec> {
    plan.downcast_ref::<DeviceExec>().or_else(|| plan.children().into_iter().find_map(found))
}

#[tokio::test]
async fn a_filter_and_an_aggregate_are_one_operator() {
    let plan = plan(&usual("cpu").await, SIX).await;
    let text = text(&plan);
    assert_eq!(ours(&plan), 1, "{text}");
    assert!(text.contains("filter=[") && text.contains("aggregate=[sum(t.d15 * t.d9)]"), "{text}");
    assert!(text.contains("DeviceExec: device=") && !text.contains("FilterExec"), "{text}");
}

/// On a device, so is an aggregate of all rows in all partitions, with what is computed from it.
#[tokio::test]
async fn an_aggregate_of_all_rows_is_one_operator() {
    let (context, plain) = (on("emulator").await, on("off").await);
    for context in [&context, &plain] {
        context.sql("SET datafusion.execution.target_partitions = 3").await.unwrap();
    }
    register(&[&context, &plain], "t", batches(1, true));
    for sql in [
        SIX,
        "SELECT 100.00 * sum(d15) / sum(d9) AS x, count(*) + 1 AS n FROM t WHERE i32 > 3",
        "SELECT avg(d15) / 7 AS x, max(v) AS y FROM (SELECT * FROM t WHERE b UNION ALL SELECT * FROM t)",
        "SELECT x + 1 FROM (SELECT sum(i64) * 2 AS x FROM t) WHERE x <> 5",
    ] {
        assert!(same(&context, &plain, sql).await, "{sql}");
        let text = text(&plan(&context, sql).await);
        assert!(!text.contains("AggregateExec") && !text.contains("CoalescePartitions"), "{text}");
    }
    let plan = plan(&context, SIX).await;
    assert_eq!(ours(&plan), 1);
    let found = found(&plan).unwrap();
    assert_eq!(found.properties().output_partitioning().partition_count(), 1);
    assert_eq!(found.schema(), found.replaced()[0].schema());
}

#[tokio::test]
async fn off_leaves_plans_alone() {
    assert_eq!(ours(&plan(&usual("off").await, SIX).await), 0);
}

#[tokio::test]
async fn unknown_devices_are_errors() {
    let context = usual("tpu").await;
    let error = context.sql(SIX).await.unwrap().create_physical_plan().await.unwrap_err();
    assert!(error.to_string().contains("bowstring.device is \"tpu\""), "{error}");
}

#[tokio::test]
async fn few_rows_stay_on_the_host() {
    let context = usual("emulator").await;
    assert_eq!(ours(&plan(&context, SIX).await), 0);
    context.sql("SET bowstring.device_min_rows = 1").await.unwrap();
    assert_eq!(ours(&plan(&context, SIX).await), 1);
}

/// Schema, ordering, partitions and statistics equal those of the replaced nodes.
#[tokio::test]
async fn operators_say_what_those_they_stand_for_said() {
    let context = usual("cpu").await;
    for sql in [
        SIX,
        "SELECT i32, i64 + 1 AS x FROM t WHERE i32 = 5 AND b",
        "SELECT i32 FROM t WHERE i32 < 5 LIMIT 3",
        "SELECT i64 + 1 AS x, j64 * 2 AS y FROM t",
    ] {
        let plan = plan(&context, sql).await;
        let ours = found(&plan).unwrap_or_else(|| panic!("{sql}: {}", text(&plan)));
        let original = &ours.replaced()[0];
        assert_eq!(ours.schema(), original.schema());
        // Unknown partitionings compare unequal, so their text is compared.
        let partitioning = |plan: &dyn ExecutionPlan| plan.properties().output_partitioning().to_string();
        assert_eq!(partitioning(ours), partitioning(original.as_ref()));
        assert_eq!(ours.properties().output_ordering(), original.output_ordering());
        assert_eq!(ours.fetch(), original.fetch());
        let statistics = |plan: &dyn ExecutionPlan| {
            StatisticsContext::new().compute(plan, &StatisticsArgs::new()).unwrap()
        };
        assert_eq!(statistics(ours), statistics(original.as_ref()));
    }
}

#[tokio::test]
async fn orders_are_kept() {
    let (context, plain) = (on("cpu").await, on("off").await);
    register(&[&context, &plain], "t", batches(7, true));
    let sql = "SELECT i64, j64 + 1 FROM (SELECT * FROM t ORDER BY i64, j64, d15, f64) WHERE i32 < 50";
    let (a, b) = (rows(&context, sql).await.unwrap(), rows(&plain, sql).await.unwrap());
    let keys = |rows: &[String]| {
        rows.iter().map(|row| row.split('|').next().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(keys(&a), keys(&b));
}

#[tokio::test]
async fn limits_end_partitions() {
    for device in ["cpu", "emulator"] {
        let context = on(device).await;
        register(&[&context], "t", batches(5, true));
        for limit in [0, 1, 5, 100, 100_000] {
            let all = rows(&context, "SELECT i32 FROM t WHERE i32 < 50").await.unwrap().len();
            let some =
                rows(&context, &format!("SELECT i32 FROM t WHERE i32 < 50 LIMIT {limit}")).await.unwrap();
            assert_eq!(some.len(), all.min(limit), "{device}");
        }
    }
}

#[tokio::test]
async fn empty_tables_have_empty_answers() {
    for device in ["cpu", "emulator"] {
        let (context, plain) = (on(device).await, on("off").await);
        let none = datafusion::arrow::array::RecordBatch::new_empty(schema());
        register(&[&context, &plain], "t", vec![none]);
        for sql in
            [SIX, "SELECT i32 + 1 FROM t WHERE b", "SELECT count(*), min(i32), avg(d15) FROM t WHERE b"]
        {
            same(&context, &plain, sql).await;
        }
    }
}

/// A subquery's value is known only when the plan runs.
#[tokio::test]
async fn subqueries_have_values_when_the_plan_runs() {
    for device in ["cpu", "emulator"] {
        let (context, plain) = (on(device).await, on("off").await);
        for seed in 0..3 {
            register(&[&context, &plain], "t", batches(seed, true));
            for sql in [
                "SELECT i32, d15 FROM t WHERE d15 > (SELECT avg(d15) FROM t)",
                "SELECT count(*), sum(i64) FROM t WHERE f64 <= (SELECT max(g64) FROM t WHERE b)",
                "SELECT i64 + (SELECT min(i64) FROM t) AS x, j64 * 2 AS y FROM t",
                "SELECT i32 FROM t WHERE i32 > (SELECT i32 FROM t WHERE i32 > 1000)",
                "SELECT i8, sum(d15) AS s FROM t GROUP BY i8 \
                 HAVING sum(d15) > (SELECT avg(d15) * 3 FROM t) ORDER BY s",
            ] {
                same(&context, &plain, sql).await;
                let plan = plan(&context, sql).await;
                assert!(ours_has(&plan, "scalar_subquery") && !text(&plan).contains("FilterExec"), "{sql}");
            }
            // A join's own condition has to be known.
            let join = "SELECT l.i32 FROM t AS l LEFT JOIN t AS r ON l.i64 = r.i64 \
                        AND l.d15 + r.d9 > (SELECT avg(d15) FROM t)";
            same(&context, &plain, join).await;
            assert!(!ours_has(&plan(&context, join).await, "scalar_subquery"));
        }
    }
}

/// A plan over another input is translated again, and gives that input's rows.
#[tokio::test]
async fn plans_take_other_children() {
    for (device, sql) in [("cpu", "SELECT i32, i64 + 1 AS x FROM t WHERE i32 < 5"), ("emulator", SIX)] {
        take_other_children(&usual(device).await, sql).await;
    }
}

async fn take_other_children(context: &SessionContext, sql: &str) {
    context.sql("SET bowstring.device_min_rows = 1").await.unwrap();
    let plan = plan(context, sql).await;
    let mode = datafusion::physical_plan::execution_plan::ChildrenPropertiesMode::Recompute;
    let options = datafusion::physical_plan::execution_plan::ReplaceChildrenOptions::new(mode);
    fn again(
        plan: &Arc<dyn ExecutionPlan>,
        options: datafusion::physical_plan::execution_plan::ReplaceChildrenOptions,
    ) -> Arc<dyn ExecutionPlan> {
        let children = plan.children().into_iter().map(|child| again(child, options)).collect();
        plan.clone().replace_children(children, options).unwrap()
    }
    let new = again(&plan, options);
    assert_eq!(ours(&new), ours(&plan));
    let lines = |batches: Vec<datafusion::arrow::array::RecordBatch>| {
        let mut lines: Vec<String> = batches.iter().flat_map(texts).collect();
        lines.sort();
        lines
    };
    assert_eq!(lines(run(context, new).await.unwrap()), lines(run(context, plan).await.unwrap()));
}

#[tokio::test]
async fn metrics_say_what_was_done() {
    let context = on("emulator").await;
    register(&[&context], "t", batches(4, true));
    let rows = rows(&context, &format!("EXPLAIN ANALYZE {SIX}")).await.unwrap().join("\n");
    for name in ["output_rows=", "elapsed_compute=", "input_rows=", "rows_up=", "bytes_up="] {
        assert!(rows.contains(name), "{name} in {rows}");
    }
    // A metric that was never counted would be shown, too.
    for name in ["launches=", "device_time=", "device_wait="] {
        let value =
            rows.split_once(name).map(|(_, value)| value.split([',', ']']).next().unwrap_or_default());
        let counted = value.is_some_and(|value| value.contains(|digit: char| ('1'..='9').contains(&digit)));
        assert!(counted, "{name} in {rows}");
    }
}
