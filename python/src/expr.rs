//! Expressions, as they are written in Python. They know nothing of columns; what is wrong with them is found when they meet some.

use bowstring::expr::{self, Aggregation as InnerAggregation, DatePart, Expr as Inner, Literal};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyList, PyString, PyTuple};

use crate::error::ours;
use crate::items::items;
use crate::pace::{Pace, push};
use crate::plain;
use crate::recipe::{self, Recipe};
use crate::types;
use crate::values;

/// What is computed of each row of a batch: made by `col`, `nth`, `lit` and `if_else`, with operators and methods. Comparisons make
/// expressions, too, so `==` compares nothing here and now, and `&`, `|` and `~` stand for `and`, `or` and `not`.
#[pyclass(frozen, module = "bowstring")]
#[derive(Clone)]
pub struct Expr(pub Inner, Recipe);

/// What many rows come to: made by `Expr.sum()` and the like, and by `count_all`.
#[pyclass(frozen, module = "bowstring")]
#[derive(Clone)]
pub struct Aggregation(pub InnerAggregation, Recipe);

/// An expression, or a value that stands for one; and as a recipe keeps it.
fn operand(value: &Bound<'_, PyAny>) -> PyResult<(Inner, Py<PyAny>)> {
    match value.cast::<Expr>() {
        Ok(expr) => Ok((expr.get().0.clone(), value.clone().unbind())),
        Err(_) => recipe::value(value),
    }
}

/// What is too large to be bound is no expression: here, before it is deep enough to be dropped by no stack.
fn made<const N: usize>(expr: Inner, name: &'static str, given: [Py<PyAny>; N]) -> PyResult<Expr> {
    ours(|| expr.check())?;
    Ok(Expr(expr, Recipe::new(name, given)))
}

fn text(py: Python<'_>, text: &str) -> Py<PyAny> {
    PyString::new(py, text).into_any().unbind()
}

/// The column of this name.
#[pyfunction]
pub fn col(py: Python<'_>, name: String) -> Expr {
    let given = text(py, &name);
    Expr(expr::col(name), Recipe::new("col", [given]))
}

/// The column of this number, from 0 on.
#[pyfunction]
pub fn nth(py: Python<'_>, index: usize) -> PyResult<Expr> {
    Ok(Expr(expr::nth(index), Recipe::new("nth", [index.into_py_any(py)?])))
}

/// A value: `bool`, `int`, `float`, `Decimal`, `str`, `bytes`, `date`, `datetime`, `None`, or any array of one row. All but dates and
/// arrays take the type of what they meet, where it has that value; a `date` is a Date32, a `datetime` a Timestamp of microseconds. With
/// `type`, as `cast` takes it, the value is of that.
#[pyfunction]
#[pyo3(signature = (value, r#type = None))]
pub fn lit(value: &Bound<'_, PyAny>, r#type: Option<&Bound<'_, PyAny>>) -> PyResult<Expr> {
    let Some(to) = r#type else {
        let (value, kept) = recipe::value(value)?;
        return Ok(Expr(value, Recipe::new("lit", [kept])));
    };
    let field = types::field(to, "type")?;
    let literal = values::typed_literal(value, field.data_type())?;
    let kept = match recipe::value(value) {
        Ok((_, kept)) => kept,
        // A value that only its type makes one.
        Err(_) => value.clone().unbind(),
    };
    let to = types::type_of(&field).into_py_any(value.py())?;
    Ok(Expr(expr::lit(literal), Recipe::new("lit", [kept, to])))
}

/// `then` where `condition` is true, `otherwise` where it is false or null.
#[pyfunction]
pub fn if_else(
    condition: &Bound<'_, PyAny>,
    then: &Bound<'_, PyAny>,
    otherwise: &Bound<'_, PyAny>,
) -> PyResult<Expr> {
    let ((condition, a), (then, b), (otherwise, c)) =
        (operand(condition)?, operand(then)?, operand(otherwise)?);
    made(expr::if_else(condition, then, otherwise), "if_else", [a, b, c])
}

/// How many rows there are.
#[pyfunction]
pub fn count_all() -> Aggregation {
    Aggregation(expr::count_all(), Recipe::new("count_all", []))
}

impl Expr {
    /// The result of a method of this name with another operand.
    fn with(
        this: &Bound<'_, Self>,
        name: &'static str,
        other: &Bound<'_, PyAny>,
        make: impl FnOnce(Inner, Inner) -> Inner,
    ) -> PyResult<Expr> {
        let (other, kept) = operand(other)?;
        made(make(this.get().0.clone(), other), name, [this.clone().into_any().unbind(), kept])
    }

    /// The result of a method of this name without another operand.
    fn of(this: &Bound<'_, Self>, name: &'static str, make: impl FnOnce(Inner) -> Inner) -> PyResult<Expr> {
        made(make(this.get().0.clone()), name, [this.clone().into_any().unbind()])
    }

