//! Removes the partitioning below joins on one device, where all rows can find each other anyway.

use std::sync::Arc;

use datafusion::error::Result;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::joins::{HashJoinExec, PartitionMode};
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::union::InterleaveExec;
use datafusion::physical_plan::{
    Distribution, ExecutionPlan, ExecutionPlanProperties as _, Partitioning, PhysicalExpr,
};

/// A join of partitioned sides as one whose right partitions share the whole left side, and are partitioned
/// as they come. `None` if the plan is no such join.
pub(crate) fn with_a_shared_side(plan: &Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let Some(join) = plan.downcast_ref::<HashJoinExec>() else { return Ok(None) };
    if *join.partition_mode() != PartitionMode::Partitioned {
        return Ok(None);
    }
    let (left, right) = (exchanged(join.left()), exchanged(join.right()));
    // Without an exchange, there is nothing to save, and the other partitions may be on other machines.
    if left.is_none() && right.is_none() {
        return Ok(None);
    }
    let (left, right) = (left.unwrap_or(join.left()), right.unwrap_or(join.right()));
    let left: Arc<dyn ExecutionPlan> = match left.output_partitioning().partition_count() {
        1 => left.clone(),
        _ => Arc::new(CoalescePartitionsExec::new(left.clone())),
    };
    let shared = join.builder().with_partition_mode(PartitionMode::CollectLeft).recompute_properties();
    shared.with_new_children(vec![left, right.clone()])?.build_exec().map(Some)
}

/// The input of a node that partitions rows by a hash.
fn exchanged(plan: &Arc<dyn ExecutionPlan>) -> Option<&Arc<dyn ExecutionPlan>> {
    let exchange = plan.downcast_ref::<RepartitionExec>()?;
    matches!(exchange.partitioning(), Partitioning::Hash(..)).then(|| exchange.input())
}

/// Whether a node distributes rows to partitions one batch after the other, only for more threads to work.
pub(crate) fn is_round_robin(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let exchange = plan.downcast_ref::<RepartitionExec>();
    exchange.is_some_and(|exchange| matches!(exchange.partitioning(), Partitioning::RoundRobinBatch(_)))
}

/// The keys by which rows are partitioned, by their hashes or in ranges; `None` if rows with equal keys may
/// be in several partitions.
pub(crate) fn partition_keys(partitioning: &Partitioning) -> Option<Vec<Arc<dyn PhysicalExpr>>> {
    match partitioning {
        Partitioning::Hash(keys, _) => Some(keys.clone()),
        Partitioning::Range(range) => Some(range.ordering().iter().map(|key| key.expr.clone()).collect()),
        Partitioning::RoundRobinBatch(_) | Partitioning::UnknownPartitioning(_) => None,
    }
}

/// For each child of a node, whether the node, or one above it for which it `matters`, relies on how the
/// child's rows are partitioned.
pub(crate) fn matter_below(plan: &Arc<dyn ExecutionPlan>, matters: bool) -> Vec<bool> {
    use Distribution::{SinglePartition, UnspecifiedDistribution};
    // Its children are combined partition by partition, though it does not say that it requires that.
    let matters = matters || plan.is::<InterleaveExec>();
    // A node that partitions rows anew does not rely on how they were partitioned before.
    let keeps = partition_keys(plan.output_partitioning()).is_some() && !plan.is::<RepartitionExec>();
    let passes_on = matters && keeps;
    let required = plan.input_distribution_requirements().into_per_child();
    let relies = |one: &Distribution| !matches!(one, UnspecifiedDistribution | SinglePartition);
    required.iter().map(|one| passes_on || relies(one)).collect()
}
