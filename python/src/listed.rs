//! Conversion of Python lists and dictionaries to arrays in host memory.

use arrow_array::ArrayRef;
use arrow_schema::DataType;
use bowstring::compute::{self, CastOptions};
use bowstring::exchange::from_arrow;
use bowstring::{DeviceArray as Inner, Stream};
use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;

use crate::error::{detached, ours};
use crate::infer::{build, type_of};
use crate::pace::push;
use crate::plain::{self, Plain};

fn array_of(values: &[Plain], to: Option<&DataType>) -> PyResult<ArrayRef> {
    let data_type = type_of(values, to)?;
    let mut each = vec![];
    values.iter().try_for_each(|value| push(&mut each, value))?;
    build(&each, &data_type)
}

/// Converts a Python iterable to an array, of type `to` if given; `None` if it is not an iterable of rows.
pub fn rows(obj: &Bound<'_, PyAny>, argument: &str, to: Option<&DataType>) -> PyResult<Option<Inner>> {
    let Some(values) = plain::rows(obj, argument)? else { return Ok(None) };
    made(obj.py(), &values, argument, to).map(Some)
}

/// Converts one value to an array of one row.
pub fn row(py: Python<'_>, value: Plain, argument: &str) -> PyResult<Inner> {
    made(py, &[value], argument, None)
}

fn made(py: Python<'_>, values: &[Plain], argument: &str, to: Option<&DataType>) -> PyResult<Inner> {
    let made = detached(py, || array_of(values, to)).map_err(|error| {
        let words = format!("{argument}: {}", error.value(py));
        let ours = error.is_instance_of::<PyTypeError>(py) || error.is_instance_of::<PyOverflowError>(py);
        if ours { PyErr::from_type(error.get_type(py), words) } else { error }
    })?;
    let made = ours(|| from_arrow(&made))?;
    match to {
        Some(to) if to != made.data_type() => {
            let strict = CastOptions { safe: false, ..CastOptions::default() };
            detached(py, || compute::cast(&made, to, &strict, &Stream::cpu()).wait())
        }
        _ => Ok(made),
    }
}
