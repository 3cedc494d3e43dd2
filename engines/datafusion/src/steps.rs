//! The steps of aggregates. DataFusion plans two where the rows are in several partitions: a
//! partial one for each, and one that merges their states, partitioned by the keys. It plans one step where
//! the rows are in one partition, or are partitioned by the keys already.

use std::sync::Arc;

use datafusion::error::Result;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties as _};

use crate::chain::reduces;

/// The same aggregate as two: a partial one, which may be ours, below one that merges its states. `None` if
/// the plan is no such aggregate.
pub(crate) fn in_two_steps(plan: &Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let Some(whole) = plan.downcast_ref::<AggregateExec>() else { return Ok(None) };
    let merges = match whole.mode() {
        AggregateMode::Single => AggregateMode::Final,
        AggregateMode::SinglePartitioned => AggregateMode::FinalPartitioned,
        _ => return Ok(None),
    };
    let keys = whole.group_expr();
    if !is_simple(whole) || keys.is_true_no_grouping() || keys.has_grouping_set() {
        return Ok(None);
    }
    let step = |mode, keys, input| {
        let (functions, filters) = (whole.aggr_expr().to_vec(), whole.filter_expr().to_vec());
        AggregateExec::try_new(mode, keys, functions, filters, input, whole.input_schema())
    };
    let partial = Arc::new(step(AggregateMode::Partial, keys.clone(), whole.input().clone())?);
    let merged = step(merges, keys.as_final(), partial)?;
    // Fields are named after functions, which an earlier rule may have replaced.
    Ok((merged.schema() == plan.schema()).then(|| Arc::new(merged) as _))
}

/// An aggregate in two steps as one, over all partitions, or a projection of the one row that such an
/// aggregate returns. `None` if the plan is neither.
pub(crate) fn in_one_step(plan: &Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
        return match in_one_step(projection.input())? {
            Some(row) if row.downcast_ref::<AggregateExec>().is_none_or(reduces) => {
                let recomputed = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
                Ok(Some(plan.clone().replace_children(vec![row], recomputed)?))
            }
            _ => Ok(None),
        };
    }
    let Some(merging) = plan.downcast_ref::<AggregateExec>() else { return Ok(None) };
    let merges = matches!(merging.mode(), AggregateMode::Final | AggregateMode::FinalPartitioned);
    // Groups of sorted rows are sorted, which nodes above may rely on.
    if !merges || !is_simple(merging) || plan.output_ordering().is_some() {
        return Ok(None);
    }
    let mut below = merging.input();
    while below.is::<CoalescePartitionsExec>() || below.is::<RepartitionExec>() {
        let [input] = below.children()[..] else { return Ok(None) };
        below = input;
    }
    let Some(partial) = below.downcast_ref::<AggregateExec>() else { return Ok(None) };
    if *partial.mode() != AggregateMode::Partial || !is_simple(partial) {
        return Ok(None);
    }
    let input: Arc<dyn ExecutionPlan> = match partial.input().output_partitioning().partition_count() {
        1 => partial.input().clone(),
        _ => Arc::new(CoalescePartitionsExec::new(partial.input().clone())),
    };
    let (keys, functions) = (partial.group_expr().clone(), merging.aggr_expr().to_vec());
    let filters = partial.filter_expr().to_vec();
    let whole = AggregateExec::try_new(
        AggregateMode::Single,
        keys,
        functions,
        filters,
        input,
        partial.input_schema(),
    )?;
    Ok((whole.schema() == plan.schema()).then(|| Arc::new(whole) as _))
}

/// Whether an aggregate reduces rows to one, or groups them by keys, and does nothing else.
fn is_simple(aggregate: &AggregateExec) -> bool {
    aggregate.limit_options().is_none() && aggregate.dynamic_expressions_produced().is_empty()
}
