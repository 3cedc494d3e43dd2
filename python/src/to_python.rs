//! Rows of arrays as Python's own values.

use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{Array, ArrayAccessor, ArrowPrimitiveType, PrimitiveArray, downcast_integer_array};
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_schema::{DataType, Field, IntervalUnit, TimeUnit};
use pyo3::exceptions::{PyOverflowError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDateTime, PyDelta, PyDict, PyList, PyString, PyTime, PyTuple};

use crate::error::ours;
use crate::plain::EPOCH;
use crate::types::EXTENSION;

type Values<'py> = PyResult<Vec<Bound<'py, PyAny>>>;

/// Each row as the value that it is, nulls as `None`.
fn each<'py, A: ArrayAccessor>(
    py: Python<'py>,
    array: A,
    value: impl Fn(A::Item) -> PyResult<Bound<'py, PyAny>>,
) -> Values<'py> {
    let row = |row| if array.is_valid(row) { value(array.value(row)) } else { Ok(py.None().into_bound(py)) };
    (0..array.len()).map(row).collect()
}

fn numbers<'py, T: ArrowPrimitiveType>(
    py: Python<'py>,
    array: &PrimitiveArray<T>,
    value: impl Fn(T::Native) -> PyResult<Bound<'py, PyAny>>,
) -> Values<'py> {
    each(py, array, value)
}

/// Something of Python's own library, looked up once.
macro_rules! of_python {
    ($py:expr, $module:literal, $name:literal) => {{
        static CELL: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        CELL.get_or_try_init($py, || PyResult::Ok($py.import($module)?.getattr($name)?.unbind()))?.bind($py)
    }};
}

