//! Constants in expressions.

use std::fmt;
use std::sync::Arc;

use arrow_schema::DataType;
use bowstring_kernels::map::function::Number;

use super::dates::{moment, read, written};
use super::nearest::{decimal_text, float_bits, nearest, rounded};
use super::plan::{Bytes, is_text, value_type};

/// A constant of a fixed-width or text type, or null. It may be untyped.
#[derive(Clone, Debug, PartialEq)]
pub struct Literal {
    pub(super) value: Value,
    /// The type; `None` if the literal takes the type of the other operand.
    pub(super) data_type: Option<DataType>,
}

/// The value of a literal as written.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Null,
    Bit(bool),
    /// An integer; if typed, in the type's own representation: unscaled, or since its epoch.
    Integer(i128),
    Float(f64),
    /// An untyped decimal: the unscaled value and its scale.
    Decimal(i128, i8),
    /// The bits of a float of the literal's type.
    Bits(u64),
    Text(Arc<str>),
    Bytes(Arc<[u8]>),
}

impl Literal {
    /// A typed null. A null of [`DataType::Null`] takes the type of the other operand.
    pub fn null(data_type: DataType) -> Literal {
        Literal { value: Value::Null, data_type: Some(data_type) }
    }

    /// A typed value in the representation of arrays: integers directly, decimals unscaled, dates and times
    /// since their epoch, floats as bits, booleans as 0 or 1. Binding returns [`crate::Error::Invalid`] if
    /// the type has no such value.
    pub fn of(data_type: DataType, raw: i128) -> Literal {
        let value = match data_type {
            DataType::Boolean => Value::Bit(raw != 0),
            DataType::Float16 | DataType::Float32 | DataType::Float64 => Value::Bits(raw as u64),
            _ => Value::Integer(raw),
        };
        Literal { value, data_type: Some(data_type) }
    }

    /// A decimal of 128 bits: `decimal(12345, 15, 2)` is 123.45.
    pub fn decimal(unscaled: i128, precision: u8, scale: i8) -> Literal {
        Literal::of(DataType::Decimal128(precision, scale), unscaled)
    }

    /// A decimal that takes the type of the other operand, if that type can represent it exactly. Otherwise
    /// it is a decimal of 128 bits with as many digits as the value has. `exact(5, 2)` is 0.05.
    pub fn exact(unscaled: i128, scale: i8) -> Literal {
        Literal { value: Value::Decimal(unscaled, scale), data_type: None }
    }

