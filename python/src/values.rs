//! Python's values: as arrays of one row, and as they stand in expressions.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, BooleanArray, Date32Array, Decimal128Array, Float64Array, StringArray,
    TimestampMicrosecondArray,
};
use arrow_schema::DataType;
use bowstring::compute::{self, CastOptions, Scalar};
use bowstring::exchange::from_arrow;
use bowstring::expr::Literal;
use bowstring::{Array as Inner, Stream};
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyFloat, PyInt, PyString};

use crate::error::ours;
use crate::foreign;

/// The day that Python counts as this one is the first of 1970.
const EPOCH: i32 = 719_163;

/// A plain value of Python's; nothing where it is another object.
enum Plain {
    Bool(bool),
    Int(i128),
    Float(f64),
    /// Unscaled, and its scale: 38 at most.
    Decimal(i128, i8),
    Days(i32),
    Microseconds(i64, Option<&'static str>),
    Text(String),
}

fn plain(value: &Bound<'_, PyAny>) -> PyResult<Option<Plain>> {
    let py = value.py();
    let is = |module: &str, class: &str| value.is_instance(&py.import(module)?.getattr(class)?);
    Ok(Some(if value.is_instance_of::<PyBool>() {
        Plain::Bool(value.extract()?)
    } else if value.is_instance_of::<PyInt>() {
        Plain::Int(value.extract()?)
    } else if value.is_instance_of::<PyFloat>() {
        Plain::Float(value.extract()?)
    } else if value.is_instance_of::<PyString>() {
        Plain::Text(value.extract()?)
    } else if is("decimal", "Decimal")? {
        let (unscaled, scale) = decimal(value)?;
        Plain::Decimal(unscaled, scale)
    } else if is("datetime", "datetime")? {
        let aware = !value.call_method0("utcoffset")?.is_none();
        Plain::Microseconds(microseconds(value, aware)?, aware.then_some("UTC"))
    } else if is("datetime", "date")? {
        Plain::Days(value.call_method0("toordinal")?.extract::<i32>()? - EPOCH)
    } else {
        // Whatever else Python takes for an integer, numpy's among it; arrays of one may be such, and are arrays.
        match value.extract::<i128>() {
            Ok(int) if !value.hasattr("__dlpack__")? => Plain::Int(int),
            Err(error) if error.is_instance_of::<PyOverflowError>(py) => return Err(error),
            _ => return Ok(None),
        }
    }))
}

/// A `Decimal`: unscaled, and its scale.
fn decimal(value: &Bound<'_, PyAny>) -> PyResult<(i128, i8)> {
    let parts = value.call_method0("as_tuple")?;
    let digits: Vec<u8> = parts.getattr("digits")?.extract()?;
    let exponent: i64 = parts
        .getattr("exponent")?
        .extract()
        .map_err(|_| PyValueError::new_err(format!("{value} is no number of decimals")))?;
    let zeros = usize::try_from(exponent.clamp(0, 39)).unwrap_or(0);
    let unscaled = digits
        .iter()
        .chain(&vec![0; zeros])
        .try_fold(0i128, |sum, digit| sum.checked_mul(10)?.checked_add(i128::from(*digit)));
    let negative = parts.getattr("sign")?.extract::<u8>()? == 1;
    let unscaled = unscaled.filter(|unscaled| *unscaled < 10i128.pow(38));
    match (unscaled, -exponent.min(0)) {
        (Some(unscaled), scale @ 0..=38) => Ok((if negative { -unscaled } else { unscaled }, scale as i8)),
        _ => Err(PyOverflowError::new_err(format!("{value} has more than 38 digits"))),
    }
}

/// From the first of 1970 on, of a `datetime`.
fn microseconds(value: &Bound<'_, PyAny>, aware: bool) -> PyResult<i64> {
    let datetime = value.py().import("datetime")?;
    let utc = if aware { Some(datetime.getattr("timezone")?.getattr("utc")?) } else { None };
    let epoch = datetime.getattr("datetime")?.call1((1970, 1, 1, 0, 0, 0, 0, utc))?;
    let since = value.sub(epoch)?;
    let part = |name| since.getattr(name)?.extract::<i64>();
    // Python's years end with 9999: far from what 64 bits have.
    Ok((part("days")? * 86_400 + part("seconds")?) * 1_000_000 + part("microseconds")?)
}

impl Plain {
    fn row(self) -> PyResult<ArrayRef> {
        let decimal = |unscaled, scale| {
            Decimal128Array::from(vec![unscaled])
                .with_precision_and_scale(38, scale)
                .map_err(|error| PyOverflowError::new_err(error.to_string()))
        };
        Ok(match self {
            Plain::Bool(value) => Arc::new(BooleanArray::from(vec![value])),
            Plain::Int(value) => Arc::new(decimal(value, 0)?),
            Plain::Float(value) => Arc::new(Float64Array::from(vec![value])),
            Plain::Decimal(unscaled, scale) => Arc::new(decimal(unscaled, scale)?),
            Plain::Days(days) => Arc::new(Date32Array::from(vec![days])),
            Plain::Microseconds(since, zone) => {
                Arc::new(TimestampMicrosecondArray::from(vec![since]).with_timezone_opt(zone))
            }
            Plain::Text(text) => Arc::new(StringArray::from(vec![text])),
        })
    }
}

/// A value as an array of one row of a type that it fits: a plain one of Python's, or any array of one row, which keeps its type.
pub fn row_of(value: &Bound<'_, PyAny>, to: &DataType, argument: &str) -> PyResult<Inner> {
    match plain(value)? {
        None => Ok(foreign::as_array(value, argument)?.array),
        Some(plain) => cast_row(&from_plain(plain)?, to),
    }
}

fn from_plain(plain: Plain) -> PyResult<Inner> {
    let row = plain.row()?;
    ours(|| from_arrow(&row))
}

fn cast_row(row: &Inner, to: &DataType) -> PyResult<Inner> {
    let strict = CastOptions { safe: false, ..CastOptions::default() };
    ours(|| compute::cast(row, to, &strict, &Stream::cpu()).wait())
}

/// A value of a type, in an expression.
pub fn typed_literal(value: &Bound<'_, PyAny>, to: &DataType) -> PyResult<Literal> {
    if value.is_none() {
        return Ok(Literal::null(to.clone()));
    }
    let row = match plain(value)? {
        None => foreign::as_array(value, "value")?.array,
        Some(plain) => from_plain(plain)?,
    };
    let row = cast_row(&row, to)?;
    ours(|| Literal::try_from(&Scalar::try_new(&row)?))
}

/// A value as an expression has it: numbers and `None` without a type, dates and arrays of one row with theirs.
pub fn literal(value: &Bound<'_, PyAny>) -> PyResult<Literal> {
    if value.is_none() {
        return Ok(Literal::null(DataType::Null));
    }
    if let Ok(bytes) = value.cast::<PyBytes>() {
        return Ok(bytes.as_bytes().into());
    }
    let row = match plain(value)? {
        Some(Plain::Bool(value)) => return Ok(value.into()),
        Some(Plain::Int(value)) => return Ok(value.into()),
        Some(Plain::Float(value)) => return Ok(value.into()),
        Some(Plain::Decimal(unscaled, scale)) => return Ok(Literal::exact(unscaled, scale)),
        Some(Plain::Text(text)) => return Ok(text.into()),
        Some(plain) => from_plain(plain)?,
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
