//! Translates DataFusion's aggregates. Our aggregate reduces many rows to one row of DataFusion's own
//! intermediate state, or to one for each group; DataFusion's accumulators merge and finish those states.
//! Sums over runs of rows therefore wrap, and averages round, as DataFusion's do. If a run's sum overflows
//! our type, each of its rows becomes a state of its own ([`crate::arguments`]).

use std::any::Any;
use std::sync::Arc;

use arrow_schema::{DataType as OurType, Schema};
use bowstring::DeviceBatch;
use bowstring::compute::{BoundQuery, Query};
use bowstring::expr::{
    Aggregation, Expr, Literal, bool_and, bool_or, count, if_else, lit, max, mean, min, nth, sum,
};
use datafusion::arrow::array::{ArrayRef, AsArray, RecordBatch};
use datafusion::arrow::compute::{cast, is_null, nullif};
use datafusion::arrow::datatypes::{DataType, Decimal128Type, SchemaRef};
use datafusion::error::Result;
use datafusion::functions_aggregate::average::Avg;
use datafusion::functions_aggregate::bool_and_or::{BoolAnd, BoolOr};
use datafusion::functions_aggregate::count::Count;
use datafusion::functions_aggregate::min_max::{Max, Min};
use datafusion::functions_aggregate::sum::Sum;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_plan::aggregates::AccumulatorItem;

use crate::bridge::array_out;
use crate::chain::Aggregate;
use crate::error::refused;
use crate::expression::translate;
use crate::inputs::Inputs;
use crate::keys::as_key;
use crate::made::{Made, options};
use crate::types::our_type;

/// Our aggregates, which produce the intermediate states of DataFusion's functions.
#[derive(Clone, Debug)]
pub(crate) struct States {
    pub functions: Vec<Arc<AggregateFunctionExpr>>,
    /// The keys of groups; none if all rows are one group.
    pub keys: Vec<Expr>,
    pub aggregations: Vec<Aggregation>,
    /// The functions themselves, for groups that are finished.
    pub results: Vec<Aggregation>,
    /// The argument of each function; null for rows that fail the function's own `FILTER` condition.
    pub arguments: Vec<Expr>,
    /// The states of a single row, as many as there are aggregations.
    pub of_one_row: Vec<Expr>,
    /// The types of each function's state, in their order.
    types: Vec<Vec<DataType>>,
    /// Whether any row can raise an error.
    pub can_fail: bool,
    /// Whether the aggregates read columns: false if they only count rows.
    pub reads_columns: bool,
}

impl States {
    /// Translates an aggregate over an input's columns; `None` if any part of it has no counterpart.
    pub fn translate(aggregate: &Aggregate, inputs: &mut Inputs) -> Option<States> {
        let mut states = States {
            functions: aggregate.functions.clone(),
            keys: vec![],
            aggregations: vec![],
            results: vec![],
            arguments: vec![],
            of_one_row: vec![],
            types: vec![],
            can_fail: false,
            reads_columns: false,
        };
        for key in &aggregate.keys {
            let (made, can_fail) = as_key(key, inputs)?;
            states.keys.push(made);
            states.can_fail |= can_fail;
        }
        let each = aggregate.functions.iter().zip(&aggregate.arguments).zip(&aggregate.conditions);
        for ((function, arguments), condition) in each {
            let [argument] = &arguments[..] else { return None };
            let plain = !function.is_distinct() && !function.ignore_nulls() && !function.is_reversed();
            if !plain || !function.order_bys().is_empty() {
                return None;
            }
            let data_type = argument.data_type(inputs.theirs()).ok()?;
            let made = translate(argument, inputs)?;
            let made = match condition {
                None => made,
                Some(condition) => only_where(translate(condition, inputs)?, made, &data_type)?,
            };
            states.can_fail |= made.can_fail;
            let fields = function.state_fields().ok()?;
            let types: Vec<DataType> = fields.iter().map(|field| field.data_type().clone()).collect();
            let made_of = of(function, &made, &data_type, &types, &states.keys)?;
            // An average is the one that has two.
            states.results.push(match &made_of[..] {
                [(aggregation, _)] => aggregation.clone(),
                _ => mean(made.expr.clone()),
            });
            for (aggregation, of_one_row) in made_of {
                states.aggregations.push(aggregation);
                states.of_one_row.push(of_one_row);
            }
            states.types.push(types);
            states.arguments.push(made.expr);
        }
        states.reads_columns = !inputs.used().is_empty();
        Some(states)
    }

    /// Converts finished groups to the types of DataFusion's: a decimal's digits stay, its precision may
    /// differ. The number of a `set` of keys follows the keys, if there are several. `None` if another type
    /// would change.
    pub fn finished(&self, groups: &Schema, set: Option<&DataType>) -> Option<BoundQuery> {
        let keys = groups.fields().len() - self.functions.len();
        let columns = groups.fields().iter().enumerate().map(|(number, field)| {
            let function = number.checked_sub(keys).map(|number| &self.functions[number]);
            let to = function.map(|function| our_type(function.field().data_type()));
            match (field.data_type(), to, set) {
                (_, None, Some(set)) if number + 1 == keys => Some(nth(number).cast(our_type(set))),
                (_, None, _) => Some(nth(number)),
                (from, Some(to), _) if *from == to => Some(nth(number)),
                (OurType::Decimal128(_, a), Some(to @ OurType::Decimal128(_, b)), _) if *a == b => {
                    Some(nth(number).cast(to))
                }
                _ => None,
            }
        });
        Query::new().select(columns.collect::<Option<Vec<_>>>()?).bind(groups, &options()).ok()
    }

