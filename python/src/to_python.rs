//! Conversion of array rows to Python values.

use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{
    AnyDictionaryArray, Array, ArrayAccessor, ArrayRef, ArrowPrimitiveType, PrimitiveArray, RunArray,
    StructArray, downcast_integer_array,
};
use arrow_buffer::{ArrowNativeType, NullBuffer};
use arrow_schema::{DataType, Field, Fields, IntervalUnit, TimeUnit};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyList, PyString};

use crate::pace::{Pace, available, no_memory};
use crate::times::{date, datetime, delta, microseconds, of_python, time, time_zone, to_microseconds};
use crate::types::EXTENSION;

type Values<'py> = PyResult<Bound<'py, PyList>>;

/// Converts the rows of an array with a field, including nested ones.
pub fn values<'py>(py: Python<'py>, array: &dyn Array, field: &Field) -> Values<'py> {
    Making { py, pace: Pace::new(), hidden: None, left: None }.values(array, field)
}

/// The most bytes of a row's text that are shown.
pub const SHOWN: usize = 256;

/// Converts the rows of an array as far as their text is shown: nested items, and the ends of long texts, are
/// missing after that.
pub fn beginning<'py>(py: Python<'py>, array: &dyn Array, field: &Field) -> Values<'py> {
    Making { py, pace: Pace::new(), hidden: None, left: Some(SHOWN) }.values(array, field)
}

/// The most rows in a list if they take no memory in Arrow: 8 GiB of `None`.
const MOST: usize = 1 << 30;

/// Fails if there is no memory for a list of all rows. Nulls, structs without fields, and runs take no memory
/// for a row, so their producer may declare any number of rows.
pub fn check_rows(data_type: &DataType, rows: usize) -> PyResult<()> {
    if rows > MOST && is_weightless(data_type) {
        return Err(no_memory(format!("no memory for {rows} values")));
    }
    available(rows.saturating_mul(size_of::<usize>()))
}

fn is_weightless(data_type: &DataType) -> bool {
    match data_type {
        DataType::Null | DataType::RunEndEncoded(..) => true,
        DataType::Struct(fields) => fields.iter().all(|field| is_weightless(field.data_type())),
        DataType::FixedSizeList(item, size) => *size == 0 || is_weightless(item.data_type()),
        other => *other == DataType::FixedSizeBinary(0),
    }
}

/// The state of making Python objects.
struct Making<'py> {
    py: Python<'py>,
    pace: Pace,
    /// The rows of the next list that no null struct hides; `None` for all.
    hidden: Option<NullBuffer>,
    /// The number of objects to make; `None` for all. Each adds a character or more to the text of the row,
    /// so they must be made in the order of the text.
    left: Option<usize>,
}

