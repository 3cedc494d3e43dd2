//! Nodes of DataFusion's that pass the batches of their inputs on as they are. They stay in plans, and
//! operators of ours read through them what is on a device.

use std::sync::Arc;

use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::union::{InterleaveExec, UnionExec};
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties as _};

/// The batches of a partition of a node that passes on those of its inputs.
pub(crate) struct Passed<'a> {
    /// The inputs, and the partition of each; their batches come in any order.
    pub from: Vec<(&'a Arc<dyn ExecutionPlan>, usize)>,
    /// The number of rows after which the partition ends.
    pub fetch: Option<usize>,
}

/// Whether a node only passes batches on.
pub(crate) fn passes_on(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let has_its_types = |input: &&Arc<dyn ExecutionPlan>| {
        let (all, schema) = (plan.schema(), input.schema());
        let mut pairs = all.fields().iter().zip(schema.fields());
        pairs.all(|(to, from)| to.data_type() == from.data_type())
    };
    let several = plan.is::<UnionExec>() || plan.is::<InterleaveExec>();
    plan.is::<CoalescePartitionsExec>() || several && plan.children().iter().all(has_its_types)
}

/// The partitions that a node passes on as its own; `None` if the node does more.
pub(crate) fn passed(plan: &Arc<dyn ExecutionPlan>, partition: usize) -> Option<Passed<'_>> {
    if !passes_on(plan) {
        return None;
    }
    let partitions = |input: &Arc<dyn ExecutionPlan>| input.output_partitioning().partition_count();
    let inputs = plan.children();
    if let Some(merge) = plan.downcast_ref::<CoalescePartitionsExec>() {
        let all = 0..partitions(merge.input());
        return Some(Passed { from: all.map(|one| (merge.input(), one)).collect(), fetch: merge.fetch() });
    }
    let from = match plan.is::<InterleaveExec>() {
        true => inputs.into_iter().map(|input| (input, partition)).collect(),
        false => {
            let mut all =
                inputs.into_iter().flat_map(|input| (0..partitions(input)).map(move |one| (input, one)));
            vec![all.nth(partition)?]
        }
    };
    Some(Passed { from, fetch: None })
}
