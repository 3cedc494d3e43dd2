//! A sort of rows that are on a device anyway.

use std::fmt;
use std::sync::Arc;

use bowstring::compute::{Sorted as SortedRows, Sorting};
use bowstring::{DeviceBatch, Stream};
use datafusion::error::Result;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::{ExecutionPlan, SendableRecordBatchStream};

use crate::device::stream_of;
use crate::downloads::{OnDevice, downloaded, left_there};
use crate::error::external;
use crate::inputs::Inputs;
use crate::metrics::{Busy, Counters, HostMemory};
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

    fn sorting(&self, task: &Task<'_>, source: Source) -> Result<Rows> {
        let stream = stream_of(task.device)?;
        let counters = Counters::new(task.metrics, task.partition, true);
        let all = Inputs::all_of(&task.schema);
        let columns = (all.used().to_vec(), all.schema());
        let memory = task.host_memory();
        let sorting = Sorting::new(self.order.columns(), &stream).memory(task.options.device_bytes);
        let mut sorting = sorting.spill_to(memory.spill.clone());
        if let Some(rows) = self.theirs().fetch() {
            sorting = sorting.limit(rows);
        }
        Ok(Rows {
            unsorted: Some((sorting, Uploads::new(source, columns, task.options, &counters))),
            sorted: None,
            memory,
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

/// The rows of a partition.
struct Rows {
    /// The sort and its input; `None` once all of it has been read.
    unsorted: Option<(Sorting, Uploads)>,
    sorted: Option<SortedRows>,
    memory: HostMemory,
    stream: Stream,
    busy: Busy,
    counters: Counters,
}

impl BatchSource<DeviceBatch> for Rows {
    async fn next(&mut self) -> Result<Option<DeviceBatch>> {
        let from = self.stream.mark().map_err(external)?;
        if let Some((mut sorting, mut uploads)) = self.unsorted.take() {
            while let Some(taken) = uploads.gathered().await? {
                let Some(taken) = uploads.granted(taken, &self.memory.reservation, false)? else { break };
                let batch = uploads.upload(taken, &self.stream)?;
                sorting.push(&batch).await.map_err(|error| self.memory.spill.why(error))?;
                self.memory.uploaded();
            }
            self.sorted = Some(sorting.finish().await.map_err(|error| self.memory.spill.why(error))?);
        }
        let Some(sorted) = &mut self.sorted else { return Ok(None) };
        let rows = sorted.next().await.map_err(external)?;
        self.busy.queued(from).map_err(external)?;
        Ok(rows)
    }
}

impl OnDevice for Rows {
    fn counters(&self) -> &Counters {
        &self.counters
    }

    fn stream(&mut self) -> (&Stream, &mut Busy) {
        (&self.stream, &mut self.busy)
    }
}
