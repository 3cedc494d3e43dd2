//! A hash join of DataFusion's, run on a device.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use datafusion::error::Result;
use datafusion::execution::memory_pool::MemoryLimit;
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::metrics::MetricBuilder;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties as _, SendableRecordBatchStream};

use crate::device::is_host;
use crate::downloads::{downloaded, left_there};
use crate::join::Join;
use crate::metrics::Counters;
use crate::operator::{DeviceBatches, Open, Operator, Replaced, Task, replaced};
use crate::probe::{Building, On, Probe, building};
use crate::streams::together;

/// DataFusion's join, and what ours does in its place.
pub(crate) struct Joined {
    /// DataFusion's node: a list of one.
    node: [Arc<dyn ExecutionPlan>; 1],
    join: Arc<Join>,
    steps: String,
    /// The left side, if several right partitions share it. Others are not kept, since each is for one right
    /// partition, which may run again.
    shared: Mutex<Option<Building>>,
}

impl Joined {
    /// Translates a node; `None` if it is no hash join, or has no counterpart.
    pub fn of(node: &Arc<dyn ExecutionPlan>) -> Option<Joined> {
        let theirs = node.downcast_ref::<HashJoinExec>()?;
        let join = Arc::new(Join::translate(theirs)?);
        Some(Joined { node: [node.clone()], join, steps: steps(theirs), shared: Mutex::default() })
    }

    fn theirs(&self) -> &Arc<dyn ExecutionPlan> {
        &self.node[0]
    }

    /// Starts a right partition. The first one that needs a left side opens it.
    fn probe(&self, task: &Task<'_>, open: Open<'_>) -> Result<Probe> {
        let counters = Counters::new(task.metrics, task.partition, !is_host(task.device));
        let (device, mut options) = (task.device.clone(), task.options.clone());
        if is_host(&device) {
            // Nothing is gained by larger batches where nothing is uploaded.
            options.upload_rows = 1;
            // Its rows take memory of the session for as long as the join runs.
            if let MemoryLimit::Finite(bytes) = task.context.memory_pool().memory_limit() {
                options.device_bytes = options.device_bytes.min(bytes / 4);
            }
        }
        let on = On { join: self.join.clone(), device, options, counters };
        let begin = |left, partitions| -> Result<Building> {
            let rows_in = MetricBuilder::new(task.metrics).counter("build_input_rows", task.partition);
            let on = On { counters: Counters { rows_in, ..on.counters.clone() }, ..on.clone() };
            Ok(building(on, open(0, left)?, partitions, task.host_memory()))
        };
        let partitions = self.theirs().output_partitioning().partition_count();
        let building = match (self.join.shares_left, partitions) {
            (false, _) => begin(task.partition, 1)?,
            (true, 1) => begin(0, 1)?,
            (true, _) => {
                let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
                match &*shared {
                    Some(begun) => begun.clone(),
                    None => shared.insert(begin(0, partitions)?).clone(),
                }
            }
        };
        Probe::new(on, building, open(1, task.partition)?, self.theirs().fetch(), task.host_memory())
    }
}

fn steps(join: &HashJoinExec) -> String {
    let on: Vec<_> = join.on().iter().map(|(left, right)| format!("{left} = {right}")).collect();
    let mut steps =
        format!("join={:?}, mode={:?}, on=[{}]", join.join_type(), join.partition_mode(), on.join(", "));
    if let Some(filter) = join.filter() {
        steps += &format!(", filter=[{}]", filter.expression());
    }
    if let Some(rows) = join.fetch() {
        steps += &format!(", fetch={rows}");
    }
    steps
}

impl fmt::Debug for Joined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Joined({})", self.steps)
    }
}

impl Operator for Joined {
    fn nodes(&self) -> &[Arc<dyn ExecutionPlan>] {
        &self.node
    }

    fn steps(&self) -> &str {
        &self.steps
    }

    fn translated(&self, nodes: Vec<Arc<dyn ExecutionPlan>>) -> Result<Replaced> {
        let ours = Joined::of(&nodes[0]);
        Ok(replaced(nodes[0].clone(), ours))
    }

    fn stays_on_device(&self) -> bool {
        true
    }

    fn execute(&self, task: Task<'_>, open: Open<'_>) -> Result<SendableRecordBatchStream> {
        let rows = downloaded(self.probe(&task, open)?, task.schema.clone(), task.batch_rows());
        // A batch of which few rows have partners is not worth a step of the nodes above.
        Ok(if is_host(task.device) { together(rows, task.batch_rows()) } else { rows })
    }

    fn execute_on_device(&self, task: Task<'_>, open: Open<'_>) -> Result<DeviceBatches> {
        Ok(left_there(self.probe(&task, open)?))
    }
}
