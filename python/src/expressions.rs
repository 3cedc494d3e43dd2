//! The operations that take expressions: `evaluate`, `aggregate`, and `filter` by an expression.

use arrow_schema::Schema;
use bowstring::compute::{BoundQuery, Query};
use bowstring::expr::{Aggregation as InnerAggregation, Expr as Inner, FloatOrder, Options, Overflow};
use pyo3::PyClass;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use crate::batch::RecordBatch;
use crate::device::{Stream, stream_for};
use crate::error::{detached, ours};
use crate::expr::{Aggregation, Expr};
use crate::foreign;

/// Parses the keywords that the operations have in common.
pub fn options(overflow: &str, division_by_zero: &str, floats: &str) -> PyResult<Options> {
    let no = |what: &str, said: &str, known: &str| {
        Err(PyValueError::new_err(format!("{what} is {known}, not {said:?}")))
    };
    let overflow = match overflow {
        "error" => Overflow::Error,
        "wrap" => Overflow::Wrap,
        "null" => Overflow::Null,
        other => return no("overflow", other, "\"error\", \"wrap\" or \"null\""),
    };
    let is_null = match division_by_zero {
        "error" => false,
        "null" => true,
        other => return no("division_by_zero", other, "\"error\" or \"null\""),
    };
    let floats = match floats {
        "total" => FloatOrder::Total,
        "sql" => FloatOrder::Sql,
        other => return no("floats", other, "\"total\" or \"sql\""),
    };
    Ok(Options::new().overflow(overflow).division_by_zero_is_null(is_null).floats(floats))
}

/// Reads one item of a class, several of them, or a dictionary of items by name, which `alias` gives them.
fn all_of<'py, C: PyClass, T>(
    items: &Bound<'py, PyAny>,
    argument: &str,
    item: impl Fn(&Bound<'py, C>) -> T,
    alias: impl Fn(T, String) -> T,
) -> PyResult<Vec<T>> {
    let one = |one: &Bound<'py, PyAny>| match one.cast::<C>() {
        Ok(one) => Ok(item(one)),
        Err(_) => Err(misfit(one, argument, C::NAME)),
    };
    if items.cast::<C>().is_ok() {
        return Ok(vec![one(items)?]);
    }
    if let Ok(named) = items.cast::<PyDict>() {
        let named = named.iter().map(|(name, item)| {
            let name: String = name.extract().map_err(|_| {
                PyTypeError::new_err(format!("{argument}: names are str, not {}", name.get_type()))
            })?;
            Ok(alias(one(&item)?, name))
        });
        return named.collect();
    }
    let is_none = items.is_instance_of::<PyString>() || !items.hasattr("__iter__")?;
    if is_none || items.is_instance_of::<Expr>() || items.is_instance_of::<Aggregation>() {
        return Err(misfit(items, argument, C::NAME));
    }
    items.try_iter()?.map(|item| one(&item?)).collect()
}

/// Makes the error for an item of another class, with a guess at what was meant.
fn misfit(item: &Bound<'_, PyAny>, argument: &str, class: &str) -> PyErr {
    let meant = if let Ok(name) = item.cast::<PyString>() {
        format!(": the column is col({:?})", name.to_string_lossy())
    } else if argument == "exprs" && item.is_instance_of::<Aggregation>() {
        ": aggregate(...) takes aggregations".to_owned()
    } else if argument == "aggregations" && item.is_instance_of::<Expr>() {
        ": say what its rows come to, such as .sum()".to_owned()
    } else {
        String::new()
    };
    PyTypeError::new_err(format!("{argument}: a bowstring.{class} is needed, not {}{meant}", item.get_type()))
}

/// Binds aggregations, and the predicate if any, to a schema.
pub fn aggregates(
    aggregations: &Bound<'_, PyAny>,
    predicate: Option<&Bound<'_, PyAny>>,
    schema: &Schema,
    options: &Options,
) -> PyResult<BoundQuery> {
    let aggregations = self::aggregations(aggregations)?;
    let predicate = self::predicate(predicate)?;
    let query = predicate.into_iter().fold(Query::new(), Query::filter).aggregate(&aggregations);
    ours(|| query.bind(schema, options))
}

