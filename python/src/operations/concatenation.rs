//! Concatenation of arrays and batches.

use bowstring::array::Place;
use bowstring::{DeviceArray as Inner, DeviceBatch, compute};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::array::Array;
use crate::batch::RecordBatch;
use crate::device::{Stream, stream_for};
use crate::error::detached;
use crate::foreign::{Either, either};

/// Join several arrays or batches into one.
///
/// The arrays must have the same type, the batches the same columns, and all must be on one device. The rows
/// are copied, unless there is only one value. A column is nullable if it is nullable in any batch.
#[pyfunction]
#[pyo3(signature = (values, *, stream = None))]
pub fn concat<'py>(
    values: &Bound<'py, PyAny>,
    stream: Option<&Bound<'py, Stream>>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = values.py();
    for method in ["__arrow_c_array__", "__arrow_c_stream__", "__arrow_c_device_array__"] {
        if values.hasattr(method)? {
            let problem =
                format!("values: a list of arrays or batches is needed, not one {}", values.get_type());
            return Err(PyTypeError::new_err(problem));
        }
    }
    let (mut arrays, mut batches) = (vec![], vec![]);
    for (i, value) in values.try_iter()?.enumerate() {
        match either(&value?, &format!("values[{i}]"))? {
            Either::Array(array) => arrays.push(array),
            Either::Batch(batch) => batches.push(batch),
        }
    }
    match (arrays.first(), batches.first()) {
        (None, None) => Err(PyValueError::new_err("values: there are none, and so no type")),
        (Some(_), Some(_)) => Err(PyTypeError::new_err("values: arrays and batches do not go together")),
        (Some(first), None) => {
            let place = one_place(arrays.iter().map(|array| array.array.place()))?;
            let on = stream_for(place, stream)?;
            let parts: Vec<&Inner> = arrays.iter().map(|array| &array.array).collect();
            let whole = detached(py, || compute::concat(&parts, &on).wait())?;
            let nullable = arrays.iter().any(|array| array.field.is_nullable());
            let field = first.field.clone().with_nullable(nullable);
            Ok(Array::new(whole, &field).into_pyobject(py)?.into_any())
        }
        (None, Some(_)) => {
            let on = stream_for(one_place(batches.iter().map(RecordBatch::place))?, stream)?;
            let parts: Vec<&DeviceBatch> = batches.iter().map(|batch| &batch.0).collect();
            let whole = detached(py, || compute::concat(&parts, &on).wait())?;
            Ok(RecordBatch::new(whole).into_pyobject(py)?.into_any())
        }
    }
}

/// Returns the memory that holds all of them, or an error that names the first that is elsewhere.
fn one_place(mut places: impl Iterator<Item = Place>) -> PyResult<Place> {
    let first = places.next().unwrap_or(Place::CPU);
    match places.enumerate().find(|(_, place)| *place != first) {
        None => Ok(first),
        Some((i, other)) => Err(PyValueError::new_err(format!(
            "values[{}] is on {other}, and values[0] on {first}: move one by its to(...)",
            i + 1
        ))),
    }
}
