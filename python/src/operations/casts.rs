//! Conversion of values to other types.

use arrow_schema::Field;
use bowstring::compute::{self, CastOptions};
use pyo3::prelude::*;

use crate::array::Array;
use crate::device::{Stream, stream_for};
use crate::error::detached;
use crate::foreign::{Either, either};
use crate::types;

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
    Ok(values.casted(casted, to))
}

/// Convert the values to another type.
///
/// `to` is the name of a type, such as `"int32"` or `"timestamp[us, tz=UTC]"`, a Python class, or a type of
/// any library. For a batch, it is an object with the schema of all columns, or a dictionary of types for
/// some of them.
///
/// A value that does not fit raises `ValueError`, or becomes null with `strict=False`. A null in a column
/// that `to` declares not nullable raises `ValueError`. The result has the extension type of `to`,
/// if any. On a GPU, `wait` raises the error.
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
            let casted = cast_array(py, &values, &types::field(to, "to")?, !strict, stream)?;
            Ok(casted.into_pyobject(py)?.into_any())
        }
        Either::Batch(batch) => {
            let schema = types::schema(to, "to", Some(batch.0.schema()))?;
            let on = stream_for(batch.place(), stream)?;
            let options = CastOptions { safe: !strict, ..CastOptions::default() };
            Ok(detached(py, || batch.casted(schema, &options, &on))?.into_pyobject(py)?.into_any())
        }
    }
}
