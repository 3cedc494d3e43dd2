//! Arrays of Python's own values: the common type is found, then the values are converted to it. This runs
//! without the interpreter, which is asked now and then whether the user has pressed Ctrl-C.

use std::collections::HashSet;
use std::sync::Arc;

use arrow_array::types::{
    ArrowPrimitiveType, BinaryType, ByteArrayType, Date32Type, Decimal128Type, DurationMicrosecondType,
    Float64Type, Int64Type, LargeBinaryType, LargeUtf8Type, Time64MicrosecondType, TimestampMicrosecondType,
    UInt64Type, Utf8Type,
};
use arrow_array::{
    ArrayRef, BooleanArray, GenericByteArray, ListArray, NullArray, OffsetSizeTrait, PrimitiveArray,
    StructArray,
};
use arrow_buffer::{ArrowNativeType, BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType, Field, Fields, TimeUnit};
use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::{PyErr, PyResult};

use crate::pace::{interrupted, no_memory, push};
use crate::plain::Plain;

/// Fails because two values do not fit into one array; `problem` names both.
fn misfit<T>(problem: String) -> PyResult<T> {
    Err(PyTypeError::new_err(problem))
}

/// Makes the exception for values that do not fit into one array.
fn too_much(problem: &str) -> PyErr {
    PyOverflowError::new_err(problem.to_owned())
}

/// The number of values that are read or written between two checks for Ctrl-C.
const STEP: usize = 1 << 20;

const MICROSECONDS: TimeUnit = TimeUnit::Microsecond;

/// The fields of a struct value, by name.
type Row = Vec<(String, Plain)>;

/// Finds the common type of these values. If `to` is given, the type that they will have, structs take its
/// field names.
pub fn type_of<'a>(values: impl IntoIterator<Item = &'a Plain>, to: Option<&DataType>) -> PyResult<DataType> {
    let mut common = DataType::Null;
    let mut lists: Vec<&Plain> = vec![];
    let mut structs: Vec<&Row> = vec![];
    for (row, value) in values.into_iter().enumerate() {
        if row % STEP == STEP - 1 {
            interrupted()?;
        }
        let own = match value {
            Plain::List(items) => {
                items.iter().try_for_each(|item| push(&mut lists, item))?;
                DataType::List(Field::new_list_field(DataType::Null, true).into())
            }
            Plain::Struct(fields) => {
                push(&mut structs, fields)?;
                DataType::Struct(Fields::empty())
            }
            value => of_one(value)?,
        };
        if own != common {
            common = both(common, own)?;
        }
    }
    match common {
        DataType::List(_) => {
            let item = to.and_then(item_of).map(Field::data_type);
            Ok(DataType::List(Field::new_list_field(type_of(lists, item)?, true).into()))
        }
        DataType::Struct(_) => Ok(DataType::Struct(fields_of(&structs, to)?)),
        // The final type may hold more than 32-bit offsets can address.
        DataType::Utf8 if is_any(to, &[DataType::LargeUtf8, DataType::Utf8View]) => Ok(DataType::LargeUtf8),
        DataType::Binary if is_any(to, &[DataType::LargeBinary, DataType::BinaryView]) => {
            Ok(DataType::LargeBinary)
        }
        other => Ok(other),
    }
}

fn is_any(to: Option<&DataType>, types: &[DataType]) -> bool {
    to.is_some_and(|to| types.contains(to))
}

/// Returns the field of a list type's items.
fn item_of(data_type: &DataType) -> Option<&Field> {
    match data_type {
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::ListView(item)
        | DataType::LargeListView(item)
        | DataType::FixedSizeList(item, _) => Some(item),
        _ => None,
    }
}

