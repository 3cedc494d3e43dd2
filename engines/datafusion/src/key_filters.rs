//! Puts filters by the keys of joins into plans, far below the joins.
//!
//! The one idea: a row of a join's right side that has none of the left side's keys is dropped by the join,
//! so it can be dropped where it is read. In between it would be moved to other partitions, joined and
//! grouped.

use std::sync::Arc;

use datafusion::common::JoinType::{
    Inner, Left, LeftAnti, LeftMark, LeftSemi, Right, RightAnti, RightMark, RightSemi,
};
use datafusion::common::{NullEquality, Result};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::utils::JoinFilter;
use datafusion::physical_plan::joins::{HashJoinExec, PartitionMode};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::recursive_query::RecursiveQueryExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};
use datafusion::physical_plan::union::{InterleaveExec, UnionExec};
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties as _, PhysicalExpr};

use crate::join_keys::JoinKeys;
use crate::key_filter::{KeyFilterExec, Role};
use crate::key_range::has_range;

type Plan = Arc<dyn ExecutionPlan>;

/// A plan whose joins filter the rows of their right sides early.
pub(crate) fn with_key_filters(plan: &Plan) -> Result<Plan> {
    // Parts of such a plan are executed again and again, with other rows.
    if has(plan, &|node| node.is::<RecursiveQueryExec>()) {
        return Ok(plan.clone());
    }
    Planner { joins: 0 }.below(plan)
}

struct Planner {
    /// The number of joins that filter so far.
    joins: usize,
}

impl Planner {
    /// From the top down: a left side that is filtered itself has few keys.
    fn below(&mut self, plan: &Plan) -> Result<Plan> {
        let swapped = with_fewer_left_rows(plan)?;
        let plan = swapped.as_ref().unwrap_or(plan);
        let plan = match plan.downcast_ref::<HashJoinExec>() {
            Some(join) => self.filtering(plan, join)?,
            None => plan.clone(),
        };
        let children = plan.children().into_iter().map(|child| self.below(child));
        let children = children.collect::<Result<_>>()?;
        over(&plan, children)
    }

    fn filtering(&mut self, plan: &Plan, join: &HashJoinExec) -> Result<Plan> {
        let (mut left, mut right) = (join.left().clone(), join.right().clone());
        if !drops_right_rows(join) || !is_selective(&left) {
            return Ok(plan.clone());
        }
        for (left_key, right_key) in join.on() {
            let (Some(from), Some(to)) = (column(left_key), column(right_key)) else { continue };
            if !has_range(left.schema().field(from).data_type()) || !same_types(&left, from, &right, to) {
                continue;
            }
            self.joins += 1;
            let keys = Arc::new(JoinKeys::new(self.joins));
            right = filtered(&right, to, &keys)?;
            left = KeyFilterExec::over(Role::Collects, left, from, &keys);
        }
        over(plan, vec![left, right])
    }
}

/// Whether a join drops each row of its right side that has no partner, and does not ask whether there are
/// any.
fn drops_right_rows(join: &HashJoinExec) -> bool {
    let drops = matches!(join.join_type(), Inner | Left | LeftSemi | LeftAnti | LeftMark | RightSemi);
    drops && !join.null_aware && join.null_equality() == NullEquality::NullEqualsNothing
}

