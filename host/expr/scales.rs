//! Comparisons of decimals with different scales, by value.
//!
//! A literal is converted to the other operand's scale and rounded down. If digits were lost, a value that is
//! not above the rounded literal is below the original. So no overflow can occur. For two columns, the one
//! with fewer decimal digits is multiplied, as in arithmetic.

use arrow_schema::DataType;
use bowstring_kernels::map::function::Number;

use super::binder::{Binder, Typed};
use super::plan::Op;
use super::range::limits;
use super::{Comparison, Expr, decimal};
use crate::Result;

/// A decimal in units of another scale, rounded down, and whether the conversion is exact.
fn floored(raw: i128, from: i8, to: i8, number: Number) -> (i128, bool) {
    let by = i32::from(to) - i32::from(from);
    let factor = 10i128.checked_pow(by.unsigned_abs());
    let [least, most] = limits(number);
    let beyond = if raw < 0 { least } else { most };
    let (value, is_all) = match (by >= 0, factor) {
        _ if raw == 0 => (0, true),
        (true, factor) => match factor.and_then(|factor| raw.checked_mul(factor)) {
            Some(value) => (value, true),
            None => return (beyond, false),
        },
        (false, Some(factor)) => (raw.div_euclid(factor), raw.rem_euclid(factor) == 0),
        (false, None) => (if raw < 0 { -1 } else { 0 }, false),
    };
    // No decimal of the type exceeds the limits of its integers.
    if (least..=most).contains(&value) { (value, is_all) } else { (beyond, false) }
}

impl Binder<'_> {
    /// Binds a comparison of decimals with different types, if they can be compared.
    pub fn compare_scales(&mut self, how: Comparison, a: &Typed, b: &Typed, expr: &Expr) -> Result<Typed> {
        let literal = |value: &Typed| match self.plan.nodes[value.id].op {
            Op::Literal(Some(raw)) => Some(raw),
            _ => None,
        };
        match (literal(a), literal(b)) {
            (_, Some(raw)) => self.compare_to(how, a, raw, &b.data_type, expr),
            (Some(raw), None) => {
                let turned = match how {
                    Comparison::Lt => Comparison::Gt,
                    Comparison::LtEq => Comparison::GtEq,
                    Comparison::Gt => Comparison::Lt,
                    Comparison::GtEq => Comparison::LtEq,
                    other => other,
                };
                self.compare_to(turned, b, raw, &a.data_type, expr)
            }
            (None, None) => {
                let (like_a, like_b) = decimal::alike(self, a, b, expr)?;
                let is_distinct = match how {
                    Comparison::Distinct => true,
                    Comparison::NotDistinct => false,
                    _ => return self.compare(how, like_a, like_b, expr),
                };
                // A decimal is null at the other's scale where the other is, or where it does not fit.
                let equal = self.compare(Comparison::Eq, like_a, like_b, expr)?;
                Ok(self.distinct_unless(&equal, [a, b], is_distinct, expr))
            }
        }
    }

    /// Binds a comparison with a constant decimal.
    fn compare_to(
        &mut self,
        how: Comparison,
        x: &Typed,
        raw: i128,
        from: &DataType,
        expr: &Expr,
    ) -> Result<Typed> {
        let number = self.number(expr, x)?;
        let (floor, is_all) = floored(raw, decimal::scale(from), decimal::scale(&x.data_type), number);
        let value = self.literal(Some(floor), x.data_type.clone(), expr);
        if is_all {
            return self.compare(how, x.clone(), value, expr);
        }
        let mut compared = |bits: u8| self.node(Op::Compare(bits), DataType::Boolean, &[x, &value], expr);
        let (below, above) = match how {
            Comparison::Lt | Comparison::LtEq => return Ok(compared(3)),
            Comparison::Gt | Comparison::GtEq => return Ok(compared(4)),
            _ => (compared(3), compared(4)),
        };
        Ok(match how {
            // The conjunction, or disjunction. Exactly one of the two is true, unless a value is null.
            Comparison::Eq => self.node(Op::And, DataType::Boolean, &[&below, &above], expr),
            Comparison::NotEq => self.node(Op::Or, DataType::Boolean, &[&below, &above], expr),
            how => {
                let differ = i128::from(how == Comparison::Distinct);
                self.literal(Some(differ), DataType::Boolean, expr)
            }
        })
    }
}
