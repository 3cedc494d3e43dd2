//! A translated chain of filters, projections and an aggregate over one input.

use std::fmt;
use std::sync::Arc;

use bowstring::Device;
use datafusion::common::Statistics;
use datafusion::error::Result;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::execution_plan::{
    CardinalityEffect, ChildrenPropertiesMode, ReplaceChildrenOptions,
};
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::{
    Distribution, ExecutionPlan, ExecutionPlanProperties as _, InputDistributionRequirements, PhysicalExpr,
    SendableRecordBatchStream,
};

use crate::chain::Chain;
use crate::config::DeviceOptions;
use crate::device::is_host;
use crate::downloads::{downloaded, left_there};
use crate::exchange::partition_keys;
use crate::finishing::Finishing;
use crate::metrics::Counters;
use crate::operator::{DeviceBatches, Open, Operator, Replaced, Source, Task, replaced};
use crate::program::{Program, Work};
use crate::subquery::{node_has_subquery, node_is_pending};
use crate::top::Top;
use crate::uploads::uploaded;
use crate::{gpu, host};

/// A chain of DataFusion's nodes over one input, and the program that does its work.
pub(crate) struct Chained {
    /// Top first: each is the parent of the next, and the last reads the input.
    nodes: Vec<Arc<dyn ExecutionPlan>>,
    input: Arc<dyn ExecutionPlan>,
    program: Arc<Program>,
    /// If only the first rows of an order are needed: of each upload, no others are returned.
    top: Option<Top>,
    steps: String,
    device: Device,
    options: DeviceOptions,
    /// Whether an expression has a subquery, whose value was not known, or not that of the next run.
    pending: bool,
    /// Whether the partitions of the input are reduced to one row.
    merges: bool,
    /// The number of first nodes that the plan did not have.
    added: usize,
}

impl Chained {
    /// Translates these nodes, each the parent of the next; `None` if any of them has no counterpart.
    pub fn of(
        nodes: &[&Arc<dyn ExecutionPlan>],
        top: Option<&Top>,
        device: &Device,
        options: &DeviceOptions,
    ) -> Result<Option<Chained>> {
        let Some(chain) = Chain::of(nodes)? else { return Ok(None) };
        // The first rows of an order leave in that order, and not in the input's.
        let ordered = nodes[0].output_ordering().is_some();
        if top.is_some() && (chain.aggregate.is_some() || chain.fetch.is_some() || ordered) {
            return Ok(None);
        }
        let Some(input) = nodes.last().and_then(|last| last.children().first().copied()) else {
            return Ok(None);
        };
        let program = Program::translate(&chain, input, is_host(device), options);
        let Some(mut program) = program else { return Ok(None) };
        program.shape.top = top.is_some();
        let mut pending = false;
        for node in nodes {
            pending |= node_has_subquery(node.as_ref())?;
        }
        let mut steps = steps(&chain);
        if let Some(top) = top {
            steps = format!("{steps}, {}", top.text(&nodes[0].schema()));
        }
        Ok(Some(Chained {
            nodes: nodes.iter().copied().cloned().collect(),
            input: input.clone(),
            program: Arc::new(program),
            top: top.cloned(),
            steps,
            device: device.clone(),
            options: options.clone(),
            pending,
            merges: chain.merges,
            added: 0,
        }))
    }

    /// The same chain, of which the first node is not one of the plan's.
    pub fn with_first_added(self) -> Chained {
        Chained { added: 1, ..self }
    }

    /// The program that does the work of the chain.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// The plan that feeds the chain.
    pub fn input(&self) -> &Arc<dyn ExecutionPlan> {
        &self.input
    }

    /// Translates the chain with the values of its subqueries.
    fn now(&self) -> Result<Replaced> {
        for node in &self.nodes {
            if node_is_pending(node.as_ref())? {
                return datafusion::common::internal_err!("a subquery of {} has not run", node.name());
            }
        }
        let ours = self.translated_again(&self.nodes)?;
        Ok(replaced(self.nodes[0].clone(), ours.map(|ours| Chained { pending: false, ..ours })))
    }

