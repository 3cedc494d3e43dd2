//! Python's own values, read into ours: numbers, text, days and times, and lists and dictionaries of them.
//!
//! The one idea: values are read first, and what type they are of together is found when all are known, without the interpreter.

use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{
    PyBool, PyByteArray, PyBytes, PyDict, PyFloat, PyInt, PyList, PyRange, PySet, PyString, PyTuple, PyType,
};

use crate::items::{entries, has_method, items};
use crate::pace::{Pace, copied, push};

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

/// An object's meaning: a value, or an object to be read in its place, which may be itself.
enum Meaning<'py> {
    Value(Plain),
    Object(Bound<'py, PyAny>),
}

/// How often a scalar of another library's may stand for another one.
const REFERRALS: usize = 8;

/// An object in Python's own terms: itself, but for other libraries' scalars.
fn meaning<'py>(object: &Bound<'py, PyAny>) -> PyResult<Meaning<'py>> {
    let mut value = object.clone();
    for _ in 0..REFERRALS {
        if let Some(own) = own(&value)? {
            return Ok(Meaning::Value(own));
        }
        // pyarrow's say themselves what they are in Python; numpy's have one item.
        if has_method(&value, "as_py")? {
            value = value.call_method0("as_py")?;
        } else if has_method(&value, "dtype")?
            && has_method(&value, "item")?
            && !has_method(&value, "__len__")?
        {
            if let Some(time) = numpy_time(&value)? {
                return Ok(Meaning::Value(time));
            }
            let item = value.call_method0("item")?;
            if item.get_type().is(value.get_type()) {
                return Ok(Meaning::Object(value));
            }
            value = item;
        } else {
            return match integer(&value)? {
                Some(int) => Ok(Meaning::Value(int)),
                None => Ok(Meaning::Object(value)),
            };
        }
    }
    Err(PyTypeError::new_err(format!("as_py() or item() of {} never gives a value", object.get_type())))
}

/// The value that an object is; nothing where it is none.
pub fn scalar(value: &Bound<'_, PyAny>) -> PyResult<Option<Plain>> {
    Ok(match meaning(value)? {
        Meaning::Value(plain) => Some(plain),
        Meaning::Object(_) => None,
    })
}

/// The value that an object of Python's own classes is, or of pandas' for what is missing.
fn own(value: &Bound<'_, PyAny>) -> PyResult<Option<Plain>> {
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
    } else if let Ok(text) = value.cast::<PyString>() {
        Plain::Text(copied_text(text.to_str()?)?)
    } else if let Ok(bytes) = value.cast::<PyBytes>() {
        Plain::Bytes(copied(bytes.as_bytes())?)
    } else if value.is_instance_of::<PyByteArray>() {
        let bytes = py.get_type::<PyBytes>().call1((value,))?;
        Plain::Bytes(copied(bytes.cast::<PyBytes>()?.as_bytes())?)
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
        let days = value.call_method0("toordinal")?.extract::<i32>()?.checked_sub(EPOCH);
        Plain::Days(days.ok_or_else(|| beyond(value, "days"))?)
    } else if value.is_instance(class(py, &TIME, "datetime", "time")?)? {
        let part = |name| value.getattr(name)?.extract::<i64>();
        let parts = [part("hour")?, part("minute")?, part("second")?, part("microsecond")?];
        Plain::Time(sum(&parts, &[3_600_000_000, 60_000_000, 1_000_000, 1], value)?)
    } else if value.is_instance(class(py, &TIMEDELTA, "datetime", "timedelta")?)? {
        Plain::Duration(microseconds(value)?)
    } else {
        return Ok(None);
    }))
}

fn copied_text(text: &str) -> PyResult<String> {
    // A copy of text is text.
    copied(text.as_bytes())
        .and_then(|bytes| String::from_utf8(bytes).map_err(|error| PyValueError::new_err(error.to_string())))
}

/// A moment or a length of time of numpy's, which has them beyond the years that Python knows.
fn numpy_time(value: &Bound<'_, PyAny>) -> PyResult<Option<Plain>> {
    let class = value.get_type().name()?;
    if class != "datetime64" && class != "timedelta64" {
        return Ok(None);
    }
    let number = value.py().import("bowstring._numpy")?.call_method1("microseconds", (value,))?;
    let number: Option<i64> = number.extract()?;
    Ok(Some(match number {
        None => Plain::Null,
        Some(number) if class == "datetime64" => Plain::Microseconds(number, false),
        Some(number) => Plain::Duration(number),
    }))
}

