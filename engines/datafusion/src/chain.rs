//! Describes a chain of DataFusion's nodes as one step over its input's rows: which rows stay, which
//! expressions are computed, and how they are aggregated.
//!
//! Expressions of upper nodes are rewritten over the input's columns, so no intermediate batch exists.

use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::{ExecutionPlan, InputOrderMode, PhysicalExpr};

use crate::reason::Reason;

/// The work of a chain, over the columns of its input.
#[derive(Debug)]
pub(crate) struct Chain {
    /// The conditions, in the order in which DataFusion tests them.
    pub conditions: Vec<Arc<dyn PhysicalExpr>>,
    /// The output expressions; under an aggregate, the expressions that it reads.
    pub row: Vec<Arc<dyn PhysicalExpr>>,
    /// The number of rows after which a partition ends.
    pub fetch: Option<usize>,
    /// The number of rows in each batch that a filter emits.
    pub batch_rows: Option<usize>,
    /// Whether the rows of all partitions are aggregated to one row.
    pub merges: bool,
    /// The aggregate that reduces the rows, if the chain has one.
    pub aggregate: Option<Aggregate>,
    /// The number of parts of each expression that a next node reads as a column.
    sizes: Vec<u64>,
}

/// The most parts that the chain below may add to an expression: a column that is used twice has its parts
/// twice, so that each of many projections may double them.
const MOST_ADDED: u64 = 512;

/// An aggregate that reduces rows to one row, or to one for each group.
#[derive(Debug)]
pub(crate) struct Aggregate {
    pub mode: AggregateMode,
    pub schema: SchemaRef,
    /// The expressions that are computed from the one row, over the schema; `None` if the row is returned.
    pub row: Option<Vec<Arc<dyn PhysicalExpr>>>,
    /// The keys that group the rows; none if all rows are one group.
    pub keys: Vec<Arc<dyn PhysicalExpr>>,
    /// The sets of keys, by the keys' numbers; `None` if there is one, of all of them.
    pub sets: Option<Vec<Vec<usize>>>,
    pub functions: Vec<Arc<AggregateFunctionExpr>>,
    /// The argument expressions of each function.
    pub arguments: Vec<Vec<Arc<dyn PhysicalExpr>>>,
    /// Each function's own `FILTER` condition, if any.
    pub conditions: Vec<Option<Arc<dyn PhysicalExpr>>>,
}

/// The nodes of a chain, top first: the supported nodes from `top` downwards, until the first unsupported
/// one.
pub(crate) fn nodes(top: &Arc<dyn ExecutionPlan>) -> Vec<&Arc<dyn ExecutionPlan>> {
    let mut nodes: Vec<&Arc<dyn ExecutionPlan>> = vec![];
    let mut next = top;
    loop {
        let is_one = if let Some(aggregate) = next.downcast_ref::<AggregateExec>() {
            // Projections above it read one row.
            let first = nodes.iter().all(|node| node.is::<ProjectionExec>() && reduces(aggregate));
            first && is_plain(aggregate)
        } else if let Some(merge) = next.downcast_ref::<CoalescePartitionsExec>() {
            let above = nodes.last().and_then(|above| above.downcast_ref::<AggregateExec>());
            merge.fetch().is_none() && above.is_some_and(reduces)
        } else {
            next.is::<FilterExec>() || next.is::<ProjectionExec>()
        };
        let [child] = next.children()[..] else { return nodes };
        if !is_one {
            return nodes;
        }
        nodes.push(next);
        next = child;
    }
}

/// Whether an aggregate reduces all rows to one row.
pub(crate) fn reduces(aggregate: &AggregateExec) -> bool {
    aggregate.group_expr().is_true_no_grouping() && *aggregate.mode() == AggregateMode::Single
}

/// Whether an aggregate reduces rows to one row, to one row of state, or to rows of state by their keys, and
/// does nothing else.
fn is_plain(aggregate: &AggregateExec) -> bool {
    beyond(aggregate).is_none()
}

/// The reason for which an aggregate, whatever its expressions are, has no counterpart. An aggregate that
/// pushes a dynamic filter into its scan does more, and one over sorted rows returns them sorted.
pub(crate) fn beyond(aggregate: &AggregateExec) -> Option<Reason> {
    let modes: &[AggregateMode] = match aggregate.group_expr().is_true_no_grouping() {
        true => &[AggregateMode::Partial, AggregateMode::Single],
        false => &[AggregateMode::Partial, AggregateMode::Single, AggregateMode::SinglePartitioned],
    };
    let linear = *aggregate.input_order_mode() == InputOrderMode::Linear;
    let narrows = aggregate.limit_options().is_some() || !aggregate.dynamic_expressions_produced().is_empty();
    match aggregate.group_expr() {
        _ if !modes.contains(aggregate.mode()) => Some(Reason::Kind),
        keys if keys.has_grouping_set() && !has_counterpart(aggregate) => Some(Reason::GroupingSets),
        keys if !keys.is_empty() && !linear => Some(Reason::SortedGroups),
        _ => narrows.then_some(Reason::Narrows),
    }
}

/// Whether grouping sets have a counterpart: in one step, with keys, and no set twice, since DataFusion tells
/// the first from the second.
fn has_counterpart(sets: &AggregateExec) -> bool {
    let of = sets.group_expr();
    let twice = of.groups().iter().enumerate().any(|(i, set)| of.groups()[..i].contains(set));
    *sets.mode() == AggregateMode::Single && !of.expr().is_empty() && !twice
}

