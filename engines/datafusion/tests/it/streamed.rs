//! Tables whose rows come from streams, some of which never end.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use bowstring_datafusion::why_not;
use datafusion::arrow::array::{ArrayRef, Int64Array, RecordBatch};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::streaming::StreamingTable;
use datafusion::common::{ScalarValue, SplitPoint};
use datafusion::execution::TaskContext;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{PhysicalSortExpr, RangePartitioning};
use datafusion::physical_plan::execution_plan::reset_plan_states;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::PartitionStream;
use datafusion::physical_plan::{Partitioning, SendableRecordBatchStream, displayable};
use datafusion::prelude::SessionContext;
use futures::{StreamExt, stream};
use tokio::time::timeout;

use crate::support::*;

/// A partition with one batch, after which it ends, or only waits.
#[derive(Debug)]
struct Streamed {
    schema: SchemaRef,
    batch: RecordBatch,
    ends: bool,
}

/// A partition with one row, the number of earlier runs.
#[derive(Debug)]
struct Runs {
    schema: SchemaRef,
    runs: AtomicI64,
}

impl PartitionStream for Runs {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _: Arc<TaskContext>) -> SendableRecordBatchStream {
        let runs = self.runs.fetch_add(1, Ordering::Relaxed);
        let row = stream::iter([Ok(numbers(runs..runs + 1))]);
        Box::pin(RecordBatchStreamAdapter::new(self.schema.clone(), row))
    }
}

impl PartitionStream for Streamed {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _: Arc<TaskContext>) -> SendableRecordBatchStream {
        let first = stream::iter([Ok(self.batch.clone())]);
        match self.ends {
            true => Box::pin(RecordBatchStreamAdapter::new(self.schema.clone(), first)),
            false => {
                let rows = first.chain(stream::pending());
                Box::pin(RecordBatchStreamAdapter::new(self.schema.clone(), rows))
            }
        }
    }
}

/// A batch of the columns `x`, some numbers, and `y`, their doubles.
fn numbers(numbers: impl Iterator<Item = i64> + Clone) -> RecordBatch {
    let (x, y) = (numbers.clone(), numbers.map(|x| 2 * x));
    let columns: [(&str, ArrayRef); 2] =
        [("x", Arc::new(Int64Array::from_iter_values(x))), ("y", Arc::new(Int64Array::from_iter_values(y)))];
    RecordBatch::try_from_iter(columns).unwrap()
}

/// A table with a partition for each batch.
fn table(batches: Vec<RecordBatch>, ends: bool) -> StreamingTable {
    let schema = batches[0].schema();
    let partition = |batch| Arc::new(Streamed { schema: schema.clone(), batch, ends }) as _;
    let partitions = batches.into_iter().map(partition).collect();
    StreamingTable::try_new(schema.clone(), partitions).unwrap().with_infinite_table(!ends)
}

fn register_table(contexts: &[&SessionContext], name: &str, table: impl Fn() -> StreamingTable) {
    for context in contexts {
        context.register_table(name, Arc::new(table())).unwrap();
    }
}

/// Two partitions of numbers, each with those of a range.
fn ranges() -> StreamingTable {
    let parts = vec![numbers((0..50).chain(10..20)), numbers((50..100).chain(70..80))];
    let x = PhysicalSortExpr::new_default(Arc::new(Column::new("x", 0)));
    let second = SplitPoint::new(vec![ScalarValue::Int64(Some(50))]);
    let range = RangePartitioning::try_new([x].into(), vec![second]).unwrap();
    table(parts, true).with_output_partitioning(Partitioning::Range(range))
}