    /// A text or binary value of the given type. Binding returns [`crate::Error::Invalid`] if the type has no
    /// such value.
    pub fn text(data_type: DataType, bytes: impl AsRef<[u8]>) -> Literal {
        let is_string = matches!(data_type, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
        let value = match std::str::from_utf8(bytes.as_ref()) {
            Ok(text) if is_string => Value::Text(text.into()),
            _ => Value::Bytes(bytes.as_ref().into()),
        };
        Literal { value, data_type: Some(data_type) }
    }

    /// A date in days since 1970-01-01.
    pub fn date(days: i32) -> Literal {
        Literal::of(DataType::Date32, days.into())
    }

    /// A literal of a type from the low bits of an array's value.
    pub(crate) fn of_bits(data_type: &DataType, bits: u128) -> Option<Literal> {
        Some(Literal::of(data_type.clone(), extended(bits, super::plan::number_of(data_type)?)))
    }

    /// The memory that the literal takes, in bytes.
    pub fn bytes(&self) -> usize {
        let text = match &self.value {
            Value::Text(text) => text.len(),
            Value::Bytes(bytes) => bytes.len(),
            _ => 0,
        };
        size_of::<Literal>().saturating_add(text)
    }

    /// Whether the literal is null.
    pub(super) fn is_null(&self) -> bool {
        self.value == Value::Null
    }

    /// Whether it can keep its own type next to an operand of another type.
    pub(super) fn has_a_type(&self) -> bool {
        self.data_type.is_some() || matches!(self.value, Value::Decimal(..))
    }

    /// The literal's type, or the one that corresponds to its Rust type.
    pub(super) fn own_type(&self) -> DataType {
        match (&self.data_type, &self.value) {
            (Some(data_type), _) => data_type.clone(),
            (None, Value::Null) => DataType::Null,
            (None, Value::Bit(_)) => DataType::Boolean,
            (None, Value::Integer(_)) => DataType::Int64,
            (None, Value::Decimal(unscaled, scale)) => {
                let digits = unscaled.unsigned_abs().checked_ilog10().map_or(1, |log| log as u8 + 1);
                DataType::Decimal128(digits.max((*scale).max(1) as u8).min(38), *scale)
            }
            (None, Value::Float(_) | Value::Bits(_)) => DataType::Float64,
            (None, Value::Text(_)) => DataType::Utf8,
            (None, Value::Bytes(_)) => DataType::Binary,
        }
    }

    /// Whether its type conflicts with another one. A null of [`DataType::Null`] fits any type, and a
    /// dictionary literal fits the type of its values.
    fn is_of_another_type(&self, to: &DataType) -> bool {
        let takes_any = self.is_null() && self.data_type == Some(DataType::Null);
        !takes_any && self.data_type.as_ref().is_some_and(|own| value_type(own) != to)
    }

    /// An untyped number as exactly the decimal that was written.
    pub(super) fn exactly(&self) -> Option<Literal> {
        match (&self.data_type, &self.value) {
            (None, Value::Decimal(..)) => Some(self.clone()),
            (None, Value::Integer(x)) if x.unsigned_abs() < 10u128.pow(38) => Some(Literal::exact(*x, 0)),
            (None, Value::Float(x)) if x.is_finite() => {
                let text = format!("{x}");
                let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
                let unscaled: i128 = format!("{whole}{fraction}").parse().ok()?;
                let scale = i8::try_from(fraction.len()).ok().filter(|scale| *scale <= 38)?;
                (unscaled.unsigned_abs() < 10u128.pow(38)).then(|| Literal::exact(unscaled, scale))
            }
            _ => None,
        }
    }

    /// Its sign-extended bits as a value of a type (inner `None` is null); outer `None` if the type cannot
    /// represent the value.
    pub(super) fn as_type(&self, to: &DataType) -> Option<Option<i128>> {
        if self.is_of_another_type(to) {
            return match (&self.data_type, &self.value) {
                (Some(own), Value::Integer(raw)) => moment(*raw, own, to).map(Some),
                _ => None,
            };
        }
        let number = super::plan::number_of(to)?;
        let raw = match (self.value.clone(), number) {
            (Value::Null, _) => return Some(None),
            (Value::Bit(bit), Number::Bit) => i128::from(bit),
            (Value::Bits(bits), Number::F16) => i128::from(bits as u16 as i16),
            (Value::Bits(bits), Number::F32) => i128::from(bits as u32 as i32),
            (Value::Bits(bits), Number::F64) => i128::from(bits as i64),
            (Value::Decimal(_, scale), _) if scale > 38 => return None,
            (
                Value::Integer(_) | Value::Float(_) | Value::Decimal(..),
                Number::F16 | Number::F32 | Number::F64,
            ) => {
                let value = match self.value.clone() {
                    // A fraction is rounded, but no integer.
                    // The greatest number of 128 bits is none of a float, to which it saturates.
                    Value::Integer(x) if x < i128::MAX && rounded(x as f64, number) as i128 == x => x as f64,
                    Value::Float(x) => x,
                    Value::Decimal(x, scale) => nearest(x, scale, number)?,
                    _ => return None,
                };
                float_bits(value, number)?
            }
            (Value::Decimal(x, from), _) => rescaled(x, from, to)?,
            (Value::Integer(x), _) if self.data_type.is_some() => x,
            (Value::Integer(x), _) => rescaled(x, 0, to)?,
            (Value::Float(x), _) if x.fract() == 0.0 && x.abs() < 1e18 => rescaled(x as i128, 0, to)?,
            (Value::Float(x), Number::I32 | Number::I64 | Number::I128) => decimal_of(x, to)?,
            (Value::Text(text), Number::I32 | Number::I64) if self.data_type.is_none() => read(&text, to)?,
            _ => return None,
        };
        fits(raw, number, to).then_some(Some(raw))
    }

    /// Its bytes as a value of a text or binary type, with the same meaning of `None` as
    /// [`Literal::as_type`].
    pub(super) fn as_text(&self, to: &DataType) -> Option<Option<Bytes>> {
        if self.is_of_another_type(to) {
            return None;
        }
        let bytes: Arc<[u8]> = match &self.value {
            Value::Null => return Some(None),
            Value::Text(text) => text.as_bytes().into(),
            Value::Bytes(bytes) => bytes.clone(),
            _ => return None,
        };
        let is_string = matches!(to, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
        let has_value = is_text(to) && (!is_string || std::str::from_utf8(&bytes).is_ok());
        has_value.then_some(Some(Bytes(bytes)))
    }
}

/// A decimal fraction as a decimal: the number as written, if the type can represent it.
fn decimal_of(x: f64, to: &DataType) -> Option<i128> {
    // The shortest decimal that parses to this float is the number that was written.
    let text = format!("{x}");
    let (whole, fraction) = text.split_once('.')?;
    rescaled(format!("{whole}{fraction}").parse().ok()?, i8::try_from(fraction.len()).ok()?, to)
}

/// A decimal, or an integer (scale 0), in the type's representation; `None` if the type cannot represent it.
/// Dates and times never accept a bare number, because its meaning would be unclear.
fn rescaled(x: i128, from: i8, to: &DataType) -> Option<i128> {
    let scale = match to {
        DataType::Decimal32(_, scale) | DataType::Decimal64(_, scale) | DataType::Decimal128(_, scale) => {
            *scale
        }
        to if to.is_integer() => 0,
        _ => return None,
    };
    let by = i32::from(scale) - i32::from(from);
    let factor = 10i128.checked_pow(by.unsigned_abs());
    match (by >= 0, factor) {
        _ if x == 0 => Some(0),
        (true, factor) => x.checked_mul(factor?),
        (false, factor) => factor.filter(|factor| x % factor == 0).map(|factor| x / factor),
    }
}

/// Whether a type can represent this value.
fn fits(raw: i128, number: Number, to: &DataType) -> bool {
    let precision = match to {
        DataType::Decimal32(precision, _)
        | DataType::Decimal64(precision, _)
        | DataType::Decimal128(precision, _) => Some(*precision),
        _ => None,
    };
    if let Some(limit) = precision.and_then(|digits| 10u128.checked_pow(digits.into())) {
        return raw.unsigned_abs() < limit;
    }
    match number {
        Number::I8 => i8::try_from(raw).is_ok(),
        Number::I16 => i16::try_from(raw).is_ok(),
        Number::I32 => i32::try_from(raw).is_ok(),
        Number::I64 => i64::try_from(raw).is_ok(),
        Number::U8 => u8::try_from(raw).is_ok(),
        Number::U16 => u16::try_from(raw).is_ok(),
        Number::U32 => u32::try_from(raw).is_ok(),
        Number::U64 => u64::try_from(raw).is_ok(),
        _ => true,
    }
}

/// The low bits as a value, extended by the sign bit if the number type is signed.
pub(crate) fn extended(bits: u128, number: Number) -> i128 {
    let above = 128 - number.bits();
    match number {
        Number::Bit => (bits & 1) as i128,
        _ if number.signed() != number => (bits << above >> above) as i128,
        _ => (bits as i128) << above >> above,
    }
}

macro_rules! literals {
    ($($t:ty => |$x:ident| $value:expr;)*) => {
        $(impl From<$t> for Literal {
            fn from($x: $t) -> Literal {
                Literal { value: $value, data_type: None }
            }
        })*
    };
}

literals! {
    bool => |x| Value::Bit(x);
    i8 => |x| Value::Integer(x.into());
    i16 => |x| Value::Integer(x.into());
    i32 => |x| Value::Integer(x.into());
    i64 => |x| Value::Integer(x.into());
    u8 => |x| Value::Integer(x.into());
    u16 => |x| Value::Integer(x.into());
    u32 => |x| Value::Integer(x.into());
    u64 => |x| Value::Integer(x.into());
    i128 => |x| Value::Integer(x);
    f32 => |x| Value::Float(x.into());
    f64 => |x| Value::Float(x);
    &str => |x| Value::Text(x.into());
    &String => |x| Value::Text(x.as_str().into());
    String => |x| Value::Text(x.into());
    &[u8] => |x| Value::Bytes(x.into());
    Vec<u8> => |x| Value::Bytes(x.into());
}

impl fmt::Display for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.value, &self.data_type) {
            (Value::Null, None | Some(DataType::Null)) => write!(f, "null"),
            (Value::Null, Some(data_type)) => write!(f, "null::{data_type}"),
            (Value::Bit(bit), _) => write!(f, "{bit}"),
            (Value::Float(x), _) => write!(f, "{x}"),
            (Value::Decimal(x, scale), _) => f.write_str(&decimal_text(*x, *scale)),
            (Value::Text(text), _) => {
                f.write_str("'")?;
                for (i, part) in text.split('\'').enumerate() {
                    f.write_str(if i == 0 { "" } else { "''" })?;
                    f.write_str(part)?;
                }
                f.write_str("'")
            }
            (Value::Bytes(bytes), _) => {
                f.write_str("x'")?;
                bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
                f.write_str("'")
            }
            (Value::Integer(x), None) => write!(f, "{x}"),
            (Value::Integer(x), Some(data_type)) => match written(*x, data_type) {
                Some(text) => write!(f, "'{text}'::{data_type}"),
                None => write!(f, "{x}::{data_type}"),
            },
            (Value::Bits(bits), Some(data_type)) => write!(f, "{bits:#x}::{data_type}"),
            (Value::Bits(bits), None) => write!(f, "{bits:#x}"),
        }
    }
}
