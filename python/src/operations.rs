//! The operations. Each takes any array or batch that speaks a protocol, works where the data is, on the default stream
//! unless told another, and lets other Python threads run meanwhile.

use bowstring::compute::{self, CastOptions};
use bowstring::{Array as Inner, Result, Stream as InnerStream};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::array::Array;
use crate::device::{Stream, stream_for};
use crate::error::raise;
use crate::foreign::{self, Either, either};
use crate::reader::take_options;

fn object<'py, T: pyo3::PyClass>(
    py: Python<'py>,
    value: impl Into<PyClassInitializer<T>>,
) -> PyResult<Bound<'py, PyAny>> {
    Ok(Bound::new(py, value)?.into_any())
}

/// The rows where `mask` is true; null is not. Waits once for a device.
#[pyfunction]
#[pyo3(signature = (values, mask, *, stream = None))]
pub fn filter<'py>(
    values: &Bound<'py, PyAny>,
    mask: &Bound<'py, PyAny>,
    stream: Option<&Bound<'py, Stream>>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = values.py();
    let (values, mask) = (either(values)?, foreign::array(mask, None)?);
    match values {
        Either::Array(values) => {
            let on = stream_for(values.array.place(), stream)?;
            let kept = py.detach(|| compute::filter(&values.array, &mask.array, &on)).map_err(raise)?;
            object(py, values.result(kept))
        }
        Either::Batch(batch) => {
            let on = stream_for(batch.place(), stream)?;
            let kept = py.detach(|| compute::filter_batch(&batch.0, &mask.array, &on)).map_err(raise)?;
            object(py, crate::batch::RecordBatch(kept))
        }
    }
}

/// The rows at `indices`, integers of any type. A null index is a null row; one out of bounds is an `IndexError`, or a null
/// row with `out_of_bounds="null"`. On a GPU the error comes when the result is waited for.
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
    let (values, indices) = (either(values)?, foreign::array(indices, None)?);
    match values {
        Either::Array(values) => {
            let on = stream_for(values.array.place(), stream)?;
            let taken = py.detach(|| compute::take(&values.array, &indices.array, &options, &on));
            object(py, values.result(taken.map_err(raise)?))
        }
        Either::Batch(batch) => {
            let on = stream_for(batch.place(), stream)?;
            let taken = py.detach(|| compute::take_batch(&batch.0, &indices.array, &options, &on));
            object(py, crate::batch::RecordBatch(taken.map_err(raise)?))
        }
    }
}

pub fn cast_array(
    py: Python<'_>,
    values: &Array,
    to: &Bound<'_, PyAny>,
    safe: bool,
    stream: Option<&Bound<'_, Stream>>,
) -> PyResult<Array> {
    let to = foreign::data_type(to)?;
    let on = stream_for(values.array.place(), stream)?;
    let options = CastOptions { safe, ..CastOptions::default() };
    let casted = py.detach(|| compute::cast(&values.array, &to, &options, &on)).map_err(raise)?;
    Ok(values.result(casted))
}

/// The values as another type: an object with `__arrow_c_schema__`, or arrow-rs' name of a type such as `"Int32"`; for a
/// batch, an object with the schema of all its columns. A value that does not fit is a `ValueError`, or null with
/// `strict=False`. On a GPU the error comes when the result is waited for.
#[pyfunction]
#[pyo3(signature = (values, to, *, strict = true, stream = None))]
pub fn cast<'py>(
    values: &Bound<'py, PyAny>,
    to: &Bound<'py, PyAny>,
    strict: bool,
    stream: Option<&Bound<'py, Stream>>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = values.py();
    match either(values)? {
        Either::Array(values) => object(py, cast_array(py, &values, to, !strict, stream)?),
        Either::Batch(batch) => {
            let (schema, on) = (foreign::schema(to)?, stream_for(batch.place(), stream)?);
            let options = CastOptions { safe: !strict, ..CastOptions::default() };
            object(py, py.detach(|| batch.cast(schema, &options, &on))?)
        }
    }
}

fn one(values: &Bound<'_, PyAny>) -> PyResult<Array> {
    match either(values)? {
        Either::Array(array) => Ok(array),
        Either::Batch(_) => {
            Err(PyTypeError::new_err("this takes an array, not a batch: pass one of its columns"))
        }
    }
}

type Operation<T> = fn(&Inner, &InnerStream) -> Result<T>;

fn of_one<T: Send>(
    values: &Bound<'_, PyAny>,
    stream: Option<&Bound<'_, Stream>>,
    operation: Operation<T>,
) -> PyResult<(Array, T)> {
    let (py, values) = (values.py(), one(values)?);
    let on = stream_for(values.array.place(), stream)?;
    let result = py.detach(|| operation(&values.array, &on)).map_err(raise)?;
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
    match either(values)? {
        Either::Array(values) => {
            let on = stream_for(values.array.place(), stream)?;
            let nulls = py.detach(|| compute::null_count(&values.array, &on)).map_err(raise)?;
            Ok(nulls.into_pyobject(py)?.into_any())
        }
        Either::Batch(batch) => {
            let on = stream_for(batch.place(), stream)?;
            let nulls = py.detach(|| compute::null_count_batch(&batch.0, &on)).map_err(raise)?;
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
    Ok(values.result(nulls))
}

/// Whether each row is valid.
#[pyfunction]
#[pyo3(signature = (values, *, stream = None))]
pub fn is_valid(values: &Bound<'_, PyAny>, stream: Option<&Bound<'_, Stream>>) -> PyResult<Array> {
    let (values, valid) = of_one(values, stream, compute::is_not_null)?;
    Ok(values.result(valid))
}

/// The rows that are not null. Waits once for a device.
#[pyfunction]
#[pyo3(signature = (values, *, stream = None))]
pub fn drop_null(values: &Bound<'_, PyAny>, stream: Option<&Bound<'_, Stream>>) -> PyResult<Array> {
    let (values, kept) = of_one(values, stream, compute::drop_nulls)?;
    Ok(values.result(kept))
}
