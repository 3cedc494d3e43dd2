//! Translates DataFusion's physical expressions to ours: completely and with DataFusion's meaning, or not at
//! all.
//!
//! | difference of meaning | treatment |
//! | --- | --- |
//! | `-0.0` equals `0.0` in SQL; bits tell NaNs apart | our total order, zeros as one (`comparison.rs`) |
//! | integers wrap | an option of ours |
//! | a NaN has the processor's sign, ours always the same | never compared, ordered, returned, but in sums |
//! | `and`, `or` and `case` may skip rows on their right, ours compute all | the right side must never fail |
//! | the type of a result | must be equal, found by binding, else the expression is left alone |

use arrow_schema::DataType as OurType;
use bowstring::expr::{DatePart, Literal, if_else, lit};
use datafusion::arrow::datatypes::DataType;
use datafusion::functions::core::nullif::NullIfFunc;
use datafusion::functions::datetime::date_part::DatePartFunc;
use datafusion::functions::unicode::substr::SubstrFunc;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::ScalarFunctionExpr;
use datafusion::physical_expr::expressions::{
    BinaryExpr, CaseExpr, CastExpr, Column, InListExpr, IsNotNullExpr, IsNullExpr, LikeExpr, NegativeExpr,
    NotExpr, TryCastExpr,
};
use datafusion::physical_plan::PhysicalExpr;
use std::sync::Arc;

use crate::inputs::Inputs;
use crate::made::{Made, has_type, is_text, scalar, type_of};
use crate::types::our_type;
use crate::{casts, comparison, literal, texts};

/// Translates an expression over an input's columns; `None` if any part of it has no counterpart.
pub(crate) fn translate(expr: &Arc<dyn PhysicalExpr>, inputs: &mut Inputs) -> Option<Made> {
    let made = node(expr, inputs)?;
    // Binding would refuse a tree that is too deep or too large; printing it first could overflow the stack.
    made.expr.check().ok()?;
    Some(made)
}

fn node(expr: &Arc<dyn PhysicalExpr>, inputs: &mut Inputs) -> Option<Made> {
    if let Some(column) = expr.downcast_ref::<Column>() {
        // The column's name may differ, its type may not.
        let finite = !type_of(expr, inputs)?.is_floating();
        return inputs.column(column.index()).map(|column| Made::plain(column, finite));
    }
    if let Some(value) = scalar(expr) {
        let finite = literal::float(&value).is_none_or(f64::is_finite);
        return literal::literal(&value).map(|value| Made::plain(lit(value), finite));
    }
    if let Some(binary) = expr.downcast_ref::<BinaryExpr>() {
        return binary_node(expr, binary, inputs);
    }
    if let Some(not) = expr.downcast_ref::<NotExpr>() {
        let x = translate(not.arg(), inputs)?;
        return Some(Made::of(!x.expr.clone(), &[&x]));
    }
    if let Some(test) = expr.downcast_ref::<IsNullExpr>() {
        let x = translate(test.arg(), inputs)?;
        return Some(Made { makes_nan: false, ..Made::of(x.expr.clone().is_null(), &[&x]) });
    }
    if let Some(test) = expr.downcast_ref::<IsNotNullExpr>() {
        let x = translate(test.arg(), inputs)?;
        return Some(Made { makes_nan: false, ..Made::of(x.expr.clone().is_not_null(), &[&x]) });
    }
    if let Some(negative) = expr.downcast_ref::<NegativeExpr>() {
        return negative_node(negative, inputs);
    }
    if let Some(cast) = expr.downcast_ref::<CastExpr>() {
        return cast_node(cast.expr(), cast.cast_type(), cast.cast_options().safe, inputs);
    }
    if let Some(cast) = expr.downcast_ref::<TryCastExpr>() {
        return cast_node(cast.expr(), cast.cast_type(), true, inputs);
    }
    if let Some(list) = expr.downcast_ref::<InListExpr>() {
        return in_list(list, inputs);
    }
    if let Some(like) = expr.downcast_ref::<LikeExpr>() {
        let parts = (translate(like.expr(), inputs)?, translate(like.pattern(), inputs)?);
        return texts::like(like, parts, inputs);
    }
    if let Some(case) = expr.downcast_ref::<CaseExpr>() {
        return case_node(expr, case, inputs);
    }
    if let Some(function) = ScalarFunctionExpr::try_downcast_func::<NullIfFunc>(expr.as_ref()) {
        return null_if(function, inputs);
    }
    if let Some(function) = ScalarFunctionExpr::try_downcast_func::<SubstrFunc>(expr.as_ref()) {
        let x = translate(function.args().first()?, inputs)?;
        return texts::substring(function, x, inputs);
    }
    let function = ScalarFunctionExpr::try_downcast_func::<DatePartFunc>(expr.as_ref())?;
    date_part(function, inputs)
}