/// A semi join with its sides swapped, if the right one is likely to have much fewer keys; `None` if it is
/// not. DataFusion compares the bytes of the sides, and those of the tables below if it knows nothing else.
fn with_fewer_left_rows(plan: &Plan) -> Result<Option<Plan>> {
    let Some(join) = plan.downcast_ref::<HashJoinExec>() else { return Ok(None) };
    let swapped = match join.join_type() {
        LeftSemi => RightSemi,
        RightSemi => LeftSemi,
        _ => return Ok(None),
    };
    let partitioned = *join.partition_mode() == PartitionMode::Partitioned;
    // Rows of the right side keep their order, on which a node above may rely.
    if !partitioned || plan.output_ordering().is_some() || plan.fetch().is_some() {
        return Ok(None);
    }
    let rows = |side: &Plan| -> Result<Option<usize>> {
        let statistics = StatisticsContext::new().compute(side.as_ref(), &StatisticsArgs::new())?;
        Ok(statistics.num_rows.get_value().copied())
    };
    let fewer = match (rows(join.left())?, rows(join.right())?) {
        (Some(left), Some(right)) => right < left / 2,
        _ => false,
    };
    if !fewer && !has_condition_on_groups(join.right()) {
        return Ok(None);
    }
    let on = join.on().iter().map(|(left, right)| (right.clone(), left.clone())).collect();
    let builder = join.builder().reset_state().with_type(swapped).with_on(on);
    let builder = builder.with_filter(join.filter().map(JoinFilter::swap)).recompute_properties();
    builder.with_new_children(vec![join.right().clone(), join.left().clone()])?.build_exec().map(Some)
}

/// Whether a plan has those groups of an aggregate that pass a condition, at most one row for each.
fn has_condition_on_groups(plan: &Plan) -> bool {
    match plan.downcast_ref::<FilterExec>() {
        Some(filter) => filter.input().is::<AggregateExec>(),
        None => plan.downcast_ref::<ProjectionExec>().is_some_and(|all| has_condition_on_groups(all.input())),
    }
}

/// Whether a plan is likely to have only some of the keys of its tables.
fn is_selective(plan: &Plan) -> bool {
    has(plan, &|node| {
        let key_filter = node.downcast_ref::<KeyFilterExec>();
        let join = node.downcast_ref::<HashJoinExec>().map(HashJoinExec::join_type);
        let selects = join.is_some_and(|kind| matches!(kind, LeftSemi | RightSemi | LeftAnti | RightAnti));
        node.is::<FilterExec>()
            || selects
            || key_filter.is_some_and(KeyFilterExec::filters)
            || node.fetch().is_some()
    })
}

fn has(plan: &Plan, what: &impl Fn(&Plan) -> bool) -> bool {
    what(plan) || plan.children().into_iter().any(|child| has(child, what))
}

/// The column that an expression is.
fn column(expr: &Arc<dyn PhysicalExpr>) -> Option<usize> {
    expr.downcast_ref::<Column>().map(Column::index)
}

fn same_types(left: &Plan, from: usize, right: &Plan, to: usize) -> bool {
    left.schema().field(from).data_type() == right.schema().field(to).data_type()
}

