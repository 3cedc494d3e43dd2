//! Binds numeric functions for which the machine has no instructions, by combining its instructions.

use arrow_schema::DataType;
use bowstring_kernels::map::function::Number;

use super::binder::{Binder, Typed};
use super::plan::{Bad, Op, number_of};
use super::range::is_float;
use super::{Arithmetic, Expr, Literal};
use crate::Result;

impl Binder<'_> {
    /// The absolute value. The sign of floats is that of their total order, in which -0.0 and some NaNs are
    /// negative.
    pub fn abs(&mut self, expr: &Expr, x: Typed) -> Result<Typed> {
        if x.data_type.is_unsigned_integer() {
            return Ok(x);
        }
        let negated = self.negate(expr, x.clone())?;
        let zero = self.literal(Some(0), x.data_type.clone(), expr);
        let below = self.node(Op::Compare(1), DataType::Boolean, &[&x, &zero], expr);
        Ok(self.node(Op::Select, x.data_type.clone(), &[&below, &negated, &x], expr))
    }

    /// Whether a float is NaN, which means beyond both infinities in the total order.
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

    /// The quotient, rounded down.
    pub fn floor_div(&mut self, expr: &Expr, a: Typed, b: Typed) -> Result<Typed> {
        if a.data_type.is_floating() {
            return self.floor_div_floats(expr, a, b);
        }
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
        // One less if the remainder is not zero and its sign differs from the divisor's.
        let left = self.arithmetic(expr, Arithmetic::Rem, a, b.clone())?;
        let zero = self.literal(Some(0), to.clone(), expr);
        let compared = |binder: &mut Self, bits: u8, x: &Typed| {
            binder.node(Op::Compare(bits), DataType::Boolean, &[x, &zero], expr)
        };
        let (left_below, left_above) = (compared(self, 1, &left), compared(self, 4, &left));
        let (below, above) = (compared(self, 1, &b), compared(self, 4, &b));
        let is_less = self.either_pair(expr, [&left_below, &above], [&left_above, &below]);
        let one = self.literal(Some(1), to.clone(), expr);
        let less = self.node(Op::Arithmetic(Arithmetic::Sub, Bad::Wraps), to.clone(), &[&whole, &one], expr);
        Ok(self.node(Op::Select, to, &[&is_less, &less, &whole], expr))
    }

    /// The quotient of floats, rounded down as in numpy: the remainder is subtracted first, so that a
    /// quotient that rounding made whole does not count as whole. Division by zero gives the same result as
    /// `/`.
    fn floor_div_floats(&mut self, expr: &Expr, a: Typed, b: Typed) -> Result<Typed> {
        let to = a.data_type.clone();
        if to == DataType::Float16 && b.data_type == to {
            let [a, b] = [a, b].map(|x| self.node(Op::Cast(true), DataType::Float32, &[&x], expr));
            let made = self.floor_div_floats(expr, a, b)?;
            return Ok(self.node(Op::Cast(true), to, &[&made], expr));
        }
        let truth = DataType::Boolean;
        let constant = |binder: &mut Self, value: f64| {
            let bits = Literal::from(value).as_type(&to).flatten();
            binder.literal(bits, to.clone(), expr)
        };
        let select = |binder: &mut Self, condition: &Typed, then: &Typed, otherwise: &Typed| {
            binder.node(Op::Select, to.clone(), &[condition, then, otherwise], expr)
        };
        // From here on nothing is divided by zero: no float fails.
        let compute = |binder: &mut Self, op: Arithmetic, a: &Typed, b: &Typed| {
            binder.node(Op::Arithmetic(op, Bad::Wraps), to.clone(), &[a, b], expr)
        };
        let quotient = self.arithmetic(expr, Arithmetic::Div, a.clone(), b.clone())?;
        let [zero, minus_zero, one, half] = [0.0, -0.0, 1.0, 0.5].map(|value| constant(self, value));
        // In the total order, -0.0 is below 0.0.
        let below = |binder: &mut Self, x: &Typed, y: &Typed| {
            binder.node(Op::Compare(1), truth.clone(), &[x, y], expr)
        };
        let rest = compute(self, Arithmetic::Rem, &a, &b);
        let without = compute(self, Arithmetic::Sub, &a, &rest);
        let whole = compute(self, Arithmetic::Div, &without, &b);
        let rest_signs = [below(self, &rest, &minus_zero), below(self, &zero, &rest)];
        let signs = [below(self, &b, &minus_zero), below(self, &zero, &b)];
        let differ = self.either_pair(expr, [&rest_signs[0], &signs[1]], [&rest_signs[1], &signs[0]]);
        let less = compute(self, Arithmetic::Sub, &whole, &one);
        let whole = select(self, &differ, &less, &whole);
        // From this number on, floats have no fraction, so adding and subtracting it rounds to a whole
        // number.
        let first = if to == DataType::Float32 { 2f64.powi(23) } else { 2f64.powi(52) };
        let [first, minus_first] = [first, -first].map(|value| constant(self, value));
        let is_below = below(self, &whole, &zero);
        let beside = select(self, &is_below, &minus_first, &first);
        let rounded = compute(self, Arithmetic::Add, &whole, &beside);
        let rounded = compute(self, Arithmetic::Sub, &rounded, &beside);
        // Halfway cases round down.
        let by = compute(self, Arithmetic::Sub, &rounded, &whole);
        let is_up = self.node(Op::Compare(2), truth.clone(), &[&by, &half], expr);
        let down = compute(self, Arithmetic::Sub, &rounded, &one);
        let rounded = select(self, &is_up, &down, &rounded);
        let inside = [below(self, &minus_first, &whole), below(self, &whole, &first)];
        let inside = self.node(Op::And, truth.clone(), &[&inside[0], &inside[1]], expr);
        let rounded = select(self, &inside, &rounded, &whole);
        // A zero has the sign of the quotient, also if the dividend is zero.
        let is_zero = |binder: &mut Self, x: &Typed| {
            let plain = binder.node(Op::Plain, to.clone(), &[x], expr);
            binder.node(Op::Compare(2), truth.clone(), &[&plain, &zero], expr)
        };
        let (none, by_zero) = (is_zero(self, &whole), is_zero(self, &b));
        let is_minus = below(self, &quotient, &zero);
        let signed = select(self, &is_minus, &minus_zero, &zero);
        let rounded = select(self, &none, &signed, &rounded);
        Ok(select(self, &by_zero, &quotient, &rounded))
    }

    /// Whether both of one pair are true, or both of the other.
    fn either_pair(&mut self, expr: &Expr, one: [&Typed; 2], other: [&Typed; 2]) -> Typed {
        let both = [one, other].map(|pair| self.node(Op::And, DataType::Boolean, &pair, expr));
        self.node(Op::Or, DataType::Boolean, &[&both[0], &both[1]], expr)
    }

    /// A number raised to a power by repeated squaring.
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
        // One factor makes no product, which would say so.
        if !x.data_type.is_numeric() {
            return Err(self.wrong(expr, format!("no arithmetic of {}", x.data_type)));
        }
        let mut made = x.clone();
        // From the exponent's second bit on, so that no higher power than the requested one is computed or
        // overflows.
        for bit in (0..exponent.ilog2()).rev() {
            made = self.arithmetic(expr, Arithmetic::Mul, made.clone(), made)?;
            if exponent >> bit & 1 == 1 {
                made = self.arithmetic(expr, Arithmetic::Mul, made, x.clone())?;
            }
        }
        Ok(made)
    }
}

/// Whether one integer type can represent all values of the other.
pub(super) fn widens(from: &DataType, to: &DataType) -> bool {
    if !from.is_integer() || !to.is_integer() {
        return false;
    }
    let (from, to) = (number_of(from), number_of(to));
    let (Some(from), Some(to)) = (from, to) else { return false };
    let unsigned = |number: Number| number.signed() != number;
    match (unsigned(from), unsigned(to)) {
        (true, false) | (false, false) | (true, true) => from.bits() < to.bits(),
        (false, true) => false,
    }
}