/// A device would wait for more rows than there are.
#[tokio::test]
async fn inputs_that_never_end_are_left_to_datafusion() {
    let context = on("emulator").await;
    register(&[&context], "t", vec![numbers(0..100)]);
    register_table(&[&context], "endless", || table(vec![numbers(0..20)], false));
    let cases: &[(&str, &[&str])] = &[
        ("SELECT x FROM endless WHERE y > 4 LIMIT 3", &["FilterExec"]),
        ("SELECT x + y AS a, x - y AS b FROM endless LIMIT 3", &["ProjectionExec"]),
        ("SELECT e.x FROM endless AS e JOIN t ON e.x = t.x LIMIT 3", &["HashJoinExec"]),
    ];
    for (sql, declined) in cases {
        let plan = plan(&context, sql).await;
        let why = why_not(&plan, context.copied_config().options()).unwrap();
        let why: Vec<String> = why.iter().map(ToString::to_string).collect();
        let expected = declined
            .iter()
            .map(|node| format!("{node}: its input never ends, and devices wait for many rows"));
        assert_eq!(why, expected.collect::<Vec<_>>(), "{sql}");
        let ended = timeout(Duration::from_secs(30), run(&context, plan)).await;
        let ended = ended.unwrap_or_else(|_| panic!("{sql} does not end")).unwrap();
        assert_eq!(ended.iter().map(RecordBatch::num_rows).sum::<usize>(), 3, "{sql}");
    }
}

/// A filter by the keys of a join does not keep rows back while an endless input pauses.
#[tokio::test]
async fn endless_inputs_are_filtered_by_keys_at_once() {
    let context = on("cpu").await;
    for setting in ["bowstring.always = false", "datafusion.execution.target_partitions = 1"] {
        answer(&context, &format!("SET {setting}")).await.unwrap();
    }
    register(&[&context], "t", vec![numbers(0..100)]);
    register_table(&[&context], "endless", || table(vec![numbers(0..20)], false));
    let sql = "SELECT e.x FROM endless AS e JOIN t ON e.x = t.x WHERE t.y < 20 LIMIT 3";
    let plan = plan(&context, sql).await;
    let text = displayable(plan.as_ref()).indent(false).to_string();
    assert!(text.contains("KeyFilterExec: filter"), "{text}");
    let ended = timeout(Duration::from_secs(30), run(&context, plan)).await.expect("it ends").unwrap();
    assert_eq!(ended.iter().map(RecordBatch::num_rows).sum::<usize>(), 3);
}

/// Ranges of keys are partitions as good as those of hashes: nodes above that need them get them.
#[tokio::test]
async fn partitions_of_ranges_stay_as_they_are() {
    let (context, plain) = (on("emulator").await, on("off").await);
    register_table(&[&context, &plain], "ranges", ranges);
    for context in [&context, &plain] {
        answer(context, "SET datafusion.optimizer.prefer_hash_join = false").await.unwrap();
    }
    for sql in [
        // The keys of the groups have another name below.
        "SELECT k, sum(z) FROM (SELECT x AS k, x * y AS z FROM ranges) GROUP BY k",
        // The window is below a filter without a counterpart, and that below a join of partitions.
        "SELECT l.x, l.r, m.y FROM ranges AS m JOIN (\
         SELECT x, row_number() OVER (PARTITION BY x ORDER BY y) AS r FROM ranges WHERE y > 4) AS l \
         ON l.x = m.x AND reverse(CAST(l.r AS VARCHAR)) <> '3'",
    ] {
        let text = displayable(plan(&plain, sql).await.as_ref()).indent(true).to_string();
        assert!(!text.contains("RepartitionExec"), "{text}");
        assert!(same(&context, &plain, sql).await, "{sql}");
    }
}

/// A plan that runs again has the values that its subqueries have then.
#[tokio::test]
async fn subqueries_have_the_values_of_each_run() {
    for device in ["cpu", "emulator"] {
        let context = on(device).await;
        register(&[&context], "t", vec![numbers(0..10)]);
        let partition = Arc::new(Runs { schema: numbers(0..0).schema(), runs: AtomicI64::new(0) });
        let runs = StreamingTable::try_new(partition.schema.clone(), vec![partition]).unwrap();
        context.register_table("runs", Arc::new(runs)).unwrap();
        let mut plan = plan(&context, "SELECT x FROM t WHERE y < (SELECT max(x) FROM runs) * 2").await;
        assert!(ours_has(&plan, "scalar_subquery"), "{plan:?}");
        for before in 0..3 {
            let found = run(&context, plan.clone()).await.unwrap();
            assert_eq!(found.iter().map(RecordBatch::num_rows).sum::<usize>(), before, "{device}");
            plan = reset_plan_states(plan).unwrap();
        }
    }
}