/// The rows of an array that has a field, nested ones and all.
pub fn values<'py>(py: Python<'py>, array: &dyn Array, field: &Field) -> Values<'py> {
    use DataType::*;
    let object = |value: Bound<'py, PyAny>| Ok(value);
    if field.metadata().get(EXTENSION).is_some_and(|name| name == "arrow.uuid")
        && *array.data_type() == FixedSizeBinary(16)
    {
        let uuid = of_python!(py, "uuid", "UUID");
        return each(py, array.as_fixed_size_binary(), |bytes| {
            uuid.call1((py.None(), PyBytes::new(py, bytes)))
        });
    }
    let text = |text: &str| object(PyString::new(py, text).into_any());
    let bytes = |bytes: &[u8]| object(PyBytes::new(py, bytes).into_any());
    match array.data_type() {
        Null => Ok((0..array.len()).map(|_| py.None().into_bound(py)).collect()),
        Boolean => each(py, array.as_boolean(), |value| Ok(value.into_pyobject(py)?.to_owned().into_any())),
        Int8 | Int16 | Int32 | Int64 | UInt8 | UInt16 | UInt32 | UInt64 => downcast_integer_array! {
            array => numbers(py, array, |value| Ok(value.into_pyobject(py)?.into_any())),
            _ => Ok(vec![]),
        },
        Float16 => numbers(py, array.as_primitive::<Float16Type>(), |value| {
            Ok(f64::from(value).into_pyobject(py)?.into_any())
        }),
        Float32 => numbers(py, array.as_primitive::<Float32Type>(), |value| {
            Ok(f64::from(value).into_pyobject(py)?.into_any())
        }),
        Float64 => {
            numbers(py, array.as_primitive::<Float64Type>(), |value| Ok(value.into_pyobject(py)?.into_any()))
        }
        Decimal32(_, scale) => decimals::<Decimal32Type>(py, array, *scale),
        Decimal64(_, scale) => decimals::<Decimal64Type>(py, array, *scale),
        Decimal128(_, scale) => decimals::<Decimal128Type>(py, array, *scale),
        Decimal256(_, scale) => decimals::<Decimal256Type>(py, array, *scale),
        Date32 => numbers(py, array.as_primitive::<Date32Type>(), |days| date(py, i64::from(days))),
        Date64 => {
            numbers(py, array.as_primitive::<Date64Type>(), |millis| date(py, millis.div_euclid(86_400_000)))
        }
        Time32(TimeUnit::Second) => {
            numbers(py, array.as_primitive::<Time32SecondType>(), |at| time(py, i64::from(at), 1_000_000, 1))
        }
        Time32(_) => {
            numbers(py, array.as_primitive::<Time32MillisecondType>(), |at| time(py, i64::from(at), 1000, 1))
        }
        Time64(TimeUnit::Nanosecond) => {
            numbers(py, array.as_primitive::<Time64NanosecondType>(), |at| time(py, at, 1, 1000))
        }
        Time64(_) => numbers(py, array.as_primitive::<Time64MicrosecondType>(), |at| time(py, at, 1, 1)),
        Timestamp(unit, zone) => {
            let zone = zone.as_ref().map(|zone| time_zone(py, zone)).transpose()?;
            let (times, parts) = to_microseconds(unit);
            each_64_bits(py, array, |at| datetime(py, microseconds(at, times, parts)?, zone.as_ref()))
        }
        Duration(unit) => {
            let (times, parts) = to_microseconds(unit);
            each_64_bits(py, array, |long| Ok(delta(py, microseconds(long, times, parts)?)?.into_any()))
        }
        Interval(unit) => intervals(py, array, *unit),
        Utf8 => each(py, array.as_string::<i32>(), text),
        LargeUtf8 => each(py, array.as_string::<i64>(), text),
        Utf8View => each(py, array.as_string_view(), text),
        Binary => each(py, array.as_binary::<i32>(), bytes),
        LargeBinary => each(py, array.as_binary::<i64>(), bytes),
        BinaryView => each(py, array.as_binary_view(), bytes),
        FixedSizeBinary(_) => each(py, array.as_fixed_size_binary(), bytes),
        List(item) => each(py, array.as_list::<i32>(), |rows| list(py, &rows, item)),
        LargeList(item) => each(py, array.as_list::<i64>(), |rows| list(py, &rows, item)),
        ListView(item) => each(py, array.as_list_view::<i32>(), |rows| list(py, &rows, item)),
        LargeListView(item) => each(py, array.as_list_view::<i64>(), |rows| list(py, &rows, item)),
        FixedSizeList(item, _) => each(py, array.as_fixed_size_list(), |rows| list(py, &rows, item)),
        Map(..) => each(py, array.as_map(), |entries| {
            let columns = entries.columns().iter().zip(entries.fields());
            let columns =
                columns.map(|(column, field)| values(py, column, field)).collect::<PyResult<Vec<_>>>()?;
            let pairs = columns[0].iter().zip(&columns[1]).map(|(key, value)| PyTuple::new(py, [key, value]));
            Ok(PyList::new(py, pairs.collect::<PyResult<Vec<_>>>()?)?.into_any())
        }),
        Struct(fields) => {
            let array = array.as_struct();
            let columns = array.columns().iter().zip(fields);
            let columns =
                columns.map(|(column, field)| values(py, column, field)).collect::<PyResult<Vec<_>>>()?;
            let row = |row| {
                if array.is_null(row) {
                    return Ok(py.None().into_bound(py));
                }
                let found = PyDict::new(py);
                for (column, field) in columns.iter().zip(fields) {
                    found.set_item(field.name(), &column[row])?;
                }
                Ok(found.into_any())
            };
            (0..array.len()).map(row).collect()
        }
        Union(fields, _) => {
            let array = array.as_union();
            let row = |row| {
                let field = fields.iter().find(|(id, _)| *id == array.type_id(row)).map(|(_, field)| field);
                let value = array.value(row);
                let of =
                    field.map_or_else(|| Field::new("", value.data_type().clone(), true), |f| (**f).clone());
                Ok(values(py, &value, &of)?.remove(0))
            };
            (0..array.len()).map(row).collect()
        }
        Dictionary(_, of) => plainer(py, array, of),
        RunEndEncoded(_, of) => plainer(py, array, of.data_type()),
    }
}

/// What dictionaries and runs stand for.
fn plainer<'py>(py: Python<'py>, array: &dyn Array, to: &DataType) -> Values<'py> {
    let plain = arrow_cast::cast(array, to).map_err(|error| PyValueError::new_err(error.to_string()))?;
    values(py, &plain, &Field::new("", to.clone(), true))
}

fn list<'py>(py: Python<'py>, rows: &dyn Array, item: &Field) -> PyResult<Bound<'py, PyAny>> {
    Ok(PyList::new(py, values(py, rows, item)?)?.into_any())
}

fn decimals<'py, T: DecimalType>(py: Python<'py>, array: &dyn Array, scale: i8) -> Values<'py> {
    let decimal = of_python!(py, "decimal", "Decimal");
    let precision = T::MAX_PRECISION;
    numbers(py, array.as_primitive::<T>(), |value| {
        decimal.call1((T::format_decimal(value, precision, scale),))
    })
}

/// The numbers of timestamps and durations of whatever unit.
fn each_64_bits<'py>(
    py: Python<'py>,
    array: &dyn Array,
    value: impl Fn(i64) -> PyResult<Bound<'py, PyAny>>,
) -> Values<'py> {
    let data = array.to_data();
    let numbers = data.into_builder().data_type(DataType::Int64).build();
    let numbers = numbers.map_err(|error| PyValueError::new_err(error.to_string()))?;
    each(py, &PrimitiveArray::<Int64Type>::from(numbers), value)
}

