//! The operations. Each takes any array or batch that speaks a protocol, works where the data is, on the default stream
//! unless told another, and lets other Python threads run meanwhile.

use arrow_schema::Field;
use bowstring::compute::{self, CastOptions, Scalar};
use bowstring::{Array as Inner, Pending, Stream as InnerStream};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::array::Array;
use crate::device::{Stream, stream_for};
use crate::error::detached;
use crate::expr::Expr;
use crate::expressions::{filter_where, options};
use crate::foreign::{self, Either, either};
use crate::reader::take_options;
use crate::values::row_of;

fn object<'py, T: pyo3::PyClass>(
    py: Python<'py>,
    value: impl Into<PyClassInitializer<T>>,
) -> PyResult<Bound<'py, PyAny>> {
    Ok(Bound::new(py, value)?.into_any())
}

/// The rows where `mask` is true; null is not. The mask is as long as the values: arrow-rs takes a shorter one. For a batch it may be an
/// expression of its columns, which the other keywords are for: as with `evaluate`. Waits once for a device.
#[pyfunction]
#[pyo3(signature = (
    values, mask, *, overflow = "error", division_by_zero = "error", floats = "total", stream = None
))]
pub fn filter<'py>(
    values: &Bound<'py, PyAny>,
    mask: &Bound<'py, PyAny>,
    overflow: &str,
    division_by_zero: &str,
    floats: &str,
    stream: Option<&Bound<'py, Stream>>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = values.py();
    let options = options(overflow, division_by_zero, floats)?;
    if let Ok(predicate) = mask.cast::<Expr>() {
        let batch = foreign::as_batch(values, "values")?;
        return object(py, filter_where(&batch, predicate, &options, stream)?);
    }
    let (values, mask) = (either(values, "values")?, foreign::as_array(mask, "mask")?);
    match values {
        Either::Array(values) => {
            let on = stream_for(values.array.place(), stream)?;
            let kept = detached(py, || compute::filter(&values.array, &mask.array, &on).wait())?;
            object(py, values.result(kept))
        }
        Either::Batch(batch) => {
            let on = stream_for(batch.place(), stream)?;
            let kept = detached(py, || compute::filter(&batch.0, &mask.array, &on).wait())?;
            object(py, crate::batch::RecordBatch(kept))
        }
    }
}

/// The rows at `indices`, integers of any type. A null index is a null row; one out of bounds is an `IndexError`, or a null
/// row with `out_of_bounds="null"`; also where the values are all null, which arrow-rs does not check. Columns of a batch whose
/// rows may become null so are nullable in its schema. On a GPU the error comes when the result is waited for.
#[pyfunction]
#[pyo3(signature = (values, indices, *, out_of_bounds = "raise", stream = None))]
pub fn take<'py>(
    values: &Bound<'py, PyAny>,
    indices: &Bound<'py, PyAny>,
    out_of_bounds: &str,
    stream: Option<&Bound<'py, Stream>>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = values.py();
    let options = take_options(out_of_bounds)?;
    let (values, indices) = (either(values, "values")?, foreign::as_array(indices, "indices")?);
    match values {
        Either::Array(values) => {
            let on = stream_for(values.array.place(), stream)?;
            let taken = detached(py, || compute::take(&values.array, &indices.array, &options, &on).wait())?;
            object(py, values.result(taken))
        }
        Either::Batch(batch) => {
            let on = stream_for(batch.place(), stream)?;
            let taken = detached(py, || compute::take(&batch.0, &indices.array, &options, &on).wait())?;
            object(py, crate::batch::RecordBatch(taken))
        }
    }
}

pub fn cast_array(
    py: Python<'_>,
    values: &Array,
    to: &Field,
    safe: bool,
    stream: Option<&Bound<'_, Stream>>,
) -> PyResult<Array> {
    let on = stream_for(values.array.place(), stream)?;
    let options = CastOptions { safe, ..CastOptions::default() };
    let casted = detached(py, || compute::cast(&values.array, to.data_type(), &options, &on).wait())?;
    Ok(values.cast(casted, to))
}