fn fields_of(rows: &[&Row], to: Option<&DataType>) -> PyResult<Fields> {
    let expected = match to {
        Some(DataType::Struct(fields)) => Some(fields),
        _ => None,
    };
    let mut names: Vec<&str> =
        expected.map_or(vec![], |fields| fields.iter().map(|field| field.name().as_str()).collect());
    let mut known: HashSet<&str> = names.iter().copied().collect();
    for (name, _) in rows.iter().copied().flatten() {
        if known.insert(name) {
            match expected {
                Some(_) => return misfit(format!("{name:?} is no field of the type")),
                None => names.push(name),
            }
        }
    }
    let field = |(i, name): (usize, &&str)| {
        let values = rows.iter().filter_map(|row| value_of(row, i, name));
        Ok(Field::new(*name, type_of(values, expected.map(|fields| fields[i].data_type()))?, true))
    };
    names.iter().enumerate().map(field).collect()
}

/// The value of a name, which most rows have at the same place.
fn value_of<'a>(row: &'a [(String, Plain)], place: usize, name: &str) -> Option<&'a Plain> {
    let is_it = |(own, _): &&(String, Plain)| own == name;
    row.get(place).filter(is_it).or_else(|| row.iter().find(is_it)).map(|(_, value)| value)
}

fn of_one(value: &Plain) -> PyResult<DataType> {
    Ok(match value {
        Plain::Bool(_) => DataType::Boolean,
        Plain::Int(value) if i64::try_from(*value).is_ok() => DataType::Int64,
        Plain::Int(value) if u64::try_from(*value).is_ok() => DataType::UInt64,
        Plain::Int(value) => DataType::Decimal128(digits(*value), 0),
        Plain::Float(_) => DataType::Float64,
        Plain::Decimal(value, scale) => DataType::Decimal128(digits(*value).max(*scale as u8), *scale),
        Plain::Days(_) => DataType::Date32,
        Plain::Time(_) => DataType::Time64(MICROSECONDS),
        Plain::Microseconds(_, aware) => DataType::Timestamp(MICROSECONDS, aware.then(|| "UTC".into())),
        Plain::Duration(_) => DataType::Duration(MICROSECONDS),
        Plain::Text(_) => DataType::Utf8,
        Plain::Bytes(_) => DataType::Binary,
        Plain::Null | Plain::List(_) | Plain::Struct(_) => DataType::Null,
    })
}

fn digits(value: i128) -> u8 {
    value.unsigned_abs().checked_ilog10().unwrap_or(0) as u8 + 1
}

/// Returns a type that can hold the values of both.
fn both(one: DataType, other: DataType) -> PyResult<DataType> {
    use DataType::*;
    Ok(match (&one, &other) {
        (Null, _) => other,
        (_, Null) => one,
        (Int64, UInt64) | (UInt64, Int64) => UInt64,
        (Int64 | UInt64, Float64) | (Float64, Int64 | UInt64) => Float64,
        (Decimal128(p, s), Decimal128(q, t)) => {
            let scale = *s.max(t);
            let whole = (*p as i8 - s).max(*q as i8 - t);
            let precision = whole + scale;
            if precision > 38 {
                return misfit("decimals of more than 38 digits together".to_owned());
            }
            Decimal128(precision as u8, scale)
        }
        (Decimal128(..), Int64 | UInt64) => both(one, Decimal128(if other == Int64 { 19 } else { 20 }, 0))?,
        (Int64 | UInt64, Decimal128(..)) => both(other, one)?,
        _ if one == other => one,
        _ => return misfit(format!("{} among {}", word(&other), word(&one))),
    })
}

/// Returns the word for such values in error messages.
fn word(data_type: &DataType) -> &'static str {
    match data_type {
        DataType::Boolean => "a bool",
        DataType::Int64 | DataType::UInt64 => "an int",
        DataType::Float64 => "a float",
        DataType::Decimal128(..) => "a Decimal",
        DataType::Date32 => "a date",
        DataType::Time64(_) => "a time",
        DataType::Timestamp(_, None) => "a datetime without a time zone",
        DataType::Timestamp(..) => "a datetime in a time zone",
        DataType::Duration(_) => "a timedelta",
        DataType::Utf8 => "a str",
        DataType::Binary => "bytes",
        DataType::List(_) => "a list",
        DataType::Struct(_) => "a dict",
        _ => "a value of another type",
    }
}

