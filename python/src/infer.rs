//! Arrays of Python's own values: what type they are of together, and what they are as that. Without the interpreter.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, DurationMicrosecondArray,
    Float64Array, Int64Array, ListArray, NullArray, StringArray, StructArray, Time64MicrosecondArray,
    TimestampMicrosecondArray, UInt64Array,
};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{DataType, Field, Fields, TimeUnit};

use crate::plain::Plain;

/// Where values do not fit each other: what stands beside what.
pub struct Misfit(pub String);

fn misfit<T>(problem: String) -> Result<T, Misfit> {
    Err(Misfit(problem))
}

const MICROSECONDS: TimeUnit = TimeUnit::Microsecond;

/// The fields of a struct that has a value.
type Row = Vec<(String, Plain)>;

/// The type of these values, with the names that `to`'s structs have, if it is known what they shall become.
pub fn type_of<'a>(
    values: impl IntoIterator<Item = &'a Plain>,
    to: Option<&DataType>,
) -> Result<DataType, Misfit> {
    let mut common = DataType::Null;
    let mut lists: Vec<&Plain> = vec![];
    let mut structs: Vec<&Row> = vec![];
    for value in values {
        let own = match value {
            Plain::List(items) => {
                lists.extend(items);
                DataType::List(Field::new_list_field(DataType::Null, true).into())
            }
            Plain::Struct(fields) => {
                structs.push(fields);
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
        other => Ok(other),
    }
}

/// What a list's rows are.
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

fn fields_of(rows: &[&Row], to: Option<&DataType>) -> Result<Fields, Misfit> {
    let expected = match to {
        Some(DataType::Struct(fields)) => Some(fields),
        _ => None,
    };
    let mut names: Vec<&str> =
        expected.map_or(vec![], |fields| fields.iter().map(|field| field.name().as_str()).collect());
    for (name, _) in rows.iter().copied().flatten() {
        if !names.contains(&name.as_str()) {
            match expected {
                Some(_) => return misfit(format!("{name:?} is no field of the type")),
                None => names.push(name),
            }
        }
    }
    let field = |(i, name): (usize, &&str)| {
        let values = rows.iter().filter_map(|row| value_of(row, name));
        Ok(Field::new(*name, type_of(values, expected.map(|fields| fields[i].data_type()))?, true))
    };
    names.iter().enumerate().map(field).collect()
}

fn value_of<'a>(row: &'a [(String, Plain)], name: &str) -> Option<&'a Plain> {
    row.iter().find(|(own, _)| own == name).map(|(_, value)| value)
}

fn of_one(value: &Plain) -> Result<DataType, Misfit> {
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

/// A type that has the values of both.
fn both(one: DataType, other: DataType) -> Result<DataType, Misfit> {
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

/// What people call such values.
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

/// The values as an array of the type that [`type_of`] has found for them.
pub fn build(values: &[&Plain], data_type: &DataType) -> Result<ArrayRef, Misfit> {
    let number = |value: &&Plain| match value {
        Plain::Int(value) => Some(*value),
        _ => None,
    };
    let time = |value: &&Plain| match value {
        Plain::Time(value) | Plain::Microseconds(value, _) | Plain::Duration(value) => Some(*value),
        _ => None,
    };
    let valid = || NullBuffer::from_iter(values.iter().map(|value| !matches!(value, Plain::Null)));
    Ok(match data_type {
        DataType::Null => Arc::new(NullArray::new(values.len())),
        DataType::Boolean => Arc::new(BooleanArray::from_iter(values.iter().map(|value| match value {
            Plain::Bool(value) => Some(*value),
            _ => None,
        }))),
        DataType::Int64 => Arc::new(Int64Array::from_iter(
            values.iter().map(|value| number(value).map(|value| value as i64)),
        )),
        DataType::UInt64 => {
            if values.iter().filter_map(number).any(|value| value < 0) {
                return misfit("a negative int among ones of more than 63 bits".to_owned());
            }
            Arc::new(UInt64Array::from_iter(
                values.iter().map(|value| number(value).map(|value| value as u64)),
            ))
        }
        DataType::Float64 => Arc::new(Float64Array::from_iter(values.iter().map(|value| match value {
            Plain::Float(value) => Some(*value),
            Plain::Int(value) => Some(*value as f64),
            _ => None,
        }))),
        DataType::Decimal128(precision, scale) => {
            let unscaled = values.iter().map(|value| {
                let (unscaled, own) = match value {
                    Plain::Decimal(unscaled, own) => (*unscaled, *own),
                    Plain::Int(value) => (*value, 0),
                    _ => return Ok(None),
                };
                let unscaled = 10i128.pow((scale - own) as u32).checked_mul(unscaled);
                unscaled
                    .map(Some)
                    .ok_or_else(|| Misfit("decimals of more than 38 digits together".to_owned()))
            });
            let array = unscaled.collect::<Result<Decimal128Array, _>>()?;
            let typed = array.with_precision_and_scale(*precision, *scale);
            Arc::new(typed.map_err(|error| Misfit(error.to_string()))?)
        }
        DataType::Date32 => Arc::new(Date32Array::from_iter(values.iter().map(|value| match value {
            Plain::Days(days) => Some(*days),
            _ => None,
        }))),
        DataType::Time64(_) => Arc::new(Time64MicrosecondArray::from_iter(values.iter().map(time))),
        DataType::Timestamp(_, zone) => Arc::new(
            TimestampMicrosecondArray::from_iter(values.iter().map(time)).with_timezone_opt(zone.clone()),
        ),
        DataType::Duration(_) => Arc::new(DurationMicrosecondArray::from_iter(values.iter().map(time))),
        DataType::Utf8 => Arc::new(StringArray::from_iter(values.iter().map(|value| match value {
            Plain::Text(text) => Some(text),
            _ => None,
        }))),
        DataType::Binary => Arc::new(BinaryArray::from_iter(values.iter().map(|value| match value {
            Plain::Bytes(bytes) => Some(bytes),
            _ => None,
        }))),
        DataType::List(item) => {
            let mut items: Vec<&Plain> = vec![];
            let lengths = values.iter().map(|value| match value {
                Plain::List(own) => {
                    items.extend(own);
                    own.len()
                }
                _ => 0,
            });
            let lengths: Vec<usize> = lengths.collect();
            if items.len() > i32::MAX as usize {
                return misfit("more than 2^31 rows in lists".to_owned());
            }
            let items = build(&items, item.data_type())?;
            Arc::new(ListArray::new(item.clone(), OffsetBuffer::from_lengths(lengths), items, Some(valid())))
        }
        DataType::Struct(fields) => {
            let column = |field: &Arc<Field>| {
                let own = values.iter().map(|value| match value {
                    Plain::Struct(row) => value_of(row, field.name()).unwrap_or(&Plain::Null),
                    _ => &Plain::Null,
                });
                build(&own.collect::<Vec<_>>(), field.data_type())
            };
            let columns = fields.iter().map(column).collect::<Result<Vec<_>, _>>()?;
            let built = match columns.is_empty() {
                true => Ok(StructArray::new_empty_fields(values.len(), Some(valid()))),
                false => StructArray::try_new(fields.clone(), columns, Some(valid())),
            };
            Arc::new(built.map_err(|error| Misfit(error.to_string()))?)
        }
        other => return misfit(format!("no values of Python's are {other}")),
    })
}
