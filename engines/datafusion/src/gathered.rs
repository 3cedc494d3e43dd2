//! Sorts of one partition. DataFusion sorts each partition and merges them, so that more threads work. A device
//! sorts all rows at once.

use std::sync::Arc;

use datafusion::error::Result;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties as _};

/// Sorts that are merged as one sort of all rows; `None` if the plan is something else.
pub(crate) fn gathered(plan: &Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let Some(merge) = plan.downcast_ref::<SortPreservingMergeExec>() else { return Ok(None) };
    let Some(sort) = merge.input().downcast_ref::<SortExec>() else { return Ok(None) };
    let rows = sort.fetch().into_iter().chain(merge.fetch()).min();
    let one = SortExec::new(sort.expr().clone(), in_any_order(sort.input())).with_fetch(rows);
    Ok(Some(Arc::new(one)))
}

/// The rows of a plan in one partition, in any order.
fn in_any_order(plan: &Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
    let mut below = plan;
    while below.is::<CoalescePartitionsExec>() && below.fetch().is_none() || below.is::<RepartitionExec>() {
        let [input] = below.children()[..] else { break };
        below = input;
    }
    match below.output_partitioning().partition_count() > 1 {
        true => Arc::new(CoalescePartitionsExec::new(below.clone())),
        false => below.clone(),
    }
}
