//! The optimizer rule that puts our operators into plans.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use bowstring::Device;
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::execution_plan::{
    CardinalityEffect, ChildrenPropertiesMode, ReplaceChildrenOptions,
};
use datafusion::physical_plan::joins::{HashJoinExec, PartitionMode};
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties as _};

use crate::chain::nodes;
use crate::chained::Chained;
use crate::config::DeviceOptions;
use crate::cost::{against, against_join, options_of};
use crate::device::{is_host, open};
use crate::exchange::{is_round_robin, matter_below, with_a_shared_side};
use crate::exec::{DeviceExec, is_on_device};
use crate::first_step::FirstStep;
use crate::gathered::gathered;
use crate::joined::Joined;
use crate::key_filters::with_key_filters;
use crate::limited::Limited;
use crate::operator::Operator;
use crate::passed::passes_on;
use crate::sorted::Sorted;
use crate::steps::{in_one_step, in_two_steps, over_columns};
use crate::top::{Top, all_columns};
use crate::windowed::Windowed;

/// Replaces joins, and chains of filters, projections and aggregates, by our operators, if a join or a chain
/// can be translated whole and it pays; and sorts, windows and limits of rows that are on a device anyway. On
/// the CPU, it also adds filters by the keys of joins.
///
/// It runs after DataFusion's own rules: whatever they have pushed into scans stays there, and no rule moves
/// our operators.
#[derive(Clone, Copy, Debug, Default)]
pub struct DeviceRule {
    keeps_partitions: bool,
}

impl DeviceRule {
    /// Creates the rule; a session's configuration controls it.
    pub fn new() -> DeviceRule {
        DeviceRule::default()
    }

    /// Keeps how the rows of the whole plan are partitioned, for a plan that is a part of another one.
    pub fn keeping_partitions(self) -> DeviceRule {
        DeviceRule { keeps_partitions: true }
    }
}

