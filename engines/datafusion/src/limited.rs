//! A limit on rows that are on a device anyway. It copies nothing: its batches are slices of the input's.

use std::fmt;
use std::sync::Arc;

use bowstring::{DeviceBatch, Stream};
use datafusion::error::Result;
use datafusion::physical_plan::limit::{GlobalLimitExec, LocalLimitExec};
use datafusion::physical_plan::{ExecutionPlan, SendableRecordBatchStream};
use futures::StreamExt;

use crate::device::stream_of;
use crate::downloads::{OnDevice, downloaded, left_there};
use crate::error::external;
use crate::metrics::{Busy, Counters};
use crate::operator::{DeviceBatches, Open, Operator, Replaced, Source, Task, replaced};
use crate::streams::{BatchSource, batches_of};
use crate::uploads::uploaded;

/// DataFusion's limit, of all rows or of each partition's.
pub(crate) struct Limited {
    /// DataFusion's node: a list of one.
    node: [Arc<dyn ExecutionPlan>; 1],
    skip: usize,
    fetch: Option<usize>,
    steps: String,
}

impl Limited {
    /// Translates a node; `None` if it is no limit.
    pub fn of(node: &Arc<dyn ExecutionPlan>) -> Option<Limited> {
        let (skip, fetch) = match node.downcast_ref::<GlobalLimitExec>() {
            Some(limit) => (limit.skip(), limit.fetch()),
            None => (0, Some(node.downcast_ref::<LocalLimitExec>()?.fetch())),
        };
        let mut steps = format!("skip={skip}");
        if let Some(rows) = fetch {
            steps += &format!(", fetch={rows}");
        }
        Some(Limited { node: [node.clone()], skip, fetch, steps })
    }

    fn limiting(&self, task: &Task<'_>, source: Source) -> Result<Limiting> {
        let stream = stream_of(task.device)?;
        let counters = Counters::new(task.metrics, task.partition, true);
        let batches = match source {
            Source::Device(batches) => batches,
            Source::Host(rows) => uploaded(rows, task)?,
        };
        let rows_in = counters.rows_in.clone();
        let batches = batches.inspect(move |batch| rows_in.add(batch.as_ref().map_or(0, DeviceBatch::len)));
        let busy = Busy::new(&stream, &counters);
        Ok(Limiting { batches: part_of(batches.boxed(), self.skip, self.fetch), stream, busy, counters })
    }
}

impl fmt::Debug for Limited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Limited({})", self.steps)
    }
}

impl Operator for Limited {
    fn nodes(&self) -> &[Arc<dyn ExecutionPlan>] {
        &self.node
    }

    fn steps(&self) -> &str {
        &self.steps
    }

    fn translated(&self, nodes: Vec<Arc<dyn ExecutionPlan>>) -> Result<Replaced> {
        let ours = Limited::of(&nodes[0]);
        Ok(replaced(nodes[0].clone(), ours))
    }

    fn stays_on_device(&self) -> bool {
        true
    }

    fn execute(&self, task: Task<'_>, open: Open<'_>) -> Result<SendableRecordBatchStream> {
        let limiting = self.limiting(&task, open(0, task.partition)?)?;
        Ok(downloaded(limiting, task.schema.clone(), task.batch_rows()))
    }

    fn execute_on_device(&self, task: Task<'_>, open: Open<'_>) -> Result<DeviceBatches> {
        Ok(left_there(self.limiting(&task, open(0, task.partition)?)?))
    }
}

/// The limited rows of a partition, and what downloads them.
struct Limiting {
    batches: DeviceBatches,
    stream: Stream,
    busy: Busy,
    counters: Counters,
}

impl BatchSource<DeviceBatch> for Limiting {
    async fn next(&mut self) -> Result<Option<DeviceBatch>> {
        self.batches.next().await.transpose()
    }
}

impl OnDevice for Limiting {
    fn counters(&self) -> &Counters {
        &self.counters
    }

    fn stream(&mut self) -> (&Stream, &mut Busy) {
        (&self.stream, &mut self.busy)
    }
}

/// The rows after the first `skip` rows, up to `fetch`. The input is dropped as soon as they are complete.
pub(crate) fn part_of(batches: DeviceBatches, skip: usize, fetch: Option<usize>) -> DeviceBatches {
    match (skip, fetch) {
        (0, None) => batches,
        (_, Some(0)) => futures::stream::empty().boxed(),
        _ => batches_of(Part { batches: Some(batches), skip, left: fetch.unwrap_or(usize::MAX) }).boxed(),
    }
}

struct Part {
    /// The input; `None` once all rows have been returned.
    batches: Option<DeviceBatches>,
    /// The number of rows that are still to be skipped, and to be returned.
    skip: usize,
    left: usize,
}

impl BatchSource<DeviceBatch> for Part {
    async fn next(&mut self) -> Result<Option<DeviceBatch>> {
        loop {
            let Some(batches) = &mut self.batches else { return Ok(None) };
            let Some(batch) = batches.next().await.transpose()? else { return Ok(None) };
            let skipped = self.skip.min(batch.len());
            let rows = self.left.min(batch.len() - skipped);
            (self.skip, self.left) = (self.skip - skipped, self.left - rows);
            if self.left == 0 {
                self.batches = None;
            }
            if rows > 0 {
                return batch.slice(skipped, rows).map(Some).map_err(external);
            }
        }
    }
}
