//! Finds the part of a node that has no counterpart on devices, by translating its parts one by one.

use std::sync::Arc;

use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::window::WindowExpr;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::{ExecutionPlan, PhysicalExpr};

use crate::aggregate::States;
use crate::chain::Aggregate;
use crate::expression::translate;
use crate::first_step::{finds_groups, has_states_of_groups};
use crate::inputs::Inputs;
use crate::join::has_subqueries;
use crate::keys::as_key;
use crate::made::has_type;
use crate::reason::Reason;
use crate::subquery::has_subquery;
use crate::top::sort_column;
use crate::window::{Function, window_part};

/// The reason for which an expression over the columns of `schema` has no counterpart; `None` if it has one.
pub(crate) fn of_expression(expr: &Arc<dyn PhysicalExpr>, schema: &SchemaRef) -> Option<Reason> {
    if translate(expr, &mut Inputs::of(schema)).is_some() {
        return None;
    }
    let part = expr.children().into_iter().find_map(|part| of_expression(part, schema));
    Some(part.unwrap_or_else(|| {
        let of = expr.children().into_iter().map(|part| type_text(part, schema)).collect();
        Reason::Expression { text: expr.to_string(), of }
    }))
}

/// The reason for which an expression is no column that a projection returns.
pub(crate) fn of_column(expr: &Arc<dyn PhysicalExpr>, schema: &SchemaRef) -> Option<Reason> {
    let mut inputs = Inputs::of(schema);
    let Some(made) = translate(expr, &mut inputs) else { return of_expression(expr, schema) };
    if made.makes_nan {
        return Some(Reason::Nan { text: expr.to_string() });
    }
    let same = expr.data_type(schema).is_ok_and(|data_type| has_type(&made.expr, &data_type, &inputs));
    (!same).then(|| Reason::Expression { text: expr.to_string(), of: vec![] })
}

/// The reason for which an expression is no key of groups or joins.
pub(crate) fn of_key(key: &Arc<dyn PhysicalExpr>, schema: &SchemaRef) -> Option<Reason> {
    if as_key(key, &mut Inputs::of(schema)).is_some() {
        return None;
    }
    let refused = || Reason::Key { text: key.to_string(), of: type_text(key, schema) };
    Some(of_expression(key, schema).unwrap_or_else(refused))
}

/// The reason for which a key or a function of an aggregate has no counterpart.
pub(crate) fn of_aggregate(aggregate: &AggregateExec) -> Option<Reason> {
    let schema = aggregate.input().schema();
    let keys: Vec<_> = aggregate.group_expr().expr().iter().map(|(key, _)| key.clone()).collect();
    if let Some(reason) = keys.iter().find_map(|key| of_key(key, &schema)) {
        return Some(reason);
    }
    aggregate.aggr_expr().iter().zip(aggregate.filter_expr()).find_map(|(function, condition)| {
        let arguments = function.expressions();
        let parts = arguments.iter().chain(condition);
        if let Some(reason) = parts.into_iter().find_map(|part| of_expression(part, &schema)) {
            return Some(reason);
        }
        let alone = Aggregate {
            mode: *aggregate.mode(),
            schema: aggregate.schema(),
            row: None,
            keys: keys.clone(),
            sets: None,
            functions: vec![function.clone()],
            arguments: vec![arguments.clone()],
            conditions: vec![condition.clone()],
        };
        let refused = States::translate(&alone, &mut Inputs::of(&schema)).is_none();
        refused.then(|| of_function(function, &schema))
    })
}

fn of_function(function: &AggregateFunctionExpr, schema: &Schema) -> Reason {
    let of = function.expressions().iter().map(|argument| type_text(argument, schema)).collect();
    Reason::Function { text: function.name().to_owned(), of }
}

/// The reason for which a first step on the CPU stays DataFusion's.
pub(crate) fn of_first_step(aggregate: &AggregateExec) -> Reason {
    let refused = aggregate.aggr_expr().iter().find(|function| !has_states_of_groups(function));
    match refused {
        Some(function) if finds_groups(aggregate) => of_function(function, &aggregate.input().schema()),
        _ => Reason::Cpu,
    }
}

/// The reason for which a key or the condition of a join has no counterpart.
pub(crate) fn of_join(join: &HashJoinExec) -> Option<Reason> {
    if has_subqueries(join) {
        return Some(Reason::Subquery);
    }
    let (left, right) = (join.left().schema(), join.right().schema());
    let of_pair = |(a, b): &(_, _)| of_key(a, &left).or_else(|| of_key(b, &right));
    let of_keys = join.on().iter().find_map(of_pair);
    of_keys.or_else(|| join.filter().and_then(|filter| of_expression(filter.expression(), filter.schema())))
}

/// The reason for which devices do not sort by the keys of a sort.
pub(crate) fn of_sort(sort: &SortExec) -> Option<Reason> {
    let schema = sort.input().schema();
    let refused = sort.expr().iter().find(|key| sort_column(key, &schema).is_none())?;
    Some(Reason::Key { text: refused.expr.to_string(), of: type_text(&refused.expr, &schema) })
}

/// The reason for which a key or a function of windows has no counterpart.
pub(crate) fn of_windows(functions: &[Arc<dyn WindowExpr>], schema: &SchemaRef) -> Option<Reason> {
    functions.iter().find_map(|one| {
        let by = one.order_by().iter().filter(|key| sort_column(key, schema).is_none()).map(|key| &key.expr);
        let mut keys = one.partition_by().iter().filter(|key| window_part(key, schema).is_none()).chain(by);
        if let Some(key) = keys.next() {
            return Some(Reason::Key { text: key.to_string(), of: type_text(key, schema) });
        }
        let arguments = one.expressions();
        if arguments.iter().any(has_subquery) {
            return Some(Reason::Subquery);
        }
        if Function::translate(one, schema).is_some() {
            return None;
        }
        let of = || arguments.iter().map(|argument| type_text(argument, schema)).collect();
        let part = arguments.iter().find_map(|argument| of_expression(argument, schema));
        Some(part.unwrap_or_else(|| Reason::Function { text: one.name().to_owned(), of: of() }))
    })
}

fn type_text(expr: &Arc<dyn PhysicalExpr>, schema: &Schema) -> String {
    expr.data_type(schema).map_or_else(|_| "an unknown type".to_owned(), |of| of.to_string())
}
