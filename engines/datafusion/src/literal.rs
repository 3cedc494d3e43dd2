//! Converts DataFusion's scalars to literals of ours, each of its own type.

use bowstring::expr::Literal;
use datafusion::common::ScalarValue;

use crate::types::our_type;

/// Converts a scalar to a literal; `None` if expressions have no such value, or if it has no type.
pub(crate) fn literal(value: &ScalarValue) -> Option<Literal> {
    use ScalarValue::*;
    if let Dictionary(_, value) = value {
        return literal(value);
    }
    let data_type = our_type(&value.data_type());
    if value.is_null() {
        return (data_type != arrow_schema::DataType::Null).then(|| Literal::null(data_type));
    }
    let raw: i128 = match value {
        Boolean(Some(x)) => (*x).into(),
        Int8(Some(x)) => (*x).into(),
        Int16(Some(x)) => (*x).into(),
        Int32(Some(x)) | Date32(Some(x)) | Time32Second(Some(x)) | Time32Millisecond(Some(x)) => (*x).into(),
        Decimal32(Some(x), ..) => (*x).into(),
        Int64(Some(x))
        | Date64(Some(x))
        | Time64Microsecond(Some(x))
        | Time64Nanosecond(Some(x))
        | TimestampSecond(Some(x), _)
        | TimestampMillisecond(Some(x), _)
        | TimestampMicrosecond(Some(x), _)
        | TimestampNanosecond(Some(x), _)
        | DurationSecond(Some(x))
        | DurationMillisecond(Some(x))
        | DurationMicrosecond(Some(x))
        | DurationNanosecond(Some(x))
        | Decimal64(Some(x), ..) => (*x).into(),
        UInt8(Some(x)) => (*x).into(),
        UInt16(Some(x)) => (*x).into(),
        UInt32(Some(x)) => (*x).into(),
        UInt64(Some(x)) => (*x).into(),
        Decimal128(Some(x), ..) => *x,
        Float16(Some(x)) => x.to_bits().into(),
        Float32(Some(x)) => x.to_bits().into(),
        Float64(Some(x)) => x.to_bits().into(),
        Utf8(Some(x)) | LargeUtf8(Some(x)) | Utf8View(Some(x)) => return Some(Literal::text(data_type, x)),
        Binary(Some(x)) | LargeBinary(Some(x)) | BinaryView(Some(x)) => {
            return Some(Literal::text(data_type, x));
        }
        _ => return None,
    };
    Some(Literal::of(data_type, raw))
}

/// The value of a float literal; `None` for other types.
pub(crate) fn float(value: &ScalarValue) -> Option<f64> {
    match value {
        ScalarValue::Float16(Some(x)) => Some(x.to_f64()),
        ScalarValue::Float32(Some(x)) => Some((*x).into()),
        ScalarValue::Float64(Some(x)) => Some(*x),
        _ => None,
    }
}

/// Whether no number fails, or makes a NaN, when divided by this literal.
pub(crate) fn divides(value: &ScalarValue) -> bool {
    use ScalarValue::*;
    match value {
        Int8(Some(x)) => !matches!(x, 0 | -1),
        Int16(Some(x)) => !matches!(x, 0 | -1),
        Int32(Some(x)) => !matches!(x, 0 | -1),
        Int64(Some(x)) => !matches!(x, 0 | -1),
        UInt8(Some(x)) => *x != 0,
        UInt16(Some(x)) => *x != 0,
        UInt32(Some(x)) => *x != 0,
        UInt64(Some(x)) => *x != 0,
        Decimal32(Some(x), ..) => *x != 0,
        Decimal64(Some(x), ..) => *x != 0,
        Decimal128(Some(x), ..) => *x != 0,
        value => float(value).is_some_and(|x| x != 0.0),
    }
}
