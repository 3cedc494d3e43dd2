//! Dates, times and time zones as Python's objects.

use arrow_schema::TimeUnit;
use pyo3::exceptions::{PyKeyError, PyOSError, PyOverflowError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDateTime, PyDelta, PyTime};

use crate::plain::EPOCH;

/// Looks up an item of a Python module once.
macro_rules! of_python {
    ($py:expr, $module:literal, $name:literal) => {{
        static CELL: pyo3::sync::PyOnceLock<Py<PyAny>> = pyo3::sync::PyOnceLock::new();
        CELL.get_or_try_init($py, || PyResult::Ok($py.import($module)?.getattr($name)?.unbind()))?.bind($py)
    }};
}
pub(crate) use of_python;

/// Returns the factor and the divisor that convert a unit to microseconds.
pub fn to_microseconds(unit: &TimeUnit) -> (i64, i64) {
    match unit {
        TimeUnit::Second => (1_000_000, 1),
        TimeUnit::Millisecond => (1000, 1),
        TimeUnit::Microsecond => (1, 1),
        TimeUnit::Nanosecond => (1, 1000),
    }
}

pub fn microseconds(value: i64, times: i64, parts: i64) -> PyResult<i64> {
    if value % parts != 0 {
        return Err(PyValueError::new_err(format!(
            "{value} ns are no whole number of microseconds, which is what Python's datetime has: \
             cast to \"us\""
        )));
    }
    let whole = (value / parts).checked_mul(times);
    whole.ok_or_else(|| PyOverflowError::new_err(format!("{value} is beyond what Python's datetime has")))
}

pub fn date(py: Python<'_>, days: i64) -> PyResult<Bound<'_, PyAny>> {
    let days = days + i64::from(EPOCH);
    of_python!(py, "datetime", "date").call_method1("fromordinal", (days,))
}

pub fn time(py: Python<'_>, at: i64, times: i64, parts: i64) -> PyResult<Bound<'_, PyAny>> {
    let all = microseconds(at, times, parts)?;
    let (seconds, micro) = (all.div_euclid(1_000_000), all.rem_euclid(1_000_000));
    let hour = u8::try_from(seconds.div_euclid(3600)).unwrap_or(u8::MAX);
    let part = |by: i64| (seconds / by).rem_euclid(60) as u8;
    Ok(PyTime::new(py, hour, part(60), part(1), micro as u32, None)?.into_any())
}

pub fn delta(py: Python<'_>, microseconds: i64) -> PyResult<Bound<'_, PyDelta>> {
    let (seconds, micro) = (microseconds.div_euclid(1_000_000), microseconds.rem_euclid(1_000_000));
    let (days, seconds) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    PyDelta::new(py, days as i32, seconds as i32, micro as i32, false)
}

pub fn datetime<'py>(
    py: Python<'py>,
    microseconds: i64,
    zone: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let utc = match zone {
        Some(_) => Some(of_python!(py, "datetime", "timezone").getattr("utc")?.cast_into()?),
        None => None,
    };
    let at = PyDateTime::new(py, 1970, 1, 1, 0, 0, 0, 0, utc.as_ref())?.add(delta(py, microseconds)?)?;
    match zone {
        Some(zone) => at.call_method1("astimezone", (zone,)),
        None => Ok(at),
    }
}

/// Makes a time zone from its name, or from its offset in hours and minutes.
pub fn time_zone<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    if !name.starts_with(['+', '-']) {
        let zone = of_python!(py, "zoneinfo", "ZoneInfo").call1((name,));
        // A name that is a folder of zones, such as "Europe", is an error of files.
        return zone.map_err(|error| {
            match error.is_instance_of::<PyKeyError>(py) || error.is_instance_of::<PyOSError>(py) {
                true => PyValueError::new_err(format!("Python's zoneinfo has no time zone {name:?}")),
                false => error,
            }
        });
    }
    let digits: String = name[1..].chars().filter(char::is_ascii_digit).collect();
    let problem = || PyValueError::new_err(format!("{name:?} is no time zone"));
    let number: i32 = digits.parse().map_err(|_| problem())?;
    let minutes = if digits.len() > 2 { number / 100 * 60 + number % 100 } else { number * 60 };
    let minutes = if name.starts_with('-') { -minutes } else { minutes };
    let offset = PyDelta::new(py, 0, minutes.checked_mul(60).ok_or_else(problem)?, 0, true)?;
    of_python!(py, "datetime", "timezone").call1((offset,))
}
