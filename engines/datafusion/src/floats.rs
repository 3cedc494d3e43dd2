//! Comparisons of floats as DataFusion has them: `-0.0` is `0.0`, and everything else follows the total order, in which NaNs are told
//! apart by their bits. Ours follows the total order alone, so zeros are made one on the way.

use bowstring::expr::{Expr, Literal, if_else, lit};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::Operator;

use crate::expression::compare as compare_as_is;
use crate::literal::float;
use crate::types::our_type;

/// A comparison of two floats of a type; each comes with its value where that is a literal.
pub(crate) fn compare(
    op: Operator,
    of: &DataType,
    (a, left): (&Expr, Option<&ScalarValue>),
    (b, right): (&Expr, Option<&ScalarValue>),
) -> Option<Expr> {
    let zero = |value: Option<&ScalarValue>| value.and_then(float).map(|value| value == 0.0);
    let (low, high) = zeros(of)?;
    match (zero(left), zero(right)) {
        // What is no zero is compared with zeros as they are.
        (Some(false), _) | (_, Some(false)) => compare_as_is(op, a.clone(), b.clone()),
        (None, Some(true)) => with_zero(op, a, low, high),
        (Some(true), None) => with_zero(turned(op)?, b, low, high),
        _ => compare_as_is(op, one_zero(a, &low, &high), one_zero(b, &low, &high)),
    }
}

/// A comparison with zero, which is both of them.
fn with_zero(op: Operator, x: &Expr, low: Literal, high: Literal) -> Option<Expr> {
    let x = x.clone();
    Some(match op {
        Operator::Eq => x.between(low, high),
        Operator::NotEq => !x.between(low, high),
        Operator::Lt => x.lt(low),
        Operator::LtEq => x.lt_eq(high),
        Operator::Gt => x.gt(high),
        Operator::GtEq => x.gt_eq(low),
        _ => return compare_as_is(op, one_zero(&x, &low, &high), lit(high)),
    })
}

/// The same with its sides exchanged.
fn turned(op: Operator) -> Option<Operator> {
    Some(match op {
        Operator::Lt => Operator::Gt,
        Operator::LtEq => Operator::GtEq,
        Operator::Gt => Operator::Lt,
        Operator::GtEq => Operator::LtEq,
        Operator::Eq | Operator::NotEq | Operator::IsDistinctFrom | Operator::IsNotDistinctFrom => op,
        _ => return None,
    })
}

/// A float with one zero.
fn one_zero(x: &Expr, low: &Literal, high: &Literal) -> Expr {
    if_else(x.clone().between(low.clone(), high.clone()), high.clone(), x.clone())
}

/// The zero below zero, and zero.
fn zeros(of: &DataType) -> Option<(Literal, Literal)> {
    let sign: i128 = match of {
        DataType::Float16 => 1 << 15,
        DataType::Float32 => 1 << 31,
        DataType::Float64 => 1 << 63,
        _ => return None,
    };
    Some((Literal::of(our_type(of), sign), Literal::of(our_type(of), 0)))
}
