//! Python's own values, read into Rust: numbers, text, dates and times, and lists and dictionaries of them.
//!
//! The one idea: read all values first, and then find their common type, without the interpreter.

use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{
    PyBool, PyByteArray, PyBytes, PyDict, PyFloat, PyInt, PyList, PyRange, PySet, PyString, PyTuple, PyType,
};

use crate::items::{entries, has_method, items};
use crate::pace::{Pace, copied, push};

/// The ordinal that Python's `date.toordinal` gives for 1 January 1970.
pub const EPOCH: i32 = 719_163;

/// The limit on lists nested in lists: more than anyone needs, and far less than the stack allows.
const DEPTH: usize = 64;

/// A Python value, read into Rust.
pub enum Plain {
    Null,
    Bool(bool),
    Int(i128),
    Float(f64),
    /// The unscaled value and the scale, which is at most 38.
    Decimal(i128, i8),
    Days(i32),
    /// The time of day, in microseconds since midnight.
    Time(i64),
    /// Microseconds since 1970, and whether the value has a time zone, in which case they are in UTC.
    Microseconds(i64, bool),
    Duration(i64),
    Text(String),
    Bytes(Vec<u8>),
    List(Vec<Plain>),
    Struct(Vec<(String, Plain)>),
}

/// Looks up a class of Python's standard library once.
fn class<'py>(
    py: Python<'py>,
    cell: &'static PyOnceLock<Py<PyType>>,
    module: &str,
    name: &str,
) -> PyResult<&'py Bound<'py, PyType>> {
    cell.import(py, module, name)
}

/// The meaning of an object: a value, or an object to read in its place, possibly the object itself.
enum Meaning<'py> {
    Value(Plain),
    Object(Bound<'py, PyAny>),
}

/// The limit on scalars that convert to further scalars, in one chain.
const REFERRALS: usize = 8;

/// Resolves an object: a scalar of another library becomes a Python value, any other object stays itself.
fn meaning<'py>(object: &Bound<'py, PyAny>) -> PyResult<Meaning<'py>> {
    let mut value = object.clone();
    for _ in 0..REFERRALS {
        if let Some(own) = own(&value)? {
            return Ok(Meaning::Value(own));
        }
        // pyarrow's scalars convert themselves by `as_py`; numpy's have one item.
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

/// Reads an object as a single value; `None` if it is not one.
pub fn scalar(value: &Bound<'_, PyAny>) -> PyResult<Option<Plain>> {
    Ok(match meaning(value)? {
        Meaning::Value(plain) => Some(plain),
        Meaning::Object(_) => None,
    })
}

/// Reads an object of Python's own classes, or one of pandas' missing values.
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
        // pandas' `NaT` is an instance of `datetime` as well, so this test comes first.
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
    // The bytes are a copy of text, so they are valid UTF-8.
    copied(text.as_bytes())
        .and_then(|bytes| String::from_utf8(bytes).map_err(|error| PyValueError::new_err(error.to_string())))
}

/// Reads numpy's times and durations, which may be beyond the years that Python supports.
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

/// Reads any other object that Python accepts as an integer. Arrays of one item may be such objects, but are
/// arrays here.
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

/// Whether the object is one of pandas' missing values.
fn is_missing(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    let class = value.get_type();
    let name = class.name()?;
    Ok(name == "NAType" || name == "NaTType")
}

/// Reads a `Decimal` as its unscaled value and its scale.
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

/// Reads a `datetime` as microseconds since 1970.
fn since_1970(value: &Bound<'_, PyAny>, aware: bool) -> PyResult<i64> {
    let datetime = value.py().import("datetime")?;
    let utc = if aware { Some(datetime.getattr("timezone")?.getattr("utc")?) } else { None };
    let epoch = datetime.getattr("datetime")?.call1((1970, 1, 1, 0, 0, 0, 0, utc))?;
    microseconds(&value.sub(epoch)?)
}

/// Reads a `timedelta` as microseconds.
fn microseconds(value: &Bound<'_, PyAny>) -> PyResult<i64> {
    // pandas has times of nanoseconds.
    let finer = value.getattr_opt("nanoseconds")?;
    if finer.is_some_and(|finer| finer.extract::<i64>().is_ok_and(|finer| finer != 0)) {
        return Err(PyValueError::new_err(format!("{} is no whole number of microseconds", shown(value))));
    }
    let part = |name| value.getattr(name)?.extract::<i64>();
    let parts = [part("days")?, part("seconds")?, part("microseconds")?];
    sum(&parts, &[86_400_000_000, 1_000_000, 1], value)
}

/// Adds the parts of a time, each in its unit. Python's longest `timedelta` exceeds 64 bits ten times, and
/// other classes may have parts of any size.
fn sum(parts: &[i64], units: &[i64], value: &Bound<'_, PyAny>) -> PyResult<i64> {
    let sum: i128 = parts.iter().zip(units).map(|(part, unit)| i128::from(*part) * i128::from(*unit)).sum();
    i64::try_from(sum).map_err(|_| beyond(value, "microseconds"))
}

fn beyond(value: &Bound<'_, PyAny>, unit: &str) -> PyErr {
    PyOverflowError::new_err(format!("{} does not fit the bits of {unit}", shown(value)))
}

/// Returns the text of a value, or the name of its class if Python fails to make the text.
fn shown(value: &Bound<'_, PyAny>) -> String {
    value.str().map_or_else(|_| value.get_type().to_string(), |text| text.to_string())
}

/// Whether an object is one of Python's own containers.
pub fn is_container(obj: &Bound<'_, PyAny>) -> bool {
    obj.is_instance_of::<PyList>()
        || obj.is_instance_of::<PyTuple>()
        || obj.is_instance_of::<PyRange>()
        || obj.is_instance_of::<PySet>()
}

/// Whether an object is Python text or bytes, whose items do not count as values.
pub fn is_text(obj: &Bound<'_, PyAny>) -> bool {
    obj.is_instance_of::<PyString>() || obj.is_instance_of::<PyBytes>() || obj.is_instance_of::<PyByteArray>()
}

/// Reads the values of an iterable as rows; `None` for text, dictionaries and objects that are not iterable.
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

/// The state of reading rows.
struct Reading<'a> {
    argument: &'a str,
    row: usize,
    pace: Pace,
}

impl Reading<'_> {
    /// Names the row that is being read, for error messages.
    fn at(&self) -> String {
        format!("{}: row {}", self.argument, self.row)
    }

    /// Reads any value, including nested ones.
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