fn binary_node(whole: &Arc<dyn PhysicalExpr>, binary: &BinaryExpr, inputs: &mut Inputs) -> Option<Made> {
    let (left, op, right) = (binary.left(), *binary.op(), binary.right());
    // The node does not expose whether it fails on overflow, but a wrapping one equals a new one.
    if *binary != BinaryExpr::new(left.clone(), op, right.clone()) {
        return None;
    }
    let (a, b) = (translate(left, inputs)?, translate(right, inputs)?);
    match op {
        // The rows for which DataFusion computes the right side depend on the data.
        Operator::And | Operator::Or if b.can_fail => None,
        Operator::And => Some(Made::of(a.expr.clone() & b.expr.clone(), &[&a, &b])),
        Operator::Or => Some(Made::of(a.expr.clone() | b.expr.clone(), &[&a, &b])),
        Operator::Plus | Operator::Minus | Operator::Multiply | Operator::Divide | Operator::Modulo => {
            arithmetic(whole, op, (left, a), (right, b), inputs)
        }
        _ => {
            let (of, other) = (type_of(left, inputs)?, type_of(right, inputs)?);
            if value_type(&of) != value_type(&other) {
                return None;
            }
            let compared = if of.is_floating() {
                comparison::compare_floats(
                    op,
                    &of,
                    (&a.expr, scalar(left).as_ref()),
                    (&b.expr, scalar(right).as_ref()),
                )?
            } else {
                comparison::compare(op, a.expr.clone(), b.expr.clone())?
            };
            let made = Made::truth(compared, &[&a, &b])?;
            Some(Made { extra_pass: made.extra_pass || is_text(value_type(&of)), ..made })
        }
    }
}

fn arithmetic(
    whole: &Arc<dyn PhysicalExpr>,
    op: Operator,
    (left, a): (&Arc<dyn PhysicalExpr>, Made),
    (right, b): (&Arc<dyn PhysicalExpr>, Made),
    inputs: &Inputs,
) -> Option<Made> {
    let (of, other, to) = (type_of(left, inputs)?, type_of(right, inputs)?, type_of(whole, inputs)?);
    let made = Made::of(
        match op {
            Operator::Plus => a.expr.clone() + b.expr.clone(),
            Operator::Minus => a.expr.clone() - b.expr.clone(),
            Operator::Multiply => a.expr.clone() * b.expr.clone(),
            Operator::Divide => a.expr.clone() / b.expr.clone(),
            _ => a.expr.clone() % b.expr.clone(),
        },
        &[&a, &b],
    );
    let divides = matches!(op, Operator::Divide | Operator::Modulo);
    let by_what_divides = || scalar(right).is_some_and(|value| literal::divides(&value));
    let can_fail = match (&of, &other) {
        (of, other) if of == other && of.is_integer() => divides && !by_what_divides(),
        (of, other) if of == other && of.is_floating() => false,
        (of, other) if of.is_decimal() && other.is_decimal() => {
            !casts::decimals_fit(op, of, other) || divides && !by_what_divides()
        }
        _ => return None,
    };
    // Both sides have their own decimal rules; the result types must agree.
    if !has_type(&made.expr, &to, inputs) {
        return None;
    }
    // Sums and products of finite numbers, and quotients by one that is not zero, are numbers.
    let is_number = made.finite && (!divides || by_what_divides());
    Some(Made {
        can_fail: made.can_fail || can_fail,
        makes_nan: made.makes_nan || of.is_floating() && !is_number,
        finite: !of.is_floating(),
        ..made
    })
}

