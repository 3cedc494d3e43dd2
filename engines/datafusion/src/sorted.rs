//! A sort of rows that are on a device anyway.

use std::fmt;
use std::sync::Arc;

use bowstring::compute::concat;
use bowstring::{DeviceBatch, Stream};
use datafusion::error::Result;
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::{ExecutionPlan, SendableRecordBatchStream};

use crate::device::stream_of;
use crate::downloads::{OnDevice, downloaded, left_there};
use crate::error::external;
use crate::inputs::Inputs;
use crate::metrics::{Busy, Counters};
use crate::operator::{DeviceBatches, Open, Operator, Replaced, Source, Task, replaced};
use crate::streams::BatchSource;
use crate::top::Order;
use crate::uploads::Uploads;

/// DataFusion's sort, and the order of ours.
pub(crate) struct Sorted {
    /// DataFusion's node: a list of one.
    node: [Arc<dyn ExecutionPlan>; 1],
    order: Order,
    steps: String,
}

impl Sorted {
    /// Translates a node; `None` if it is no sort, or if devices do not sort by its keys.
    pub fn of(node: &Arc<dyn ExecutionPlan>) -> Option<Sorted> {
        let sort = node.downcast_ref::<SortExec>()?;
        let order = Order::of(sort)?;
        let mut steps = format!("sort=[{}]", order.text(&node.schema()));
        if let Some(rows) = sort.fetch() {
            steps += &format!(", fetch={rows}");
        }
        Some(Sorted { node: [node.clone()], order, steps })
    }

    fn theirs(&self) -> &Arc<dyn ExecutionPlan> {
        &self.node[0]
    }

    fn sorting(&self, task: &Task<'_>, source: Source) -> Result<Sorting> {
        let stream = stream_of(task.device)?;
        let counters = Counters::new(task.metrics, task.partition, true);
        let all = Inputs::all_of(&task.schema);
        let columns = (all.used().to_vec(), all.schema());
        Ok(Sorting {
            order: self.order.clone(),
            fetch: self.theirs().fetch(),
            uploads: Some(Uploads::new(source, columns, task.options, &counters)),
            reservation: task.reservation(),
            busy: Busy::new(&stream, &counters),
            stream,
            counters,
        })
    }
}

impl fmt::Debug for Sorted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sorted({})", self.steps)
    }
}

impl Operator for Sorted {
    fn nodes(&self) -> &[Arc<dyn ExecutionPlan>] {
        &self.node
    }

    fn steps(&self) -> &str {
        &self.steps
    }

    fn translated(&self, nodes: Vec<Arc<dyn ExecutionPlan>>) -> Result<Replaced> {
        let ours = Sorted::of(&nodes[0]);
        Ok(replaced(nodes[0].clone(), ours))
    }

    fn stays_on_device(&self) -> bool {
        true
    }

    fn execute(&self, task: Task<'_>, open: Open<'_>) -> Result<SendableRecordBatchStream> {
        let sorting = self.sorting(&task, open(0, task.partition)?)?;
        Ok(downloaded(sorting, task.schema.clone(), task.batch_rows()))
    }

    fn execute_on_device(&self, task: Task<'_>, open: Open<'_>) -> Result<DeviceBatches> {
        Ok(left_there(self.sorting(&task, open(0, task.partition)?)?))
    }
}

/// The sort of a partition.
struct Sorting {
    order: Order,
    fetch: Option<usize>,
    /// The rows, which are sorted together; `None` afterwards.
    uploads: Option<Uploads>,
    /// The session's memory that uploads hold.
    reservation: MemoryReservation,
    stream: Stream,
    busy: Busy,
    counters: Counters,
}

impl BatchSource<DeviceBatch> for Sorting {
    async fn next(&mut self) -> Result<Option<DeviceBatch>> {
        let Some(mut uploads) = self.uploads.take() else { return Ok(None) };
        let from = self.stream.mark().map_err(external)?;
        let mut batches = vec![];
        while let Some(taken) = uploads.gathered().await? {
            let Some(taken) = uploads.granted(taken, &self.reservation, false)? else { break };
            batches.push(uploads.upload(taken, &self.stream)?);
            // The first rows of an order are among the first of some batches and the first of others.
            if let Some(rows) = self.fetch
                && batches.iter().map(DeviceBatch::len).sum::<usize>() > (4 * rows).max(1 << 16)
            {
                batches = self.sorted(&batches).await?.into_iter().collect();
            }
        }
        let sorted = self.sorted(&batches).await?;
        self.busy.queued(from).map_err(external)?;
        Ok(sorted)
    }
}

impl Sorting {
    async fn sorted(&mut self, batches: &[DeviceBatch]) -> Result<Option<DeviceBatch>> {
        let all = match batches {
            [] => return Ok(None),
            [one] => one.clone(),
            several => {
                let several: Vec<_> = several.iter().collect();
                concat(&several, &self.stream).await.map_err(external)?
            }
        };
        self.order.sorted(&all, self.fetch, &self.stream).await.map(Some).map_err(external)
    }
}

impl OnDevice for Sorting {
    fn counters(&self) -> &Counters {
        &self.counters
    }

    fn stream(&mut self) -> (&Stream, &mut Busy) {
        (&self.stream, &mut self.busy)
    }
}
