//! Divides aggregates that group rows in one step into two: DataFusion plans one step where the rows are in
//! one partition already, or are partitioned by the keys.

use std::sync::Arc;

use datafusion::error::Result;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};

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
    let more = whole.limit_options().is_some() || !whole.dynamic_expressions_produced().is_empty();
    if keys.is_true_no_grouping() || keys.has_grouping_set() || more {
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
