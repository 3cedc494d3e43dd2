//! Binds list membership tests. A list is sorted once, and is a single node however long it is.

use arrow_schema::DataType;
use bowstring_kernels::map::function::Number;
use bowstring_kernels::program::word::{plain_nan_f32, plain_nan_f64};

use super::binder::{Binder, Typed};
use super::decimal::is_decimal;
use super::plan::{Op, is_text, value_type};
use super::print::short;
use super::range::{in_order, is_float};
use super::{Expr, FloatOrder, Literal};
use crate::Result;

impl Binder<'_> {
    /// Binds a test whether a value is one of these literals.
    pub fn in_list(&mut self, expr: &Expr, x: Typed, list: &[Literal]) -> Result<Typed> {
        if is_text(value_type(&x.data_type)) {
            return self.text_in_list(expr, x, list);
        }
        let number = self.number(expr, &x)?;
        let (mut values, mut has_null) = (vec![], false);
        for literal in list {
            match literal.as_type(&x.data_type) {
                Some(Some(value)) => values.push(value),
                Some(None) => has_null = true,
                // No decimal of the type equals that number.
                None if is_decimal(&x.data_type) && literal.exactly().is_some() => {}
                None => {
                    let problem = format!("{} is no value of {}", short(literal), x.data_type);
                    return Err(self.wrong(expr, problem));
                }
            }
        }
        if self.options.floats == FloatOrder::Sql {
            values.iter_mut().for_each(|value| *value = as_compared(*value, number));
        }
        let x = self.ordered(x, expr);
        let number = self.number(expr, &x)?;
        values.sort_unstable_by_key(|value| in_order(*value, number));
        values.dedup();
        let found = match (number, &values[..]) {
            (_, []) => self.none_of_none(&x, expr),
            (Number::Bit, &[only]) if only != 0 => x,
            (Number::Bit, &[_]) => self.node(Op::Not, DataType::Boolean, &[&x], expr),
            (Number::Bit, _) => {
                // Both booleans are listed, so every known value matches.
                let known = self.node(Op::Test(3), DataType::Boolean, &[&x], expr);
                self.or_null(known, expr)
            }
            _ => match ranges(&values, number) {
                Some(ranges) => self.in_ranges(&x, &ranges, expr),
                None => self.node(Op::In(values.into()), DataType::Boolean, &[&x], expr),
            },
        };
        Ok(if has_null { self.or_null(found, expr) } else { found })
    }

    /// Whether a value is in one of a few ranges.
    fn in_ranges(&mut self, x: &Typed, ranges: &[[i128; 2]], expr: &Expr) -> Typed {
        let truth = DataType::Boolean;
        let mut found: Option<Typed> = None;
        for [low, high] in ranges {
            let [low, high] = [low, high].map(|end| self.literal(Some(*end), x.data_type.clone(), expr));
            let above = self.node(Op::Compare(6), truth.clone(), &[x, &low], expr);
            let below = self.node(Op::Compare(3), truth.clone(), &[x, &high], expr);
            let inside = self.node(Op::And, truth.clone(), &[&above, &below], expr);
            found = Some(match found {
                None => inside,
                Some(found) => self.node(Op::Or, truth.clone(), &[&found, &inside], expr),
            });
        }
        found.expect("there are ranges")
    }

    /// Membership in an empty list: false, or null if the value is null.
    pub fn none_of_none(&mut self, x: &Typed, expr: &Expr) -> Typed {
        let is_null = match x.data_type {
            DataType::Boolean => self.node(Op::Test(4), DataType::Boolean, &[x], expr),
            _ => self.valid(true, x, expr),
        };
        let null = self.literal(None, DataType::Boolean, expr);
        self.node(Op::And, DataType::Boolean, &[&is_null, &null], expr)
    }

    /// Null unless the test is true: a list with a null makes every other result unknown.
    pub fn or_null(&mut self, truth: Typed, expr: &Expr) -> Typed {
        let null = self.literal(None, DataType::Boolean, expr);
        self.node(Op::Or, DataType::Boolean, &[&truth, &null], expr)
    }
}

/// The most ranges that replace a list, and the fewest values that each must stand for on average.
const RANGES: usize = 4;
const EACH: usize = 16;

/// Converts a list of ascending, distinct integers into a few ranges, if possible.
fn ranges(values: &[i128], number: Number) -> Option<Vec<[i128; 2]>> {
    if is_float(number) {
        return None;
    }
    let mut ranges: Vec<[i128; 2]> = vec![];
    for value in values {
        let count = ranges.len();
        match ranges.last_mut() {
            Some([_, high]) if value - 1 == *high => *high = *value,
            _ if count == RANGES => return None,
            _ => ranges.push([*value; 2]),
        }
    }
    (values.len() >= ranges.len() * EACH).then_some(ranges)
}

/// The bits of a float as SQL compares it: with a single zero and a single NaN, and a half as a single.
fn as_compared(value: i128, number: Number) -> i128 {
    let single = |x: f32| i128::from((if x == 0.0 { 0.0 } else { plain_nan_f32(x) }).to_bits() as i32);
    match number {
        Number::F16 => single(half::f16::from_bits(value as u16).to_f32()),
        Number::F32 => single(f32::from_bits(value as u32)),
        Number::F64 => {
            let x = f64::from_bits(value as u64);
            i128::from((if x == 0.0 { 0.0 } else { plain_nan_f64(x) }).to_bits() as i64)
        }
        _ => value,
    }
}