/// The numbers of the keys that each set has; `None` if an aggregate has no sets.
fn sets_of(aggregate: &AggregateExec) -> Option<Vec<Vec<usize>>> {
    // A set says for each key whether it is null.
    let numbers = |set: &Vec<bool>| (0..set.len()).filter(|key| !set[*key]).collect();
    let keys = aggregate.group_expr();
    keys.has_grouping_set().then(|| keys.groups().iter().map(numbers).collect())
}

impl Chain {
    /// The chain of these nodes, top first; `None` if they do not form one.
    pub fn of(nodes: &[&Arc<dyn ExecutionPlan>]) -> Result<Option<Chain>> {
        let Some(input) = nodes.last().and_then(|last| last.children().first().copied()) else {
            return Ok(None);
        };
        let schema = input.schema();
        let columns = schema.fields().iter().enumerate();
        let mut chain = Chain {
            conditions: vec![],
            row: columns.map(|(i, field)| Arc::new(Column::new(field.name(), i)) as _).collect(),
            fetch: None,
            batch_rows: None,
            merges: false,
            aggregate: None,
            sizes: vec![1; schema.fields().len()],
        };
        for node in nodes.iter().rev() {
            if !chain.add(node)? {
                return Ok(None);
            }
        }
        Ok(Some(chain))
    }

    fn add(&mut self, node: &Arc<dyn ExecutionPlan>) -> Result<bool> {
        if let Some(filter) = node.downcast_ref::<FilterExec>() {
            // The first rows that pass one filter are not the first rows that pass two. And a projection
            // below a filter computes all rows, any of which may fail.
            if self.fetch.is_some() || !self.row.iter().all(|expr| expr.is::<Column>()) {
                return Ok(false);
            }
            if self.grows(filter.predicate()) {
                return Ok(false);
            }
            self.conditions.push(over(filter.predicate(), &self.row)?);
            if let Some(projection) = filter.projection() {
                self.row = projection.iter().map(|column| self.row[*column].clone()).collect();
                self.sizes = projection.iter().map(|column| self.sizes[*column]).collect();
            }
            self.fetch = filter.fetch();
            self.batch_rows = Some(filter.batch_size());
        } else if let Some(projection) = node.downcast_ref::<ProjectionExec>() {
            let exprs = projection.expr().iter();
            if exprs.clone().any(|one| self.grows(&one.expr)) {
                return Ok(false);
            }
            self.sizes = exprs.clone().map(|one| parts(&one.expr, &self.sizes)).collect();
            match &mut self.aggregate {
                None => self.row = exprs.map(|one| over(&one.expr, &self.row)).collect::<Result<_>>()?,
                Some(Aggregate { row, .. }) => {
                    let over =
                        |expr| row.as_ref().map_or_else(|| Ok(Arc::clone(expr)), |row| over(expr, row));
                    *row = Some(exprs.map(|one| over(&one.expr)).collect::<Result<_>>()?);
                }
            }
        } else if node.is::<CoalescePartitionsExec>() {
            self.merges = true;
        } else if let Some(aggregate) = node.downcast_ref::<AggregateExec>() {
            if self.fetch.is_some() || self.aggregate.is_some() {
                return Ok(false);
            }
            let read = aggregate.aggr_expr().iter().flat_map(|function| function.expressions());
            let read = read.chain(aggregate.filter_expr().iter().flatten().cloned());
            let mut read = read.chain(aggregate.group_expr().expr().iter().map(|(key, _)| key.clone()));
            if read.any(|expr| self.grows(&expr)) {
                return Ok(false);
            }
            self.sizes = vec![1; aggregate.schema().fields().len()];
            let arguments = aggregate.aggr_expr().iter().map(|function| {
                function.expressions().iter().map(|argument| over(argument, &self.row)).collect()
            });
            let conditions = aggregate.filter_expr().iter();
            let conditions = conditions.map(|one| one.as_ref().map(|one| over(one, &self.row)).transpose());
            let keys = aggregate.group_expr().expr().iter().map(|(key, _)| over(key, &self.row));
            self.aggregate = Some(Aggregate {
                mode: *aggregate.mode(),
                schema: aggregate.schema(),
                row: None,
                keys: keys.collect::<Result<_>>()?,
                sets: sets_of(aggregate),
                functions: aggregate.aggr_expr().to_vec(),
                arguments: arguments.collect::<Result<_>>()?,
                conditions: conditions.collect::<Result<_>>()?,
            });
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    /// Whether an expression is much longer over the chain's input than it is written.
    fn grows(&self, expr: &Arc<dyn PhysicalExpr>) -> bool {
        parts(expr, &self.sizes) - parts(expr, &[]) > MOST_ADDED
    }
}

/// The number of parts of an expression, over columns of so many parts.
fn parts(expr: &Arc<dyn PhysicalExpr>, sizes: &[u64]) -> u64 {
    match expr.downcast_ref::<Column>() {
        Some(column) => sizes.get(column.index()).copied().unwrap_or(1),
        None => expr.children().iter().fold(1, |sum: u64, part| sum.saturating_add(parts(part, sizes))),
    }
}

/// Substitutes a row's defining expressions for the columns in `expr`.
fn over(expr: &Arc<dyn PhysicalExpr>, row: &[Arc<dyn PhysicalExpr>]) -> Result<Arc<dyn PhysicalExpr>> {
    let made = expr.clone().transform_up(|expr| {
        let made = expr.downcast_ref::<Column>().and_then(|column| row.get(column.index()).cloned());
        Ok(made.map_or_else(|| Transformed::no(expr), Transformed::yes))
    })?;
    Ok(made.data)
}
