//! Random typed expressions, evaluated node by node with arrow-rs' kernels.

use std::sync::Arc;

use arrow_arith::numeric;
use arrow_array::{Array, ArrayRef, BooleanArray, Scalar, new_null_array};
use arrow_cast::cast;
use arrow_ord::cmp;
use arrow_schema::{ArrowError, DataType, TimeUnit};
use arrow_select::nullif::nullif;
use arrow_select::zip::zip;
use bowstring::expr::{Expr, Literal, if_else, nth};

use super::Random;

type Result<T> = std::result::Result<T, ArrowError>;

/// An expression, in a form that tests can evaluate by other means.
#[derive(Clone, Debug)]
pub enum Tree {
    Column(usize),
    /// The bits of a value of a type, or a null.
    Literal(DataType, Option<i128>),
    Compare(usize, Box<Tree>, Box<Tree>),
    Arithmetic(usize, Box<Tree>, Box<Tree>),
    Negate(Box<Tree>),
    And(Box<Tree>, Box<Tree>),
    Or(Box<Tree>, Box<Tree>),
    Not(Box<Tree>),
    IsNull(bool, Box<Tree>),
    IsTrue(bool, bool, Box<Tree>),
    IfElse(Box<Tree>, Box<Tree>, Box<Tree>),
    Coalesce(Box<Tree>, Box<Tree>),
    NullIf(Box<Tree>, Box<Tree>),
    Between(Box<Tree>, Box<Tree>, Box<Tree>),
    InList(Box<Tree>, DataType, Vec<Option<i128>>),
    Cast(Box<Tree>, DataType),
}

/// The types of the columns. Each type has two columns, one of arbitrary and one of small values.
pub fn column_types() -> Vec<DataType> {
    use DataType::*;
    vec![
        Boolean,
        Int8,
        Int16,
        Int32,
        Int64,
        UInt8,
        UInt16,
        UInt32,
        UInt64,
        Float16,
        Float32,
        Float64,
        Date32,
        Date64,
        Timestamp(TimeUnit::Microsecond, None),
        Time32(TimeUnit::Second),
        Duration(TimeUnit::Millisecond),
        Decimal32(7, 2),
        Decimal64(12, 3),
        Decimal128(15, 2),
        Decimal128(38, 10),
    ]
}

/// Whether arithmetic on the type gives the same type.
fn has_arithmetic(data_type: &DataType) -> bool {
    data_type.is_integer() || matches!(data_type, DataType::Float32 | DataType::Float64)
}

impl Tree {
    /// A random tree of a type, over columns of [`column_types`], two of each.
    pub fn random(of: &DataType, depth: usize, rng: &mut Random) -> Tree {
        let tree = |of: &DataType, rng: &mut Random| Box::new(Tree::random(of, depth - 1, rng));
        if depth == 0 || rng.percent(15.0) {
            let place = column_types().iter().position(|other| other == of).expect("a type of the columns");
            return match rng.below(4) {
                0 => Tree::Literal(of.clone(), rng.percent(90.0).then(|| small(of, rng))),
                _ => Tree::Column(2 * place + rng.below(2)),
            };
        }
        if *of == DataType::Boolean {
            let types = column_types();
            let any = types[rng.below(types.len())].clone();
            return match rng.below(14) {
                0..4 => Tree::Compare(rng.below(8), tree(&any, rng), tree(&any, rng)),
                4..6 => Tree::And(tree(of, rng), tree(of, rng)),
                6..8 => Tree::Or(tree(of, rng), tree(of, rng)),
                8 => Tree::Not(tree(of, rng)),
                9 => Tree::IsNull(rng.percent(50.0), tree(&any, rng)),
                10 => Tree::IsTrue(rng.percent(50.0), rng.percent(50.0), tree(of, rng)),
                11 => Tree::Between(tree(&any, rng), tree(&any, rng), tree(&any, rng)),
                12 => {
                    let list =
                        (0..rng.below(5)).map(|_| rng.percent(90.0).then(|| small(&any, rng))).collect();
                    Tree::InList(tree(&any, rng), any, list)
                }
                _ => Tree::conditional(of, depth, rng),
            };
        }
        match rng.below(8) {
            0..4 if has_arithmetic(of) => Tree::Arithmetic(rng.below(5), tree(of, rng), tree(of, rng)),
            4 if has_arithmetic(of) && !of.is_unsigned_integer() => Tree::Negate(tree(of, rng)),
            5 if *of == DataType::Int64 => Tree::Cast(tree(&DataType::Int32, rng), of.clone()),
            5 if *of == DataType::Float64 => Tree::Cast(tree(&DataType::Decimal128(15, 2), rng), of.clone()),
            _ => Tree::conditional(of, depth, rng),
        }
    }