impl PhysicalOptimizerRule for DeviceRule {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let options = options_of(&plan, config);
        match open(&options.device)? {
            None => Ok(plan),
            Some(device) => {
                // A part of a plan is executed without the others, which have other keys.
                let plan = match is_host(&device) && options.key_filters && !self.keeps_partitions {
                    true => with_key_filters(&plan)?,
                    false => plan,
                };
                let rewrite = Rewrite { device, options, known: RefCell::default() };
                rewrite.below(plan, self.keeps_partitions)
            }
        }
    }

    fn name(&self) -> &str {
        "bowstring_device"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Plans by their addresses, and an answer about each.
type Known = HashMap<*const (), (Arc<dyn ExecutionPlan>, bool)>;

/// The device and the options of a plan that is being rewritten.
struct Rewrite {
    device: Device,
    options: DeviceOptions,
    /// Plans by their addresses, which they keep while they are here, and whether their rows will be on the
    /// device. Several rules ask that of each node, and each answer asks it of the nodes below: without the
    /// answers, the time of planning would double with each node.
    known: RefCell<Known>,
}

impl Rewrite {
    /// Replaces joins and chains where it pays, from the top down, longest chain first. `matters` says
    /// whether a node above relies on how the rows are partitioned.
    fn below(&self, plan: Arc<dyn ExecutionPlan>, matters: bool) -> Result<Arc<dyn ExecutionPlan>> {
        if plan.is::<DeviceExec>() {
            return Ok(plan);
        }
        if let Some(whole) = self.gathered(&plan, matters)? {
            return self.below(whole, matters);
        }
        if let Some(ours) = self.in_one_step(&plan, matters)? {
            return self.with_children(self.node(ours), matters);
        }
        if let Some(ours) = self.longest(&plan, None)? {
            return self.with_children(self.node(ours), matters);
        }
        if let Some(apart) = self.over_columns(&plan, matters)? {
            return self.below(apart, matters);
        }
        if let Some(ours) = self.first_step(&plan) {
            return self.with_children(self.node(ours), matters);
        }
        if let Some(join) = self.join(&plan, matters)? {
            return self.with_children(self.node(join), matters);
        }
        if let Some(merged) = in_two_steps(&plan)?
            && let [partial] = merged.children()[..]
            && let Some(ours) = self.added_step(partial)?
        {
            let partial = self.with_children(ours, matter_below(&merged, matters)[0])?;
            return over(merged, vec![partial]);
        }
        if let Some(sort) = self.sorted(&plan)? {
            return self.with_children(self.node(sort), matters);
        }
        if let Some(windows) = self.windowed(&plan)? {
            return self.with_children(self.node(windows), matters);
        }
        if let Some(limit) = self.limited(&plan)? {
            return self.with_children(self.node(limit), matters);
        }
        if let Some(sort) = plan.downcast_ref::<SortExec>()
            && !is_host(&self.device)
            && let Some(top) = Top::of(sort)
            && let Some(ours) = self.first_rows(sort.input(), &top)?
        {
            let first = self.with_children(self.node(ours), matter_below(&plan, matters)[0])?;
            return over(plan, vec![first]);
        }
        let made = self.with_children(plan, matters)?;
        Ok(only_input(&made).unwrap_or(made))
    }

    /// The longest chain from this node downwards that can be translated and pays.
    fn longest(&self, plan: &Arc<dyn ExecutionPlan>, top: Option<&Top>) -> Result<Option<Chained>> {
        let found = nodes(plan);
        for length in (1..=found.len()).rev() {
            let Some(ours) = Chained::of(&found[..length], top, &self.device, &self.options)? else {
                continue;
            };
            let input = ours.input();
            let there = self.stays(input)?;
            if against(&ours.program().shape, input, there, &self.device, &self.options).is_none() {
                return Ok(Some(ours));
            }
        }
        Ok(None)
    }

    /// Whether the rows of a plan will be on the device when our operators are in it.
    fn stays(&self, plan: &Arc<dyn ExecutionPlan>) -> Result<bool> {
        let address = Arc::as_ptr(plan).cast::<()>();
        if let Some((_, there)) = self.known.borrow().get(&address) {
            return Ok(*there);
        }
        let there = self.will_stay(plan)?;
        self.known.borrow_mut().insert(address, (plan.clone(), there));
        Ok(there)
    }

    fn will_stay(&self, plan: &Arc<dyn ExecutionPlan>) -> Result<bool> {
        if passes_on(plan) || is_round_robin(plan) {
            let mut all = true;
            for input in plan.children() {
                all = all && self.stays(input)?;
            }
            return Ok(all);
        }
        if self.gathered(plan, false)?.is_some() {
            return Ok(true);
        }
        let there = is_on_device(plan, &self.device) || self.joined(plan).is_some();
        let in_one_step = self.in_one_step(plan, false)?.is_some_and(|ours| ours.stays_on_device());
        let there = there || in_one_step || self.is_chain(plan)?;
        let there = there || self.sorted(plan)?.is_some() || self.windowed(plan)?.is_some();
        Ok(there || self.limited(plan)?.is_some())
    }

    /// The sort that this node is, if it can be translated, and what it sorts will be on the device.
    fn sorted(&self, plan: &Arc<dyn ExecutionPlan>) -> Result<Option<Sorted>> {
        match Sorted::of(plan) {
            Some(sort) if !is_host(&self.device) && self.stays(sorted_rows(plan))? => Ok(Some(sort)),
            _ => Ok(None),
        }
    }

    /// The window functions of this node, if all can be translated, and their rows will be on the device.
    fn windowed(&self, plan: &Arc<dyn ExecutionPlan>) -> Result<Option<Windowed>> {
        match Windowed::of(plan) {
            Some(windows) if !is_host(&self.device) && self.stays(windows.inputs()[0])? => Ok(Some(windows)),
            _ => Ok(None),
        }
    }

    /// The limit that this node is, if what it limits will be on the device.
    fn limited(&self, plan: &Arc<dyn ExecutionPlan>) -> Result<Option<Limited>> {
        match Limited::of(plan) {
            Some(limit) if !is_host(&self.device) && self.stays(limit.inputs()[0])? => Ok(Some(limit)),
            _ => Ok(None),
        }
    }

    /// Merged partitions of sorted rows, or windows of several partitions, as one, if that will be on the
    /// device, unless a node above relies on the partitions.
    fn gathered(
        &self,
        plan: &Arc<dyn ExecutionPlan>,
        matters: bool,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        match if matters || is_host(&self.device) { None } else { gathered(plan)? } {
            Some(one) if self.stays(&one)? => Ok(Some(one)),
            _ => Ok(None),
        }
    }

    /// Whether a node will be the first of a chain of ours whose rows stay on the device.
    fn is_chain(&self, plan: &Arc<dyn ExecutionPlan>) -> Result<bool> {
        let ours = self.longest(plan, None)?;
        Ok(ours.is_some_and(|ours| ours.stays_on_device()))
    }

    /// An aggregate in two steps that a device does in one, unless a node above relies on its partitions.
    fn in_one_step(&self, plan: &Arc<dyn ExecutionPlan>, matters: bool) -> Result<Option<Chained>> {
        if matters || is_host(&self.device) {
            return Ok(None);
        }
        match in_one_step(plan)? {
            Some(whole) => Ok(self.longest(&whole, None)?.filter(Chained::aggregates)),
            None => Ok(None),
        }
    }

    /// An aggregate over a chain of ours that computes its arguments as well, on the CPU.
    fn over_columns(
        &self,
        plan: &Arc<dyn ExecutionPlan>,
        matters: bool,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let Some(apart) = (if is_host(&self.device) { over_columns(plan)? } else { None }) else {
            return Ok(None);
        };
        let Some(ours) = self.longest(apart.children()[0], None)? else { return Ok(None) };
        let computed = self.node(ours.with_first_added());
        let computed = self.with_children(computed, matter_below(&apart, matters)[0])?;
        over(apart, vec![computed]).map(Some)
    }

    /// The first step of an aggregate that this node is, if it is one, and the device is the CPU.
    fn first_step(&self, plan: &Arc<dyn ExecutionPlan>) -> Option<FirstStep> {
        if is_host(&self.device) { FirstStep::of(plan, self.options.always) } else { None }
    }

    /// The first step of an aggregate that the plan did not have, as a node of ours.
    fn added_step(&self, partial: &Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        if let Some(ours) = self.first_step(partial).filter(FirstStep::can_be_added) {
            return Ok(Some(self.node(ours.with_first_added())));
        }
        let ours = self.longest(partial, None)?.filter(|ours| ours.program().shape.groups);
        Ok(ours.map(|ours| self.node(ours.with_first_added())))
    }

    /// The join that takes the place of this node. It has one left side for all partitions, unless a node
    /// above relies on these.
    fn join(&self, plan: &Arc<dyn ExecutionPlan>, matters: bool) -> Result<Option<Joined>> {
        let Some(join) = self.joined(plan) else { return Ok(None) };
        let shared = if matters { None } else { with_a_shared_side(plan)? };
        let (on_the_host, always) = (is_host(&self.device), self.options.always);
        // On the CPU, each partition is a thread's work.
        let partitions = |plan: &Arc<dyn ExecutionPlan>| plan.output_partitioning().partition_count();
        let shared = shared.filter(|shared| !on_the_host || always || partitions(shared) >= partitions(plan));
        if let Some(shared) = shared.as_ref().and_then(Joined::of) {
            return Ok(Some(shared));
        }
        // Joins of ours that partition both sides do not tell the scan of the right side about the left keys.
        let tells = plan.downcast_ref::<HashJoinExec>().is_some_and(|join| {
            *join.partition_mode() == PartitionMode::Partitioned
                && !join.dynamic_expressions_produced().is_empty()
        });
        Ok((!(on_the_host && tells) || always).then_some(join))
    }

    /// The join that this node is, if it can be translated and it pays.
    fn joined(&self, plan: &Arc<dyn ExecutionPlan>) -> Option<Joined> {
        let join = plan.downcast_ref::<HashJoinExec>()?;
        let pays = || against_join(join, &self.device, &self.options).is_none();
        Joined::of(plan).filter(|_| pays())
    }

    /// The operator below a sort that keeps only the first rows.
    fn first_rows(&self, input: &Arc<dyn ExecutionPlan>, top: &Top) -> Result<Option<Chained>> {
        match self.longest(input, Some(top))? {
            Some(ours) => Ok(Some(ours)),
            None => {
                let all = self.longest(&all_columns(input)?, Some(top))?;
                Ok(all.map(Chained::with_first_added))
            }
        }
    }

    fn node(&self, operator: impl Operator + 'static) -> Arc<dyn ExecutionPlan> {
        Arc::new(DeviceExec::new(Arc::new(operator), &self.device, &self.options))
    }

    /// A child of a node, without the distribution of its rows to partitions that ours does not need.
    fn needed(
        &self,
        plan: &Arc<dyn ExecutionPlan>,
        child: &Arc<dyn ExecutionPlan>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match child.children()[..] {
            [input] if plan.is::<DeviceExec>() && is_round_robin(child) && self.stays(input)? => {
                Ok(input.clone())
            }
            _ => Ok(child.clone()),
        }
    }

    fn with_children(&self, plan: Arc<dyn ExecutionPlan>, matters: bool) -> Result<Arc<dyn ExecutionPlan>> {
        let children = plan.children().into_iter().zip(matter_below(&plan, matters));
        let made = children.map(|(child, matters)| self.below(self.needed(&plan, child)?, matters));
        over(plan.clone(), made.collect::<Result<_>>()?)
    }
}

/// The rows that a sort sorts: its input, or, if it has a limit, that of the chain below. Such a sort tells
/// scans which rows it does not need any more, so it stays DataFusion's above them.
fn sorted_rows(sort: &Arc<dyn ExecutionPlan>) -> &Arc<dyn ExecutionPlan> {
    let input = sort.children()[0];
    let below = if input.is::<CoalescePartitionsExec>() { input.children()[0] } else { input };
    let last = nodes(below).last().and_then(|last| last.children().first().copied());
    match sort.fetch() {
        Some(_) => last.unwrap_or(below),
        None => input,
    }
}

/// The input of a node that merges sorted partitions, if there is only one, and no rows are dropped.
fn only_input(plan: &Arc<dyn ExecutionPlan>) -> Option<Arc<dyn ExecutionPlan>> {
    let merge = plan.downcast_ref::<SortPreservingMergeExec>()?;
    let input = merge.input();
    let all = merge.fetch().is_none_or(|rows| has_at_most(input, rows));
    let one = input.output_partitioning().partition_count() == 1;
    (all && one && input.is::<DeviceExec>()).then(|| input.clone())
}

/// Whether a plan is known to return at most so many rows.
fn has_at_most(plan: &Arc<dyn ExecutionPlan>, rows: usize) -> bool {
    let adds_none =
        matches!(plan.cardinality_effect(), CardinalityEffect::Equal | CardinalityEffect::LowerEqual);
    match plan.children()[..] {
        _ if plan.fetch().is_some_and(|most| most <= rows) => true,
        [input] if plan.is::<DeviceExec>() && adds_none => has_at_most(input, rows),
        _ => false,
    }
}

/// Puts a node over other children. Ours report the same properties as those that they replace, except for
/// how their rows are partitioned.
fn over(
    plan: Arc<dyn ExecutionPlan>,
    children: Vec<Arc<dyn ExecutionPlan>>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let both = || plan.children().into_iter().zip(&children);
    if both().all(|(old, new)| Arc::ptr_eq(old, new)) {
        return Ok(plan);
    }
    // Unknown partitionings are never equal, so texts are compared.
    let partitioning = |plan: &Arc<dyn ExecutionPlan>| plan.output_partitioning().to_string();
    let mode = match both().all(|(old, new)| partitioning(old) == partitioning(new)) {
        true => ChildrenPropertiesMode::Keep,
        false => ChildrenPropertiesMode::Recompute,
    };
    plan.replace_children(children, ReplaceChildrenOptions::new(mode))
}
