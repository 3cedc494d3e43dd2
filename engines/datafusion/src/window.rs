//! Translates DataFusion's window functions: completely and with DataFusion's meaning, or not at all.
//!
//! | function | treatment |
//! | --- | --- |
//! | `row_number`, `rank`, `dense_rank` | ours; keys are equal if their bits are, on both sides |
//! | `lag`, `lead` | ours, with a constant default |
//! | `nth_value` | ours, over whole parts and with a constant number above 0 |
//! | `first_value`, `last_value`, `count`, `sum`, `avg`, `min`, `max`, … | over frames of rows and peers |
//! | aggregates of floats | left alone, since sums depend on the order of additions |

use bowstring::compute::{BoundQuery, FrameBound, Query, SortOptions, WindowFrame};
use bowstring::expr::{Aggregation, first, first_value, if_else, last, last_value, lit, nth};
use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::ScalarValue;
use datafusion::functions_window::lead_lag::{WindowShift, WindowShiftKind};
use datafusion::functions_window::nth_value::{NthValue, NthValueKind};
use datafusion::functions_window::rank::Rank;
use datafusion::functions_window::row_number::RowNumber;
use datafusion::logical_expr::{WindowFrame as TheirFrame, WindowFrameBound, WindowFrameUnits};
use datafusion::physical_expr::PhysicalSortExpr;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::window::{
    PlainAggregateWindowExpr, SlidingAggregateWindowExpr, StandardWindowExpr, WindowExpr,
};
use datafusion::physical_plan::aggregates::AggregateMode;
use datafusion::physical_plan::windows::{BoundedWindowAggExec, WindowAggExec, WindowUDFExpr};
use datafusion::physical_plan::{ExecutionPlan, InputOrderMode, PhysicalExpr};
use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;

use crate::aggregate::States;
use crate::chain::Aggregate;
use crate::expression::translate;
use crate::inputs::Inputs;
use crate::literal::literal;
use crate::made::{Made, has_type, options, scalar};
use crate::subquery::node_has_subquery;
use crate::top::sort_column;
use crate::types::our_type;

/// Window functions over the same parts of rows in the same order.
#[derive(Debug)]
pub(crate) struct Window {
    /// The columns whose equal values make a part.
    pub parts: Vec<usize>,
    /// The order within a part.
    pub order: Vec<(usize, SortOptions)>,
    pub functions: Vec<Function>,
}

/// A window function that the library has.
#[derive(Debug)]
pub(crate) enum Function {
    RowNumber,
    Rank,
    DenseRank,
    /// The value of the row that is `by` rows before.
    Shift {
        /// The values: a column.
        values: BoundQuery,
        by: i64,
        /// The value if there is no such row: computed from the shifted value and the row's number, shifted.
        or: Option<(arrow_schema::SchemaRef, BoundQuery)>,
    },
    /// The value of the row with a number, from 1 on, of a part.
    Nth {
        /// The values: a column.
        values: BoundQuery,
        number: u64,
    },
    /// An aggregate of a frame.
    Framed {
        frame: WindowFrame,
        aggregation: Aggregation,
        /// Its conversion to DataFusion's type.
        finished: Option<BoundQuery>,
    },
}

/// The window functions of a node; `None` if it has none.
pub(crate) fn window_functions(node: &Arc<dyn ExecutionPlan>) -> Option<&[Arc<dyn WindowExpr>]> {
    match node.downcast_ref::<WindowAggExec>() {
        Some(window) => Some(window.window_expr()),
        None => Some(node.downcast_ref::<BoundedWindowAggExec>()?.window_expr()),
    }
}

impl Window {
    /// Translates a node's functions; `None` if any of them has no counterpart.
    pub fn translate(node: &Arc<dyn ExecutionPlan>) -> Option<Window> {
        let functions = window_functions(node)?;
        // Functions are bound to their literals, and the value of a subquery is that of one run.
        if node_has_subquery(node.as_ref()).unwrap_or(true) {
            return None;
        }
        let bounded = node.downcast_ref::<BoundedWindowAggExec>();
        if bounded.is_some_and(|window| {
            window.input_order_mode != InputOrderMode::Sorted || window.state_observer().is_some()
        }) {
            return None;
        }
        let schema = node.children().first()?.schema();
        let one = functions.first()?;
        let same = |other: &Arc<dyn WindowExpr>| {
            other.partition_by() == one.partition_by() && other.order_by() == one.order_by()
        };
        if !functions.iter().all(same) {
            return None;
        }
        let part = |key: &Arc<dyn PhysicalExpr>| window_part(key, &schema);
        Some(Window {
            parts: one.partition_by().iter().map(part).collect::<Option<_>>()?,
            order: one.order_by().iter().map(|key| sort_column(key, &schema)).collect::<Option<_>>()?,
            functions: functions
                .iter()
                .map(|one| Function::translate(one, &schema))
                .collect::<Option<_>>()?,
        })
    }
}