/// Reads one aggregation, several, or a dictionary of them by name.
pub fn aggregations(all: &Bound<'_, PyAny>) -> PyResult<Vec<InnerAggregation>> {
    let inner = |one: &Bound<'_, Aggregation>| one.get().0.clone();
    all_of(all, "aggregations", inner, InnerAggregation::alias)
}

/// Reads the argument `where`, if there is one.
pub fn predicate(predicate: Option<&Bound<'_, PyAny>>) -> PyResult<Option<Inner>> {
    let read = |predicate: &Bound<'_, PyAny>| match predicate.cast::<Expr>() {
        Ok(expr) => Ok(expr.get().0.clone()),
        Err(_) => Err(misfit(predicate, "where", Expr::NAME)),
    };
    predicate.map(read).transpose()
}

/// Binds expressions to a schema.
pub fn projection(exprs: &Bound<'_, PyAny>, schema: &Schema, options: &Options) -> PyResult<BoundQuery> {
    let inner = |expr: &Bound<'_, Expr>| expr.get().0.clone();
    let exprs: Vec<Inner> = all_of(exprs, "exprs", inner, Inner::alias)?;
    ours(|| Query::new().select(&exprs).bind(schema, options))
}

/// Keeps the rows of a batch where an expression is true.
pub fn filter_where(
    batch: &RecordBatch,
    predicate: &Bound<'_, Expr>,
    options: &Options,
    stream: Option<&Bound<'_, Stream>>,
) -> PyResult<RecordBatch> {
    let on = stream_for(batch.place(), stream)?;
    let (py, predicate) = (predicate.py(), &predicate.get().0);
    let kept = detached(py, || {
        let bound = Query::new().filter(predicate).bind(batch.0.schema(), options)?;
        bound.run(&batch.0, &on).wait()
    });
    kept.map(RecordBatch::new)
}

/// Return a batch with one column for each expression: its values, row by row.
///
/// `exprs` is one expression, an iterable of several, or a dictionary of expressions by name. A column is
/// named by its key, by `alias`, or by the text of the expression.
///
/// An integer or decimal that overflows raises an `ArithmeticError` that names the first such row. With
/// `overflow="null"` the result is null, and with `overflow="wrap"` integers wrap around. A division by zero
/// also raises an `ArithmeticError`, or gives null with `division_by_zero="null"`. Floats are compared by
/// their total order. With `floats="sql"` they are compared as in SQL, where all zeros are equal, and so are
/// all NaNs. On a GPU, `wait` raises the errors of rows.
#[pyfunction]
#[pyo3(signature = (
    batch, exprs, *, overflow = "error", division_by_zero = "error", floats = "total", stream = None
))]
pub fn evaluate(
    batch: &Bound<'_, PyAny>,
    exprs: &Bound<'_, PyAny>,
    overflow: &str,
    division_by_zero: &str,
    floats: &str,
    stream: Option<&Bound<'_, Stream>>,
) -> PyResult<RecordBatch> {
    let py = batch.py();
    let options = options(overflow, division_by_zero, floats)?;
    let batch = foreign::as_batch(batch, "batch")?;
    let on = stream_for(batch.place(), stream)?;
    let bound = projection(exprs, batch.0.schema(), &options)?;
    detached(py, || bound.run(&batch.0, &on).wait()).map(RecordBatch::new)
}

/// Return a batch of one row with the result of each aggregation.
///
/// Without the expression `where`, all rows count; with it, those where it is true. Options and errors are as
/// in `evaluate`, except that a sum that does not fit its type raises `ValueError`, which names no row. This
/// waits once for a device; the result is in host memory.
#[pyfunction]
#[pyo3(signature = (
    batch, aggregations, r#where = None, *, overflow = "error", division_by_zero = "error", floats = "total", stream = None
))]
pub fn aggregate(
    batch: &Bound<'_, PyAny>,
    aggregations: &Bound<'_, PyAny>,
    r#where: Option<&Bound<'_, PyAny>>,
    overflow: &str,
    division_by_zero: &str,
    floats: &str,
    stream: Option<&Bound<'_, Stream>>,
) -> PyResult<RecordBatch> {
    let py = batch.py();
    let options = options(overflow, division_by_zero, floats)?;
    let batch = foreign::as_batch(batch, "batch")?;
    let on = stream_for(batch.place(), stream)?;
    let bound = aggregates(aggregations, r#where, batch.0.schema(), &options)?;
    detached(py, || bound.run(&batch.0, &on).wait()).map(RecordBatch::new)
}
