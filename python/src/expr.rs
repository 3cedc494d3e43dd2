//! Expressions as Python writes them, not yet bound to columns: the operation that binds them reports errors.

use bowstring::expr::{self, Aggregation as InnerAggregation, DatePart, Expr as Inner, LiteralList};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString, PyTuple};

use crate::error::ours;
use crate::items::items;
use crate::pace::Pace;
use crate::recipe::{self, Recipe};
use crate::{plain, types, values};

/// An expression that is computed for each row of a batch.
///
/// `col`, `nth`, `lit` and `if_else` make expressions, and operators and methods combine them. Comparisons
/// such as `==` also return expressions, not results. Use `&`, `|` and `~` for `and`, `or` and `not`.
#[pyclass(frozen, module = "bowstring")]
#[derive(Clone)]
pub struct Expr(pub Inner, pub Recipe);

/// An aggregation of the rows of a batch, made by methods such as `Expr.sum()`, or by `count_all`.
#[pyclass(frozen, module = "bowstring")]
#[derive(Clone)]
pub struct Aggregation(pub InnerAggregation, Recipe);

/// Reads an operand: an expression, or a value that becomes a literal. Also returns it as a recipe keeps it.
pub fn operand(value: &Bound<'_, PyAny>) -> PyResult<(Inner, Py<PyAny>)> {
    match value.cast::<Expr>() {
        Ok(expr) => Ok((expr.get().0.clone(), value.clone().unbind())),
        Err(_) => recipe::value(value),
    }
}

/// Refuses an expression that is too large to be bound, before it is too deep for any stack to drop.
pub fn made<const N: usize>(expr: Inner, name: &'static str, given: [Py<PyAny>; N]) -> PyResult<Expr> {
    ours(|| expr.check())?;
    Ok(Expr(expr, Recipe::new(name, given)))
}

pub fn text(py: Python<'_>, text: &str) -> Py<PyAny> {
    PyString::new(py, text).into_any().unbind()
}

/// Make an expression for the column that has this name.
#[pyfunction]
pub fn col(py: Python<'_>, name: String) -> Expr {
    let given = text(py, &name);
    Expr(expr::col(name), Recipe::new("col", [given]))
}

/// Make an expression for the column that has this number; the first has 0.
#[pyfunction]
pub fn nth(py: Python<'_>, index: usize) -> PyResult<Expr> {
    Ok(Expr(expr::nth(index), Recipe::new("nth", [index.into_py_any(py)?])))
}

/// Make an expression for a constant.
///
/// `value` is a `bool`, `int`, `float`, `Decimal`, `str`, `bytes`, `date`, `time`, `datetime`, `timedelta`,
/// `None`, or an array of one row. A `date` is a Date32, times count microseconds, and an array keeps its
/// type. Other values take the type of the other operand if they fit. `type`, as in `cast`, sets the type.
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
        // This value is a literal only together with its type.
        Err(_) => value.clone().unbind(),
    };
    let to = types::type_of(&field).into_py_any(value.py())?;
    Ok(Expr(expr::lit(literal), Recipe::new("lit", [kept, to])))
}

/// Make an expression for `then` where `condition` is true, and for `otherwise` where it is false or null.
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

/// Make an aggregation that counts all rows.
#[pyfunction]
pub fn count_all() -> Aggregation {
    Aggregation(expr::count_all(), Recipe::new("count_all", []))
}

impl Expr {
    /// Applies a method of this name to another operand.
    pub fn with(
        this: &Bound<'_, Self>,
        name: &'static str,
        other: &Bound<'_, PyAny>,
        make: impl FnOnce(Inner, Inner) -> Inner,
    ) -> PyResult<Expr> {
        let (other, kept) = operand(other)?;
        made(make(this.get().0.clone(), other), name, [this.clone().into_any().unbind(), kept])
    }

    pub fn of(
        this: &Bound<'_, Self>,
        name: &'static str,
        make: impl FnOnce(Inner) -> Inner,
    ) -> PyResult<Expr> {
        made(make(this.get().0.clone()), name, [this.clone().into_any().unbind()])
    }

    pub fn folded(
        this: &Bound<'_, Self>,
        name: &'static str,
        make: impl FnOnce(Inner) -> InnerAggregation,
    ) -> Aggregation {
        let given = [this.clone().into_any().unbind()];
        Aggregation(make(this.get().0.clone()), Recipe::new(name, given))
    }

    /// Like `folded`, for functions with a parameter.
    pub fn folded_with<'py, P: IntoPyObject<'py> + Copy>(
        this: &Bound<'py, Self>,
        name: &'static str,
        parameter: P,
        make: impl FnOnce(Inner, P) -> InnerAggregation,
    ) -> PyResult<Aggregation> {
        let given = [this.clone().into_any().unbind(), parameter.into_py_any(this.py())?];
        Ok(Aggregation(make(this.get().0.clone(), parameter), Recipe::new(name, given)))
    }
}

/// Reads the name of a part of a date.
pub fn date_part(part: &str) -> PyResult<DatePart> {
    Ok(match part {
        "year" => DatePart::Year,
        "month" => DatePart::Month,
        "day" => DatePart::Day,
        "hour" => DatePart::Hour,
        "minute" => DatePart::Minute,
        "second" => DatePart::Second,
        other => return Err(PyValueError::new_err(format!("a date has no part {other:?}"))),
    })
}

#[pymethods]
impl Aggregation {
    /// Name the aggregation; the result's column gets this name.
    fn alias(this: &Bound<'_, Self>, name: &str) -> Aggregation {
        // Only the last name counts, so names do not nest: Python drops what is nested on the stack.
        let named = this.get().1.renamed(this.py());
        let given = [named.unwrap_or_else(|| this.clone().into_any().unbind()), text(this.py(), name)];
        Aggregation(this.get().0.clone().alias(name), Recipe::new("alias", given))
    }

    /// Aggregate only the rows for which `predicate` is true, as SQL's `FILTER` does.
    ///
    /// Raise `ValueError` if the filters are too many to be bound together.
    fn filter(this: &Bound<'_, Self>, predicate: &Bound<'_, Expr>) -> PyResult<Aggregation> {
        let given = [this.clone().into_any().unbind(), predicate.clone().into_any().unbind()];
        let filtered = this.get().0.clone().filter(&predicate.get().0);
        ours(|| filtered.check())?;
        Ok(Aggregation(filtered, Recipe::new("filter", given)))
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
}

/// Make the error for an exponent that is none.
pub fn no_exponent(given: &impl std::fmt::Display) -> PyErr {
    let problem = "an exponent is an int from 0 to 1000";
    PyTypeError::new_err(format!("{problem}, not {given}: other powers are not computed"))
}

/// Return the values of a list, as literals and as a list of Python.
pub fn listed(values: &Bound<'_, PyAny>) -> PyResult<(LiteralList, Py<PyAny>)> {
    if plain::is_text(values) {
        return Err(PyTypeError::new_err(format!("values: a list is needed, not {}", values.get_type())));
    }
    let (py, mut pace) = (values.py(), Pace::new());
    let (mut literals, kept) = (LiteralList::new(), PyList::empty(py));
    for value in items(values)? {
        let value = value?;
        pace.object(py, 0)?;
        let literal = values::literal(&value)?;
        ours(|| literals.push(literal))?;
        kept.append(value)?;
    }
    Ok((literals, kept.into_any().unbind()))
}