    /// Translates other nodes in the place of these.
    fn translated_again(&self, nodes: &[Arc<dyn ExecutionPlan>]) -> Result<Option<Chained>> {
        let all: Vec<_> = nodes.iter().collect();
        let again = Chained::of(&all, self.top.as_ref(), &self.device, &self.options)?;
        Ok(again.map(|ours| Chained { added: self.added, ..ours }))
    }

    pub fn aggregates(&self) -> bool {
        matches!(self.program.work, Work::Aggregate(_))
    }

    fn reduces(&self) -> bool {
        self.aggregates() && !self.program.shape.groups
    }

    /// Reduces the rows of a partition to one row, or those of all partitions.
    fn reduce(
        &self,
        task: &Task<'_>,
        source: impl Fn(usize) -> Result<Source>,
    ) -> Result<SendableRecordBatchStream> {
        let all = match self.merges {
            true => 0..self.input.output_partitioning().partition_count(),
            false => task.partition..task.partition + 1,
        };
        gpu::reduce(
            all.map(|partition| Ok((self.run(task, partition), source(partition)?)))
                .collect::<Result<_>>()?,
        )
    }

    fn finishes_groups(&self) -> bool {
        matches!(&self.program.work, Work::Aggregate(aggregated) if aggregated.finished.is_some())
    }

    /// The program and settings of a partition on a device.
    fn run(&self, task: &Task<'_>, partition: usize) -> gpu::Run {
        gpu::Run {
            program: self.program.clone(),
            top: self.top.clone(),
            schema: task.schema.clone(),
            batch_rows: task.batch_rows(),
            device: task.device.clone(),
            options: task.options.clone(),
            reservation: task.reservation(),
            counters: Counters::new(task.metrics, partition, true),
        }
    }
}

/// Puts nodes, given top first, over another input.
fn rebuilt(
    nodes: &[Arc<dyn ExecutionPlan>],
    input: Arc<dyn ExecutionPlan>,
    options: ReplaceChildrenOptions,
) -> Result<Vec<Arc<dyn ExecutionPlan>>> {
    let mut below = input;
    let mut made = vec![];
    for node in nodes.iter().rev() {
        below = node.clone().replace_children(vec![below], options)?;
        made.push(below.clone());
    }
    made.reverse();
    Ok(made)
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
            steps.extend(aggregate.row.iter().map(|row| format!("project=[{}]", joined(row))));
        }
    }
    steps.extend(chain.fetch.map(|rows| format!("fetch={rows}")));
    steps.join(", ")
}

impl fmt::Debug for Chained {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Chained({}, {:?})", self.steps, self.input)
    }
}

impl Operator for Chained {
    fn nodes(&self) -> &[Arc<dyn ExecutionPlan>] {
        &self.nodes
    }

    fn translated(&self, nodes: Vec<Arc<dyn ExecutionPlan>>) -> Result<Replaced> {
        Ok(replaced(nodes[0].clone(), self.translated_again(&nodes)?))
    }

    fn added(&self) -> usize {
        self.added
    }

