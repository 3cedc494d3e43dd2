//! Functions of numbers, bound: the machine has no instructions for them, and computes them by those that it has.

use arrow_schema::DataType;
use bowstring_kernels::function::Number;

use super::binder::{Binder, Typed};
use super::plan::{Bad, Op};
use super::range::is_float;
use super::{Arithmetic, Expr, Literal};
use crate::Result;

impl Binder<'_> {
    /// A number without its sign. Floats are below zero by their total order, as which -0.0 and some NaNs are.
    pub fn abs(&mut self, expr: &Expr, x: Typed) -> Result<Typed> {
        if x.data_type.is_unsigned_integer() {
            return Ok(x);
        }
        let negated = self.negate(expr, x.clone())?;
        let zero = self.literal(Some(0), x.data_type.clone(), expr);
        let below = self.node(Op::Compare(1), DataType::Boolean, &[&x, &zero], expr);
        Ok(self.node(Op::Select, x.data_type.clone(), &[&below, &negated, &x], expr))
    }

    /// Whether a float is NaN: beyond both infinities, in their total order.
    pub fn is_nan(&mut self, expr: &Expr, x: Typed) -> Result<Typed> {
        let number = self.number(expr, &x)?;
        if !is_float(number) {
            return Err(self.wrong(expr, format!("no value of {} is NaN", x.data_type)));
        }
        let mut beyond = |infinity: f64, bits: u8| {
            let infinity = Literal::from(infinity).as_type(&x.data_type).flatten();
            let infinity = self.literal(infinity, x.data_type.clone(), expr);
            self.node(Op::Compare(bits), DataType::Boolean, &[&x, &infinity], expr)
        };
        let (above, below) = (beyond(f64::INFINITY, 4), beyond(f64::NEG_INFINITY, 1));
        Ok(self.node(Op::Or, DataType::Boolean, &[&above, &below], expr))
    }

    /// The quotient of integers, rounded down.
    pub fn floor_div(&mut self, expr: &Expr, a: Typed, b: Typed) -> Result<Typed> {
        let whole = self.arithmetic(expr, Arithmetic::Div, a.clone(), b.clone())?;
        let to = whole.data_type.clone();
        if !to.is_integer() {
            let problem =
                format!("quotients of {} are not rounded down: cast to an integer, or use /", a.data_type);
            return Err(self.wrong(expr, problem));
        }
        if to.is_unsigned_integer() {
            return Ok(whole);
        }
        // One less where something is left whose sign is not the divisor's.
        let left = self.arithmetic(expr, Arithmetic::Rem, a, b.clone())?;
        let zero = self.literal(Some(0), to.clone(), expr);
        let compared = |binder: &mut Self, bits: u8, x: &Typed| {
            binder.node(Op::Compare(bits), DataType::Boolean, &[x, &zero], expr)
        };
        let (left_below, left_above) = (compared(self, 1, &left), compared(self, 4, &left));
        let (below, above) = (compared(self, 1, &b), compared(self, 4, &b));
        let and =
            |binder: &mut Self, a: &Typed, b: &Typed| binder.node(Op::And, DataType::Boolean, &[a, b], expr);
        let (one, other) = (and(self, &left_below, &above), and(self, &left_above, &below));
        let is_less = self.node(Op::Or, DataType::Boolean, &[&one, &other], expr);
        let one = self.literal(Some(1), to.clone(), expr);
        let less = self.node(Op::Arithmetic(Arithmetic::Sub, Bad::Wraps), to.clone(), &[&whole, &one], expr);
        Ok(self.node(Op::Select, to, &[&is_less, &less, &whole], expr))
    }

    /// A number times itself so often, by squares.
    pub fn power(&mut self, expr: &Expr, x: Typed, exponent: u32) -> Result<Typed> {
        if exponent == 0 {
            let one = self.number(expr, &x)?;
            let one = if one == Number::Bit { None } else { Literal::from(1).as_type(&x.data_type) };
            let Some(one) = one else {
                return Err(self.wrong(expr, format!("no arithmetic of {}", x.data_type)));
            };
            let one = self.literal(one, x.data_type.clone(), expr);
            let none = self.literal(None, x.data_type.clone(), expr);
            let valid = self.valid(false, &x, expr);
            return Ok(self.node(Op::Select, x.data_type.clone(), &[&valid, &one, &none], expr));
        }
        let mut made = x.clone();
        // From the exponent's second bit on: no power beyond the one that is asked for is computed, and so none overflows.
        for bit in (0..exponent.ilog2()).rev() {
            made = self.arithmetic(expr, Arithmetic::Mul, made.clone(), made)?;
            if exponent >> bit & 1 == 1 {
                made = self.arithmetic(expr, Arithmetic::Mul, made, x.clone())?;
            }
        }
        Ok(made)
    }
}
