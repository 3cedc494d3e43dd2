//! Expressions, as they are written in Python. They know nothing of columns; what is wrong with them is found when they meet some.

use bowstring::expr::{self, Aggregation as InnerAggregation, DatePart, Expr as Inner, Literal};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::error::ours;
use crate::types;
use crate::values;

/// What is computed of each row of a batch: made by `col`, `nth`, `lit` and `if_else`, with operators and methods. Comparisons make
/// expressions, too, so `==` compares nothing here and now, and `&`, `|` and `~` stand for `and`, `or` and `not`.
#[pyclass(frozen, module = "bowstring")]
#[derive(Clone)]
pub struct Expr(pub Inner);

/// What many rows come to: made by `Expr.sum()` and the like, and by `count_all`.
#[pyclass(frozen, module = "bowstring")]
#[derive(Clone)]
pub struct Aggregation(pub InnerAggregation);

/// An expression, or a value that stands for one.
fn operand(value: &Bound<'_, PyAny>) -> PyResult<Inner> {
    match value.cast::<Expr>() {
        Ok(expr) => Ok(expr.get().0.clone()),
        Err(_) => values::literal(value).map(expr::lit),
    }
}

/// What is too large to be bound is no expression: here, before it is deep enough to be dropped by no stack.
fn made(expr: Inner) -> PyResult<Expr> {
    ours(|| expr.check())?;
    Ok(Expr(expr))
}

/// The column of this name.
#[pyfunction]
pub fn col(name: String) -> Expr {
    Expr(expr::col(name))
}

/// The column of this number, from 0 on.
#[pyfunction]
pub fn nth(index: usize) -> Expr {
    Expr(expr::nth(index))
}

/// A value: `bool`, `int`, `float`, `Decimal`, `str`, `bytes`, `date`, `datetime`, `None`, or any array of one row. All but dates and
/// arrays take the type of what they meet, where it has that value; a `date` is a Date32, a `datetime` a Timestamp of microseconds. With
/// `type`, as `cast` takes it, the value is of that.
#[pyfunction]
#[pyo3(signature = (value, r#type = None))]
pub fn lit(value: &Bound<'_, PyAny>, r#type: Option<&Bound<'_, PyAny>>) -> PyResult<Expr> {
    let literal = match r#type {
        None => values::literal(value)?,
        Some(to) => values::typed_literal(value, types::field(to, "type")?.data_type())?,
    };
    Ok(Expr(expr::lit(literal)))
}

/// `then` where `condition` is true, `otherwise` where it is false or null.
#[pyfunction]
pub fn if_else(
    condition: &Bound<'_, PyAny>,
    then: &Bound<'_, PyAny>,
    otherwise: &Bound<'_, PyAny>,
) -> PyResult<Expr> {
    made(expr::if_else(operand(condition)?, operand(then)?, operand(otherwise)?))
}

/// How many rows there are.
#[pyfunction]
pub fn count_all() -> Aggregation {
    Aggregation(expr::count_all())
}

impl Expr {
    fn with(&self, other: &Bound<'_, PyAny>, make: impl FnOnce(Inner, Inner) -> Inner) -> PyResult<Expr> {
        made(make(self.0.clone(), operand(other)?))
    }

    fn of(&self, make: impl FnOnce(Inner) -> Inner) -> PyResult<Expr> {
        made(make(self.0.clone()))
    }
}

#[pymethods]
impl Expr {
    fn __eq__(&self, other: &Bound<'_, PyAny>) -> PyResult<Expr> {
        self.with(other, Inner::eq)
    }

    fn __ne__(&self, other: &Bound<'_, PyAny>) -> PyResult<Expr> {
        self.with(other, Inner::neq)
    }

    fn __lt__(&self, other: &Bound<'_, PyAny>) -> PyResult<Expr> {
        self.with(other, Inner::lt)
    }

    fn __le__(&self, other: &Bound<'_, PyAny>) -> PyResult<Expr> {
        self.with(other, Inner::lt_eq)
    }

    fn __gt__(&self, other: &Bound<'_, PyAny>) -> PyResult<Expr> {
        self.with(other, Inner::gt)
    }

    fn __ge__(&self, other: &Bound<'_, PyAny>) -> PyResult<Expr> {
        self.with(other, Inner::gt_eq)
    }