/// What to multiply by, and to divide by.
fn to_microseconds(unit: &TimeUnit) -> (i64, i64) {
    match unit {
        TimeUnit::Second => (1_000_000, 1),
        TimeUnit::Millisecond => (1000, 1),
        TimeUnit::Microsecond => (1, 1),
        TimeUnit::Nanosecond => (1, 1000),
    }
}

fn microseconds(value: i64, times: i64, parts: i64) -> PyResult<i64> {
    if value % parts != 0 {
        return Err(PyValueError::new_err(format!(
            "{value} ns are no whole number of microseconds, which is what Python's datetime has: \
             cast to \"us\" or use to_numpy()"
        )));
    }
    let whole = (value / parts).checked_mul(times);
    whole.ok_or_else(|| PyOverflowError::new_err(format!("{value} is beyond what Python's datetime has")))
}

fn date(py: Python<'_>, days: i64) -> PyResult<Bound<'_, PyAny>> {
    let days = days + i64::from(EPOCH);
    of_python!(py, "datetime", "date").call_method1("fromordinal", (days,))
}

fn time(py: Python<'_>, at: i64, times: i64, parts: i64) -> PyResult<Bound<'_, PyAny>> {
    let all = microseconds(at, times, parts)?;
    let (seconds, micro) = (all.div_euclid(1_000_000), all.rem_euclid(1_000_000));
    let hour = u8::try_from(seconds.div_euclid(3600)).unwrap_or(u8::MAX);
    let part = |by: i64| (seconds / by).rem_euclid(60) as u8;
    Ok(PyTime::new(py, hour, part(60), part(1), micro as u32, None)?.into_any())
}

fn delta(py: Python<'_>, microseconds: i64) -> PyResult<Bound<'_, PyDelta>> {
    let (seconds, micro) = (microseconds.div_euclid(1_000_000), microseconds.rem_euclid(1_000_000));
    let (days, seconds) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    PyDelta::new(py, days as i32, seconds as i32, micro as i32, false)
}

fn datetime<'py>(
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

/// A time zone by its name, or by hours and minutes.
fn time_zone<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    if !name.starts_with(['+', '-']) {
        return of_python!(py, "zoneinfo", "ZoneInfo").call1((name,));
    }
    let digits: String = name[1..].chars().filter(char::is_ascii_digit).collect();
    let problem = || PyValueError::new_err(format!("{name:?} is no time zone"));
    let number: i32 = digits.parse().map_err(|_| problem())?;
    let minutes = if digits.len() > 2 { number / 100 * 60 + number % 100 } else { number * 60 };
    let minutes = if name.starts_with('-') { -minutes } else { minutes };
    let offset = PyDelta::new(py, 0, minutes.checked_mul(60).ok_or_else(problem)?, 0, true)?;
    of_python!(py, "datetime", "timezone").call1((offset,))
}

fn intervals<'py>(py: Python<'py>, array: &dyn Array, unit: IntervalUnit) -> Values<'py> {
    let tuple = of_python!(py, "bowstring._values", "MonthDayNano");
    match unit {
        IntervalUnit::YearMonth => {
            numbers(py, array.as_primitive::<IntervalYearMonthType>(), |months| tuple.call1((months, 0, 0)))
        }
        IntervalUnit::DayTime => numbers(py, array.as_primitive::<IntervalDayTimeType>(), |value| {
            tuple.call1((0, value.days, i64::from(value.milliseconds) * 1_000_000))
        }),
        IntervalUnit::MonthDayNano => {
            numbers(py, array.as_primitive::<IntervalMonthDayNanoType>(), |value| {
                tuple.call1((value.months, value.days, value.nanoseconds))
            })
        }
    }
}

/// Rows as text: what Python makes of their values, or Arrow where Python has no such value.
pub fn texts(py: Python<'_>, array: &dyn Array, field: &Field) -> PyResult<Vec<String>> {
    let row = |row| {
        let one = array.slice(row, 1);
        match values(py, &one, field) {
            Ok(found) => found[0].repr().map(|text| text.to_string()),
            Err(_) => ours(|| -> PyResult<String> {
                let options = FormatOptions::default().with_null("None");
                let text = ArrayFormatter::try_new(&one, &options).map(|all| all.value(0).to_string());
                text.map_err(|error| PyValueError::new_err(error.to_string()))
            }),
        }
    };
    (0..array.len()).map(row).collect()
}
