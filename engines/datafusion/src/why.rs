//! Says why the rule leaves nodes of a plan to DataFusion.
//!
//! The rule asks whether chains of nodes can be translated and pay, and needs no reasons. So this module asks
//! again about the finished plan, node by node: what is left could not be taken even alone.

use std::fmt;
use std::sync::Arc;

use bowstring::Device;
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::sorts::sort::SortExec;

use crate::blame;
use crate::chain::beyond;
use crate::chained::Chained;
use crate::config::DeviceOptions;
use crate::cost::{against, against_endless, against_join, options_of};
use crate::device::{is_host, open};
use crate::exec::{DeviceExec, is_on_device};
use crate::joined::Joined;
use crate::reason::Reason;
use crate::window::window_functions;
use crate::windowed::Windowed;

/// Nodes that compute nothing from their rows, or that run plans of others.
const PASS_ON: &[&str] = &[
    "AnalyzeExec",
    "BufferExec",
    "CoalesceBatchesExec",
    "CoalescePartitionsExec",
    "CooperativeExec",
    "DataSinkExec",
    "GlobalLimitExec",
    "InterleaveExec",
    "KeyFilterExec",
    "LocalLimitExec",
    "OutputRequirementExec",
    "RepartitionExec",
    "ScalarSubqueryExec",
    "SortPreservingMergeExec",
    "UnionExec",
];

/// A node of a plan that stays DataFusion's, and why. As text, it is the node's name and the reason.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Declined {
    /// The node, with all that is below it.
    pub node: Arc<dyn ExecutionPlan>,
    /// The first reason that was found.
    pub reason: Reason,
}

impl fmt::Display for Declined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.node.name(), self.reason)
    }
}

