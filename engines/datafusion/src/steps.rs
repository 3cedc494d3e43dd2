//! The steps of aggregates. DataFusion plans two where the rows are in several partitions: a
//! partial one for each, and one that merges their states, partitioned by the keys. It plans one step where
//! the rows are in one partition, or are partitioned by the keys already.

use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result;
use datafusion::physical_expr::expressions::{Column, LambdaExpr, Literal};
use datafusion::physical_expr::projection::ProjectionExpr;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode, PhysicalGroupBy};
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties as _, PhysicalExpr};

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

/// The same aggregate with keys, over a projection that computes its arguments, so that the projection may be
/// ours where the aggregate is not. `None` if no argument is computed, or a function may look at more than
/// the values of its arguments.
pub(crate) fn over_columns(plan: &Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let Some(whole) = plan.downcast_ref::<AggregateExec>() else { return Ok(None) };
    let reads_rows = matches!(
        whole.mode(),
        AggregateMode::Partial | AggregateMode::Single | AggregateMode::SinglePartitioned
    );
    let keys = whole.group_expr();
    if !reads_rows || !is_simple(whole) || keys.is_empty() || !keys.is_single() || has_lambdas(whole)? {
        return Ok(None);
    }
    let is_computed = |argument: &Arc<dyn PhysicalExpr>| {
        !argument.is::<Column>() && !argument.is::<Literal>() && !argument.children().is_empty()
    };
    let mut projection = Projected { input: whole.input().schema(), exprs: vec![] };
    let mut computed = false;
    let mut functions = vec![];
    for function in whole.aggr_expr() {
        let reads_values = matches!(function.fun().name(), "sum" | "avg" | "count" | "min" | "max");
        if !reads_values || !function.order_bys().is_empty() {
            return Ok(None);
        }
        let arguments = function.expressions().into_iter().map(|argument| {
            computed |= is_computed(&argument);
            if is_computed(&argument) { Ok(projection.column(&argument)) } else { projection.over(argument) }
        });
        let arguments = arguments.collect::<Result<_>>()?;
        let Some(made) = function.with_new_expressions(arguments, vec![]) else { return Ok(None) };
        functions.push(Arc::new(made));
    }
    if !computed {
        return Ok(None);
    }
    let filters =
        whole.filter_expr().iter().map(|one| one.clone().map(|one| projection.over(one)).transpose());
    let filters = filters.collect::<Result<_>>()?;
    let by = keys.expr().iter().map(|(key, name)| Ok((projection.over(key.clone())?, name.clone())));
    let by = PhysicalGroupBy::new_single(by.collect::<Result<_>>()?);
    let input = Arc::new(ProjectionExec::try_new(projection.exprs, whole.input().clone())?);
    let schema = input.schema();
    let made = AggregateExec::try_new(*whole.mode(), by, functions, filters, input, schema)?;
    let same = made.schema() == plan.schema() && made.input_order_mode() == whole.input_order_mode();
    Ok(same.then(|| Arc::new(made) as _))
}

/// Whether an aggregate has functions of elements. Their parameters are numbered behind the input's columns.
fn has_lambdas(aggregate: &AggregateExec) -> Result<bool> {
    let arguments = aggregate.aggr_expr().iter().flat_map(|function| function.expressions());
    let filters = aggregate.filter_expr().iter().flatten().cloned();
    let keys = aggregate.group_expr().expr().iter().map(|(key, _)| key.clone());
    for expr in arguments.chain(filters).chain(keys) {
        if expr.exists(|part| Ok(part.is::<LambdaExpr>()))? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The expressions of a projection that is being made.
struct Projected {
    input: SchemaRef,
    exprs: Vec<ProjectionExpr>,
}

impl Projected {
    /// The column that has the values of an expression.
    fn column(&mut self, expr: &Arc<dyn PhysicalExpr>) -> Arc<dyn PhysicalExpr> {
        let found = self.exprs.iter().position(|one| one.expr.eq(expr));
        let place = found.unwrap_or_else(|| {
            let alias = match expr.downcast_ref::<Column>() {
                Some(column) => self.input.field(column.index()).name().clone(),
                None => expr.to_string(),
            };
            self.exprs.push(ProjectionExpr { expr: expr.clone(), alias });
            self.exprs.len() - 1
        });
        Arc::new(Column::new(&self.exprs[place].alias, place))
    }

    /// An expression over the projection's columns in place of its input's.
    fn over(&mut self, expr: Arc<dyn PhysicalExpr>) -> Result<Arc<dyn PhysicalExpr>> {
        let made = expr.transform_up(|part| match part.is::<Column>() {
            true => Ok(Transformed::yes(self.column(&part))),
            false => Ok(Transformed::no(part)),
        })?;
        Ok(made.data)
    }
}

/// Whether an aggregate reduces rows to one, or groups them by keys, and does nothing else.
fn is_simple(aggregate: &AggregateExec) -> bool {
    aggregate.limit_options().is_none() && aggregate.dynamic_expressions_produced().is_empty()
}