/// The column of a key that parts rows; `None` if devices do not part rows by it.
pub(crate) fn window_part(key: &Arc<dyn PhysicalExpr>, schema: &SchemaRef) -> Option<usize> {
    let key = PhysicalSortExpr::new_default(key.clone());
    sort_column(&key, schema).map(|(column, _)| column)
}

impl Function {
    /// Translates a function over the columns of `schema`; `None` if it has no counterpart.
    pub fn translate(one: &Arc<dyn WindowExpr>, schema: &SchemaRef) -> Option<Function> {
        let to = one.field().ok()?.data_type().clone();
        let frame = || frame(one.get_window_frame());
        if let Some(window) = one.as_any().downcast_ref::<StandardWindowExpr>() {
            let function = window.get_standard_func_expr();
            let function = function.as_any().downcast_ref::<WindowUDFExpr>()?;
            return standard(function, &to, frame, schema);
        }
        let aggregate = if let Some(window) = one.as_any().downcast_ref::<PlainAggregateWindowExpr>() {
            has_no_filter(window).then(|| window.get_aggregate_expr())?
        } else {
            let window = one.as_any().downcast_ref::<SlidingAggregateWindowExpr>()?;
            has_no_filter(window).then(|| window.get_aggregate_expr())?
        };
        aggregated(aggregate, &to, frame()?, schema)
    }
}

/// A window function's own `FILTER` can be seen only in its text.
fn has_no_filter(window: &impl Debug) -> bool {
    format!("{window:?}").ends_with("filter: None }")
}

/// Whether a function ignores nulls; `None` if it is reversed. Both can be seen only in its text.
fn ignores_nulls(function: &WindowUDFExpr) -> Option<bool> {
    let text = format!("{function:?}");
    [true, false]
        .into_iter()
        .find(|ignores| text.ends_with(&format!("is_reversed: false, ignore_nulls: {ignores} }}")))
}

fn standard(
    function: &WindowUDFExpr,
    to: &DataType,
    frame: impl Fn() -> Option<WindowFrame>,
    schema: &SchemaRef,
) -> Option<Function> {
    let ignores = ignores_nulls(function)?;
    let inner: &dyn Any = function.fun().inner().as_ref();
    if inner.is::<RowNumber>() {
        return Some(Function::RowNumber);
    }
    if inner.is::<Rank>() {
        return match function.fun().name() {
            "rank" => Some(Function::Rank),
            "dense_rank" => Some(Function::DenseRank),
            _ => None,
        };
    }
    let mut inputs = Inputs::all_of(schema);
    let made = translate(function.args().first()?, &mut inputs)?;
    if made.can_fail || made.makes_nan || !has_type(&made.expr, to, &inputs) {
        return None;
    }
    if let Some(value) = inner.downcast_ref::<NthValue>() {
        let aggregation = match (value.kind(), ignores) {
            (NthValueKind::First, false) => first_value(made.expr),
            (NthValueKind::First, true) => first(made.expr),
            (NthValueKind::Last, false) => last_value(made.expr),
            (NthValueKind::Last, true) => last(made.expr),
            (NthValueKind::Nth, false) => return numbered(function.args(), &made, frame()?, &inputs),
            (NthValueKind::Nth, true) => return None,
        };
        return Some(Function::Framed { frame: frame()?, aggregation, finished: None });
    }
    let shift = inner.downcast_ref::<WindowShift>()?;
    if ignores { None } else { shifted(shift, function.args(), &made, to, &inputs) }
}

fn numbered(
    arguments: &[Arc<dyn PhysicalExpr>],
    made: &Made,
    frame: WindowFrame,
    inputs: &Inputs,
) -> Option<Function> {
    let whole = WindowFrame { start: FrameBound::Unbounded, end: FrameBound::Unbounded };
    let ScalarValue::Int64(Some(number @ 1..)) = scalar(arguments.get(1)?)? else { return None };
    let values = Query::new().select([made.expr.clone()]).bind(&inputs.schema(), &options()).ok()?;
    (frame == whole).then_some(Function::Nth { values, number: number.cast_unsigned() })
}

