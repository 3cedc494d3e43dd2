//! The meaning of expressions by definition: one row at a time, over plain numbers, without arrow-rs and
//! without optimisation.

use std::cmp::Ordering;

use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;

use super::rows::{Value, rows};
use super::trees::Tree;

/// A row: null, or its bits, sign-extended for signed types. Truths are 0 and 1.
type Row = Option<i128>;

/// The result of a row that overflows, or divides by zero.
#[derive(Debug)]
pub struct Fails;

/// The rows of an expression over columns, or an error if one of them fails.
pub fn meaning(tree: &Tree, columns: &[ArrayRef]) -> Result<Vec<Value>, Fails> {
    let types: Vec<DataType> = columns.iter().map(|column| column.data_type().clone()).collect();
    let columns: Vec<Vec<Value>> = columns.iter().map(|column| rows(column)).collect();
    let of = type_of(tree, &types);
    let width = of.primitive_width().unwrap_or(1);
    let row = |i: usize| {
        let row: Vec<Row> = columns.iter().zip(&types).map(|(column, of)| raw(&column[i], of)).collect();
        let made = evaluate(tree, &types, &row)?;
        Ok(made.map_or(Value::Null, |bits| Value::Bytes(bits.to_le_bytes()[..width].to_vec())))
    };
    (0..columns[0].len()).map(row).collect()
}

fn raw(value: &Value, of: &DataType) -> Row {
    let Value::Bytes(bytes) = value else { return None };
    let mut whole = [0; 16];
    whole[..bytes.len()].copy_from_slice(bytes);
    let unused = 128 - 8 * bytes.len() as u32;
    let bits = i128::from_le_bytes(whole) << unused;
    let is_bits = of.is_unsigned_integer() || of.is_floating() || *of == DataType::Boolean;
    Some(if is_bits { (bits as u128 >> unused) as i128 } else { bits >> unused })
}

fn type_of(tree: &Tree, types: &[DataType]) -> DataType {
    match tree {
        Tree::Column(index) => types[*index].clone(),
        Tree::Literal(of, _) | Tree::Cast(_, of) => of.clone(),
        Tree::Arithmetic(_, a, _) | Tree::Negate(a) | Tree::Coalesce(a, _) | Tree::NullIf(a, _) => {
            type_of(a, types)
        }
        Tree::IfElse(_, a, _) => type_of(a, types),
        _ => DataType::Boolean,
    }
}

fn evaluate(tree: &Tree, types: &[DataType], row: &[Row]) -> Result<Row, Fails> {
    let of = |tree: &Tree| evaluate(tree, types, row);
    let truth = |truth: bool| Some(i128::from(truth));
    Ok(match tree {
        Tree::Column(index) => row[*index],
        Tree::Literal(of, value) => value.map(|value| plain(value, of)),
        Tree::Compare(how, a, b) => compared(*how, of(a)?, of(b)?, &type_of(a, types)),
        Tree::Arithmetic(op, a, b) => match (of(a)?, of(b)?) {
            (Some(x), Some(y)) => Some(arithmetic(*op, x, y, &type_of(a, types))?),
            _ => None,
        },
        Tree::Negate(x) => match (of(x)?, type_of(x, types)) {
            (None, _) => None,
            (Some(x), DataType::Float32) => Some(x ^ 1 << 31),
            (Some(x), DataType::Float64) => Some(x ^ 1 << 63),
            (Some(x), of) => Some(fitting(-x, &of)?),
        },
        Tree::And(a, b) => and(of(a)?, of(b)?),
        Tree::Or(a, b) => not(and(not(of(a)?), not(of(b)?))),
        Tree::Not(x) => not(of(x)?),
        Tree::IsNull(null, x) => truth(of(x)?.is_none() == *null),
        Tree::IsTrue(which, is, x) => truth((of(x)? == truth(*which)) == *is),
        Tree::IfElse(c, a, b) => {
            let (c, a, b) = (of(c)?, of(a)?, of(b)?);
            if c == truth(true) { a } else { b }
        }
        Tree::Coalesce(a, b) => {
            let (a, b) = (of(a)?, of(b)?);
            a.or(b)
        }
        Tree::NullIf(a, b) => {
            let (x, y) = (of(a)?, of(b)?);
            if compared(0, x, y, &type_of(a, types)) == truth(true) { None } else { x }
        }
        Tree::Between(x, low, high) => {
            let (value, low, high) = (of(x)?, of(low)?, of(high)?);
            let of = type_of(x, types);
            and(compared(5, value, low, &of), compared(3, value, high, &of))
        }
        Tree::InList(x, of_list, list) => match of(x)? {
            None => None,
            value => {
                let equal =
                    |one: &Option<i128>| compared(0, value, one.map(|one| plain(one, of_list)), of_list);
                let answers: Vec<Row> = list.iter().map(equal).collect();
                if answers.contains(&truth(true)) {
                    truth(true)
                } else if answers.contains(&None) {
                    None
                } else {
                    truth(false)
                }
            }
        },
        Tree::Cast(x, to) => match (of(x)?, type_of(x, types), to) {
            (Some(x), DataType::Decimal128(_, scale), DataType::Float64) => {
                Some((x as f64 / 10f64.powi(scale.into())).to_bits().into())
            }
            (x, ..) => x,
        },
    })
}