    fn inputs(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn steps(&self) -> &str {
        &self.steps
    }

    fn over(
        &self,
        mut inputs: Vec<Arc<dyn ExecutionPlan>>,
        options: ReplaceChildrenOptions,
    ) -> Result<Replaced> {
        let Some(input) = inputs.pop() else {
            return datafusion::common::internal_err!("a chain without an input");
        };
        self.translated(rebuilt(&self.nodes, input, options)?)
    }

    fn again(&self) -> Result<Replaced> {
        self.translated(self.nodes.clone())
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        // The other nodes require nothing, and the first one only if it is not this that merges partitions.
        let node = if self.merges { self.nodes.len() - 1 } else { 0 };
        let required = self.nodes[node].input_distribution_requirements();
        // Keys are expressions over the input of the first node, which others may name otherwise. Rows are
        // partitioned as it requires, and have to stay so.
        match partition_keys(self.input().output_partitioning()) {
            Some(keys) if node + 1 < self.nodes.len() && requires_keys(&required) => {
                InputDistributionRequirements::new(vec![Distribution::KeyPartitioned(keys)])
            }
            _ => required,
        }
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        let keeps = |node: &Arc<dyn ExecutionPlan>| node.maintains_input_order().iter().all(|keeps| *keeps);
        vec![self.top.is_none() && self.nodes.iter().all(keeps)]
    }

    fn statistics(&self, inputs: &[Arc<Statistics>], args: &StatisticsArgs) -> Result<Arc<Statistics>> {
        let mut statistics = inputs.to_vec();
        for node in self.nodes.iter().rev() {
            statistics = vec![node.statistics_from_inputs(&statistics, args)?];
        }
        match statistics.pop() {
            Some(statistics) if self.top.is_some() => {
                Ok(Arc::new(Arc::unwrap_or_clone(statistics).to_inexact()))
            }
            Some(statistics) => Ok(statistics),
            None => datafusion::common::internal_err!("a chain without an input"),
        }
    }

    fn fetch(&self) -> Option<usize> {
        self.program.fetch
    }

    fn with_fetch(&self, fetch: Option<usize>) -> Option<Replaced> {
        // The limit goes to a filter, since the nodes above it keep all rows. One row needs no limit.
        if self.aggregates() || self.top.is_some() {
            return None;
        }
        let at = self.nodes.iter().position(|node| node.with_fetch(fetch).is_some())?;
        let limited = self.nodes[at].with_fetch(fetch)?;
        let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
        let mut nodes = rebuilt(&self.nodes[..at], limited.clone(), options).ok()?;
        nodes.push(limited);
        nodes.extend_from_slice(&self.nodes[at + 1..]);
        self.translated(nodes).ok()
    }

    fn supports_limit_pushdown(&self) -> bool {
        self.top.is_none() && self.nodes.iter().all(|node| node.supports_limit_pushdown())
    }

    fn cardinality_effect(&self) -> CardinalityEffect {
        let has_sets = |node: &Arc<dyn ExecutionPlan>| {
            node.downcast_ref::<AggregateExec>().is_some_and(|node| node.group_expr().has_grouping_set())
        };
        match self.program.condition.is_some() || self.top.is_some() || self.aggregates() {
            // Each set has a row for each of its groups.
            _ if self.nodes.iter().any(has_sets) => CardinalityEffect::Unknown,
            true => CardinalityEffect::LowerEqual,
            false => CardinalityEffect::Equal,
        }
    }

    fn stays_on_device(&self) -> bool {
        // The states of aggregates are converted to DataFusion's in host memory.
        !is_host(&self.device) && (!self.aggregates() || self.finishes_groups())
    }

    fn execute(&self, task: Task<'_>, open: Open<'_>) -> Result<SendableRecordBatchStream> {
        if self.pending {
            return match self.now()? {
                Replaced::Ours(ours) => ours.execute(task, open),
                Replaced::Theirs(node) => node.execute(task.partition, task.context),
            };
        }
        if self.reduces() && !is_host(&self.device) {
            return self.reduce(&task, |partition| open(0, partition));
        }
        let source = open(0, task.partition)?;
        let input = match source {
            Source::Host(input) if is_host(&self.device) => input,
            source if self.finishes_groups() => {
                let groups = Finishing::new(self.run(&task, task.partition), source, task.spill())?;
                return Ok(downloaded(groups, task.schema.clone(), task.batch_rows()));
            }
            source => return gpu::run(self.run(&task, task.partition), source),
        };
        Ok(host::run(host::Run {
            program: self.program.clone(),
            input,
            schema: task.schema.clone(),
            batch_rows: task.batch_rows(),
            run_batches: task.options.run_batches,
            reservation: task.reservation(),
            counters: Counters::new(task.metrics, task.partition, false),
        }))
    }

    fn execute_on_device(&self, task: Task<'_>, open: Open<'_>) -> Result<DeviceBatches> {
        if self.pending {
            return match self.now()? {
                Replaced::Ours(ours) => ours.execute_on_device(task, open),
                Replaced::Theirs(node) => {
                    let rows = node.execute(task.partition, task.context.clone())?;
                    uploaded(rows, &task)
                }
            };
        }
        let (run, source) = (self.run(&task, task.partition), open(0, task.partition)?);
        match self.finishes_groups() {
            true => Ok(left_there(Finishing::new(run, source, task.spill())?)),
            false => gpu::run_on_device(run, source),
        }
    }
}

/// Whether rows have to be partitioned by keys.
fn requires_keys(required: &InputDistributionRequirements) -> bool {
    matches!(required.child_distribution(0), Some(Distribution::KeyPartitioned(_)))
}