/// The values as another type: an object with `__arrow_c_schema__`, or arrow-rs' name of a type such as `"Int32"`; for a
/// batch, an object with the schema of all its columns. A value that does not fit is a `ValueError`, or null with
/// `strict=False`; a null in a column of a batch that `to` says is not nullable is a `ValueError`. The result is of the extension
/// type that `to` is of, if any. On a GPU the error comes when the result is waited for.
#[pyfunction]
#[pyo3(signature = (values, to, *, strict = true, stream = None))]
pub fn cast<'py>(
    values: &Bound<'py, PyAny>,
    to: &Bound<'py, PyAny>,
    strict: bool,
    stream: Option<&Bound<'py, Stream>>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = values.py();
    match either(values, "values")? {
        Either::Array(values) => {
            object(py, cast_array(py, &values, &foreign::field(to, "to")?, !strict, stream)?)
        }
        Either::Batch(batch) => {
            let (schema, on) = (foreign::schema(to, "to")?, stream_for(batch.place(), stream)?);
            let options = CastOptions { safe: !strict, ..CastOptions::default() };
            object(py, detached(py, || batch.cast(schema, &options, &on))?)
        }
    }
}

fn one(values: &Bound<'_, PyAny>) -> PyResult<Array> {
    match either(values, "values")? {
        Either::Array(array) => Ok(array),
        Either::Batch(_) => {
            Err(PyTypeError::new_err("values: an array is needed, not a batch: pass one of its columns"))
        }
    }
}

type Operation<T> = fn(&Inner, &InnerStream) -> Pending<T>;

fn of_one<T: Send>(
    values: &Bound<'_, PyAny>,
    stream: Option<&Bound<'_, Stream>>,
    operation: Operation<T>,
) -> PyResult<(Array, T)> {
    let (py, values) = (values.py(), one(values)?);
    let on = stream_for(values.array.place(), stream)?;
    let result = detached(py, || operation(&values.array, &on).wait())?;
    Ok((values, result))
}

/// How many rows are null by the validity bitmap; of a batch, a list with the number of each column, which are counted
/// together. Waits once for a device where that is not known.
#[pyfunction]
#[pyo3(signature = (values, *, stream = None))]
pub fn null_count<'py>(
    values: &Bound<'py, PyAny>,
    stream: Option<&Bound<'py, Stream>>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = values.py();
    match either(values, "values")? {
        Either::Array(values) => {
            let on = stream_for(values.array.place(), stream)?;
            let nulls = detached(py, || compute::null_count(&values.array, &on).wait())?;
            Ok(nulls.into_pyobject(py)?.into_any())
        }
        Either::Batch(batch) => {
            let on = stream_for(batch.place(), stream)?;
            let nulls = detached(py, || compute::null_count(&batch.0, &on).wait())?;
            nulls.into_pyobject(py)
        }
    }
}

/// How many rows are null when dictionaries, runs and unions are looked through.
#[pyfunction]
#[pyo3(signature = (values, *, stream = None))]
pub fn logical_null_count(values: &Bound<'_, PyAny>, stream: Option<&Bound<'_, Stream>>) -> PyResult<usize> {
    Ok(of_one(values, stream, compute::logical_null_count)?.1)
}

/// Whether each row is null.
#[pyfunction]
#[pyo3(signature = (values, *, stream = None))]
pub fn is_null(values: &Bound<'_, PyAny>, stream: Option<&Bound<'_, Stream>>) -> PyResult<Array> {
    let (values, nulls) = of_one(values, stream, compute::is_null)?;
    Ok(values.others(nulls))
}

/// Whether each row is valid.
#[pyfunction]
#[pyo3(signature = (values, *, stream = None))]
pub fn is_valid(values: &Bound<'_, PyAny>, stream: Option<&Bound<'_, Stream>>) -> PyResult<Array> {
    let (values, valid) = of_one(values, stream, compute::is_not_null)?;
    Ok(values.others(valid))
}

/// The values, and `value` where they are null: a Python value that fits their type, or any array of one row of it. `None` leaves
/// all as it is. For booleans and types of fixed width.
#[pyfunction]
#[pyo3(signature = (values, value, *, stream = None))]
pub fn fill_null(
    values: &Bound<'_, PyAny>,
    value: &Bound<'_, PyAny>,
    stream: Option<&Bound<'_, Stream>>,
) -> PyResult<Array> {
    let (py, values) = (values.py(), one(values)?);
    let on = stream_for(values.array.place(), stream)?;
    if value.is_none() {
        return Ok(values);
    }
    let given = row_of(value, values.array.data_type(), "value")?;
    let filled = detached(py, || compute::fill_null(&values.array, &Scalar::try_new(&given)?, &on).wait())?;
    Ok(values.result(filled))
}

/// The rows that are not null. Waits once for a device.
#[pyfunction]
#[pyo3(signature = (values, *, stream = None))]
pub fn drop_null(values: &Bound<'_, PyAny>, stream: Option<&Bound<'_, Stream>>) -> PyResult<Array> {
    let (values, kept) = of_one(values, stream, compute::drop_nulls)?;
    Ok(values.result(kept))
}