/// Collects one item for each value; an error if there is no memory for them.
fn each<T>(values: &[&Plain], item: impl Fn(&Plain) -> PyResult<T>) -> PyResult<Vec<T>> {
    let mut items = room(values.len())?;
    for part in values.chunks(STEP) {
        for value in part {
            items.push(item(value)?);
        }
        interrupted()?;
    }
    Ok(items)
}

fn room<T>(items: usize) -> PyResult<Vec<T>> {
    let mut room = vec![];
    let reserved = room.try_reserve_exact(items);
    reserved.map_err(|_| no_memory(format!("no memory for {items} values")))?;
    Ok(room)
}

/// Makes a bitmap with one bit for each value.
fn bits(values: &[&Plain], bit: impl Fn(&Plain) -> bool) -> PyResult<BooleanBuffer> {
    let mut bytes = room(values.len().div_ceil(8))?;
    bytes.extend(values.chunks(8).map(|eight| {
        eight.iter().enumerate().fold(0u8, |byte, (at, value)| byte | u8::from(bit(value)) << at)
    }));
    Ok(BooleanBuffer::new(Buffer::from_vec(bytes), 0, values.len()))
}

fn valid(values: &[&Plain]) -> PyResult<Option<NullBuffer>> {
    let valid = NullBuffer::new(bits(values, |value| !matches!(value, Plain::Null))?);
    Ok(Some(valid).filter(|valid| valid.null_count() > 0))
}

fn numbers<T: ArrowPrimitiveType>(
    values: &[&Plain],
    number: impl Fn(&Plain) -> PyResult<T::Native>,
) -> PyResult<PrimitiveArray<T>> {
    Ok(PrimitiveArray::new(ScalarBuffer::from(each(values, number)?), valid(values)?))
}

/// Computes the offsets of values of these lengths; an error if they are too large for the type.
fn offsets<O: OffsetSizeTrait>(
    values: &[&Plain],
    length: impl Fn(&Plain) -> usize,
    problem: &str,
) -> PyResult<OffsetBuffer<O>> {
    let (mut offsets, mut end) = (room(values.len() + 1)?, 0usize);
    offsets.push(O::default());
    for value in values {
        end += length(value);
        offsets.push(O::from_usize(end).ok_or_else(|| too_much(problem))?);
    }
    Ok(OffsetBuffer::new(ScalarBuffer::from(offsets)))
}

fn text<T: ByteArrayType>(values: &[&Plain]) -> PyResult<ArrayRef> {
    fn bytes(value: &Plain) -> &[u8] {
        match value {
            Plain::Text(text) => text.as_bytes(),
            Plain::Bytes(bytes) => bytes,
            _ => &[],
        }
    }
    let problem = "more than 2^31 bytes in one array: pass the type \"large_string\" or \"large_binary\"";
    let offsets = offsets::<T::Offset>(values, |value| bytes(value).len(), problem)?;
    let mut all = room(offsets[values.len()].as_usize())?;
    let mut unasked = 0;
    for value in values {
        all.extend_from_slice(bytes(value));
        unasked += bytes(value).len() + 1;
        if unasked > 16 * STEP {
            interrupted()?;
            unasked = 0;
        }
    }
    let array = GenericByteArray::<T>::try_new(offsets, Buffer::from_vec(all), valid(values)?);
    Ok(Arc::new(array.map_err(unfit)?))
}

fn unfit(error: ArrowError) -> PyErr {
    PyTypeError::new_err(error.to_string())
}