/// A literal's bits in the form of rows.
fn plain(bits: i128, of: &DataType) -> i128 {
    match of {
        DataType::Float16 => bits & 0xffff,
        DataType::Float32 => bits & 0xffff_ffff,
        DataType::Float64 => bits & 0xffff_ffff_ffff_ffff,
        _ => bits,
    }
}

fn not(x: Row) -> Row {
    x.map(|x| 1 - x)
}

fn and(a: Row, b: Row) -> Row {
    if a == Some(0) || b == Some(0) { Some(0) } else { a.zip(b).map(|_| 1) }
}

/// Compares by an operator's number in `Tree::Compare`.
fn compared(how: usize, a: Row, b: Row, of: &DataType) -> Row {
    let order = a.zip(b).map(|(a, b)| order(a, b, of));
    let answer = match (how, order) {
        (6, order) => order.map_or(a.is_some() || b.is_some(), Ordering::is_ne),
        (7, order) => order.map_or(a.is_none() && b.is_none(), Ordering::is_eq),
        (_, None) => return None,
        (0, Some(order)) => order.is_eq(),
        (1, Some(order)) => order.is_ne(),
        (2, Some(order)) => order.is_lt(),
        (3, Some(order)) => order.is_le(),
        (4, Some(order)) => order.is_gt(),
        (_, Some(order)) => order.is_ge(),
    };
    Some(answer.into())
}

fn order(a: i128, b: i128, of: &DataType) -> Ordering {
    match of {
        DataType::Float16 => half::f16::from_bits(a as u16).total_cmp(&half::f16::from_bits(b as u16)),
        DataType::Float32 => f32::from_bits(a as u32).total_cmp(&f32::from_bits(b as u32)),
        DataType::Float64 => f64::from_bits(a as u64).total_cmp(&f64::from_bits(b as u64)),
        _ => a.cmp(&b),
    }
}

/// Computes by an operator's number in `Tree::Arithmetic`.
fn arithmetic(op: usize, x: i128, y: i128, of: &DataType) -> Result<i128, Fails> {
    match of {
        DataType::Float32 => {
            let (x, y) = (f32::from_bits(x as u32), f32::from_bits(y as u32));
            let made = [x + y, x - y, x * y, x / y, x % y][op];
            Ok(if made.is_nan() { 0x7fc0_0000 } else { made.to_bits().into() })
        }
        DataType::Float64 => {
            let (x, y) = (f64::from_bits(x as u64), f64::from_bits(y as u64));
            let made = [x + y, x - y, x * y, x / y, x % y][op];
            Ok(if made.is_nan() { 0x7ff8 << 48 } else { made.to_bits().into() })
        }
        _ if op >= 3 && y == 0 => Err(Fails),
        _ => {
            // The largest 64-bit product exceeds a signed 128-bit number, but it does not fit the type in
            // either case.
            let product = x.checked_mul(y).unwrap_or(i128::MAX);
            let (quotient, rest) = (x.checked_div(y).unwrap_or(0), x.checked_rem(y).unwrap_or(0));
            fitting([x + y, x - y, product, quotient, rest][op], of)
        }
    }
}

fn fitting(x: i128, of: &DataType) -> Result<i128, Fails> {
    let bits = 8 * of.primitive_width().expect("a number") as u32;
    let (low, high) = match of.is_unsigned_integer() {
        true => (0, (1i128 << bits) - 1),
        false => (-1i128 << (bits - 1), (1i128 << (bits - 1)) - 1),
    };
    if (low..=high).contains(&x) { Ok(x) } else { Err(Fails) }
}
