//! Translates comparisons. Floats compare as in DataFusion: `-0.0` equals `0.0`, and all other values
//! follow the total order, which tells NaNs apart by their bits. Our comparison follows the total order
//! alone, so the expressions for floats first map both zeros to one.

use bowstring::expr::{Expr, Literal, if_else, lit};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::Operator;

use crate::literal::float;
use crate::types::our_type;

/// The comparison for a DataFusion operator; `None` for other operators.
pub(crate) fn compare(op: Operator, a: Expr, b: Expr) -> Option<Expr> {
    Some(match op {
        Operator::Eq => a.eq(b),
        Operator::NotEq => a.neq(b),
        Operator::Lt => a.lt(b),
        Operator::LtEq => a.lt_eq(b),
        Operator::Gt => a.gt(b),
        Operator::GtEq => a.gt_eq(b),
        Operator::IsDistinctFrom => a.distinct(b),
        Operator::IsNotDistinctFrom => a.not_distinct(b),
        _ => return None,
    })
}

/// Compares two floats of a type; each operand comes with its value if it is a literal.
pub(crate) fn compare_floats(
    op: Operator,
    of: &DataType,
    (a, left): (&Expr, Option<&ScalarValue>),
    (b, right): (&Expr, Option<&ScalarValue>),
) -> Option<Expr> {
    let zero = |value: Option<&ScalarValue>| value.and_then(float).map(|value| value == 0.0);
    let (low, high) = zeros(of)?;
    match (zero(left), zero(right)) {
        // A literal other than zero needs no mapping of zeros.
        (Some(false), _) | (_, Some(false)) => compare(op, a.clone(), b.clone()),
        (None, Some(true)) => with_zero(op, a, low, high),
        (Some(true), None) => with_zero(turned(op)?, b, low, high),
        _ => compare(op, one_zero(a, &low, &high), one_zero(b, &low, &high)),
    }
}

/// A comparison with zero, which stands for both zeros.
fn with_zero(op: Operator, x: &Expr, low: Literal, high: Literal) -> Option<Expr> {
    let x = x.clone();
    Some(match op {
        Operator::Eq => x.between(low, high),
        Operator::NotEq => !x.between(low, high),
        Operator::Lt => x.lt(low),
        Operator::LtEq => x.lt_eq(high),
        Operator::Gt => x.gt(high),
        Operator::GtEq => x.gt_eq(low),
        _ => return compare(op, one_zero(&x, &low, &high), lit(high)),
    })
}

/// The operator for exchanged operands.
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

/// Replaces either zero by the positive one.
pub(crate) fn one_zero(x: &Expr, low: &Literal, high: &Literal) -> Expr {
    if_else(x.clone().between(low.clone(), high.clone()), high.clone(), x.clone())
}

/// The negative and the positive zero.
pub(crate) fn zeros(of: &DataType) -> Option<(Literal, Literal)> {
    let sign: i128 = match of {
        DataType::Float16 => 1 << 15,
        DataType::Float32 => 1 << 31,
        DataType::Float64 => 1 << 63,
        _ => return None,
    };
    Some((Literal::of(our_type(of), sign), Literal::of(our_type(of), 0)))
}