    fn __add__(&self, other: &Bound<'_, PyAny>) -> PyResult<Expr> {
        self.with(other, |a, b| a + b)
    }

    fn __radd__(&self, other: &Bound<'_, PyAny>) -> PyResult<Expr> {
        self.with(other, |a, b| b + a)
    }

    fn __sub__(&self, other: &Bound<'_, PyAny>) -> PyResult<Expr> {
        self.with(other, |a, b| a - b)
    }

    fn __rsub__(&self, other: &Bound<'_, PyAny>) -> PyResult<Expr> {
        self.with(other, |a, b| b - a)
    }

    fn __mul__(&self, other: &Bound<'_, PyAny>) -> PyResult<Expr> {
        self.with(other, |a, b| a * b)
    }

    fn __rmul__(&self, other: &Bound<'_, PyAny>) -> PyResult<Expr> {
        self.with(other, |a, b| b * a)
    }

    fn __truediv__(&self, other: &Bound<'_, PyAny>) -> PyResult<Expr> {
        self.with(other, |a, b| a / b)
    }

    fn __rtruediv__(&self, other: &Bound<'_, PyAny>) -> PyResult<Expr> {
        self.with(other, |a, b| b / a)
    }

    fn __mod__(&self, other: &Bound<'_, PyAny>) -> PyResult<Expr> {
        self.with(other, |a, b| a % b)
    }

    fn __rmod__(&self, other: &Bound<'_, PyAny>) -> PyResult<Expr> {
        self.with(other, |a, b| b % a)
    }

    fn __and__(&self, other: &Bound<'_, PyAny>) -> PyResult<Expr> {
        self.with(other, |a, b| a & b)
    }

    fn __rand__(&self, other: &Bound<'_, PyAny>) -> PyResult<Expr> {
        self.with(other, |a, b| b & a)
    }

    fn __or__(&self, other: &Bound<'_, PyAny>) -> PyResult<Expr> {
        self.with(other, |a, b| a | b)
    }

    fn __ror__(&self, other: &Bound<'_, PyAny>) -> PyResult<Expr> {
        self.with(other, |a, b| b | a)
    }

    fn __invert__(&self) -> PyResult<Expr> {
        self.of(|x| !x)
    }

    fn __neg__(&self) -> PyResult<Expr> {
        self.of(|x| -x)
    }

    fn __bool__(&self) -> PyResult<bool> {
        let hint = "an expression is neither true nor false: use & | ~ instead of and, or, not, and parentheses around comparisons";
        Err(PyTypeError::new_err(hint))
    }

    fn __repr__(&self) -> String {
        self.0.to_string()
    }

    /// Whether there is no value.
    fn is_null(&self) -> PyResult<Expr> {
        self.of(Inner::is_null)
    }

    /// Whether there is a value.
    fn is_not_null(&self) -> PyResult<Expr> {
        self.of(Inner::is_not_null)
    }

    /// Whether it is true; null is not.
    fn is_true(&self) -> PyResult<Expr> {
        self.of(Inner::is_true)
    }

    /// Whether it is false or null.
    fn is_not_true(&self) -> PyResult<Expr> {
        self.of(Inner::is_not_true)
    }

    /// Whether it is false; null is not.
    fn is_false(&self) -> PyResult<Expr> {
        self.of(Inner::is_false)
    }

    /// Whether it is true or null.
    fn is_not_false(&self) -> PyResult<Expr> {
        self.of(Inner::is_not_false)
    }

    /// Whether they differ, where nulls are equal to each other and to nothing else. Never null.
    fn distinct(&self, other: &Bound<'_, PyAny>) -> PyResult<Expr> {
        self.with(other, Inner::distinct)
    }

    /// The opposite of `distinct`.
    fn not_distinct(&self, other: &Bound<'_, PyAny>) -> PyResult<Expr> {
        self.with(other, Inner::not_distinct)
    }

    /// Whether it is `low` at least and `high` at most.
    fn between(&self, low: &Bound<'_, PyAny>, high: &Bound<'_, PyAny>) -> PyResult<Expr> {
        let (low, high) = (operand(low)?, operand(high)?);
        self.of(|x| x.between(low, high))
    }