    fn conditional(of: &DataType, depth: usize, rng: &mut Random) -> Tree {
        let tree = |of: &DataType, rng: &mut Random| Box::new(Tree::random(of, depth - 1, rng));
        match rng.below(3) {
            0 => Tree::IfElse(tree(&DataType::Boolean, rng), tree(of, rng), tree(of, rng)),
            1 => Tree::Coalesce(tree(of, rng), tree(of, rng)),
            _ => Tree::NullIf(tree(of, rng), tree(of, rng)),
        }
    }

    /// The tree as an expression.
    pub fn expr(&self) -> Expr {
        match self {
            Tree::Column(index) => nth(*index),
            Tree::Literal(of, value) => literal(of, *value).into(),
            Tree::Compare(how, a, b) => comparison(*how, a.expr(), b.expr()),
            Tree::Arithmetic(op, a, b) => {
                let (a, b) = (a.expr(), b.expr());
                match op {
                    0 => a + b,
                    1 => a - b,
                    2 => a * b,
                    3 => a / b,
                    _ => a % b,
                }
            }
            Tree::Negate(x) => -x.expr(),
            Tree::And(a, b) => a.expr() & b.expr(),
            Tree::Or(a, b) => a.expr() | b.expr(),
            Tree::Not(x) => !x.expr(),
            Tree::IsNull(null, x) => {
                if *null {
                    x.expr().is_null()
                } else {
                    x.expr().is_not_null()
                }
            }
            Tree::IsTrue(which, is, x) => match (which, is) {
                (true, true) => x.expr().is_true(),
                (true, false) => x.expr().is_not_true(),
                (false, true) => x.expr().is_false(),
                (false, false) => x.expr().is_not_false(),
            },
            Tree::IfElse(c, a, b) => if_else(c.expr(), a.expr(), b.expr()),
            Tree::Coalesce(a, b) => a.expr().coalesce(b.expr()),
            Tree::NullIf(a, b) => a.expr().nullif(b.expr()),
            Tree::Between(x, low, high) => x.expr().between(low.expr(), high.expr()),
            Tree::InList(x, of, list) => x.expr().in_list(list.iter().map(|value| literal(of, *value))),
            Tree::Cast(x, to) => x.expr().cast(to.clone()),
        }
    }