/// Whatever else Python takes for an integer; arrays of one may be such, and are arrays.
fn integer(value: &Bound<'_, PyAny>) -> PyResult<Option<Plain>> {
    static INDEX: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    if !has_method(value, "__index__")? || value.hasattr("__dlpack__")? {
        return Ok(None);
    }
    let py = value.py();
    let index =
        INDEX.get_or_try_init(py, || PyResult::Ok(py.import("operator")?.getattr("index")?.unbind()))?;
    match index.bind(py).call1((value,)) {
        Ok(int) => int.extract().map(Plain::Int).map(Some),
        Err(error) if error.is_instance_of::<PyTypeError>(py) => Ok(None),
        Err(error) => Err(error),
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
        .map_err(|_| PyValueError::new_err(format!("{} is no number of decimals", shown(value))))?;
    let zeros = usize::try_from(exponent.clamp(0, 39)).unwrap_or(0);
    let unscaled = digits
        .iter()
        .chain(&vec![0; zeros])
        .try_fold(0i128, |sum, digit| sum.checked_mul(10)?.checked_add(i128::from(*digit)));
    let negative = parts.getattr("sign")?.extract::<u8>()? == 1;
    let unscaled = unscaled.filter(|unscaled| *unscaled < 10i128.pow(38));
    match (unscaled, exponent.min(0).saturating_neg()) {
        (Some(unscaled), scale @ 0..=38) => Ok((if negative { -unscaled } else { unscaled }, scale as i8)),
        _ => Err(PyOverflowError::new_err(format!("{} has more than 38 digits", shown(value)))),
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
    let parts = [part("days")?, part("seconds")?, part("microseconds")?];
    sum(&parts, &[86_400_000_000, 1_000_000, 1], value)
}

/// Parts of a time in their units. Python's longest is ten times what 64 bits have; a stranger's may be
/// anything.
fn sum(parts: &[i64], units: &[i64], value: &Bound<'_, PyAny>) -> PyResult<i64> {
    let sum: i128 = parts.iter().zip(units).map(|(part, unit)| i128::from(*part) * i128::from(*unit)).sum();
    i64::try_from(sum).map_err(|_| beyond(value, "microseconds"))
}

fn beyond(value: &Bound<'_, PyAny>, unit: &str) -> PyErr {
    PyOverflowError::new_err(format!("{} does not fit the bits of {unit}", shown(value)))
}

/// A value as it prints itself, or its class where its own code raises.
fn shown(value: &Bound<'_, PyAny>) -> String {
    value.str().map_or_else(|_| value.get_type().to_string(), |text| text.to_string())
}

/// Whether an object is one of Python's own containers of values.
pub fn is_container(obj: &Bound<'_, PyAny>) -> bool {
    obj.is_instance_of::<PyList>()
        || obj.is_instance_of::<PyTuple>()
        || obj.is_instance_of::<PyRange>()
        || obj.is_instance_of::<PySet>()
}

/// Whether an object is text or bytes of Python's own, whose items are no values of their own.
pub fn is_text(obj: &Bound<'_, PyAny>) -> bool {
    obj.is_instance_of::<PyString>() || obj.is_instance_of::<PyBytes>() || obj.is_instance_of::<PyByteArray>()
}

/// The values of an iterable, if it is one whose values are rows: neither text nor a dictionary is.
pub fn rows(obj: &Bound<'_, PyAny>, argument: &str) -> PyResult<Option<Vec<Plain>>> {
    let text = obj.is_instance_of::<PyString>() || obj.is_instance_of::<PyBytes>();
    if text || obj.is_instance_of::<PyDict>() {
        return Ok(None);
    }
    if !is_container(obj) && !has_method(obj, "__iter__")? {
        return Ok(None);
    }
    let mut reading = Reading { argument, row: 0, pace: Pace::new() };
    let mut found = vec![];
    for (row, item) in items(obj)?.enumerate() {
        reading.row = row;
        push(&mut found, reading.value(&item?, 1)?)?;
    }
    Ok(Some(found))
}

/// Rows that are being read.
struct Reading<'a> {
    argument: &'a str,
    row: usize,
    pace: Pace,
}

impl Reading<'_> {
    /// The row that is being read, for messages.
    fn at(&self) -> String {
        format!("{}: row {}", self.argument, self.row)
    }

    /// Any value, with what is in it.
    fn value(&mut self, object: &Bound<'_, PyAny>, depth: usize) -> PyResult<Plain> {
        if depth > DEPTH {
            return Err(PyValueError::new_err(format!(
                "{}: more than {DEPTH} lists in each other",
                self.at()
            )));
        }
        let py = object.py();
        self.pace.object(py, 0)?;
        let object = match meaning(object) {
            Ok(Meaning::Value(plain)) => return Ok(plain),
            Ok(Meaning::Object(object)) => object,
            Err(error) if error.is_instance_of::<PyOverflowError>(py) => {
                return Err(PyOverflowError::new_err(format!("{}: {}", self.at(), shown(error.value(py)))));
            }
            Err(error) => return Err(error),
        };
        if let Ok(fields) = object.cast::<PyDict>() {
            let mut found = vec![];
            for entry in entries(fields)? {
                let (name, value) = entry?;
                let text = name.cast::<PyString>().map_err(|_| {
                    PyTypeError::new_err(format!("{}: keys are str, not {}", self.at(), name.get_type()))
                })?;
                let name = copied_text(text.to_str()?)?;
                push(&mut found, (name, self.value(&value, depth + 1)?))?;
            }
            return Ok(Plain::Struct(found));
        }
        if has_method(&object, "__iter__")? {
            let mut found = vec![];
            for item in items(&object)? {
                push(&mut found, self.value(&item?, depth + 1)?)?;
            }
            return Ok(Plain::List(found));
        }
        Err(PyTypeError::new_err(format!("{}: {} is no value that Arrow has", self.at(), object.get_type())))
    }
}
