//! Translated expressions, with what is known of their values.

use std::sync::Arc;

use bowstring::compute::Query;
use bowstring::expr::{Expr, Options, Overflow};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::physical_expr::expressions::{Column, Literal};
use datafusion::physical_plan::PhysicalExpr;

use crate::inputs::Inputs;
use crate::subquery;
use crate::types::our_type;

/// The options under which our expressions mean the same as DataFusion's.
pub(crate) fn options() -> Options {
    Options::new().overflow(Overflow::Wrap)
}

/// A translated expression, with the properties that its users check.
#[derive(Clone, Debug)]
pub(crate) struct Made {
    pub expr: Expr,
    /// Whether any row can raise an error.
    pub can_fail: bool,
    /// Whether the value may be a NaN produced by arithmetic, whose bits differ from DataFusion's.
    pub makes_nan: bool,
    /// Whether the value is no infinite float and no NaN, so that arithmetic with it makes no NaN.
    pub finite: bool,
    /// Whether evaluation needs a separate pass over the rows: a cast or a text test.
    pub extra_pass: bool,
}

impl Made {
    pub fn plain(expr: Expr, finite: bool) -> Made {
        Made { expr, can_fail: false, makes_nan: false, finite, extra_pass: false }
    }

    /// Combines parts into an expression that inherits their properties.
    pub fn of(expr: Expr, parts: &[&Made]) -> Made {
        let any = |what: fn(&Made) -> bool| parts.iter().any(|part| what(part));
        Made {
            expr,
            can_fail: any(|made| made.can_fail),
            makes_nan: any(|made| made.makes_nan),
            finite: parts.iter().all(|part| part.finite),
            extra_pass: any(|made| made.extra_pass),
        }
    }

    /// A boolean computed from floats, so never a NaN itself.
    pub fn truth(expr: Expr, parts: &[&Made]) -> Option<Made> {
        let made = Made::of(expr, parts);
        (!made.makes_nan).then_some(made)
    }
}

/// Whether an expression has this type once it is bound.
pub(crate) fn has_type(expr: &Expr, data_type: &DataType, inputs: &Inputs) -> bool {
    let bound = Query::new().select(std::slice::from_ref(expr)).bind(&inputs.schema(), &options());
    bound.is_ok_and(|bound| *bound.schema().field(0).data_type() == our_type(data_type))
}

/// The number of the column that an expression is; `None` if it is more.
pub(crate) fn column_of(expr: &Arc<dyn PhysicalExpr>) -> Option<usize> {
    expr.downcast_ref::<Column>().map(|column| column.index())
}

pub(crate) fn type_of(expr: &Arc<dyn PhysicalExpr>, inputs: &Inputs) -> Option<DataType> {
    expr.data_type(inputs.theirs()).ok()
}

/// The value of a literal, or of a subquery. One that has not run counts as null: a node with such a subquery
/// is translated again when it runs.
pub(crate) fn scalar(expr: &Arc<dyn PhysicalExpr>) -> Option<ScalarValue> {
    match expr.downcast_ref::<Literal>() {
        Some(literal) => Some(literal.value().clone()),
        None => subquery::value(expr),
    }
}

/// Whether the type is a text type.
pub(crate) fn is_text(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}
