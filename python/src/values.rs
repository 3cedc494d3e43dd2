//! Python values as arrays of one row, and as literals in expressions.

use arrow_schema::DataType;
use bowstring::compute::{self, CastOptions, Scalar};
use bowstring::expr::Literal;
use bowstring::{DeviceArray as Inner, Stream};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::error::ours;
use crate::foreign;
use crate::listed;
use crate::plain::{self, Plain};

/// Converts a value to an array of one row: a Python value is cast to type `to`, which it must fit, and an
/// array keeps its type. Returns `None` for `None`.
pub fn row_of(value: &Bound<'_, PyAny>, to: &DataType, argument: &str) -> PyResult<Option<Inner>> {
    match plain::scalar(value)? {
        Some(Plain::Null) => Ok(None),
        None => Ok(Some(foreign::as_array(value, argument)?.array)),
        // A cast would parse the text; a caller who wants that can cast first.
        Some(Plain::Text(_)) if to.is_numeric() || *to == DataType::Boolean => {
            Err(PyTypeError::new_err(format!("{argument}: a str among values of {to}")))
        }
        Some(plain) => {
            let row = listed::row(value.py(), plain, argument)?;
            cast_row(&row, to).map(Some).map_err(|error| {
                let (py, words) = (value.py(), format!("{argument}: {}", error.value(value.py())));
                PyErr::from_type(error.get_type(py), words)
            })
        }
    }
}

fn cast_row(row: &Inner, to: &DataType) -> PyResult<Inner> {
    let strict = CastOptions { safe: false, ..CastOptions::default() };
    ours(|| compute::cast(row, to, &strict, &Stream::cpu()).wait())
}

/// Converts a value to a literal of a type.
pub fn typed_literal(value: &Bound<'_, PyAny>, to: &DataType) -> PyResult<Literal> {
    if value.is_none() {
        // The type may be none of Arrow's.
        cast_row(&listed::row(value.py(), Plain::Null, "value")?, to)?;
        return Ok(Literal::null(to.clone()));
    }
    let row = match plain::scalar(value)? {
        None => foreign::as_array(value, "value")?.array,
        Some(plain) => listed::row(value.py(), plain, "value")?,
    };
    let row = cast_row(&row, to)?;
    ours(|| Literal::try_from(&Scalar::try_new(&row)?))
}

/// Converts a value to a literal: numbers and `None` without a type, dates and arrays of one row with theirs.
pub fn literal(value: &Bound<'_, PyAny>) -> PyResult<Literal> {
    let row = match plain::scalar(value)? {
        Some(Plain::Null) => return Ok(Literal::null(DataType::Null)),
        Some(Plain::Bytes(bytes)) => return Ok(bytes.as_slice().into()),
        Some(Plain::Bool(value)) => return Ok(value.into()),
        Some(Plain::Int(value)) => return Ok(value.into()),
        Some(Plain::Float(value)) => return Ok(value.into()),
        Some(Plain::Decimal(unscaled, scale)) => return Ok(Literal::exact(unscaled, scale)),
        Some(Plain::Text(text)) => return Ok(text.into()),
        Some(plain) => listed::row(value.py(), plain, "value")?,
        None if plain::is_container(value) => {
            let problem = format!("a {} is no value of an expression", value.get_type());
            return Err(PyTypeError::new_err(problem));
        }
        None => {
            let row = foreign::as_array(value, "value");
            row.map_err(|error| match error.is_instance_of::<PyTypeError>(value.py()) {
                true => PyTypeError::new_err(format!("{} is no value of an expression", value.get_type())),
                false => error,
            })?
            .array
        }
    };
    ours(|| Literal::try_from(&Scalar::try_new(&row)?))
}