fn negative_node(negative: &NegativeExpr, inputs: &mut Inputs) -> Option<Made> {
    let of = type_of(negative.arg(), inputs)?;
    // Negating a literal is checked for overflow.
    if scalar(negative.arg()).is_some() || !(of.is_signed_integer() || of.is_floating() || of.is_decimal()) {
        return None;
    }
    let x = translate(negative.arg(), inputs)?;
    let made = Made::of(-x.expr.clone(), &[&x]);
    has_type(&made.expr, &of, inputs).then_some(made)
}

fn cast_node(x: &Arc<dyn PhysicalExpr>, to: &DataType, safe: bool, inputs: &mut Inputs) -> Option<Made> {
    let from = type_of(x, inputs)?;
    let x = translate(x, inputs)?;
    if from == *to {
        return Some(x);
    }
    if !casts::same_everywhere(&from, to) {
        return match to {
            DataType::Float64 => divided(&x, casts::digits_and_scale(&from)?),
            _ => None,
        };
    }
    let cast =
        if safe { x.expr.clone().cast(our_type(to)) } else { x.expr.clone().cast_strict(our_type(to)) };
    let made = Made::of(cast, &[&x]);
    let can_fail = made.can_fail || !safe && !casts::always_fits(&from, to);
    // A cast to a non-float removes the NaN, so its bits no longer matter.
    let makes_nan = made.makes_nan && to.is_floating();
    let widens = from.is_integer() && to.is_integer() && casts::always_fits(&from, to);
    // A number of fewer bits or digits than the type's largest is in its range.
    let finite = !to.is_floating() || !from.is_floating() || made.finite && *to == DataType::Float64;
    Some(Made { can_fail, makes_nan, finite, extra_pass: made.extra_pass || !widens, ..made })
}

/// A decimal as a float, in DataFusion's two steps, each of which rounds: its digits become a float, which is
/// divided by a power of ten.
fn divided(x: &Made, (precision, scale): (u8, u8)) -> Option<Made> {
    let power = 10f64.powi(scale.into());
    let of_power = OurType::Decimal128(scale + 1, 0);
    let digits = x.expr.clone() * lit(Literal::of(of_power, 10i128.pow(scale.into())));
    let digits = digits.cast(OurType::Decimal128(38, 0)).cast(OurType::Float64);
    // The product fits, and so does the power of ten.
    let fits = precision + scale < 37 && scale <= 22;
    fits.then(|| Made { extra_pass: true, finite: true, ..Made::of(digits / power, &[x]) })
}

fn in_list(list: &InListExpr, inputs: &mut Inputs) -> Option<Made> {
    let of = type_of(list.expr(), inputs)?;
    // Lists treat zeros and NaNs by their own rules.
    if of.is_floating() || list.list().is_empty() || matches!(of, DataType::Dictionary(..)) {
        return None;
    }
    let x = translate(list.expr(), inputs)?;
    let value = |item: &Arc<dyn PhysicalExpr>| {
        let item = scalar(item)?;
        if item.data_type() == of {
            return literal::literal(&item);
        }
        item.is_null().then(|| Literal::null(our_type(&of)))
    };
    let values = list.list().iter().map(value).collect::<Option<Vec<_>>>()?;
    let found = x.expr.clone().in_list(values);
    let made = Made::of(if list.negated() { !found } else { found }, &[&x]);
    Some(Made { extra_pass: made.extra_pass || is_text(&of), ..made })
}