fn shifted(
    shift: &WindowShift,
    arguments: &[Arc<dyn PhysicalExpr>],
    made: &Made,
    to: &DataType,
    inputs: &Inputs,
) -> Option<Function> {
    let by = match arguments.get(1).map(scalar) {
        None => 1,
        Some(by) => match by? {
            // DataFusion takes a null for 0, and an offset that is missing for 1.
            ScalarValue::Int64(by) => by.unwrap_or(0),
            _ => return None,
        },
    };
    let by = match shift.kind() {
        WindowShiftKind::Lag => by,
        WindowShiftKind::Lead => by.checked_neg()?,
    };
    let or = match arguments.get(2).map(scalar) {
        None => None,
        Some(value) => Some(value?).filter(|value| !value.is_null()),
    };
    let bind = |query: Query, schema: &arrow_schema::Schema| query.bind(schema, &options()).ok();
    let or = match or {
        None => None,
        Some(value) => {
            let value = lit(literal(&value.cast_to(to).ok()?)?);
            let field = |data_type| arrow_schema::Field::new("", data_type, true);
            let both = [field(our_type(to)), field(arrow_schema::DataType::UInt64)];
            let chosen = Query::new().select([if_else(nth(1).is_null(), value, nth(0))]);
            let both = Arc::new(arrow_schema::Schema::new(both.to_vec()));
            let bound = bind(chosen, &both)?;
            (*bound.schema().field(0).data_type() == our_type(to)).then_some(Some((both, bound)))?
        }
    };
    let values = bind(Query::new().select([made.expr.clone()]), &inputs.schema())?;
    Some(Function::Shift { values, by, or })
}

/// An aggregate of frames. Aggregates of floats are refused, except counts.
fn aggregated(
    function: &AggregateFunctionExpr,
    to: &DataType,
    frame: WindowFrame,
    schema: &SchemaRef,
) -> Option<Function> {
    let arguments = function.expressions();
    let floats = arguments.iter().any(|one| one.data_type(schema).is_ok_and(|of| of.is_floating()));
    if to.is_floating() || floats && *to != DataType::Int64 {
        return None;
    }
    let alone = Aggregate {
        mode: AggregateMode::Single,
        schema: schema.clone(),
        row: None,
        keys: vec![],
        sets: None,
        functions: vec![Arc::new(function.clone())],
        arguments: vec![arguments],
        conditions: vec![None],
    };
    let mut inputs = Inputs::all_of(schema);
    let states = States::translate(&alone, &mut inputs)?;
    let [aggregation] = &states.results[..] else { return None };
    if states.can_fail {
        return None;
    }
    let whole = Query::new().aggregate([aggregation.clone()]).bind(&inputs.schema(), &options()).ok()?;
    let finished = Some(states.finished(&whole.schema(), None)?);
    Some(Function::Framed { frame, aggregation: aggregation.clone(), finished })
}

/// Translates a frame; `None` if it depends on the distances of values, or counts groups of peers.
fn frame(theirs: &TheirFrame) -> Option<WindowFrame> {
    let peers = match theirs.units {
        WindowFrameUnits::Rows => false,
        WindowFrameUnits::Range => true,
        WindowFrameUnits::Groups => return None,
    };
    let bound = |bound: &WindowFrameBound| match bound {
        WindowFrameBound::Preceding(rows) | WindowFrameBound::Following(rows) if rows.is_null() => {
            Some(FrameBound::Unbounded)
        }
        WindowFrameBound::CurrentRow if peers => Some(FrameBound::Peers),
        WindowFrameBound::CurrentRow => Some(FrameBound::Row(0)),
        WindowFrameBound::Preceding(ScalarValue::UInt64(Some(rows))) if !peers => {
            Some(FrameBound::Row(-i64::try_from(*rows).ok()?))
        }
        WindowFrameBound::Following(ScalarValue::UInt64(Some(rows))) if !peers => {
            Some(FrameBound::Row(i64::try_from(*rows).ok()?))
        }
        _ => None,
    };
    Some(WindowFrame { start: bound(&theirs.start_bound)?, end: bound(&theirs.end_bound)? })
}