    /// Whether it is one of these values; null where it is null, or where it is none of them and one of them is null.
    fn is_in(&self, values: &Bound<'_, PyAny>) -> PyResult<Expr> {
        let values = values.try_iter()?.map(|value| values::literal(&value?));
        let values = values.collect::<PyResult<Vec<Literal>>>()?;
        self.of(|x| x.in_list(values))
    }

    /// Whether this text, or these bytes, start with `prefix`.
    fn starts_with(&self, prefix: &Bound<'_, PyAny>) -> PyResult<Expr> {
        self.with(prefix, Inner::starts_with)
    }

    /// Whether this text, or these bytes, end with `suffix`.
    fn ends_with(&self, suffix: &Bound<'_, PyAny>) -> PyResult<Expr> {
        self.with(suffix, Inner::ends_with)
    }

    /// Whether `part` is somewhere in this text, or in these bytes.
    fn contains(&self, part: &Bound<'_, PyAny>) -> PyResult<Expr> {
        self.with(part, Inner::contains)
    }

    /// Whether the text is of a pattern: `%` stands for any text, `_` for any character, and a backslash takes the next one as it is.
    fn like(&self, pattern: &Bound<'_, PyAny>) -> PyResult<Expr> {
        self.with(pattern, Inner::like)
    }

    /// The same, where case does not count.
    fn ilike(&self, pattern: &Bound<'_, PyAny>) -> PyResult<Expr> {
        self.with(pattern, Inner::ilike)
    }

    /// As another type, which is said as `bowstring.cast` takes it. What does not fit is null, or a `ValueError` with
    /// `strict=True`.
    #[pyo3(signature = (to, *, strict = false))]
    fn cast(&self, to: &Bound<'_, PyAny>, strict: bool) -> PyResult<Expr> {
        let to = types::field(to, "to")?.data_type().clone();
        self.of(|x| if strict { x.cast_strict(to) } else { x.cast(to) })
    }

    /// This, or `other` where this is null.
    fn coalesce(&self, other: &Bound<'_, PyAny>) -> PyResult<Expr> {
        self.with(other, Inner::coalesce)
    }

    /// This, but null where both are equal.
    fn nullif(&self, other: &Bound<'_, PyAny>) -> PyResult<Expr> {
        self.with(other, Inner::nullif)
    }

    /// The `"year"`, `"month"`, `"day"`, `"hour"`, `"minute"` or `"second"` of a date, a timestamp without a zone or a time: an Int32.
    fn date_part(&self, part: &str) -> PyResult<Expr> {
        let part = match part {
            "year" => DatePart::Year,
            "month" => DatePart::Month,
            "day" => DatePart::Day,
            "hour" => DatePart::Hour,
            "minute" => DatePart::Minute,
            "second" => DatePart::Second,
            other => return Err(PyValueError::new_err(format!("a date has no part {other:?}"))),
        };
        self.of(|x| x.date_part(part))
    }

    /// The same under a name, which the result's column has.
    fn alias(&self, name: String) -> PyResult<Expr> {
        self.of(|x| x.alias(name))
    }

    /// The sum of what is not null; null of nothing.
    fn sum(&self) -> Aggregation {
        Aggregation(expr::sum(self.0.clone()))
    }

    /// The least of what is not null; null of nothing.
    fn min(&self) -> Aggregation {
        Aggregation(expr::min(self.0.clone()))
    }

    /// The greatest of what is not null, NaN above all numbers; null of nothing.
    fn max(&self) -> Aggregation {
        Aggregation(expr::max(self.0.clone()))
    }

    /// How many are not null.
    fn count(&self) -> Aggregation {
        Aggregation(expr::count(self.0.clone()))
    }

    /// The mean of what is not null; null of nothing.
    fn mean(&self) -> Aggregation {
        Aggregation(expr::mean(self.0.clone()))
    }

    /// Whether all that are not null are true; null of nothing.
    fn all(&self) -> Aggregation {
        Aggregation(expr::bool_and(self.0.clone()))
    }

    /// Whether any is true; null of nothing.
    fn any(&self) -> Aggregation {
        Aggregation(expr::bool_or(self.0.clone()))
    }
}

#[pymethods]
impl Aggregation {
    /// The same under another name.
    fn alias(&self, name: String) -> Aggregation {
        Aggregation(self.0.clone().alias(name))
    }

    fn __repr__(&self) -> String {
        self.0.to_string()
    }
}