fn case_node(whole: &Arc<dyn PhysicalExpr>, case: &CaseExpr, inputs: &mut Inputs) -> Option<Made> {
    let to = type_of(whole, inputs)?;
    let mut value = |expr: Option<&Arc<dyn PhysicalExpr>>| {
        match expr {
            Some(expr) if scalar(expr).is_none_or(|value| value.data_type() == to) => {
                let of = type_of(expr, inputs)?;
                let made = translate(expr, inputs)?;
                // DataFusion computes it for only some rows.
                (of == to && !made.can_fail).then_some(made)
            }
            Some(expr) if !scalar(expr)?.is_null() => None,
            _ => Some(Made::plain(lit(Literal::null(our_type(&to))), true)),
        }
    };
    let otherwise = value(case.else_expr())?;
    let values: Vec<Made> =
        case.when_then_expr().iter().map(|(_, then)| value(Some(then))).collect::<Option<_>>()?;
    let mut made = otherwise;
    for (i, ((when, _), then)) in case.when_then_expr().iter().zip(values).enumerate().rev() {
        let condition = match case.expr() {
            None => translate(when, inputs)?,
            Some(of) => {
                let (a, b) = (type_of(of, inputs)?, type_of(when, inputs)?);
                if a != b || a.is_floating() {
                    return None;
                }
                let (a, b) = (translate(of, inputs)?, translate(when, inputs)?);
                // DataFusion compares nothing with a null.
                if b.can_fail {
                    return None;
                }
                Made::truth(a.expr.clone().eq(b.expr.clone()), &[&a, &b])?
            }
        };
        if condition.can_fail && i > 0 {
            return None;
        }
        let expr = if_else(condition.expr.clone(), then.expr.clone(), made.expr.clone());
        made = Made::of(expr, &[&condition, &then, &made]);
    }
    has_type(&made.expr, &to, inputs).then_some(made)
}

fn null_if(function: &ScalarFunctionExpr, inputs: &mut Inputs) -> Option<Made> {
    let [x, other] = function.args() else { return None };
    let (of, to) = (type_of(x, inputs)?, type_of(other, inputs)?);
    if of != to || of.is_floating() {
        return None;
    }
    let (x, other) = (translate(x, inputs)?, translate(other, inputs)?);
    let made = Made::of(x.expr.clone().nullif(other.expr.clone()), &[&x, &other]);
    has_type(&made.expr, function.return_type(), inputs).then_some(made)
}

fn date_part(function: &ScalarFunctionExpr, inputs: &mut Inputs) -> Option<Made> {
    let [part, of] = function.args() else { return None };
    let name = scalar(part)?.try_as_str().flatten()?.to_ascii_lowercase();
    let data_type = type_of(of, inputs)?;
    let of_days = matches!(data_type, DataType::Date32 | DataType::Date64 | DataType::Timestamp(_, None));
    let of_hours =
        matches!(data_type, DataType::Timestamp(_, None) | DataType::Time32(_) | DataType::Time64(_));
    let part = match name.as_str() {
        "year" if of_days => DatePart::Year,
        "month" if of_days => DatePart::Month,
        "day" if of_days => DatePart::Day,
        "hour" if of_hours => DatePart::Hour,
        "minute" if of_hours => DatePart::Minute,
        "second" if of_hours => DatePart::Second,
        _ => return None,
    };
    let x = translate(of, inputs)?;
    let made = Made::of(x.expr.clone().date_part(part), &[&x]);
    has_type(&made.expr, function.return_type(), inputs).then_some(made)
}

/// The type in which a value is compared.
fn value_type(data_type: &DataType) -> &DataType {
    match data_type {
        DataType::Dictionary(_, values) => values,
        other => other,
    }
}
