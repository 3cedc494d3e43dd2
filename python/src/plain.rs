//! Python's own values, read into ours: numbers, text, days and times, and lists and dictionaries of them.
//!
//! The one idea: values are read first, and what type they are of together is found when all are known, without the interpreter.

use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{
    PyBool, PyByteArray, PyBytes, PyDict, PyFloat, PyInt, PyList, PyRange, PySet, PyString, PyTuple, PyType,
};

/// The day that Python counts as this one is the first of 1970.
pub const EPOCH: i32 = 719_163;

/// How deep lists may be in lists: far more than anybody needs, and far less than a stack.
const DEPTH: usize = 64;

/// A value of Python's.
pub enum Plain {
    Null,
    Bool(bool),
    Int(i128),
    Float(f64),
    /// Unscaled, and its scale: 38 at most.
    Decimal(i128, i8),
    Days(i32),
    /// Of the day.
    Time(i64),
    /// Since 1970; whether it is in a time zone, which makes it UTC.
    Microseconds(i64, bool),
    Duration(i64),
    Text(String),
    Bytes(Vec<u8>),
    List(Vec<Plain>),
    Struct(Vec<(String, Plain)>),
}

/// A class of the standard library's, looked up once.
fn class<'py>(
    py: Python<'py>,
    cell: &'static PyOnceLock<Py<PyType>>,
    module: &str,
    name: &str,
) -> PyResult<&'py Bound<'py, PyType>> {
    cell.import(py, module, name)
}

/// The value that an object is; nothing where it is none.
pub fn scalar(value: &Bound<'_, PyAny>) -> PyResult<Option<Plain>> {
    static DECIMAL: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    static DATETIME: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    static DATE: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    static TIME: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    static TIMEDELTA: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let py = value.py();
    Ok(Some(if value.is_none() {
        Plain::Null
    } else if value.is_instance_of::<PyBool>() {
        Plain::Bool(value.extract()?)
    } else if value.is_instance_of::<PyInt>() {
        Plain::Int(value.extract()?)
    } else if value.is_instance_of::<PyFloat>() {
        Plain::Float(value.extract()?)
    } else if value.is_instance_of::<PyString>() {
        Plain::Text(value.extract()?)
    } else if value.is_instance_of::<PyBytes>() || value.is_instance_of::<PyByteArray>() {
        Plain::Bytes(value.extract()?)
    } else if is_missing(value)? {
        // One of them is a `datetime`, too.
        Plain::Null
    } else if value.is_instance(class(py, &DECIMAL, "decimal", "Decimal")?)? {
        let (unscaled, scale) = decimal(value)?;
        Plain::Decimal(unscaled, scale)
    } else if value.is_instance(class(py, &DATETIME, "datetime", "datetime")?)? {
        let aware = !value.call_method0("utcoffset")?.is_none();
        Plain::Microseconds(since_1970(value, aware)?, aware)
    } else if value.is_instance(class(py, &DATE, "datetime", "date")?)? {
        Plain::Days(value.call_method0("toordinal")?.extract::<i32>()? - EPOCH)
    } else if value.is_instance(class(py, &TIME, "datetime", "time")?)? {
        let part = |name| value.getattr(name)?.extract::<i64>();
        let seconds = (part("hour")? * 60 + part("minute")?) * 60 + part("second")?;
        Plain::Time(seconds * 1_000_000 + part("microsecond")?)
    } else if value.is_instance(class(py, &TIMEDELTA, "datetime", "timedelta")?)? {
        Plain::Duration(microseconds(value)?)
    } else {
        return other_scalar(value);
    }))
}

/// Scalars of other libraries.
fn other_scalar(value: &Bound<'_, PyAny>) -> PyResult<Option<Plain>> {
    // pyarrow's say themselves what they are in Python; of numpy's, an array of no dimensions has also one value.
    if value.hasattr("as_py")? {
        return scalar(&value.call_method0("as_py")?);
    }
    if value.hasattr("dtype")? && value.hasattr("item")? && !value.hasattr("__len__")? {
        let dates = ["datetime64", "timedelta64"];
        let class = value.get_type().name()?;
        if let Some(name) = dates.iter().find(|name| class == **name) {
            let micro = value.call_method1("astype", (format!("{name}[us]"),))?;
            if micro.ne(value)? && micro.eq(&micro)? {
                return Err(PyValueError::new_err(format!("{value} is no whole number of microseconds")));
            }
            return scalar(&micro.call_method0("item")?);
        }
        let item = value.call_method0("item")?;
        return if item.get_type().is(value.get_type()) { Ok(None) } else { scalar(&item) };
    }
    // Whatever else Python takes for an integer; arrays of one may be such, and are arrays.
    match value.extract::<i128>() {
        Ok(int) if !value.hasattr("__dlpack__")? => Ok(Some(Plain::Int(int))),
        Err(error) if error.is_instance_of::<PyOverflowError>(value.py()) => Err(error),
        _ => Ok(None),
    }
}

