//! Compares casts and decimal arithmetic: which are the same in DataFusion and here, and which cannot fail.

use datafusion::arrow::datatypes::DataType;
use datafusion::logical_expr::Operator;

/// Casts whose results are arrow-rs' on both sides. Casts of text depend on formats, and for casts of times
/// DataFusion checks bounds of its own. DataFusion's arrow-rs divides a float by a power of ten where ours
/// rounds once: both give the same if each of the two is exact; others are divided here, too. It also cuts
/// integers to the bits of a short decimal, where ours are refused.
pub(crate) fn same_everywhere(from: &DataType, to: &DataType) -> bool {
    let (digits, most) = match to {
        DataType::Float32 => (7, 10),
        _ => (15, 22),
    };
    if to.is_floating()
        && let Some((precision, scale)) = decimal(from)
        && !(precision <= digits && (0..=most).contains(&scale))
    {
        return false;
    }
    if from.is_integer()
        && let Some(width) = short_decimal(to)
    {
        let (own, signed) = (from.primitive_width().unwrap_or(0), from.is_signed_integer());
        if !always_fits(from, to) && (own > width || own == width && !signed) {
            return false;
        }
    }
    let number = |of: &DataType| {
        of.is_integer()
            || matches!(of, DataType::Float32 | DataType::Float64)
            || matches!(of, DataType::Decimal32(..) | DataType::Decimal64(..) | DataType::Decimal128(..))
    };
    number(from) && number(to)
}

/// Whether a cast from `from` to `to` fails for no value.
pub(crate) fn always_fits(from: &DataType, to: &DataType) -> bool {
    match (from, to) {
        (from, to) if from.is_integer() && to.is_integer() => {
            let (a, b) = (from.primitive_width(), to.primitive_width());
            match (from.is_signed_integer(), to.is_signed_integer()) {
                (true, false) => false,
                (false, true) => a < b,
                _ => a <= b,
            }
        }
        (from, to) if to.is_floating() => from.is_integer() || from.is_decimal() || from.is_floating(),
        (from, to) if from.is_integer() => match (digits(from), decimal(to)) {
            (Some(digits), Some((precision, scale))) => scale >= 0 && digits + scale <= precision,
            _ => false,
        },
        (from, to) => match (decimal(from), decimal(to)) {
            (Some((p1, s1)), Some((p2, s2))) => s2 >= s1 && p2 - s2 >= p1 - s1,
            _ => false,
        },
    }
}

/// Whether arithmetic on two decimals stays within their width for all values; arrow-rs fails if it does not.
pub(crate) fn decimals_fit(op: Operator, a: &DataType, b: &DataType) -> bool {
    let (Some((p1, s1)), Some((p2, s2))) = (decimal(a), decimal(b)) else { return false };
    let most = match a {
        DataType::Decimal32(..) => 9,
        DataType::Decimal64(..) => 18,
        _ => 38,
    };
    let scale = s1.max(s2);
    match op {
        Operator::Plus | Operator::Minus => scale + (p1 - s1).max(p2 - s2) < most,
        Operator::Multiply => p1 + p2 < most,
        Operator::Divide => {
            let up = (s1 + 4).min(most) - s1 + s2;
            p1 + up.max(0) <= most && p2 + (-up).max(0) <= most
        }
        _ => p1 + scale - s1 <= most && p2 + scale - s2 <= most,
    }
}

/// The bytes of a decimal that integers may not fit.
fn short_decimal(of: &DataType) -> Option<usize> {
    match of {
        DataType::Decimal32(..) => Some(4),
        DataType::Decimal64(..) => Some(8),
        _ => None,
    }
}

/// The digits of a decimal of 128 bits, and how many of them follow the point; `None` if others precede it.
pub(crate) fn digits_and_scale(of: &DataType) -> Option<(u8, u8)> {
    match of {
        DataType::Decimal128(precision, scale) => Some((*precision, u8::try_from(*scale).ok()?)),
        _ => None,
    }
}

fn decimal(of: &DataType) -> Option<(i32, i32)> {
    match of {
        DataType::Decimal32(precision, scale)
        | DataType::Decimal64(precision, scale)
        | DataType::Decimal128(precision, scale) => Some(((*precision).into(), (*scale).into())),
        _ => None,
    }
}

/// The digits that an integer may have.
fn digits(of: &DataType) -> Option<i32> {
    Some(match of {
        DataType::Int8 | DataType::UInt8 => 3,
        DataType::Int16 | DataType::UInt16 => 5,
        DataType::Int32 | DataType::UInt32 => 10,
        DataType::Int64 => 19,
        DataType::UInt64 => 20,
        _ => return None,
    })
}
