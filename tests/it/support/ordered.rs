//! The order of rows by definition: two plain values of a type are compared, one way for each kind of type.

use std::cmp::Ordering;

use arrow_schema::{DataType, IntervalUnit, SortOptions};
use bowstring::device::testing::children;

use super::Value;
use super::is_nothing;

/// Compares two rows of a type.
pub fn compared(a: &Value, b: &Value, of: &DataType, options: SortOptions) -> Ordering {
    // A row of a union is not null, even if its value is.
    let null = |value: &Value| !matches!(value, Value::Member(..)) && is_nothing(value);
    match (null(a), null(b)) {
        (true, true) => return Ordering::Equal,
        (false, false) => {}
        (a_is_null, _) => {
            return if a_is_null == options.nulls_first { Ordering::Less } else { Ordering::Greater };
        }
    }
    let turned = |order: Ordering| if options.descending { order.reverse() } else { order };
    let inner = children(of);
    match (a, b) {
        (Value::Bytes(a), Value::Bytes(b)) => turned(of_bytes(a, b, leaf(of))),
        (Value::List(a), Value::List(b)) => {
            let items = a.iter().zip(b).map(|(a, b)| compared(a, b, item(of), options));
            items.fold(Ordering::Equal, Ordering::then).then(turned(a.len().cmp(&b.len())))
        }
        (Value::Fields(a), Value::Fields(b)) => {
            let of = values(of);
            let types = children(of);
            let fields = a.iter().zip(b).zip(types).map(|((a, b), of)| compared(a, b, of, options));
            fields.fold(Ordering::Equal, Ordering::then)
        }
        (Value::Member(i, a), Value::Member(j, b)) => turned(i.cmp(j)).then_with(|| {
            let DataType::Union(fields, _) = values(of) else { panic!("members of {of}: {inner:?}") };
            let member = fields.iter().find(|(id, _)| id == i).expect("a known type").1;
            compared(a, b, member.data_type(), options)
        }),
        other => panic!("{other:?} of {of}"),
    }
}

/// The type that a dictionary or runs hold.
fn values(of: &DataType) -> &DataType {
    match of {
        DataType::Dictionary(_, of) => values(of),
        DataType::RunEndEncoded(_, of) => values(of.data_type()),
        of => of,
    }
}

fn leaf(of: &DataType) -> &DataType {
    values(of)
}

fn item(of: &DataType) -> &DataType {
    children(values(of))[0]
}

fn of_bytes(a: &[u8], b: &[u8], of: &DataType) -> Ordering {
    let signed = |bytes: &[u8]| -> i128 {
        let mut wide = [if bytes.last().is_some_and(|last| last >> 7 == 1) { 0xff } else { 0 }; 16];
        wide[..bytes.len()].copy_from_slice(bytes);
        i128::from_le_bytes(wide)
    };
    let parts = |bytes: &[u8], lengths: &[usize]| -> Vec<i128> {
        let mut at = 0;
        lengths.iter().map(|len| (signed(&bytes[at..at + len]), at += len).0).collect()
    };
    match of {
        DataType::UInt8 | DataType::UInt16 | DataType::UInt32 | DataType::UInt64 | DataType::Boolean => {
            a.iter().rev().cmp(b.iter().rev())
        }
        DataType::Float16 => {
            let float = |bytes: &[u8]| half::f16::from_le_bytes(bytes.try_into().unwrap());
            float(a).total_cmp(&float(b))
        }
        DataType::Float32 => {
            let float = |bytes: &[u8]| f32::from_le_bytes(bytes.try_into().unwrap());
            float(a).total_cmp(&float(b))
        }
        DataType::Float64 => {
            let float = |bytes: &[u8]| f64::from_le_bytes(bytes.try_into().unwrap());
            float(a).total_cmp(&float(b))
        }
        DataType::Decimal256(..) => {
            let [a, b] = [a, b].map(|bytes| arrow_buffer::i256::from_le_bytes(bytes.try_into().unwrap()));
            a.cmp(&b)
        }
        DataType::Interval(IntervalUnit::DayTime) => parts(a, &[4, 4]).cmp(&parts(b, &[4, 4])),
        DataType::Interval(IntervalUnit::MonthDayNano) => parts(a, &[4, 4, 8]).cmp(&parts(b, &[4, 4, 8])),
        of if of.is_primitive() => signed(a).cmp(&signed(b)),
        _ => a.cmp(b),
    }
}

/// The rows of columns in their order; equal rows stay in order.
pub fn order(columns: &[(Vec<Value>, DataType, SortOptions)]) -> Vec<u32> {
    let mut order: Vec<u32> = (0..columns[0].0.len() as u32).collect();
    order.sort_by(|a, b| between(columns, *a as usize, *b as usize));
    order
}

/// Compares two rows by the first column in which they differ.
pub fn between(columns: &[(Vec<Value>, DataType, SortOptions)], a: usize, b: usize) -> Ordering {
    let by = columns.iter().map(|(values, of, options)| compared(&values[a], &values[b], of, *options));
    by.fold(Ordering::Equal, Ordering::then)
}
