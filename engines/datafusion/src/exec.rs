//! The one node that this crate puts into plans: a translated chain of DataFusion's nodes.
//!
//! The node keeps the original chain over the same input, and the chain answers everything a plan is asked:
//! schema, orderings, partitions, statistics, expressions. Only the execution is ours.

use std::fmt;
use std::sync::Arc;

use bowstring::Device;
use datafusion::common::Statistics;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::MemoryConsumer;
use datafusion::physical_plan::execution_plan::{CardinalityEffect, ReplaceChildrenOptions};
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::statistics::{ChildStats, StatisticsArgs};
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties as _, PhysicalExpr, PlanProperties,
    SendableRecordBatchStream,
};

use crate::chain::Chain;
use crate::config::DeviceOptions;
use crate::device::is_host;
use crate::metrics::Counters;
use crate::program::Program;
use crate::top::Top;
use crate::{gpu, host};

/// A chain of filters, projections and an aggregate over one input, run by bowstring on a device.
pub struct DeviceExec {
    /// DataFusion's nodes, top first: each is the parent of the next, and the last reads the input.
    chain: Vec<Arc<dyn ExecutionPlan>>,
    input: Arc<dyn ExecutionPlan>,
    program: Arc<Program>,
    /// If only the first rows of an order are needed: of each upload, no others are returned.
    top: Option<Top>,
    /// The chain's steps as text, for `EXPLAIN`.
    steps: String,
    device: Device,
    options: DeviceOptions,
    metrics: ExecutionPlanMetricsSet,
}

impl DeviceExec {
    /// Translates these nodes, each the parent of the next, for a device; `None` if any of them has no
    /// counterpart.
    pub(crate) fn of(
        nodes: &[&Arc<dyn ExecutionPlan>],
        top: Option<&Top>,
        device: &Device,
        options: &DeviceOptions,
    ) -> Result<Option<DeviceExec>> {
        let Some(chain) = Chain::of(nodes)? else { return Ok(None) };
        // The first rows of an order leave in that order, and not in the input's.
        let ordered = nodes[0].output_ordering().is_some();
        if top.is_some() && (chain.aggregate.is_some() || chain.fetch.is_some() || ordered) {
            return Ok(None);
        }
        let Some(input) = nodes.last().and_then(|last| last.children().first().copied()) else {
            return Ok(None);
        };
        let Some(mut program) = Program::translate(&chain, input, is_host(device)) else { return Ok(None) };
        program.shape.top = top.is_some();
        let mut steps = steps(&chain);
        if let Some(top) = top {
            steps = format!("{steps}, {}", top.text(&nodes[0].schema()));
        }
        Ok(Some(DeviceExec {
            chain: nodes.iter().copied().cloned().collect(),
            input: input.clone(),
            program: Arc::new(program),
            top: top.cloned(),
            steps,
            device: device.clone(),
            options: options.clone(),
            metrics: ExecutionPlanMetricsSet::new(),
        }))
    }

    /// The translated program that this node runs.
    pub(crate) fn program(&self) -> &Program {
        &self.program
    }

    /// The device that runs this node.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The plan that feeds this node.
    pub fn input(&self) -> &Arc<dyn ExecutionPlan> {
        &self.input
    }

    /// The top one of the DataFusion nodes that this node replaces.
    pub fn original(&self) -> &Arc<dyn ExecutionPlan> {
        &self.chain[0]
    }

    /// Rebuilds the chain of DataFusion's nodes over another input.
    fn rebuilt(
        &self,
        input: Arc<dyn ExecutionPlan>,
        options: ReplaceChildrenOptions,
    ) -> Result<Vec<Arc<dyn ExecutionPlan>>> {
        let mut below = input;
        let mut chain = vec![];
        for node in self.chain.iter().rev() {
            below = node.clone().replace_children(vec![below], options)?;
            chain.push(below.clone());
        }
        chain.reverse();
        Ok(chain)
    }

    /// Translates the chain again; returns the chain itself if it can no longer be translated.
    fn translated_again(&self, chain: &[Arc<dyn ExecutionPlan>]) -> Result<Arc<dyn ExecutionPlan>> {
        let nodes: Vec<_> = chain.iter().collect();
        Ok(match DeviceExec::of(&nodes, self.top.as_ref(), &self.device, &self.options)? {
            Some(ours) => Arc::new(ours),
            None => chain[0].clone(),
        })
    }
}

/// The chain's steps, in execution order.
fn steps(chain: &Chain) -> String {
    let mut steps = vec![];
    let joined = |exprs: &[Arc<dyn PhysicalExpr>]| {
        exprs.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
    };
    if !chain.conditions.is_empty() {
        let all: Vec<_> = chain.conditions.iter().map(ToString::to_string).collect();
        steps.push(format!("filter=[{}]", all.join(" AND ")));
    }
    match &chain.aggregate {
        None => steps.push(format!("project=[{}]", joined(&chain.row))),
        Some(aggregate) => {
            let functions: Vec<_> = aggregate.functions.iter().map(|function| function.name()).collect();
            if !aggregate.keys.is_empty() {
                steps.push(format!("group=[{}]", joined(&aggregate.keys)));
            }
            steps.push(format!("aggregate=[{}], mode={:?}", functions.join(", "), aggregate.mode));
        }
    }
    steps.extend(chain.fetch.map(|rows| format!("fetch={rows}")));
    steps.join(", ")
}

