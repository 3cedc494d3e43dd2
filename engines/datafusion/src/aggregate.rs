//! Translates DataFusion's aggregates without groups. Our aggregate reduces many rows to one row of
//! DataFusion's own intermediate state; DataFusion's accumulators merge and finish those states. Sums over
//! runs of rows therefore wrap, and averages round, as DataFusion's do. If a run's sum overflows our type,
//! the accumulators get the arguments themselves ([`crate::arguments`]).

use std::any::Any;
use std::sync::Arc;

use arrow_schema::DataType as OurType;
use bowstring::DeviceBatch;
use bowstring::expr::{Aggregation, Expr, Literal, count, if_else, max, min, sum};
use datafusion::arrow::array::{ArrayRef, AsArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Decimal128Type};
use datafusion::error::Result;
use datafusion::functions_aggregate::average::Avg;
use datafusion::functions_aggregate::count::Count;
use datafusion::functions_aggregate::min_max::{Max, Min};
use datafusion::functions_aggregate::sum::Sum;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_plan::aggregates::AccumulatorItem;

use crate::bridge::array_out;
use crate::chain::Aggregate;
use crate::error::refused;
use crate::expression::{Made, translate};
use crate::inputs::Inputs;
use crate::types::our_type;

/// Our aggregates, which produce the intermediate states of DataFusion's functions.
#[derive(Clone, Debug)]
pub(crate) struct States {
    pub functions: Vec<Arc<AggregateFunctionExpr>>,
    pub aggregations: Vec<Aggregation>,
    /// The argument of each function; null for rows that fail the function's own `FILTER` condition.
    pub arguments: Vec<Expr>,
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
            aggregations: vec![],
            arguments: vec![],
            types: vec![],
            can_fail: false,
            reads_columns: false,
        };
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
            states.aggregations.extend(of(function, &made, &data_type, &types)?);
            states.types.push(types);
            states.arguments.push(made.expr);
        }
        states.reads_columns = !inputs.used().is_empty();
        Some(states)
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
        extra_pass: made.extra_pass || condition.extra_pass,
    })
}

/// The aggregates that produce one function's state.
fn of(
    function: &AggregateFunctionExpr,
    made: &Made,
    of: &DataType,
    state: &[DataType],
) -> Option<Vec<Aggregation>> {
    let inner: &dyn Any = function.fun().inner().as_ref();
    let expr: Expr = made.expr.clone();
    if inner.is::<Count>() {
        return (state == [DataType::Int64]).then(|| vec![count(expr)]);
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
    match state {
        [to] if inner.is::<Sum>() && summed(to) => Some(vec![sum(expr)]),
        [DataType::UInt64, to] if inner.is::<Avg>() && summed(to) => {
            Some(vec![count(expr.clone()), sum(expr)])
        }
        // Bits alone order NaNs, and the bits of a computed NaN differ from DataFusion's.
        [to] if to == of && !made.makes_nan && inner.is::<Min>() => Some(vec![min(expr)]),
        [to] if to == of && !made.makes_nan && inner.is::<Max>() => Some(vec![max(expr)]),
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
