//! A chain of DataFusion's nodes as one step over the rows of its input: which are kept, what is computed of them, what they come to.
//!
//! Expressions of the upper nodes are rewritten to the columns of the input, so that everything in between is never a batch.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::{ExecutionPlan, PhysicalExpr};

/// What a chain does, over the columns of its input.
#[derive(Debug)]
pub(crate) struct Chain {
    /// The conditions, those that are asked first in front.
    pub conditions: Vec<Arc<dyn PhysicalExpr>>,
    /// What the rows are made of; of an aggregate, those that it reads.
    pub row: Vec<Arc<dyn PhysicalExpr>>,
    /// Rows after which a partition ends.
    pub fetch: Option<usize>,
    /// Rows that a filter makes a batch of.
    pub batch_rows: Option<usize>,
    /// What the rows become one of.
    pub aggregate: Option<Aggregate>,
}

/// An aggregate without groups.
#[derive(Debug)]
pub(crate) struct Aggregate {
    pub mode: AggregateMode,
    pub functions: Vec<Arc<AggregateFunctionExpr>>,
    /// What each is of.
    pub arguments: Vec<Vec<Arc<dyn PhysicalExpr>>>,
    /// The condition of each, where it has one of its own.
    pub conditions: Vec<Option<Arc<dyn PhysicalExpr>>>,
}

/// The nodes of a chain, the top one first: those that a chain may be made of, as far down as there are any.
pub(crate) fn nodes(top: &Arc<dyn ExecutionPlan>) -> Vec<&Arc<dyn ExecutionPlan>> {
    let mut nodes = vec![];
    let mut next = top;
    loop {
        let is_one = if let Some(aggregate) = next.downcast_ref::<AggregateExec>() {
            nodes.is_empty() && is_plain(aggregate)
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

/// Whether an aggregate makes one row, or the state of one, of rows. One that tells its scan which rows it can still use does more.
fn is_plain(aggregate: &AggregateExec) -> bool {
    matches!(aggregate.mode(), AggregateMode::Partial | AggregateMode::Single)
        && aggregate.group_expr().is_true_no_grouping()
        && !aggregate.group_expr().has_grouping_set()
        && aggregate.limit_options().is_none()
        && aggregate.dynamic_expressions_produced().is_empty()
}

impl Chain {
    /// The chain of these nodes, of which the last is the lowest; `None` where they are not one.
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
            aggregate: None,
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
            // Of the first rows that one filter keeps, another's are not the first that both keep. And what is computed below a filter
            // is computed of all rows, of which one may fail.
            if self.fetch.is_some() || !self.row.iter().all(|expr| expr.is::<Column>()) {
                return Ok(false);
            }
            self.conditions.push(over(filter.predicate(), &self.row)?);
            if let Some(projection) = filter.projection() {
                self.row = projection.iter().map(|column| self.row[*column].clone()).collect();
            }
            self.fetch = filter.fetch();
            self.batch_rows = Some(filter.batch_size());
        } else if let Some(projection) = node.downcast_ref::<ProjectionExec>() {
            let exprs = projection.expr().iter().map(|one| over(&one.expr, &self.row));
            self.row = exprs.collect::<Result<_>>()?;
        } else if let Some(aggregate) = node.downcast_ref::<AggregateExec>() {
            if self.fetch.is_some() || self.aggregate.is_some() {
                return Ok(false);
            }
            let arguments = aggregate.aggr_expr().iter().map(|function| {
                function.expressions().iter().map(|argument| over(argument, &self.row)).collect()
            });
            let conditions = aggregate.filter_expr().iter();
            let conditions = conditions.map(|one| one.as_ref().map(|one| over(one, &self.row)).transpose());
            self.aggregate = Some(Aggregate {
                mode: *aggregate.mode(),
                functions: aggregate.aggr_expr().to_vec(),
                arguments: arguments.collect::<Result<_>>()?,
                conditions: conditions.collect::<Result<_>>()?,
            });
        } else {
            return Ok(false);
        }
        Ok(true)
    }
}

/// An expression over the columns of a row, as one over what the row is made of.
fn over(expr: &Arc<dyn PhysicalExpr>, row: &[Arc<dyn PhysicalExpr>]) -> Result<Arc<dyn PhysicalExpr>> {
    let made = expr.clone().transform_up(|expr| {
        let made = expr.downcast_ref::<Column>().and_then(|column| row.get(column.index()).cloned());
        Ok(made.map_or_else(|| Transformed::no(expr), Transformed::yes))
    })?;
    Ok(made.data)
}
