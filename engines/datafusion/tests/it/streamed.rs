//! Tables whose rows come from streams, some of which never end.

use std::sync::Arc;
use std::time::Duration;

use bowstring_datafusion::why_not;
use datafusion::arrow::array::{ArrayRef, Int64Array, RecordBatch};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::streaming::StreamingTable;
use datafusion::execution::TaskContext;
use datafusion::physical_plan::SendableRecordBatchStream;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::PartitionStream;
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