/// The nodes of a finished plan that compute something and stay DataFusion's, from the root down, with the
/// reason for each; none if `bowstring.device` is `off`. Scans, and nodes that only pass rows on, are not
/// among them.
///
/// ```
/// # use bowstring_datafusion::{session, why_not};
/// # use datafusion::prelude::SessionConfig;
/// # #[tokio::main]
/// # async fn main() -> datafusion::error::Result<()> {
/// let context = session(SessionConfig::new());
/// context.sql("SET bowstring.device = 'cpu'").await?;
/// let query = context.sql("SELECT x FROM (VALUES ('a'), ('b')) AS t(x) WHERE reverse(x) = x").await?;
/// let plan = query.create_physical_plan().await?;
/// let declined = why_not(&plan, context.copied_config().options())?;
/// let expected = "FilterExec: reverse(column1@0) of Utf8 has no counterpart on devices";
/// assert_eq!(declined[0].to_string(), expected);
/// # Ok(())
/// # }
/// ```
pub fn why_not(plan: &Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Result<Vec<Declined>> {
    let options = options_of(plan, config);
    let mut declined = vec![];
    if let Some(device) = open(&options.device)? {
        Asked { device, options }.about(plan, &mut declined)?;
    }
    Ok(declined)
}

/// The device and the options of a plan.
struct Asked {
    device: Device,
    options: DeviceOptions,
}

impl Asked {
    fn about(&self, plan: &Arc<dyn ExecutionPlan>, declined: &mut Vec<Declined>) -> Result<()> {
        let leaf = plan.children().is_empty();
        if !leaf && !plan.is::<DeviceExec>() && !PASS_ON.contains(&plan.name()) {
            let reason = self.reason(plan)?;
            declined.extend(reason.map(|reason| Declined { node: plan.clone(), reason }));
        }
        plan.children().into_iter().try_for_each(|child| self.about(child, declined))
    }

    /// The reason for a node; `None` if it needs none, since it only renames columns, or merges what another
    /// node has computed.
    fn reason(&self, plan: &Arc<dyn ExecutionPlan>) -> Result<Option<Reason>> {
        if let Some(aggregate) = plan.downcast_ref::<AggregateExec>() {
            return self.of_aggregate(plan, aggregate);
        }
        if let Some(projection) = plan.downcast_ref::<ProjectionExec>()
            && projection.expr().iter().all(|one| one.expr.is::<Column>())
        {
            return Ok(None);
        }
        let endless = || against_endless(&plan.children(), &self.device);
        Ok(Some(if let Some(filter) = plan.downcast_ref::<FilterExec>() {
            let refused = blame::of_expression(filter.predicate(), &filter.input().schema());
            self.of_chain(plan, refused)?
        } else if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
            let schema = projection.input().schema();
            let refused = projection.expr().iter().find_map(|one| blame::of_column(&one.expr, &schema));
            self.of_chain(plan, refused)?
        } else if let Some(join) = plan.downcast_ref::<HashJoinExec>() {
            match Joined::of(plan) {
                None => blame::of_join(join).unwrap_or(Reason::Whole),
                Some(_) => against_join(join, &self.device, &self.options).unwrap_or(Reason::Whole),
            }
        } else if let Some(sort) = plan.downcast_ref::<SortExec>() {
            match blame::of_sort(sort).or_else(endless) {
                Some(reason) => reason,
                None if is_host(&self.device) => Reason::Cpu,
                None if sort.fetch().is_some() => Reason::Narrows,
                None => Reason::OnTheHost,
            }
        } else if let Some(functions) = window_functions(plan) {
            match blame::of_windows(functions, &plan.children()[0].schema()).or_else(endless) {
                Some(reason) => reason,
                None if is_host(&self.device) => Reason::Cpu,
                None if Windowed::of(plan).is_none() => Reason::Whole,
                None => Reason::OnTheHost,
            }
        } else {
            Reason::Kind
        }))
    }

    fn of_aggregate(
        &self,
        plan: &Arc<dyn ExecutionPlan>,
        aggregate: &AggregateExec,
    ) -> Result<Option<Reason>> {
        if matches!(aggregate.mode(), AggregateMode::Final | AggregateMode::FinalPartitioned) {
            // The reason of a first step that is not ours is the reason of both. On the CPU, last steps are
            // never ours.
            let last = !is_host(&self.device) && !aggregate.group_expr().is_true_no_grouping();
            return Ok((last && first_is_ours(plan)).then_some(Reason::LastStep));
        }
        let cpu = is_host(&self.device) && !aggregate.group_expr().is_empty();
        let reason = beyond(aggregate).or_else(|| cpu.then(|| blame::of_first_step(aggregate)));
        if let Some(reason) = reason.or_else(|| blame::of_aggregate(aggregate)) {
            return Ok(Some(reason));
        }
        let reason = self.of_chain(plan, None)?;
        let read = aggregate.aggr_expr().iter().flat_map(|function| function.expressions());
        let mut read = read.chain(aggregate.group_expr().input_exprs());
        let reads = read.any(|expr| !collect_columns(&expr).is_empty());
        Ok(Some(if reason == Reason::Whole && !reads { Reason::ReadsNothing } else { reason }))
    }

    /// The reason for a node that is a chain of its own, of which a part may have been `refused`.
    fn of_chain(&self, plan: &Arc<dyn ExecutionPlan>, refused: Option<Reason>) -> Result<Reason> {
        if let Some(reason) = refused {
            return Ok(reason);
        }
        let Some(ours) = Chained::of(&[plan], None, &self.device, &self.options)? else {
            return Ok(Reason::Whole);
        };
        let there = is_on_device(ours.input(), &self.device);
        let reason = against(&ours.program().shape, ours.input(), there, &self.device, &self.options);
        Ok(reason.unwrap_or(Reason::Whole))
    }
}

/// Whether the first step of an aggregate is an operator of ours.
fn first_is_ours(merging: &Arc<dyn ExecutionPlan>) -> bool {
    match merging.children()[..] {
        [below] if PASS_ON.contains(&below.name()) => first_is_ours(below),
        [below] => below.is::<DeviceExec>(),
        _ => false,
    }
}
