//! Translates functions of text.

use datafusion::common::ScalarValue;
use datafusion::physical_expr::ScalarFunctionExpr;
use datafusion::physical_expr::expressions::LikeExpr;
use datafusion::physical_plan::PhysicalExpr;
use std::sync::Arc;

use crate::inputs::Inputs;
use crate::made::{Made, has_type, is_text, scalar, type_of};

/// Translates a test of text against a pattern.
pub(crate) fn like(like: &LikeExpr, (x, pattern): (Made, Made), inputs: &Inputs) -> Option<Made> {
    let of = type_of(like.expr(), inputs)?;
    if !is_text(&of) || scalar(like.pattern())?.data_type() != of {
        return None;
    }
    let found = match like.case_insensitive() {
        true => x.expr.clone().ilike(pattern.expr.clone()),
        false => x.expr.clone().like(pattern.expr.clone()),
    };
    let made = Made::of(if like.negated() { !found } else { found }, &[&x, &pattern]);
    Some(Made { extra_pass: true, ..made })
}

/// Translates `substr` of `x` with constant bounds. DataFusion's characters are numbered from 1 on, and those
/// before the first count.
pub(crate) fn substring(function: &ScalarFunctionExpr, x: Made, inputs: &Inputs) -> Option<Made> {
    let (start, count) = match function.args() {
        [_, start] => (number(start)?, None),
        [_, start, count] => (number(start)?, Some(number(count)?)),
        _ => return None,
    };
    // A negative count is an error, which only a row raises.
    if count.is_some_and(i64::is_negative) {
        return None;
    }
    let first = start.checked_sub(1)?;
    let from = first.max(0);
    let length = count.map(|count| first.saturating_add(count).saturating_sub(from).max(0) as u64);
    let made = Made::of(x.expr.clone().substring(from, length), &[&x]);
    has_type(&made.expr, function.return_type(), inputs).then_some(Made { extra_pass: true, ..made })
}

fn number(expr: &Arc<dyn PhysicalExpr>) -> Option<i64> {
    match scalar(expr)? {
        ScalarValue::Int64(value) => value,
        _ => None,
    }
}
