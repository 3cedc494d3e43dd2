//! The operations of a node of ours: the seam between the plan's node, which is one type, and its operations.

use std::fmt;
use std::sync::Arc;

use bowstring::{Device, DeviceBatch};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::Statistics;
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::physical_expr::OrderingRequirements;
use datafusion::physical_plan::execution_plan::{CardinalityEffect, ReplaceChildrenOptions};
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::{ExecutionPlan, InputDistributionRequirements, SendableRecordBatchStream};
use futures::stream::BoxStream;

use crate::config::DeviceOptions;
use crate::metrics::HostMemory;
use crate::spill::SpilledRows;

/// Batches on a device.
pub(crate) type DeviceBatches = BoxStream<'static, Result<DeviceBatch>>;

/// The batches of one partition of an input.
pub(crate) enum Source {
    /// Batches in host memory.
    Host(SendableRecordBatchStream),
    /// Batches on the device that reads them.
    Device(DeviceBatches),
}

/// Opens a partition of an input, both by their numbers.
pub(crate) type Open<'a> = &'a dyn Fn(usize, usize) -> Result<Source>;

/// The execution of one partition.
pub(crate) struct Task<'a> {
    pub partition: usize,
    pub context: Arc<TaskContext>,
    /// The schema of the output.
    pub schema: SchemaRef,
    pub device: &'a Device,
    pub options: &'a DeviceOptions,
    pub metrics: &'a ExecutionPlanMetricsSet,
}

impl Task<'_> {
    /// The number of rows in the session's batches.
    pub fn batch_rows(&self) -> usize {
        self.context.session_config().batch_size()
    }

    /// Memory for rows that may be spilled.
    pub fn host_memory(&self) -> HostMemory {
        HostMemory { reservation: self.reservation(), spill: self.spill() }
    }

    /// A place for rows that may be spilled.
    pub fn spill(&self) -> Arc<SpilledRows> {
        let disk = self.context.runtime_env().disk_manager.clone();
        Arc::new(SpilledRows::new(disk, self.reservation(), self.metrics, self.partition))
    }

    /// Memory of the session's pool, none yet.
    pub fn reservation(&self) -> MemoryReservation {
        self.consumer().register(self.context.memory_pool())
    }

    /// Memory of the session's pool, none yet, which is given back when the pool refuses more.
    pub fn returned_reservation(&self) -> MemoryReservation {
        self.consumer().with_can_spill(true).register(self.context.memory_pool())
    }

    fn consumer(&self) -> MemoryConsumer {
        MemoryConsumer::new(format!("DeviceExec[{}]", self.partition))
    }
}

/// The replacement of a node whose inputs change.
pub(crate) enum Replaced {
    Ours(Arc<dyn Operator>),
    /// DataFusion's own node, since the changed one has no counterpart.
    Theirs(Arc<dyn ExecutionPlan>),
}

/// The operations of a node of ours. DataFusion's nodes, which they replace, answer what a plan is asked. The
/// methods with a body are those of operations that replace a single node.
pub(crate) trait Operator: fmt::Debug + Send + Sync {
    /// DataFusion's nodes, top first: each is the parent of the next.
    fn nodes(&self) -> &[Arc<dyn ExecutionPlan>];

    /// The operations as text, for `EXPLAIN`.
    fn steps(&self) -> &str;

    /// Translates changed nodes again.
    fn translated(&self, nodes: Vec<Arc<dyn ExecutionPlan>>) -> Result<Replaced>;

    /// Whether the result of a device can stay there.
    fn stays_on_device(&self) -> bool;

    /// Runs a partition, with the result in host memory.
    fn execute(&self, task: Task<'_>, open: Open<'_>) -> Result<SendableRecordBatchStream>;

    /// Runs a partition on a device, with the result there.
    fn execute_on_device(&self, task: Task<'_>, open: Open<'_>) -> Result<DeviceBatches>;

    /// The number of first nodes that were not in the plan, but are ours to replace.
    fn added(&self) -> usize {
        0
    }

    /// The plans that feed the operations.
    fn inputs(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        self.nodes()[0].children()
    }

    /// The same operations over other inputs.
    fn over(&self, inputs: Vec<Arc<dyn ExecutionPlan>>, options: ReplaceChildrenOptions) -> Result<Replaced> {
        self.translated(vec![self.nodes()[0].clone().replace_children(inputs, options)?])
    }

    /// The same operations, to be executed again: without what an execution has left.
    fn again(&self) -> Result<Replaced> {
        self.translated(vec![self.nodes()[0].clone().reset_state()?])
    }

    /// The distribution of rows that the operations require of their inputs.
    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        self.nodes()[0].input_distribution_requirements()
    }

    /// The order of rows that the operations require of each input.
    fn required_input_ordering(&self) -> Vec<Option<OrderingRequirements>> {
        vec![None; self.inputs().len()]
    }

    /// Whether the rows keep the order of each input.
    fn maintains_input_order(&self) -> Vec<bool> {
        self.nodes()[0].maintains_input_order()
    }

    /// The statistics of the result, from those of the inputs.
    fn statistics(&self, inputs: &[Arc<Statistics>], args: &StatisticsArgs) -> Result<Arc<Statistics>> {
        self.nodes()[0].statistics_from_inputs(inputs, args)
    }

    /// The number of rows after which a partition ends.
    fn fetch(&self) -> Option<usize> {
        self.nodes()[0].fetch()
    }

    /// The same operations with another such number; `None` if they cannot have one.
    fn with_fetch(&self, fetch: Option<usize>) -> Option<Replaced> {
        self.translated(vec![self.nodes()[0].with_fetch(fetch)?]).ok()
    }

    /// Whether a limit above can be given to the inputs.
    fn supports_limit_pushdown(&self) -> bool {
        self.nodes()[0].supports_limit_pushdown()
    }

    /// Whether there are fewer rows than the inputs have, or more.
    fn cardinality_effect(&self) -> CardinalityEffect {
        self.nodes()[0].cardinality_effect()
    }
}

/// The replacement of a node: ours, if it could be translated.
pub(crate) fn replaced(node: Arc<dyn ExecutionPlan>, ours: Option<impl Operator + 'static>) -> Replaced {
    match ours {
        Some(ours) => Replaced::Ours(Arc::new(ours)),
        None => Replaced::Theirs(node),
    }
}