/// A plan with a filter by a column as far below as possible, so that it spares an operator work; `None` if
/// it would be at the top, or above nodes that cost little.
fn pushed(plan: &Plan, at: usize, keys: &Arc<JoinKeys>) -> Result<Option<Plan>> {
    // Other rows would be the first ones.
    if plan.fetch().is_some() {
        return Ok(None);
    }
    let inputs = plan.children();
    if let Some(join) = plan.downcast_ref::<HashJoinExec>() {
        let (left, right) = below_join(join, at);
        let sides = [(join.left(), left), (join.right(), right)];
        let filtered = |(side, at): (&Plan, Option<usize>)| match at {
            Some(at) => filtered(side, at, keys),
            None => Ok(side.clone()),
        };
        return match (left, right) {
            (None, None) => Ok(None),
            _ => over(plan, sides.into_iter().map(filtered).collect::<Result<_>>()?).map(Some),
        };
    }
    if let Some(groups) = plan.downcast_ref::<AggregateExec>() {
        let by = groups.group_expr();
        let key = by.expr().get(at).and_then(|(key, _)| column(key));
        return match key {
            Some(at) if !by.has_grouping_set() && groups.limit_options().is_none() => {
                over(plan, vec![filtered(groups.input(), at, keys)?]).map(Some)
            }
            _ => Ok(None),
        };
    }
    let moves = plan.is::<SortExec>()
        || plan.downcast_ref::<RepartitionExec>().is_some_and(|exchange| !is_round_robin(exchange));
    if moves {
        return over(plan, vec![filtered(inputs[0], at, keys)?]).map(Some);
    }
    if plan.is::<UnionExec>() || plan.is::<InterleaveExec>() {
        let pushed = inputs.iter().map(|input| pushed(input, at, keys)).collect::<Result<Vec<_>>>()?;
        if pushed.iter().all(Option::is_none) {
            return Ok(None);
        }
        let all = inputs.into_iter().zip(pushed).map(|(input, pushed)| match pushed {
            Some(pushed) => pushed,
            None => KeyFilterExec::over(Role::Filters, input.clone(), at, keys),
        });
        return over(plan, all.collect()).map(Some);
    }
    if let Some(filter) = plan.downcast_ref::<FilterExec>() {
        // Two numbers a row are read for this filter, and all columns of the rows that the other one keeps
        // are copied.
        let at = filter.projection().as_ref().map_or(Some(at), |columns| columns.get(at).copied());
        return match at {
            Some(at) => {
                let below = filtered(filter.input(), at, keys)?;
                over(plan, vec![KeyFilterExec::testing(below, filter.predicate())]).map(Some)
            }
            None => Ok(None),
        };
    }
    // Nodes that are cheap, or work better below a filter.
    let at = if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
        column(&projection.expr()[at].expr)
    } else {
        let passes = plan.is::<CoalescePartitionsExec>()
            || plan.is::<SortPreservingMergeExec>()
            || plan.is::<RepartitionExec>()
            || plan.is::<KeyFilterExec>()
            || plan.is::<CooperativeExec>();
        passes.then_some(at)
    };
    let Some(at) = at else { return Ok(None) };
    match pushed(inputs[0], at, keys)? {
        Some(input) => over(plan, vec![input]).map(Some),
        None => Ok(None),
    }
}

/// A plan with a filter by a column, at the top if nowhere below.
fn filtered(plan: &Plan, at: usize, keys: &Arc<JoinKeys>) -> Result<Plan> {
    let pushed = pushed(plan, at, keys)?;
    Ok(pushed.unwrap_or_else(|| KeyFilterExec::over(Role::Filters, plan.clone(), at, keys)))
}

fn is_round_robin(exchange: &RepartitionExec) -> bool {
    matches!(exchange.partitioning(), datafusion::physical_plan::Partitioning::RoundRobinBatch(_))
}

/// The columns of a join's sides by which rows can be dropped in place of a column of its result. If only
/// rows with some keys are wanted from a side whose rows all stay, or of which both stay, its partners have
/// these keys.
fn below_join(join: &HashJoinExec, at: usize) -> (Option<usize>, Option<usize>) {
    let at = match &join.projection {
        Some(columns) => columns[at],
        None => at,
    };
    let (lefts, rights) = (join.left().schema().fields().len(), join.right().schema().fields().len());
    let (left, right) = match join.join_type() {
        Inner if at < lefts => (Some(at), None),
        Inner => (None, Some(at - lefts)),
        Left | LeftSemi | LeftAnti | LeftMark if at < lefts => (Some(at), None),
        Right if at >= lefts => (None, Some(at - lefts)),
        RightSemi | RightAnti | RightMark if at < rights => (None, Some(at)),
        _ => (None, None),
    };
    if join.null_aware {
        return (None, None);
    }
    let pairs = || join.on().iter().filter_map(|(left, right)| Some((column(left)?, column(right)?)));
    let pairs = || pairs().filter(|(from, to)| same_types(join.left(), *from, join.right(), *to));
    match (left, right) {
        (Some(at), _) => (left, pairs().find(|(left, _)| *left == at).map(|(_, right)| right)),
        (_, Some(at)) => (pairs().find(|(_, right)| *right == at).map(|(left, _)| left), right),
        _ => (None, None),
    }
}

/// A plan over other children, which have the same columns in the same partitions.
fn over(plan: &Plan, children: Vec<Plan>) -> Result<Plan> {
    if plan.children().into_iter().zip(&children).all(|(old, new)| Arc::ptr_eq(old, new)) {
        return Ok(plan.clone());
    }
    plan.clone().replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Keep))
}
