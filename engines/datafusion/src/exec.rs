//! The node that this crate puts into plans in the place of DataFusion's: operations of ours.
//!
//! The node keeps the original nodes over the same inputs, and they answer everything a plan is asked:
//! schema, orderings, partitions, statistics, expressions. Only the execution is ours.

use std::fmt;
use std::sync::Arc;

use bowstring::Device;
use datafusion::common::Statistics;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::physical_expr::OrderingRequirements;
use datafusion::physical_plan::execution_plan::{
    CardinalityEffect, ChildrenPropertiesMode, ReplaceChildrenOptions,
};
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::statistics::{ChildStats, StatisticsArgs};
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, InputDistributionRequirements, PhysicalExpr, PlanProperties,
    SendableRecordBatchStream,
};
use futures::StreamExt;

use crate::config::DeviceOptions;
use crate::device::is_host;
use crate::limited::part_of;
use crate::operator::{DeviceBatches, Operator, Replaced, Source, Task};
use crate::passed::{Passed, passed, passes_on};
use crate::scan::DeviceScan;

/// Operations of DataFusion's nodes, run by bowstring on a device: a join, a sort, window functions, a limit,
/// or a chain of filters, projections and an aggregate over one input.
pub struct DeviceExec {
    operator: Arc<dyn Operator>,
    device: Device,
    options: DeviceOptions,
    metrics: ExecutionPlanMetricsSet,
}

impl DeviceExec {
    pub(crate) fn new(operator: Arc<dyn Operator>, device: &Device, options: &DeviceOptions) -> DeviceExec {
        let metrics = ExecutionPlanMetricsSet::new();
        DeviceExec { operator, device: device.clone(), options: options.clone(), metrics }
    }

    /// The device that runs this node.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The nodes of the plan that this node replaces, top first: each is the parent of the next; none
    /// if it does what a node of the plan asks its input for.
    pub fn replaced(&self) -> &[Arc<dyn ExecutionPlan>] {
        &self.operator.nodes()[self.operator.added()..]
    }

    fn original(&self) -> &dyn ExecutionPlan {
        self.operator.nodes()[0].as_ref()
    }

    fn node(&self, replaced: Replaced) -> Arc<dyn ExecutionPlan> {
        match replaced {
            Replaced::Ours(operator) => Arc::new(DeviceExec::new(operator, &self.device, &self.options)),
            Replaced::Theirs(node) => node,
        }
    }

    fn task(&self, partition: usize, context: Arc<TaskContext>) -> Task<'_> {
        let (device, options, metrics) = (&self.device, &self.options, &self.metrics);
        Task { partition, context, schema: self.schema(), device, options, metrics }
    }

    /// Opens a partition of an input, on this node's device if it is there.
    fn open(&self, input: usize, partition: usize, context: &Arc<TaskContext>) -> Result<Source> {
        let inputs = self.operator.inputs();
        let Some(input) = inputs.get(input) else {
            return datafusion::common::internal_err!("DeviceExec has {} children", inputs.len());
        };
        match on_device(input, partition, &self.device, context) {
            Some(batches) => Ok(Source::Device(batches?)),
            None => Ok(Source::Host(input.execute(partition, context.clone())?)),
        }
    }

    fn execute_on_device(&self, partition: usize, context: Arc<TaskContext>) -> Result<DeviceBatches> {
        let open = |input, partition| self.open(input, partition, &context);
        self.operator.execute_on_device(self.task(partition, context.clone()), &open)
    }
}

/// Whether a plan's batches are on a device anyway, so that an operator there reads them as they are.
pub(crate) fn is_on_device(plan: &Arc<dyn ExecutionPlan>, device: &Device) -> bool {
    if is_host(device) {
        return false;
    }
    if let Some(scan) = plan.downcast_ref::<DeviceScan>() {
        return scan.is_on(device);
    }
    if passes_on(plan) {
        return plan.children().into_iter().all(|input| is_on_device(input, device));
    }
    plan.downcast_ref::<DeviceExec>()
        .is_some_and(|ours| ours.device.place() == device.place() && ours.operator.stays_on_device())
}

