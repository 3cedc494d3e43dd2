//! The methods of `bowstring.Expr`.

use bowstring::expr::{self, Expr as Inner};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyTuple};

use crate::expr::{Aggregation, Expr, date_part, listed, made, no_exponent, operand, text};
use crate::types;

#[pymethods]
impl Expr {
    /// Without this, numpy's numbers on the left of an operator take the expression for an array.
    #[classattr]
    fn __array_ufunc__(py: Python<'_>) -> Py<PyAny> {
        py.None()
    }

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

    /// Divide integers or floats and round down, as Python does; `/` truncates integer quotients towards
    /// zero. Floats divided by zero are infinite or NaN, as in numpy.
    fn __floordiv__(this: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Expr> {
        Expr::with(this, "__floordiv__", other, Inner::floor_div)
    }

    fn __rfloordiv__(this: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Expr> {
        Expr::with(this, "__rfloordiv__", other, |a, b| b.floor_div(a))
    }

    /// Raise to a power by multiplication; the exponent is a Python integer from 0 to 1000.
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

    /// Compute the absolute value. The least value of a signed integer type overflows.
    fn abs(this: &Bound<'_, Self>) -> PyResult<Expr> {
        Expr::of(this, "abs", Inner::abs)
    }

    /// Test whether a float is NaN.
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

    fn __copy__(this: Bound<'_, Self>) -> Bound<'_, Self> {
        this
    }

    fn __deepcopy__<'py>(this: Bound<'py, Self>, _memo: &Bound<'py, PyAny>) -> Bound<'py, Self> {
        this
    }

    fn __reduce__<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        this.get().1.reduced(this.py(), this.get_type().as_any())
    }

    /// Test whether the value is null.
    fn is_null(this: &Bound<'_, Self>) -> PyResult<Expr> {
        Expr::of(this, "is_null", Inner::is_null)
    }

    /// Test whether the value is not null.
    fn is_not_null(this: &Bound<'_, Self>) -> PyResult<Expr> {
        Expr::of(this, "is_not_null", Inner::is_not_null)
    }

    /// Test whether the value is true; null gives false.
    fn is_true(this: &Bound<'_, Self>) -> PyResult<Expr> {
        Expr::of(this, "is_true", Inner::is_true)
    }

    /// Test whether the value is false or null.
    fn is_not_true(this: &Bound<'_, Self>) -> PyResult<Expr> {
        Expr::of(this, "is_not_true", Inner::is_not_true)
    }

    /// Test whether the value is false; null gives false.
    fn is_false(this: &Bound<'_, Self>) -> PyResult<Expr> {
        Expr::of(this, "is_false", Inner::is_false)
    }

    /// Test whether the value is true or null.
    fn is_not_false(this: &Bound<'_, Self>) -> PyResult<Expr> {
        Expr::of(this, "is_not_false", Inner::is_not_false)
    }

    /// Test whether two values differ; two nulls do not, a null and a value do. The result is never null.
    fn distinct(this: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Expr> {
        Expr::with(this, "distinct", other, Inner::distinct)
    }

    /// Test whether two values are the same: the opposite of `distinct`.
    fn not_distinct(this: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Expr> {
        Expr::with(this, "not_distinct", other, Inner::not_distinct)
    }

    /// Test whether the value is at least `low` and at most `high`.
    fn between(this: &Bound<'_, Self>, low: &Bound<'_, PyAny>, high: &Bound<'_, PyAny>) -> PyResult<Expr> {
        let ((low, a), (high, b)) = (operand(low)?, operand(high)?);
        let given = [this.clone().into_any().unbind(), a, b];
        made(this.get().0.clone().between(low, high), "between", given)
    }

    /// Test whether the value is in `values`; null for a null, or if none matches and `values` has a null.
    fn is_in(this: &Bound<'_, Self>, values: &Bound<'_, PyAny>) -> PyResult<Expr> {
        let (literals, kept) = listed(values)?;
        let given = [this.clone().into_any().unbind(), kept];
        made(this.get().0.clone().in_list(literals), "is_in", given)
    }

    /// Test whether text or bytes start with `prefix`.
    fn starts_with(this: &Bound<'_, Self>, prefix: &Bound<'_, PyAny>) -> PyResult<Expr> {
        Expr::with(this, "starts_with", prefix, Inner::starts_with)
    }

    /// Test whether text or bytes end with `suffix`.
    fn ends_with(this: &Bound<'_, Self>, suffix: &Bound<'_, PyAny>) -> PyResult<Expr> {
        Expr::with(this, "ends_with", suffix, Inner::ends_with)
    }

    /// Test whether text or bytes contain `part`.
    fn contains(this: &Bound<'_, Self>, part: &Bound<'_, PyAny>) -> PyResult<Expr> {
        Expr::with(this, "contains", part, Inner::contains)
    }

    /// Match text with a pattern: `%` matches any text, `_` one character, a backslash escapes the next.
    fn like(this: &Bound<'_, Self>, pattern: &Bound<'_, PyAny>) -> PyResult<Expr> {
        Expr::with(this, "like", pattern, Inner::like)
    }

    /// Match text with a pattern as `like` does, ignoring case.
    fn ilike(this: &Bound<'_, Self>, pattern: &Bound<'_, PyAny>) -> PyResult<Expr> {
        Expr::with(this, "ilike", pattern, Inner::ilike)
    }

    /// Convert to another type, as `cast` does. A value that does not fit is null, or raises if `strict`.
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

    /// Replace nulls with the values of `other`.
    fn coalesce(this: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Expr> {
        Expr::with(this, "coalesce", other, Inner::coalesce)
    }

    /// Replace a value with null if it equals the value of `other` in the same row.
    fn nullif(this: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Expr> {
        Expr::with(this, "nullif", other, Inner::nullif)
    }

    /// Extract the `"year"`, `"month"`, `"day"`, `"hour"`, `"minute"` or `"second"` of a date, a time, or a
    /// timestamp without a zone, as Int32; null outside the years -262143 to 262142.
    fn date_part(this: &Bound<'_, Self>, part: &str) -> PyResult<Expr> {
        let which = date_part(part)?;
        let given = [this.clone().into_any().unbind(), text(this.py(), part)];
        made(this.get().0.clone().date_part(which), "date_part", given)
    }

    /// Take at most `length` characters of text from character `start` on, which counts from the end if it is
    /// negative.
    #[pyo3(signature = (start, length = None))]
    fn substring(this: &Bound<'_, Self>, start: i64, length: Option<u64>) -> PyResult<Expr> {
        let bounds = (start.into_py_any(this.py())?, length.into_py_any(this.py())?);
        let given = [this.clone().into_any().unbind(), bounds.0, bounds.1];
        made(this.get().0.clone().substring(start, length), "substring", given)
    }

    /// Name the expression; the result's column gets this name.
    fn alias(this: &Bound<'_, Self>, name: &str) -> PyResult<Expr> {
        let given = [this.clone().into_any().unbind(), text(this.py(), name)];
        made(this.get().0.clone().alias(name), "alias", given)
    }

    /// Sum the values that are not null, to 64 bits, 38 digits or Float32 at least; null if there are none.
    fn sum(this: &Bound<'_, Self>) -> Aggregation {
        Expr::folded(this, "sum", expr::sum)
    }

    /// Find the least value that is not null; null if there are none.
    fn min(this: &Bound<'_, Self>) -> Aggregation {
        Expr::folded(this, "min", expr::min)
    }

    /// Find the greatest value that is not null, with NaN above all numbers; null if there are none.
    fn max(this: &Bound<'_, Self>) -> Aggregation {
        Expr::folded(this, "max", expr::max)
    }

    /// Count the values that are not null.
    fn count(this: &Bound<'_, Self>) -> Aggregation {
        Expr::folded(this, "count", expr::count)
    }

    /// Compute the mean of the values that are not null; null if there are none.
    fn mean(this: &Bound<'_, Self>) -> Aggregation {
        Expr::folded(this, "mean", expr::mean)
    }

    /// Test whether all values that are not null are true; null if there are none.
    fn all(this: &Bound<'_, Self>) -> Aggregation {
        Expr::folded(this, "all", expr::bool_and)
    }

    /// Test whether any value that is not null is true; null if there are none.
    fn any(this: &Bound<'_, Self>) -> Aggregation {
        Expr::folded(this, "any", expr::bool_or)
    }

    /// Find the bits that are set in all integers that are not null; null if there are none.
    fn bit_and(this: &Bound<'_, Self>) -> Aggregation {
        Expr::folded(this, "bit_and", expr::bit_and)
    }

    /// Find the bits that are set in any integer; null if all are null.
    fn bit_or(this: &Bound<'_, Self>) -> Aggregation {
        Expr::folded(this, "bit_or", expr::bit_or)
    }

    /// Find the bits that are set in an odd number of the integers that are not null.
    fn bit_xor(this: &Bound<'_, Self>) -> Aggregation {
        Expr::folded(this, "bit_xor", expr::bit_xor)
    }

    /// Get the first value that is not null; null if there are none.
    fn first(this: &Bound<'_, Self>) -> Aggregation {
        Expr::folded(this, "first", expr::first)
    }

    /// Get the last value that is not null; null if there are none.
    fn last(this: &Bound<'_, Self>) -> Aggregation {
        Expr::folded(this, "last", expr::last)
    }

    /// Get the value of the first row, which may be null.
    fn first_value(this: &Bound<'_, Self>) -> Aggregation {
        Expr::folded(this, "first_value", expr::first_value)
    }

    /// Get the value of the last row, which may be null.
    fn last_value(this: &Bound<'_, Self>) -> Aggregation {
        Expr::folded(this, "last_value", expr::last_value)
    }

    /// Count the different values that are not null.
    fn count_distinct(this: &Bound<'_, Self>) -> Aggregation {
        Expr::folded(this, "count_distinct", expr::count_distinct)
    }

    /// List the values, nulls included, in the order of their rows; null if there are no rows.
    fn array_agg(this: &Bound<'_, Self>) -> Aggregation {
        Expr::folded(this, "array_agg", expr::array_agg)
    }

    /// Compute the variance as numpy does, as Float64; null if there are not more than `ddof` values.
    #[pyo3(signature = (ddof = 1))]
    fn var(this: &Bound<'_, Self>, ddof: u32) -> PyResult<Aggregation> {
        Expr::folded_with(this, "var", ddof, expr::variance)
    }

    /// Compute the standard deviation, the square root of the variance.
    #[pyo3(signature = (ddof = 1))]
    fn std(this: &Bound<'_, Self>, ddof: u32) -> PyResult<Aggregation> {
        Expr::folded_with(this, "std", ddof, expr::stddev)
    }

    /// Compute the median of the numbers that are not null, as Float64; null if there are none.
    fn median(this: &Bound<'_, Self>) -> Aggregation {
        Expr::folded(this, "median", expr::median)
    }

    /// Compute the number below which a part of the numbers lies, from 0 to 1, interpolated.
    fn quantile(this: &Bound<'_, Self>, q: f64) -> PyResult<Aggregation> {
        Expr::folded_with(this, "quantile", q, expr::quantile)
    }
}