/// pandas' values for what is not there.
fn is_missing(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    let class = value.get_type();
    let name = class.name()?;
    Ok(name == "NAType" || name == "NaTType")
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
fn since_1970(value: &Bound<'_, PyAny>, aware: bool) -> PyResult<i64> {
    let datetime = value.py().import("datetime")?;
    let utc = if aware { Some(datetime.getattr("timezone")?.getattr("utc")?) } else { None };
    let epoch = datetime.getattr("datetime")?.call1((1970, 1, 1, 0, 0, 0, 0, utc))?;
    microseconds(&value.sub(epoch)?)
}

/// Of a `timedelta`.
fn microseconds(value: &Bound<'_, PyAny>) -> PyResult<i64> {
    let part = |name| value.getattr(name)?.extract::<i64>();
    let seconds = part("days")? * 86_400 + part("seconds")?;
    // Python's longest is ten times what 64 bits have.
    let all = seconds.checked_mul(1_000_000).and_then(|all| all.checked_add(part("microseconds").ok()?));
    all.ok_or_else(|| PyOverflowError::new_err(format!("{value} does not fit 64 bits of microseconds")))
}

/// Whether an object is one of Python's own containers of values.
pub fn is_container(obj: &Bound<'_, PyAny>) -> bool {
    obj.is_instance_of::<PyList>()
        || obj.is_instance_of::<PyTuple>()
        || obj.is_instance_of::<PyRange>()
        || obj.is_instance_of::<PySet>()
}

/// The values of an iterable, if it is one whose values are rows: neither text nor a dictionary is.
pub fn rows(obj: &Bound<'_, PyAny>, argument: &str) -> PyResult<Option<Vec<Plain>>> {
    let text = obj.is_instance_of::<PyString>() || obj.is_instance_of::<PyBytes>();
    if text || obj.is_instance_of::<PyDict>() || obj.is_instance_of::<PyType>() {
        return Ok(None);
    }
    if !is_container(obj) && !obj.hasattr("__iter__")? {
        return Ok(None);
    }
    let mut found = vec![];
    for (row, item) in obj.try_iter()?.enumerate() {
        found.push(read(&item?, &|| format!("{argument}: row {row}"), 1)?);
    }
    Ok(Some(found))
}

/// Any value, with what is in it.
fn read(value: &Bound<'_, PyAny>, at: &dyn Fn() -> String, depth: usize) -> PyResult<Plain> {
    if depth > DEPTH {
        return Err(PyValueError::new_err(format!("{}: more than {DEPTH} lists in each other", at())));
    }
    match scalar(value) {
        Ok(Some(plain)) => return Ok(plain),
        Ok(None) => {}
        Err(error) if error.is_instance_of::<PyOverflowError>(value.py()) => {
            return Err(PyOverflowError::new_err(format!("{}: {}", at(), error.value(value.py()))));
        }
        Err(error) => return Err(error),
    }
    if let Ok(fields) = value.cast::<PyDict>() {
        let field = |(name, value): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
            let name: String = name.extract().map_err(|_| {
                PyTypeError::new_err(format!("{}: keys are str, not {}", at(), name.get_type()))
            })?;
            Ok((name, read(&value, at, depth + 1)?))
        };
        return fields.iter().map(field).collect::<PyResult<_>>().map(Plain::Struct);
    }
    if value.hasattr("__iter__")? && !value.is_instance_of::<PyType>() {
        let items = value.try_iter()?.map(|item| read(&item?, at, depth + 1));
        return items.collect::<PyResult<_>>().map(Plain::List);
    }
    Err(PyTypeError::new_err(format!("{}: {} is no value that Arrow has", at(), value.get_type())))
}