    /// The result of arrow-rs' kernels.
    pub fn arrow(&self, columns: &[ArrayRef]) -> Result<ArrayRef> {
        let rows = columns[0].len();
        Ok(match self {
            Tree::Column(index) => columns[*index].clone(),
            Tree::Literal(of, value) => {
                let one = one_row(of, *value);
                let all = arrow_array::UInt32Array::from(vec![0; rows]);
                arrow_select::take::take(&one, &all, None)?
            }
            Tree::Compare(how, a, b) => compare(*how, &a.arrow(columns)?, &b.arrow(columns)?)?,
            Tree::Arithmetic(op, a, b) => {
                let (a, b) = (a.arrow(columns)?, b.arrow(columns)?);
                let made = match op {
                    0 => numeric::add(&a, &b)?,
                    1 => numeric::sub(&a, &b)?,
                    2 => numeric::mul(&a, &b)?,
                    3 => numeric::div(&a, &b)?,
                    _ => numeric::rem(&a, &b)?,
                };
                one_nan(made)
            }
            Tree::Negate(x) => numeric::neg(&x.arrow(columns)?)?,
            Tree::And(a, b) => {
                truth(arrow_arith::boolean::and_kleene(&bools(a, columns)?, &bools(b, columns)?)?)
            }
            Tree::Or(a, b) => {
                truth(arrow_arith::boolean::or_kleene(&bools(a, columns)?, &bools(b, columns)?)?)
            }
            Tree::Not(x) => truth(arrow_arith::boolean::not(&bools(x, columns)?)?),
            Tree::IsNull(true, x) => truth(arrow_arith::boolean::is_null(&x.arrow(columns)?)?),
            Tree::IsNull(false, x) => truth(arrow_arith::boolean::is_not_null(&x.arrow(columns)?)?),
            Tree::IsTrue(which, is, x) => {
                let of = bools(x, columns)?;
                truth(of.iter().map(|value| Some((value == Some(*which)) == *is)).collect())
            }
            Tree::IfElse(c, a, b) => zip(&bools(c, columns)?, &a.arrow(columns)?, &b.arrow(columns)?)?,
            Tree::Coalesce(a, b) => {
                let a = a.arrow(columns)?;
                zip(&arrow_arith::boolean::is_not_null(&a)?, &a, &b.arrow(columns)?)?
            }
            Tree::NullIf(a, b) => {
                let a = a.arrow(columns)?;
                let equal = compare(0, &a, &b.arrow(columns)?)?;
                nullif(&a, equal.as_any().downcast_ref::<BooleanArray>().expect("booleans"))?
            }
            Tree::Between(x, low, high) => {
                let x = x.arrow(columns)?;
                let (low, high) =
                    (compare(5, &x, &low.arrow(columns)?)?, compare(3, &x, &high.arrow(columns)?)?);
                let of = |array: &ArrayRef| {
                    array.as_any().downcast_ref::<BooleanArray>().expect("booleans").clone()
                };
                truth(arrow_arith::boolean::and_kleene(&of(&low), &of(&high))?)
            }
            Tree::InList(x, of, list) => {
                let x = x.arrow(columns)?;
                // Starts with false, or null for a null; then applies "or" for each value.
                let mut found: BooleanArray = (0..rows).map(|i| x.is_valid(i).then_some(false)).collect();
                for value in list {
                    let equal = cmp::eq(&x, &Scalar::new(one_row(of, *value)))?;
                    found = arrow_arith::boolean::or_kleene(&found, &equal)?;
                }
                truth(found)
            }
            Tree::Cast(x, to) => cast(&x.arrow(columns)?, to)?,
        })
    }

    /// The direct parts: smaller trees that may fail as well.
    pub fn parts(&self) -> Vec<&Tree> {
        match self {
            Tree::Column(_) | Tree::Literal(..) => vec![],
            Tree::Negate(x)
            | Tree::Not(x)
            | Tree::IsNull(_, x)
            | Tree::IsTrue(_, _, x)
            | Tree::InList(x, ..)
            | Tree::Cast(x, _) => vec![x],
            Tree::Compare(_, a, b)
            | Tree::Arithmetic(_, a, b)
            | Tree::And(a, b)
            | Tree::Or(a, b)
            | Tree::Coalesce(a, b)
            | Tree::NullIf(a, b) => vec![a, b],
            Tree::IfElse(a, b, c) | Tree::Between(a, b, c) => vec![a, b, c],
        }
    }
}

fn truth(array: BooleanArray) -> ArrayRef {
    Arc::new(array)
}

fn bools(tree: &Tree, columns: &[ArrayRef]) -> Result<BooleanArray> {
    Ok(tree.arrow(columns)?.as_any().downcast_ref::<BooleanArray>().expect("booleans").clone())
}

