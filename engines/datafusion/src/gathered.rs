//! Sorts and windows of one partition. DataFusion sorts each partition and merges them, or partitions rows by
//! the keys of windows, so that more threads work. A device sorts all rows at once.

use std::sync::Arc;

use datafusion::error::Result;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::windows::{BoundedWindowAggExec, WindowAggExec};
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties as _};

/// Merged partitions of sorted rows, or windows over several partitions, as one of all rows. `None` if the
/// plan is neither, or if only a merge makes one.
pub(crate) fn gathered(plan: &Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let windows = is_window(plan) && has_several(plan);
    if windows || plan.is::<SortPreservingMergeExec>() { in_one_partition(plan) } else { Ok(None) }
}

fn is_window(plan: &Arc<dyn ExecutionPlan>) -> bool {
    plan.is::<WindowAggExec>() || plan.is::<BoundedWindowAggExec>()
}

fn has_several(plan: &Arc<dyn ExecutionPlan>) -> bool {
    plan.output_partitioning().partition_count() > 1
}

/// The rows of a plan in one partition, in the plan's order; `None` if only a merge keeps the order.
fn in_one_partition(plan: &Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    if let Some(merge) = plan.downcast_ref::<SortPreservingMergeExec>() {
        let Some(one) = in_one_partition(merge.input())? else { return Ok(None) };
        return match merge.fetch() {
            Some(rows) => first_rows(&one, rows),
            None => Ok(Some(one)),
        };
    }
    if let Some(sort) = plan.downcast_ref::<SortExec>() {
        let one = SortExec::new(sort.expr().clone(), in_any_order(sort.input())).with_fetch(sort.fetch());
        return Ok(Some(Arc::new(one)));
    }
    if !has_several(plan) {
        return Ok(Some(plan.clone()));
    }
    let [input] = plan.children()[..] else { return Ok(None) };
    if !is_window(plan) && !plan.is::<ProjectionExec>() {
        return Ok(None);
    }
    let Some(input) = in_one_partition(input)? else { return Ok(None) };
    Ok(Some(if let Some(window) = plan.downcast_ref::<WindowAggExec>() {
        Arc::new(WindowAggExec::try_new(window.window_expr().to_vec(), input, false)?)
    } else if let Some(window) = plan.downcast_ref::<BoundedWindowAggExec>() {
        let (exprs, mode) = (window.window_expr().to_vec(), window.input_order_mode.clone());
        Arc::new(BoundedWindowAggExec::try_new(exprs, input, mode, false)?)
    } else {
        over(plan, input)?
    }))
}

/// The first rows of a sort, which a projection may read; `None` if the plan is something else.
fn first_rows(plan: &Arc<dyn ExecutionPlan>, rows: usize) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
        return first_rows(projection.input(), rows)?.map(|input| over(plan, input)).transpose();
    }
    let Some(sort) = plan.downcast_ref::<SortExec>() else { return Ok(None) };
    Ok(Some(Arc::new(sort.with_fetch(Some(sort.fetch().map_or(rows, |fetch| fetch.min(rows)))))))
}

fn over(plan: &Arc<dyn ExecutionPlan>, input: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let recomputed = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
    plan.clone().replace_children(vec![input], recomputed)
}

/// The rows of a plan in one partition, in any order.
fn in_any_order(plan: &Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
    let mut below = plan;
    while below.is::<CoalescePartitionsExec>() && below.fetch().is_none() || below.is::<RepartitionExec>() {
        let [input] = below.children()[..] else { break };
        below = input;
    }
    match has_several(below) {
        true => Arc::new(CoalescePartitionsExec::new(below.clone())),
        false => below.clone(),
    }
}