impl fmt::Debug for DeviceExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DeviceExec({}, {}, {:?})", self.device.place(), self.steps, self.input)
    }
}

impl DisplayAs for DeviceExec {
    fn fmt_as(&self, kind: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match kind {
            DisplayFormatType::Default | DisplayFormatType::Verbose => {
                write!(f, "DeviceExec: device={}, {}", self.device.place(), self.steps)
            }
            DisplayFormatType::TreeRender => {
                writeln!(f, "device={}", self.device.place())?;
                write!(f, "{}", self.steps)
            }
        }
    }
}

impl ExecutionPlan for DeviceExec {
    fn name(&self) -> &str {
        "DeviceExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.chain[0].properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        for node in &self.chain {
            if node.apply_expressions(f)? == TreeNodeRecursion::Stop {
                return Ok(TreeNodeRecursion::Stop);
            }
        }
        Ok(TreeNodeRecursion::Continue)
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        let keeps = |node: &Arc<dyn ExecutionPlan>| node.maintains_input_order().iter().all(|keeps| *keeps);
        vec![self.top.is_none() && self.chain.iter().all(keeps)]
    }

    fn input_distribution_requirements(&self) -> datafusion::physical_plan::InputDistributionRequirements {
        // The other nodes of a chain require nothing.
        self.chain[0].input_distribution_requirements()
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        self.chain[0].benefits_from_input_partitioning()
    }

    fn replace_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
        options: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let (Some(input), true) = (children.pop(), children.is_empty()) else {
            return datafusion::common::internal_err!("DeviceExec has one child");
        };
        self.translated_again(&self.rebuilt(input, options)?)
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let mode = datafusion::physical_plan::execution_plan::ChildrenPropertiesMode::Recompute;
        self.replace_children(children, ReplaceChildrenOptions::new(mode))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let on_device = !is_host(&self.device);
        let counters = Counters::new(&self.metrics, partition, on_device);
        let (program, schema) = (self.program.clone(), self.schema());
        let batch_rows = context.session_config().batch_size();
        if on_device {
            let run = gpu::Run {
                program,
                top: self.top.clone(),
                schema,
                batch_rows,
                device: self.device.clone(),
                options: self.options.clone(),
                counters,
            };
            return gpu::run(run, &self.input, partition, context);
        }
        let run_batches = self.options.run_batches;
        let reservation =
            MemoryConsumer::new(format!("DeviceExec[{partition}]")).register(context.memory_pool());
        let input = self.input.execute(partition, context)?;
        Ok(host::run(host::Run { program, input, schema, batch_rows, run_batches, reservation, counters }))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn child_stats_requests(&self, partition: Option<usize>) -> Vec<ChildStats> {
        vec![ChildStats::At(partition)]
    }

    fn statistics_from_inputs(
        &self,
        input: &[Arc<Statistics>],
        args: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        let mut statistics = input.to_vec();
        for node in self.chain.iter().rev() {
            statistics = vec![node.statistics_from_inputs(&statistics, args)?];
        }
        match statistics.pop() {
            Some(statistics) if self.top.is_some() => {
                Ok(Arc::new(Arc::unwrap_or_clone(statistics).to_inexact()))
            }
            Some(statistics) => Ok(statistics),
            None => datafusion::common::internal_err!("DeviceExec has one child"),
        }
    }

    fn supports_limit_pushdown(&self) -> bool {
        self.top.is_none() && self.chain.iter().all(|node| node.supports_limit_pushdown())
    }

    fn fetch(&self) -> Option<usize> {
        self.program.fetch
    }

    fn with_fetch(&self, fetch: Option<usize>) -> Option<Arc<dyn ExecutionPlan>> {
        // The limit goes to a filter, since the nodes above it keep all rows. One row needs no limit.
        if matches!(self.program.work, crate::program::Work::Aggregate(_)) || self.top.is_some() {
            return None;
        }
        let at = self.chain.iter().position(|node| node.with_fetch(fetch).is_some())?;
        let mut below = self.chain[at].with_fetch(fetch)?;
        let mut chain: Vec<_> = self.chain[at + 1..].iter().rev().cloned().collect();
        chain.push(below.clone());
        let mode = datafusion::physical_plan::execution_plan::ChildrenPropertiesMode::Recompute;
        for node in self.chain[..at].iter().rev() {
            below = node.clone().replace_children(vec![below], ReplaceChildrenOptions::new(mode)).ok()?;
            chain.push(below.clone());
        }
        chain.reverse();
        self.translated_again(&chain).ok()
    }

    fn cardinality_effect(&self) -> CardinalityEffect {
        match (self.program.condition.is_some() || self.top.is_some(), &self.program.work) {
            (_, crate::program::Work::Aggregate(_)) => CardinalityEffect::LowerEqual,
            (true, _) => CardinalityEffect::LowerEqual,
            (false, _) => CardinalityEffect::Equal,
        }
    }
}