fn compare(how: usize, a: &ArrayRef, b: &ArrayRef) -> Result<ArrayRef> {
    Ok(truth(match how {
        0 => cmp::eq(a, b)?,
        1 => cmp::neq(a, b)?,
        2 => cmp::lt(a, b)?,
        3 => cmp::lt_eq(a, b)?,
        4 => cmp::gt(a, b)?,
        5 => cmp::gt_eq(a, b)?,
        6 => cmp::distinct(a, b)?,
        _ => cmp::not_distinct(a, b)?,
    }))
}

/// Replaces every NaN by one NaN, because arithmetic makes different ones.
fn one_nan(array: ArrayRef) -> ArrayRef {
    use arrow_array::cast::AsArray;
    use arrow_array::types::{Float32Type, Float64Type};
    match array.data_type() {
        DataType::Float32 => {
            let plain = |x: f32| if x.is_nan() { f32::from_bits(0x7fc0_0000) } else { x };
            Arc::new(array.as_primitive::<Float32Type>().unary::<_, Float32Type>(plain))
        }
        DataType::Float64 => {
            let plain = |x: f64| if x.is_nan() { f64::from_bits(0x7ff8 << 48) } else { x };
            Arc::new(array.as_primitive::<Float64Type>().unary::<_, Float64Type>(plain))
        }
        _ => array,
    }
}

fn literal(of: &DataType, value: Option<i128>) -> Literal {
    value.map_or_else(|| Literal::null(of.clone()), |raw| Literal::of(of.clone(), raw))
}

/// The bits of a small value of a type.
pub fn small(of: &DataType, rng: &mut Random) -> i128 {
    let number = rng.below(20) as i128 - if of.is_unsigned_integer() { 0 } else { 10 };
    match of {
        DataType::Boolean => number & 1,
        DataType::Float16 => i128::from(half_bits(number as f32 / 2.0)),
        DataType::Float32 => (number as f32 / 2.0).to_bits().into(),
        DataType::Float64 => (number as f64 / 2.0).to_bits().into(),
        DataType::Time32(_) => number.abs(),
        _ => number,
    }
}

fn half_bits(value: f32) -> u16 {
    let half = cast(&arrow_array::Float32Array::from(vec![value]), &DataType::Float16).expect("floats");
    half.to_data().buffers()[0].typed_data::<u16>()[0]
}

/// An array of one row.
pub fn one_row(of: &DataType, value: Option<i128>) -> ArrayRef {
    let Some(raw) = value else { return new_null_array(of, 1) };
    if *of == DataType::Boolean {
        return truth(BooleanArray::from(vec![raw != 0]));
    }
    let width = of.primitive_width().expect("numbers");
    let buffer = arrow_buffer::Buffer::from(&raw.to_le_bytes()[..width]);
    arrow_array::make_array(
        arrow_data::ArrayData::builder(of.clone()).len(1).add_buffer(buffer).build().expect("a row"),
    )
}

/// The comparison of a number below eight: equal, unequal, less, at most, more, at least, distinct, not
/// distinct.
pub fn comparison(how: usize, a: Expr, b: Expr) -> Expr {
    match how {
        0 => a.eq(b),
        1 => a.neq(b),
        2 => a.lt(b),
        3 => a.lt_eq(b),
        4 => a.gt(b),
        5 => a.gt_eq(b),
        6 => a.distinct(b),
        _ => a.not_distinct(b),
    }
}

/// A column of the bits of some values.
pub fn column_of(of: &DataType, values: &[Option<i128>]) -> ArrayRef {
    let ones: Vec<ArrayRef> = values.iter().map(|value| one_row(of, *value)).collect();
    let ones: Vec<&dyn Array> = ones.iter().map(|one| one.as_ref()).collect();
    arrow_select::concat::concat(&ones).expect("of one type")
}

/// A column of small values of a type, some of them null.
pub fn small_column(of: &DataType, rows: usize, rng: &mut Random) -> ArrayRef {
    let values: Vec<_> = (0..rows.max(1)).map(|_| rng.percent(85.0).then(|| small(of, rng))).collect();
    column_of(of, &values).slice(0, rows)
}