impl<'py> Making<'py> {
    fn none(&self) -> Bound<'py, PyAny> {
        self.py.None().into_bound(self.py)
    }

    /// Whether the objects that are shown have been made.
    fn is_done(&self) -> bool {
        self.left == Some(0)
    }

    /// Makes a list of `rows` items, each by `value`, except for those that a null struct hides.
    fn rows(
        &mut self,
        rows: usize,
        mut value: impl FnMut(&mut Self, usize) -> PyResult<Bound<'py, PyAny>>,
    ) -> Values<'py> {
        let valid = self.hidden.take();
        let all = PyList::empty(self.py);
        for row in 0..rows {
            // The callers that make one row need it.
            if row > 0 && self.is_done() {
                break;
            }
            self.left = self.left.map(|left| left.saturating_sub(1));
            self.pace.object(self.py, 0)?;
            let value = match valid.as_ref().is_some_and(|valid| valid.is_null(row)) {
                true => self.none(),
                false => value(self, row)?,
            };
            all.append(value)?;
        }
        Ok(all)
    }

    /// Makes a list with the value of each row, `None` for nulls.
    fn each<A: ArrayAccessor>(
        &mut self,
        array: A,
        mut value: impl FnMut(&mut Self, A::Item) -> PyResult<Bound<'py, PyAny>>,
    ) -> Values<'py> {
        self.rows(array.len(), |making, row| match array.is_valid(row) {
            true => value(making, array.value(row)),
            false => Ok(making.none()),
        })
    }

    fn numbers<T: ArrowPrimitiveType>(
        &mut self,
        array: &PrimitiveArray<T>,
        value: impl Fn(T::Native) -> PyResult<Bound<'py, PyAny>>,
    ) -> Values<'py> {
        self.each(array, |_, number| value(number))
    }

    fn texts<'a>(&mut self, array: impl ArrayAccessor<Item = &'a str>) -> Values<'py> {
        self.each(array, |making, text| {
            let text = making.left.map_or(text, |_| &text[..text.floor_char_boundary(SHOWN)]);
            making.pace.object(making.py, text.len())?;
            Ok(PyString::new(making.py, text).into_any())
        })
    }

    fn bytes<'a>(&mut self, array: impl ArrayAccessor<Item = &'a [u8]>) -> Values<'py> {
        self.each(array, |making, bytes| {
            let bytes = making.left.map_or(bytes, |_| &bytes[..bytes.len().min(SHOWN)]);
            making.pace.object(making.py, bytes.len())?;
            Ok(PyBytes::new(making.py, bytes).into_any())
        })
    }

    fn lists(&mut self, array: impl ArrayAccessor<Item = ArrayRef>, item: &Field) -> Values<'py> {
        self.each(array, |making, rows| Ok(making.values(&rows, item)?.into_any()))
    }

    /// Converts the rows of an array with a field.
    fn values(&mut self, array: &dyn Array, field: &Field) -> Values<'py> {
        use DataType::*;
        let py = self.py;
        if self.left.is_none() {
            check_rows(array.data_type(), array.len())?;
        }
        if field.metadata().get(EXTENSION).is_some_and(|name| name == "arrow.uuid")
            && *array.data_type() == FixedSizeBinary(16)
        {
            let uuid = of_python!(py, "uuid", "UUID");
            return self.each(array.as_fixed_size_binary(), |_, bytes| {
                uuid.call1((py.None(), PyBytes::new(py, bytes)))
            });
        }
        match array.data_type() {
            Null => self.rows(array.len(), |making, _| Ok(making.none())),
            Boolean => {
                self.each(array.as_boolean(), |_, value| Ok(value.into_pyobject(py)?.to_owned().into_any()))
            }
            Int8 | Int16 | Int32 | Int64 | UInt8 | UInt16 | UInt32 | UInt64 => downcast_integer_array! {
                array => self.numbers(array, |value| Ok(value.into_pyobject(py)?.into_any())),
                _ => Ok(PyList::empty(py)),
            },
            Float16 => self.numbers(array.as_primitive::<Float16Type>(), |value| {
                Ok(f64::from(value).into_pyobject(py)?.into_any())
            }),
            Float32 => self.numbers(array.as_primitive::<Float32Type>(), |value| {
                Ok(f64::from(value).into_pyobject(py)?.into_any())
            }),
            Float64 => self.numbers(array.as_primitive::<Float64Type>(), |value| {
                Ok(value.into_pyobject(py)?.into_any())
            }),
            Decimal32(_, scale) => self.decimals::<Decimal32Type>(array, *scale),
            Decimal64(_, scale) => self.decimals::<Decimal64Type>(array, *scale),
            Decimal128(_, scale) => self.decimals::<Decimal128Type>(array, *scale),
            Decimal256(_, scale) => self.decimals::<Decimal256Type>(array, *scale),
            Date32 => self.numbers(array.as_primitive::<Date32Type>(), |days| date(py, i64::from(days))),
            Date64 => self.numbers(array.as_primitive::<Date64Type>(), |millis| {
                date(py, millis.div_euclid(86_400_000))
            }),
            Time32(TimeUnit::Second) => self.numbers(array.as_primitive::<Time32SecondType>(), |at| {
                time(py, i64::from(at), 1_000_000, 1)
            }),
            Time32(_) => self.numbers(array.as_primitive::<Time32MillisecondType>(), |at| {
                time(py, i64::from(at), 1000, 1)
            }),
            Time64(TimeUnit::Nanosecond) => {
                self.numbers(array.as_primitive::<Time64NanosecondType>(), |at| time(py, at, 1, 1000))
            }
            Time64(_) => self.numbers(array.as_primitive::<Time64MicrosecondType>(), |at| time(py, at, 1, 1)),
            Timestamp(unit, zone) => {
                let (times, parts) = to_microseconds(unit);
                // Python may lack the zone, which matters only if a row needs it.
                let made = PyOnceLock::new();
                let make = |zone: &str| PyResult::Ok(time_zone(py, zone)?.unbind());
                let zone = || zone.as_ref().map(|zone| made.get_or_try_init(py, || make(zone))).transpose();
                self.of_64_bits(array, |at| {
                    datetime(py, microseconds(at, times, parts)?, zone()?.map(|zone| zone.bind(py)))
                })
            }
            Duration(unit) => {
                let (times, parts) = to_microseconds(unit);
                self.of_64_bits(array, |long| Ok(delta(py, microseconds(long, times, parts)?)?.into_any()))
            }
            Interval(unit) => self.intervals(array, *unit),
            Utf8 => self.texts(array.as_string::<i32>()),
            LargeUtf8 => self.texts(array.as_string::<i64>()),
            Utf8View => self.texts(array.as_string_view()),
            Binary => self.bytes(array.as_binary::<i32>()),
            LargeBinary => self.bytes(array.as_binary::<i64>()),
            BinaryView => self.bytes(array.as_binary_view()),
            FixedSizeBinary(_) => self.bytes(array.as_fixed_size_binary()),
            List(item) => self.lists(array.as_list::<i32>(), item),
            LargeList(item) => self.lists(array.as_list::<i64>(), item),
            ListView(item) => self.lists(array.as_list_view::<i32>(), item),
            LargeListView(item) => self.lists(array.as_list_view::<i64>(), item),
            FixedSizeList(item, _) => self.lists(array.as_fixed_size_list(), item),
            Map(..) => self.each(array.as_map(), |making, entries| making.pairs(&entries)),
            Struct(fields) => self.structs(array.as_struct(), fields),
            Union(fields, _) => {
                let array = array.as_union();
                self.rows(array.len(), |making, row| {
                    let field =
                        fields.iter().find(|(id, _)| *id == array.type_id(row)).map(|(_, field)| field);
                    let value = array.value(row);
                    let nameless = || Field::new("", value.data_type().clone(), true);
                    making
                        .values(&value, &field.map_or_else(nameless, |field| field.as_ref().clone()))?
                        .get_item(0)
                })
            }
            Dictionary(..) => self.dictionary(array.as_any_dictionary()),
            RunEndEncoded(ends, _) => match ends.data_type() {
                Int16 => self.runs(array.as_run::<Int16Type>()),
                Int32 => self.runs(array.as_run::<Int32Type>()),
                _ => self.runs(array.as_run::<Int64Type>()),
            },
        }
    }

    fn pairs(&mut self, entries: &StructArray) -> PyResult<Bound<'py, PyAny>> {
        let (columns, fields) = (entries.columns(), entries.fields());
        let pairs = PyList::empty(self.py);
        if self.left.is_some() {
            for row in 0..entries.len() {
                if self.is_done() {
                    break;
                }
                let [key, value] = [0, 1].map(|at| self.row(&columns[at], row, &fields[at]));
                pairs.append((key?, value?))?;
            }
            return Ok(pairs.into_any());
        }
        let [keys, values] = [0, 1].map(|at| self.values(&columns[at], &fields[at]));
        for (key, value) in keys?.iter().zip(values?) {
            pairs.append((key, value))?;
        }
        Ok(pairs.into_any())
    }

    fn structs(&mut self, array: &StructArray, fields: &Fields) -> Values<'py> {
        let py = self.py;
        // The values under a null struct are undefined, so they may be none that Python has.
        let valid = NullBuffer::union(self.hidden.take().as_ref(), array.nulls());
        if self.left.is_some() {
            self.hidden = valid;
            return self.rows(array.len(), |making, row| {
                let found = PyDict::new(py);
                for (column, field) in array.columns().iter().zip(fields) {
                    if making.is_done() {
                        break;
                    }
                    found.set_item(field.name(), making.row(column, row, field)?)?;
                }
                Ok(found.into_any())
            });
        }
        let mut columns = vec![];
        for (column, field) in array.columns().iter().zip(fields) {
            self.hidden = valid.clone();
            columns.push((PyString::new(py, field.name()), self.values(column, field)?));
        }
        self.hidden = valid;
        self.rows(array.len(), |_, row| {
            let found = PyDict::new(py);
            for (name, column) in &columns {
                found.set_item(name, column.get_item(row)?)?;
            }
            Ok(found.into_any())
        })
    }

    /// Converts one row.
    fn row(&mut self, values: &dyn Array, row: usize, field: &Field) -> PyResult<Bound<'py, PyAny>> {
        self.values(&values.slice(row, 1), field)?.get_item(0)
    }

    /// Converts one row. Each row that refers to it gets an object of its own, because lists can be changed.
    fn one(&mut self, values: &dyn Array, row: usize) -> PyResult<Bound<'py, PyAny>> {
        self.row(values, row, &Field::new("", values.data_type().clone(), true))
    }

    fn dictionary(&mut self, array: &dyn AnyDictionaryArray) -> Values<'py> {
        let (keys, values) = (array.keys(), array.values());
        downcast_integer_array! {
            keys => self.each(keys, |making, key| making.one(values, key.as_usize())),
            _ => Ok(PyList::empty(self.py)),
        }
    }

    fn runs<R: RunEndIndexType>(&mut self, array: &RunArray<R>) -> Values<'py> {
        self.rows(array.len(), |making, row| making.one(array.values(), array.get_physical_index(row)))
    }

    fn decimals<T: DecimalType>(&mut self, array: &dyn Array, scale: i8) -> Values<'py> {
        let decimal = of_python!(self.py, "decimal", "Decimal");
        let precision = T::MAX_PRECISION;
        self.numbers(array.as_primitive::<T>(), |value| {
            decimal.call1((T::format_decimal(value, precision, scale),))
        })
    }

    /// Converts timestamps or durations of any unit by their numbers.
    fn of_64_bits(
        &mut self,
        array: &dyn Array,
        value: impl Fn(i64) -> PyResult<Bound<'py, PyAny>>,
    ) -> Values<'py> {
        let data = array.to_data();
        let numbers = data.into_builder().data_type(DataType::Int64).build();
        let numbers = numbers.map_err(|error| PyValueError::new_err(error.to_string()))?;
        self.numbers(&PrimitiveArray::<Int64Type>::from(numbers), value)
    }

    fn intervals(&mut self, array: &dyn Array, unit: IntervalUnit) -> Values<'py> {
        let tuple = of_python!(self.py, "bowstring._values", "MonthDayNano");
        match unit {
            IntervalUnit::YearMonth => self
                .numbers(array.as_primitive::<IntervalYearMonthType>(), |months| tuple.call1((months, 0, 0))),
            IntervalUnit::DayTime => self.numbers(array.as_primitive::<IntervalDayTimeType>(), |value| {
                tuple.call1((0, value.days, i64::from(value.milliseconds) * 1_000_000))
            }),
            IntervalUnit::MonthDayNano => self
                .numbers(array.as_primitive::<IntervalMonthDayNanoType>(), |value| {
                    tuple.call1((value.months, value.days, value.nanoseconds))
                }),
        }
    }
}