    /// Converts groups, or the states of single rows, to a batch of DataFusion's states.
    pub fn rows(&self, groups: &DeviceBatch, schema: &SchemaRef) -> Result<RecordBatch> {
        let columns = groups.columns().iter().zip(schema.fields());
        let columns = columns.map(|(column, field)| as_state(array_out(column)?, field.data_type()));
        let mut columns = columns.collect::<Result<Vec<_>>>()?;
        let mut first = self.keys.len();
        for types in &self.types {
            // An average without values has no count, where ours is 0.
            if let [_, _] = types[..] {
                let nulls = is_null(&columns[first + 1]).map_err(refused)?;
                columns[first] = nullif(&columns[first], &nulls).map_err(refused)?;
            }
            first += types.len();
        }
        RecordBatch::try_new(schema.clone(), columns).map_err(refused)
    }

    /// Merges one row of our results into the accumulators.
    pub fn merge(&self, row: &DeviceBatch, accumulators: &mut [AccumulatorItem]) -> Result<()> {
        let mut columns = row.columns().iter();
        for (types, accumulator) in self.types.iter().zip(accumulators) {
            let state = types.iter().zip(&mut columns).map(|(to, column)| as_state(array_out(column)?, to));
            accumulator.merge_batch(&state.collect::<Result<Vec<_>>>()?)?;
        }
        Ok(())
    }
}

/// The value if the condition is true, else null.
fn only_where(condition: Made, made: Made, data_type: &DataType) -> Option<Made> {
    // DataFusion does not compute it for the other rows.
    if made.can_fail {
        return None;
    }
    let null = Literal::null(our_type(data_type));
    let expr = if_else(condition.expr.clone(), made.expr.clone(), null);
    Some(Made {
        expr,
        can_fail: condition.can_fail,
        makes_nan: made.makes_nan || condition.makes_nan,
        finite: made.finite,
        extra_pass: made.extra_pass || condition.extra_pass,
    })
}

/// The aggregates that produce one function's state, each beside the state of a single row.
fn of(
    function: &AggregateFunctionExpr,
    made: &Made,
    of: &DataType,
    state: &[DataType],
    keys: &[Expr],
) -> Option<Vec<(Aggregation, Expr)>> {
    let inner: &dyn Any = function.fun().inner().as_ref();
    let expr: Expr = made.expr.clone();
    let counted = || (count(expr.clone()), if_else(expr.clone().is_null(), lit(0i64), lit(1i64)));
    let value = |aggregation: Aggregation| (aggregation, expr.clone());
    if inner.is::<Count>() {
        return (state == [DataType::Int64]).then(|| vec![counted()]);
    }
    let sums_to = match of {
        DataType::Decimal128(_, scale) => OurType::Decimal128(38, *scale),
        DataType::Int64 | DataType::UInt64 | DataType::Float64 | DataType::Duration(_) => our_type(of),
        _ => OurType::Null,
    };
    let summed = |state: &DataType| match (our_type(state), &sums_to) {
        (OurType::Decimal128(_, a), OurType::Decimal128(_, b)) => a == *b,
        (a, b) => a == *b,
    };
    // Bits alone order NaNs, and the bits of a computed NaN differ from DataFusion's. Among groups,
    // DataFusion's least and greatest float depend on the order of NaNs and infinities.
    // DataFusion's order of lists and structs has nulls elsewhere than ours, and devices do not sort them.
    let ordered = !made.makes_nan && (keys.is_empty() || !of.is_floating()) && !of.is_nested();
    match state {
        [to] if inner.is::<Sum>() && summed(to) => Some(vec![value(sum(expr.clone()))]),
        [DataType::UInt64, to] if inner.is::<Avg>() && summed(to) => {
            Some(vec![counted(), value(sum(expr.clone()))])
        }
        [DataType::Boolean] if inner.is::<BoolAnd>() => Some(vec![value(bool_and(expr.clone()))]),
        [DataType::Boolean] if inner.is::<BoolOr>() => Some(vec![value(bool_or(expr.clone()))]),
        [to] if to == of && ordered && inner.is::<Min>() => Some(vec![value(min(expr.clone()))]),
        [to] if to == of && ordered && inner.is::<Max>() => Some(vec![value(max(expr.clone()))]),
        _ => None,
    }
}

/// Converts a result column to a state column: decimals keep their digits, counts are never negative.
fn as_state(array: ArrayRef, to: &DataType) -> Result<ArrayRef> {
    match (array.data_type(), to) {
        (from, to) if from == to => Ok(array),
        (DataType::Decimal128(..), DataType::Decimal128(precision, scale)) => {
            let array = array.as_primitive::<Decimal128Type>().clone();
            Ok(Arc::new(array.with_precision_and_scale(*precision, *scale).map_err(refused)?))
        }
        (_, to) => cast(&array, to).map_err(refused),
    }
}