/// A partition of a plan whose batches are on a device; `None` if they are not.
fn on_device(
    plan: &Arc<dyn ExecutionPlan>,
    partition: usize,
    device: &Device,
    context: &Arc<TaskContext>,
) -> Option<Result<DeviceBatches>> {
    if let Some(Passed { from, fetch }) = passed(plan, partition) {
        // A partition may be executed only once: none is, unless all are on the device.
        if !from.iter().all(|(input, _)| is_on_device(input, device)) {
            return None;
        }
        let all = from.into_iter().map(|(input, partition)| on_device(input, partition, device, context));
        let all: Result<Vec<_>> = all.collect::<Option<Vec<_>>>()?.into_iter().collect();
        return Some(all.map(|all| part_of(futures::stream::select_all(all).boxed(), 0, fetch)));
    }
    if !is_on_device(plan, device) {
        return None;
    }
    if let Some(scan) = plan.downcast_ref::<DeviceScan>() {
        return Some(scan.execute_on_device(partition));
    }
    Some(plan.downcast_ref::<DeviceExec>()?.execute_on_device(partition, context.clone()))
}

impl fmt::Debug for DeviceExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DeviceExec({}, {}", self.device.place(), self.operator.steps())?;
        self.operator.inputs().iter().try_for_each(|input| write!(f, ", {input:?}"))?;
        write!(f, ")")
    }
}

impl DisplayAs for DeviceExec {
    fn fmt_as(&self, kind: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match kind {
            DisplayFormatType::Default | DisplayFormatType::Verbose => {
                write!(f, "DeviceExec: device={}, {}", self.device.place(), self.operator.steps())
            }
            DisplayFormatType::TreeRender => {
                writeln!(f, "device={}", self.device.place())?;
                write!(f, "{}", self.operator.steps())
            }
        }
    }
}

impl ExecutionPlan for DeviceExec {
    fn name(&self) -> &str {
        "DeviceExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.original().properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        self.operator.inputs()
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        for node in self.operator.nodes() {
            if node.apply_expressions(f)? == TreeNodeRecursion::Stop {
                return Ok(TreeNodeRecursion::Stop);
            }
        }
        Ok(TreeNodeRecursion::Continue)
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        self.operator.maintains_input_order()
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        self.operator.input_distribution_requirements()
    }

    fn required_input_ordering(&self) -> Vec<Option<OrderingRequirements>> {
        self.operator.required_input_ordering()
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        self.original().benefits_from_input_partitioning()
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        options: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let expected = self.operator.inputs().len();
        if children.len() != expected {
            return datafusion::common::internal_err!("{} children for {expected}", children.len());
        }
        Ok(self.node(self.operator.over(children, options)?))
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
        self.replace_children(children, options)
    }

    fn reset_state(self: Arc<Self>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self.node(self.operator.again()?))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let open = |input, partition| self.open(input, partition, &context);
        self.operator.execute(self.task(partition, context.clone()), &open)
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn child_stats_requests(&self, partition: Option<usize>) -> Vec<ChildStats> {
        self.original().child_stats_requests(partition)
    }

    fn statistics_from_inputs(
        &self,
        input: &[Arc<Statistics>],
        args: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        self.operator.statistics(input, args)
    }

    fn supports_limit_pushdown(&self) -> bool {
        self.operator.supports_limit_pushdown()
    }

    fn fetch(&self) -> Option<usize> {
        self.operator.fetch()
    }

    fn with_fetch(&self, fetch: Option<usize>) -> Option<Arc<dyn ExecutionPlan>> {
        Some(self.node(self.operator.with_fetch(fetch)?))
    }

    fn cardinality_effect(&self) -> CardinalityEffect {
        self.operator.cardinality_effect()
    }
}