    /// The aggregation that a method of this name makes.
    fn folded(
        this: &Bound<'_, Self>,
        name: &'static str,
        make: impl FnOnce(Inner) -> InnerAggregation,
    ) -> Aggregation {
        let given = [this.clone().into_any().unbind()];
        Aggregation(make(this.get().0.clone()), Recipe::new(name, given))
    }
}

fn no_exponent(given: &impl std::fmt::Display) -> PyErr {
    let problem = "an exponent is an int from 0 to 1000";
    PyTypeError::new_err(format!("{problem}, not {given}: other powers are not computed"))
}

#[pymethods]
impl Expr {
    fn __eq__(this: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Expr> {
        Expr::with(this, "__eq__", other, Inner::eq)
    }

    fn __ne__(this: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Expr> {
        Expr::with(this, "__ne__", other, Inner::neq)
    }

    fn __lt__(this: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Expr> {
        Expr::with(this, "__lt__", other, Inner::lt)
    }

    fn __le__(this: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Expr> {
        Expr::with(this, "__le__", other, Inner::lt_eq)
    }

    fn __gt__(this: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Expr> {
        Expr::with(this, "__gt__", other, Inner::gt)
    }

    fn __ge__(this: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Expr> {
        Expr::with(this, "__ge__", other, Inner::gt_eq)
    }

    fn __add__(this: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Expr> {
        Expr::with(this, "__add__", other, |a, b| a + b)
    }

    fn __radd__(this: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Expr> {
        Expr::with(this, "__radd__", other, |a, b| b + a)
    }

    fn __sub__(this: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Expr> {
        Expr::with(this, "__sub__", other, |a, b| a - b)
    }

    fn __rsub__(this: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Expr> {
        Expr::with(this, "__rsub__", other, |a, b| b - a)
    }

    fn __mul__(this: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Expr> {
        Expr::with(this, "__mul__", other, |a, b| a * b)
    }

    fn __rmul__(this: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Expr> {
        Expr::with(this, "__rmul__", other, |a, b| b * a)
    }

    fn __truediv__(this: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Expr> {
        Expr::with(this, "__truediv__", other, |a, b| a / b)
    }

    fn __rtruediv__(this: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Expr> {
        Expr::with(this, "__rtruediv__", other, |a, b| b / a)
    }

    fn __mod__(this: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Expr> {
        Expr::with(this, "__mod__", other, |a, b| a % b)
    }

    fn __rmod__(this: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Expr> {
        Expr::with(this, "__rmod__", other, |a, b| b % a)
    }

    fn __and__(this: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Expr> {
        Expr::with(this, "__and__", other, |a, b| a & b)
    }

    fn __rand__(this: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Expr> {
        Expr::with(this, "__rand__", other, |a, b| b & a)
    }

    fn __or__(this: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Expr> {
        Expr::with(this, "__or__", other, |a, b| a | b)
    }

    fn __ror__(this: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Expr> {
        Expr::with(this, "__ror__", other, |a, b| b | a)
    }

    fn __invert__(this: &Bound<'_, Self>) -> PyResult<Expr> {
        Expr::of(this, "__invert__", |x| !x)
    }

    fn __neg__(this: &Bound<'_, Self>) -> PyResult<Expr> {
        Expr::of(this, "__neg__", |x| -x)
    }

    /// The quotient of integers or floats, rounded down as Python does; `/` cuts that of integers towards
    /// zero. Floats divided by zero are infinite or NaN, as numpy has it.
    fn __floordiv__(this: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Expr> {
        Expr::with(this, "__floordiv__", other, Inner::floor_div)
    }

    fn __rfloordiv__(this: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Expr> {
        Expr::with(this, "__rfloordiv__", other, |a, b| b.floor_div(a))
    }

    /// A power, computed by multiplication: the exponent is a whole number of Python's.
    fn __pow__(
        this: &Bound<'_, Self>,
        exponent: &Bound<'_, PyAny>,
        modulo: &Bound<'_, PyAny>,
    ) -> PyResult<Expr> {
        let number = exponent.extract::<u32>().ok().filter(|number| *number <= 1000 && modulo.is_none());
        let Some(number) = number.filter(|_| !exponent.is_instance_of::<PyBool>()) else {
            return Err(no_exponent(exponent));
        };
        let given = [this.clone().into_any().unbind(), number.into_py_any(this.py())?];
        made(this.get().0.clone().pow(number), "__pow__", given)
    }

    fn __rpow__(&self, _base: &Bound<'_, PyAny>, _modulo: &Bound<'_, PyAny>) -> PyResult<Expr> {
        Err(no_exponent(&self.0))
    }

    fn __abs__(this: &Bound<'_, Self>) -> PyResult<Expr> {
        Expr::of(this, "abs", Inner::abs)
    }

    /// The number without its sign. The least of the signed integers has none, and overflows.
    fn abs(this: &Bound<'_, Self>) -> PyResult<Expr> {
        Expr::of(this, "abs", Inner::abs)
    }

    /// Whether a float is NaN.
    fn is_nan(this: &Bound<'_, Self>) -> PyResult<Expr> {
        Expr::of(this, "is_nan", Inner::is_nan)
    }

    fn __bool__(&self) -> PyResult<bool> {
        let hint = "an expression is neither true nor false: use & | ~ instead of and, or, not, and parentheses around comparisons";
        Err(PyTypeError::new_err(hint))
    }

    fn __repr__(&self) -> String {
        self.0.to_string()
    }

    /// Itself: it never changes.
    fn __copy__(this: Bound<'_, Self>) -> Bound<'_, Self> {
        this
    }

    fn __deepcopy__<'py>(this: Bound<'py, Self>, _memo: &Bound<'py, PyAny>) -> Bound<'py, Self> {
        this
    }

    fn __reduce__<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        this.get().1.reduced(this.py(), this.get_type().as_any())
    }

    /// Whether there is no value.
    fn is_null(this: &Bound<'_, Self>) -> PyResult<Expr> {
        Expr::of(this, "is_null", Inner::is_null)
    }

    /// Whether there is a value.
    fn is_not_null(this: &Bound<'_, Self>) -> PyResult<Expr> {
        Expr::of(this, "is_not_null", Inner::is_not_null)
    }

    /// Whether it is true; null is not.
    fn is_true(this: &Bound<'_, Self>) -> PyResult<Expr> {
        Expr::of(this, "is_true", Inner::is_true)
    }

    /// Whether it is false or null.
    fn is_not_true(this: &Bound<'_, Self>) -> PyResult<Expr> {
        Expr::of(this, "is_not_true", Inner::is_not_true)
    }

    /// Whether it is false; null is not.
    fn is_false(this: &Bound<'_, Self>) -> PyResult<Expr> {
        Expr::of(this, "is_false", Inner::is_false)
    }

    /// Whether it is true or null.
    fn is_not_false(this: &Bound<'_, Self>) -> PyResult<Expr> {
        Expr::of(this, "is_not_false", Inner::is_not_false)
    }

    /// Whether they differ, where nulls are equal to each other and to nothing else. Never null.
    fn distinct(this: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Expr> {
        Expr::with(this, "distinct", other, Inner::distinct)
    }

    /// The opposite of `distinct`.
    fn not_distinct(this: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Expr> {
        Expr::with(this, "not_distinct", other, Inner::not_distinct)
    }

    /// Whether it is `low` at least and `high` at most.
    fn between(this: &Bound<'_, Self>, low: &Bound<'_, PyAny>, high: &Bound<'_, PyAny>) -> PyResult<Expr> {
        let ((low, a), (high, b)) = (operand(low)?, operand(high)?);
        let given = [this.clone().into_any().unbind(), a, b];
        made(this.get().0.clone().between(low, high), "between", given)
    }

    /// Whether it is one of these values; null where it is null, or where it is none of them and one of them is null.
    fn is_in(this: &Bound<'_, Self>, values: &Bound<'_, PyAny>) -> PyResult<Expr> {
        if plain::is_text(values) {
            return Err(PyTypeError::new_err(format!("values: a list is needed, not {}", values.get_type())));
        }
        let (py, mut pace) = (values.py(), Pace::new());
        let (mut literals, kept): (Vec<Literal>, _) = (vec![], PyList::empty(py));
        for value in items(values)? {
            let value = value?;
            pace.object(py, 0)?;
            push(&mut literals, values::literal(&value)?)?;
            kept.append(value)?;
        }
        let given = [this.clone().into_any().unbind(), kept.into_any().unbind()];
        made(this.get().0.clone().in_list(literals), "is_in", given)
    }

    /// Whether this text, or these bytes, start with `prefix`.
    fn starts_with(this: &Bound<'_, Self>, prefix: &Bound<'_, PyAny>) -> PyResult<Expr> {
        Expr::with(this, "starts_with", prefix, Inner::starts_with)
    }

    /// Whether this text, or these bytes, end with `suffix`.
    fn ends_with(this: &Bound<'_, Self>, suffix: &Bound<'_, PyAny>) -> PyResult<Expr> {
        Expr::with(this, "ends_with", suffix, Inner::ends_with)
    }

    /// Whether `part` is somewhere in this text, or in these bytes.
    fn contains(this: &Bound<'_, Self>, part: &Bound<'_, PyAny>) -> PyResult<Expr> {
        Expr::with(this, "contains", part, Inner::contains)
    }

    /// Whether the text is of a pattern: `%` stands for any text, `_` for any character, and a backslash takes the next one as it is.
    fn like(this: &Bound<'_, Self>, pattern: &Bound<'_, PyAny>) -> PyResult<Expr> {
        Expr::with(this, "like", pattern, Inner::like)
    }

    /// The same, where case does not count.
    fn ilike(this: &Bound<'_, Self>, pattern: &Bound<'_, PyAny>) -> PyResult<Expr> {
        Expr::with(this, "ilike", pattern, Inner::ilike)
    }

    /// As another type, which is said as `bowstring.cast` takes it. What does not fit is null, or a `ValueError` with
    /// `strict=True`.
    #[pyo3(signature = (to, *, strict = false))]
    fn cast(this: &Bound<'_, Self>, to: &Bound<'_, PyAny>, strict: bool) -> PyResult<Expr> {
        let field = types::field(to, "to")?;
        let (of, to) = (this.get().0.clone(), field.data_type().clone());
        let given = [this.clone().into_any().unbind(), types::type_of(&field).into_py_any(this.py())?];
        match strict {
            true => made(of.cast_strict(to), "cast_strict", given),
            false => made(of.cast(to), "cast", given),
        }
    }

    /// This, or `other` where this is null.
    fn coalesce(this: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Expr> {
        Expr::with(this, "coalesce", other, Inner::coalesce)
    }

    /// This, but null where both are equal.
    fn nullif(this: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Expr> {
        Expr::with(this, "nullif", other, Inner::nullif)
    }

    /// The `"year"`, `"month"`, `"day"`, `"hour"`, `"minute"` or `"second"` of a date, a timestamp without a zone or
    /// a time: an Int32, and null outside of the years -262143 to 262142.
    fn date_part(this: &Bound<'_, Self>, part: &str) -> PyResult<Expr> {
        let which = match part {
            "year" => DatePart::Year,
            "month" => DatePart::Month,
            "day" => DatePart::Day,
            "hour" => DatePart::Hour,
            "minute" => DatePart::Minute,
            "second" => DatePart::Second,
            other => return Err(PyValueError::new_err(format!("a date has no part {other:?}"))),
        };
        let given = [this.clone().into_any().unbind(), text(this.py(), part)];
        made(this.get().0.clone().date_part(which), "date_part", given)
    }

    /// The same under a name, which the result's column has.
    fn alias(this: &Bound<'_, Self>, name: &str) -> PyResult<Expr> {
        let given = [this.clone().into_any().unbind(), text(this.py(), name)];
        made(this.get().0.clone().alias(name), "alias", given)
    }

    /// The sum of what is not null; null of nothing. Integers become Int64 or UInt64, decimals have 38 digits, Float16
    /// becomes Float32.
    fn sum(this: &Bound<'_, Self>) -> Aggregation {
        Expr::folded(this, "sum", expr::sum)
    }

    /// The least of what is not null; null of nothing.
    fn min(this: &Bound<'_, Self>) -> Aggregation {
        Expr::folded(this, "min", expr::min)
    }

    /// The greatest of what is not null, NaN above all numbers; null of nothing.
    fn max(this: &Bound<'_, Self>) -> Aggregation {
        Expr::folded(this, "max", expr::max)
    }

    /// How many are not null.
    fn count(this: &Bound<'_, Self>) -> Aggregation {
        Expr::folded(this, "count", expr::count)
    }

    /// The mean of what is not null; null of nothing.
    fn mean(this: &Bound<'_, Self>) -> Aggregation {
        Expr::folded(this, "mean", expr::mean)
    }

    /// Whether all that are not null are true; null of nothing.
    fn all(this: &Bound<'_, Self>) -> Aggregation {
        Expr::folded(this, "all", expr::bool_and)
    }

    /// Whether any is true; null of nothing.
    fn any(this: &Bound<'_, Self>) -> Aggregation {
        Expr::folded(this, "any", expr::bool_or)
    }
}

#[pymethods]
impl Aggregation {
    /// The same under another name.
    fn alias(this: &Bound<'_, Self>, name: &str) -> Aggregation {
        let given = [this.clone().into_any().unbind(), text(this.py(), name)];
        Aggregation(this.get().0.clone().alias(name), Recipe::new("alias", given))
    }

    fn __repr__(&self) -> String {
        self.0.to_string()
    }

    /// Itself: it never changes.
    fn __copy__(this: Bound<'_, Self>) -> Bound<'_, Self> {
        this
    }

    fn __deepcopy__<'py>(this: Bound<'py, Self>, _memo: &Bound<'py, PyAny>) -> Bound<'py, Self> {
        this
    }

    fn __reduce__<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        this.get().1.reduced(this.py(), this.get_type().as_any())
    }
}
