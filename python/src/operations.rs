//! The operations. Each takes any array or batch that speaks a protocol, works where the data is, on the default stream
//! unless told another, and lets other Python threads run meanwhile.

use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Decimal128Array, Float64Array, StringArray};
use arrow_schema::Field;
use bowstring::compute::{self, CastOptions, Scalar};
use bowstring::exchange::from_arrow;
use bowstring::{Array as Inner, Pending, Stream as InnerStream};
use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt, PyString};

use crate::array::Array;
use crate::device::{Stream, stream_for};
use crate::error::{detached, ours};
use crate::foreign::{self, Either, either};
use crate::reader::take_options;

fn object<'py, T: pyo3::PyClass>(
    py: Python<'py>,
    value: impl Into<PyClassInitializer<T>>,
) -> PyResult<Bound<'py, PyAny>> {
    Ok(Bound::new(py, value)?.into_any())
}

/// The rows where `mask` is true; null is not. The mask is as long as the values: arrow-rs takes a shorter one. Waits once for
/// a device.
#[pyfunction]
#[pyo3(signature = (values, mask, *, stream = None))]
pub fn filter<'py>(
    values: &Bound<'py, PyAny>,
    mask: &Bound<'py, PyAny>,
    stream: Option<&Bound<'py, Stream>>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = values.py();
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
    let plain: Option<ArrayRef> = if value.is_none() {
        return Ok(values);
    } else if value.is_instance_of::<PyBool>() {
        Some(Arc::new(BooleanArray::from(vec![value.extract::<bool>()?])))
    } else if value.is_instance_of::<PyInt>() {
        Some(Arc::new(
            Decimal128Array::from(vec![value.extract::<i128>()?])
                .with_precision_and_scale(38, 0)
                .map_err(|error| PyOverflowError::new_err(error.to_string()))?,
        ))
    } else if value.is_instance_of::<PyFloat>() {
        Some(Arc::new(Float64Array::from(vec![value.extract::<f64>()?])))
    } else if value.is_instance_of::<PyString>() {
        Some(Arc::new(StringArray::from(vec![value.extract::<String>()?])))
    } else {
        None
    };
    let given = match plain {
        None => foreign::as_array(value, "value")?.array,
        Some(plain) => {
            let strict = CastOptions { safe: false, ..CastOptions::default() };
            let cpu = InnerStream::cpu();
            ours(|| compute::cast(&from_arrow(&plain)?, values.array.data_type(), &strict, &cpu).wait())?
        }
    };
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