/// Builds an array of the values, of the type that [`type_of`] has found for them.
pub fn build(values: &[&Plain], data_type: &DataType) -> PyResult<ArrayRef> {
    let time = |value: &Plain| match value {
        Plain::Time(value) | Plain::Microseconds(value, _) | Plain::Duration(value) => Ok(*value),
        _ => Ok(0),
    };
    Ok(match data_type {
        DataType::Null => Arc::new(NullArray::new(values.len())),
        DataType::Boolean => {
            let bits = bits(values, |value| matches!(value, Plain::Bool(true)))?;
            Arc::new(BooleanArray::new(bits, valid(values)?))
        }
        DataType::Int64 => Arc::new(numbers::<Int64Type>(values, |value| match value {
            Plain::Int(value) => Ok(*value as i64),
            _ => Ok(0),
        })?),
        DataType::UInt64 => Arc::new(numbers::<UInt64Type>(values, |value| match value {
            Plain::Int(..0) => misfit("a negative int among ones of more than 63 bits".to_owned()),
            Plain::Int(value) => Ok(*value as u64),
            _ => Ok(0),
        })?),
        DataType::Float64 => Arc::new(numbers::<Float64Type>(values, |value| match value {
            Plain::Float(value) => Ok(*value),
            Plain::Int(value) => Ok(*value as f64),
            _ => Ok(0.0),
        })?),
        DataType::Decimal128(precision, scale) => {
            let unscaled = numbers::<Decimal128Type>(values, |value| {
                let (unscaled, own) = match value {
                    Plain::Decimal(unscaled, own) => (*unscaled, *own),
                    Plain::Int(value) => (*value, 0),
                    _ => return Ok(0),
                };
                let unscaled = 10i128.pow((scale - own) as u32).checked_mul(unscaled);
                unscaled.map_or_else(|| misfit("decimals of more than 38 digits together".to_owned()), Ok)
            })?;
            Arc::new(unscaled.with_precision_and_scale(*precision, *scale).map_err(unfit)?)
        }
        DataType::Date32 => Arc::new(numbers::<Date32Type>(values, |value| match value {
            Plain::Days(days) => Ok(*days),
            _ => Ok(0),
        })?),
        DataType::Time64(_) => Arc::new(numbers::<Time64MicrosecondType>(values, time)?),
        DataType::Timestamp(_, zone) => {
            Arc::new(numbers::<TimestampMicrosecondType>(values, time)?.with_timezone_opt(zone.clone()))
        }
        DataType::Duration(_) => Arc::new(numbers::<DurationMicrosecondType>(values, time)?),
        DataType::Utf8 => text::<Utf8Type>(values)?,
        DataType::LargeUtf8 => text::<LargeUtf8Type>(values)?,
        DataType::Binary => text::<BinaryType>(values)?,
        DataType::LargeBinary => text::<LargeBinaryType>(values)?,
        DataType::List(item) => {
            fn items(value: &Plain) -> &[Plain] {
                match value {
                    Plain::List(items) => items,
                    _ => &[],
                }
            }
            let offsets = offsets::<i32>(values, |value| items(value).len(), "more than 2^31 rows in lists")?;
            let mut all = room(offsets[values.len()].as_usize())?;
            all.extend(values.iter().flat_map(|value| items(value)));
            let items = build(&all, item.data_type())?;
            Arc::new(ListArray::try_new(item.clone(), offsets, items, valid(values)?).map_err(unfit)?)
        }
        DataType::Struct(fields) => {
            let column = |(place, field): (usize, &Arc<Field>)| {
                let mut own = room(values.len())?;
                own.extend(values.iter().map(|value| match value {
                    Plain::Struct(row) => value_of(row, place, field.name()).unwrap_or(&Plain::Null),
                    _ => &Plain::Null,
                }));
                build(&own, field.data_type())
            };
            let columns = fields.iter().enumerate().map(column).collect::<PyResult<Vec<_>>>()?;
            let built = match columns.is_empty() {
                true => Ok(StructArray::new_empty_fields(values.len(), valid(values)?)),
                false => StructArray::try_new(fields.clone(), columns, valid(values)?),
            };
            Arc::new(built.map_err(unfit)?)
        }
        other => return misfit(format!("no values of Python's are {other}")),
    })
}
