//! Binds expressions to a schema: resolves columns, types literals, and reports type errors.

use std::collections::HashMap;

use arrow_schema::{DataType, Schema};
use bowstring_kernels::map::function::Number;

use super::binder::{Binder, Typed};
use super::extent::{Extent, check_steps};
use super::numbers::widens;
use super::plan::{Bad, Op, Plan, is_text, value_type};
use super::print::short;
use super::text::tested_as;
use super::{Arithmetic, Comparison, Expr, Literal, Node, Options, Overflow, Test, decimal};
use crate::Result;

/// Binds a condition and outputs to a schema.
pub(crate) fn bind(
    condition: Option<&Expr>,
    outputs: &[Expr],
    schema: &Schema,
    options: &Options,
) -> Result<Plan> {
    let mut binder = Binder { schema, options, plan: Plan::default(), alike: HashMap::new(), path: vec![] };
    let all = || condition.into_iter().chain(outputs);
    all().try_for_each(Expr::check)?;
    Extent::check_together(all().map(|expr| expr.1))?;
    if let Some(condition) = condition {
        let bound = binder.any(condition)?;
        if bound.data_type != DataType::Boolean {
            return Err(binder.wrong(condition, format!("{}, not Boolean", bound.data_type)));
        }
        binder.plan.condition = Some(bound.id);
    }
    let outputs = outputs.iter().map(|expr| binder.any(expr).map(|output| output.id));
    binder.plan.outputs = outputs.collect::<Result<_>>()?;
    // Operands of folded constants are not needed, and may have types that the machine does not support.
    let plan = binder.plan.pruned();
    check_steps(plan.nodes.len())?;
    Ok(plan)
}

impl Binder<'_> {
    /// Binds a subexpression; errors in it report `step` as part of their path.
    fn inside<T>(&mut self, step: &str, bind: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.path.push(step.to_owned());
        let bound = bind(self);
        // The error message already contains the path.
        self.path.pop();
        bound
    }

    fn child(&mut self, step: &str, expr: &Expr) -> Result<Typed> {
        self.inside(step, |binder| binder.any(expr))
    }

    pub(super) fn truth(&mut self, step: &str, expr: &Expr) -> Result<Typed> {
        self.inside(step, |binder| {
            let bound = binder.any(expr)?;
            match &bound.data_type {
                DataType::Boolean => Ok(bound),
                other => Err(binder.wrong(expr, format!("{other}, not Boolean"))),
            }
        })
    }

    /// Binds two operands; a literal takes the type of the other one.
    fn pair(&mut self, whole: &Expr, a: (&str, &Expr), b: (&str, &Expr)) -> Result<(Typed, Typed)> {
        let (left, right) = self.operands(whole, a, b)?;
        Ok(self.as_long((a.1, left), (b.1, right), whole))
    }

    fn operands(&mut self, whole: &Expr, a: (&str, &Expr), b: (&str, &Expr)) -> Result<(Typed, Typed)> {
        let is_untyped = |literal: &Literal| literal.own_type() == DataType::Null;
        let (left, right) = match (literal(a.1), literal(b.1)) {
            (Some(literal), None) => {
                let right = self.child(b.0, b.1)?;
                let right = self.computable(whole, right, !literal.is_null())?;
                (self.literal_like(whole, literal, value_type(&right.data_type))?, right)
            }
            (None, Some(literal)) => {
                let left = self.child(a.0, a.1)?;
                let left = self.computable(whole, left, !literal.is_null())?;
                let right = self.literal_like(whole, literal, value_type(&left.data_type))?;
                (left, right)
            }
            (Some(left), Some(right)) if is_untyped(left) != is_untyped(right) => {
                let to = if is_untyped(left) { right.own_type() } else { left.own_type() };
                (self.literal_like(whole, left, &to)?, self.literal_like(whole, right, &to)?)
            }
            _ => {
                let (left, right) = (self.child(a.0, a.1)?, self.child(b.0, b.1)?);
                (self.computable(whole, left, false)?, self.computable(whole, right, false)?)
            }
        };
        Ok((left, right))
    }

    /// Casts a value to the type in which it is compared. A dictionary becomes its values, except for text
    /// that is tested against a constant, which keeps the dictionary. A binary of fixed width becomes a
    /// binary of variable length. Returns an error for a dictionary of values that expressions do not compute
    /// with, such as nulls or lists.
    pub(super) fn computable(&mut self, whole: &Expr, value: Typed, with_literal: bool) -> Result<Typed> {
        let to = match &value.data_type {
            DataType::Dictionary(_, values) if with_literal && is_text(values) => return Ok(value),
            DataType::Dictionary(_, values) => (**values).clone(),
            DataType::FixedSizeBinary(_) => DataType::LargeBinary,
            other if is_text(other) => return Ok(value),
            other => return self.computed(whole, other).map(|()| value),
        };
        let written = self.plan.nodes[value.id].written.clone();
        let plain = self.node(Op::Cast(false), to, &[&value], &written);
        self.computable(whole, plain, with_literal)
    }

    pub(super) fn same(
        &mut self,
        whole: &Expr,
        a: (&str, &Expr),
        b: (&str, &Expr),
    ) -> Result<(Typed, Typed)> {
        let (left, right) = self.pair(whole, a, b)?;
        self.of_one_type(whole, &left, &right)?;
        Ok((left, right))
    }

    fn of_one_type(&self, whole: &Expr, a: &Typed, b: &Typed) -> Result<()> {
        match value_type(&a.data_type) == value_type(&b.data_type) {
            true => Ok(()),
            false => Err(self.wrong(whole, format!("{} and {}; cast one", a.data_type, b.data_type))),
        }
    }

    fn literal_like(&mut self, whole: &Expr, literal: &Literal, to: &DataType) -> Result<Typed> {
        match self.literal_as(whole, literal, to) {
            Some(value) => Ok(value),
            None if decimal::is_decimal(to) && literal.exactly().is_some() => {
                let exactly = literal.exactly().expect("just looked");
                self.literal_alone(whole, &exactly)
            }
            // The literal keeps its own type; the caller compares it with the other operand's.
            None if literal.has_a_type() => self.literal_alone(whole, literal),
            None => Err(self.wrong(whole, format!("{} is no value of {to}", short(literal)))),
        }
    }

    fn literal_alone(&mut self, whole: &Expr, literal: &Literal) -> Result<Typed> {
        let to = literal.own_type();
        if to == DataType::Null {
            return Err(self.wrong(whole, "a null without a type"));
        }
        match self.literal_as(whole, literal, &to) {
            Some(value) => Ok(value),
            None => Err(self.wrong(whole, format!("{} is no value of {to}", short(literal)))),
        }
    }

    /// Converts a literal to a type; `None` if the type cannot represent it.
    fn literal_as(&mut self, whole: &Expr, literal: &Literal, to: &DataType) -> Option<Typed> {
        if !is_text(to) {
            return Some(self.literal(literal.as_type(to)?, to.clone(), whole));
        }
        Some(match literal.as_text(to)? {
            Some(bytes) => self.node(Op::Bytes(bytes), to.clone(), &[], whole),
            None => self.literal(None, to.clone(), whole),
        })
    }

    fn any(&mut self, expr: &Expr) -> Result<Typed> {
        match &*expr.0 {
            Node::Named(name) => match self.schema.index_of(name) {
                Ok(index) => self.column(expr, index),
                Err(_) => Err(self.no_column(expr, None)),
            },
            Node::Indexed(index) if *index < self.schema.fields().len() => self.column(expr, *index),
            Node::Indexed(index) => Err(self.no_column(expr, Some(*index))),
            Node::Literal(literal) => self.literal_alone(expr, literal),
            Node::Alias(inner, _) => self.any(inner),
            Node::Compare(how, a, b) => {
                let (a, b) = self.pair(expr, ("left", a), ("right", b))?;
                self.comparison(*how, a, b, expr)
            }
            Node::Between(x, low, high) => {
                let (a, low) = self.pair(expr, ("value", x), ("low", low))?;
                let (b, high) = self.pair(expr, ("value", x), ("high", high))?;
                let above = self.comparison(Comparison::GtEq, a, low, expr)?;
                let below = self.comparison(Comparison::LtEq, b, high, expr)?;
                Ok(self.node(Op::And, DataType::Boolean, &[&above, &below], expr))
            }
            Node::InList(x, list) => {
                let x = self.child("value", x)?;
                let x = self.computable(expr, x, true)?;
                self.in_list(expr, x, list)
            }
            Node::Matches(how, a, b) => {
                let (a, b) = self.same(expr, ("left", a), ("right", b))?;
                let test = tested_as(*how, value_type(&a.data_type));
                let test = test.ok_or_else(|| self.wrong(expr, format!("{how} of {}", a.data_type)))?;
                Ok(self.text_test(test, a, b, expr))
            }
            Node::And(a, b) => {
                let (a, b) = (self.truth("left", a)?, self.truth("right", b)?);
                Ok(self.node(Op::And, DataType::Boolean, &[&a, &b], expr))
            }
            Node::Or(a, b) => {
                let (a, b) = (self.truth("left", a)?, self.truth("right", b)?);
                Ok(self.node(Op::Or, DataType::Boolean, &[&a, &b], expr))
            }
            Node::Not(x) => {
                let x = self.truth("operand", x)?;
                Ok(self.node(Op::Not, DataType::Boolean, &[&x], expr))
            }
            Node::Test(test, x) => self.test(*test, x, expr),
            Node::Arithmetic(op, a, b) => {
                let (a, b) = self.pair(expr, ("left", a), ("right", b))?;
                self.arithmetic(expr, *op, a, b)
            }
            Node::Negate(x) => {
                let x = self.child("operand", x)?;
                self.negate(expr, x)
            }
            Node::Cast(x, to, safe) => {
                let x = self.child("cast", x)?;
                if x.data_type == *to {
                    return Ok(x);
                }
                if !is_text(to) {
                    self.computed(expr, to)?;
                }
                let op = if widens(&x.data_type, to) { Op::Widen } else { Op::Cast(*safe) };
                Ok(self.node(op, to.clone(), &[&x], expr))
            }
            Node::IfElse(condition, then, otherwise) => self.if_else(expr, condition, then, otherwise),
            Node::Coalesce(a, b) => self.coalesce(expr, a, b),
            Node::NullIf(a, b) => self.null_if(expr, a, b),
            Node::DatePart(part, x) => {
                let x = self.child("operand", x)?;
                self.date_part(expr, *part, x)
            }
            Node::Substring(x, start, length) => {
                let x = self.child("operand", x)?;
                self.substring(expr, x, *start, *length)
            }
            Node::Abs(x) => {
                let x = self.child("operand", x)?;
                self.abs(expr, x)
            }
            Node::IsNan(x) => {
                let x = self.child("operand", x)?;
                self.is_nan(expr, x)
            }
            Node::FloorDiv(a, b) => {
                let (a, b) = self.pair(expr, ("left", a), ("right", b))?;
                self.floor_div(expr, a, b)
            }
            Node::Power(x, exponent) => {
                let x = self.child("operand", x)?;
                self.power(expr, x, *exponent)
            }
        }
    }

    fn column(&mut self, expr: &Expr, index: usize) -> Result<Typed> {
        let data_type = self.schema.field(index).data_type().clone();
        // Casts check their own input types, null tests accept all types, and a bare column is its own
        // result.
        let as_it_is = self.path.last().is_none_or(|step| step == "cast" || step == "null test");
        let of_values = matches!(data_type, DataType::FixedSizeBinary(_)) || is_text(value_type(&data_type));
        if !as_it_is && !of_values && !matches!(data_type, DataType::Dictionary(..)) {
            self.computed(expr, &data_type)?;
        }
        Ok(self.node(Op::Column(index), data_type, &[], expr))
    }

    /// Binds a comparison of operands that have one type or are decimals.
    fn comparison(&mut self, how: Comparison, a: Typed, b: Typed, expr: &Expr) -> Result<Typed> {
        let decimals = decimal::is_decimal(&a.data_type) && decimal::is_decimal(&b.data_type);
        if decimals && a.data_type != b.data_type {
            return self.compare_scales(how, &a, &b, expr);
        }
        self.of_one_type(expr, &a, &b)?;
        self.compare(how, a, b, expr)
    }

    pub(super) fn compare(&mut self, how: Comparison, a: Typed, b: Typed, expr: &Expr) -> Result<Typed> {
        let (a, b) = (self.ordered(a, expr), self.ordered(b, expr));
        let is_text = is_text(value_type(&a.data_type));
        let bits = match how {
            Comparison::Lt => 1,
            Comparison::Eq | Comparison::NotDistinct => 2,
            Comparison::LtEq => 3,
            Comparison::Gt => 4,
            Comparison::NotEq | Comparison::Distinct => 5,
            Comparison::GtEq => 6,
        };
        if is_text {
            return Ok(self.compare_text(how, bits, a, b, expr));
        }
        let op = match how {
            Comparison::Distinct | Comparison::NotDistinct => Op::Distinct(bits),
            _ => Op::Compare(bits),
        };
        Ok(self.node(op, DataType::Boolean, &[&a, &b], expr))
    }

    fn test(&mut self, test: Test, x: &Expr, expr: &Expr) -> Result<Typed> {
        let x = match test {
            Test::Null | Test::NotNull => self.child("null test", x)?,
            _ => self.truth("operand", x)?,
        };
        if x.data_type != DataType::Boolean {
            return Ok(self.valid(test == Test::Null, &x, expr));
        }
        let bits = match test {
            Test::Null => 4,
            Test::NotNull => 3,
            Test::True => 2,
            Test::NotTrue => 5,
            Test::False => 1,
            Test::NotFalse => 6,
        };
        Ok(self.node(Op::Test(bits), DataType::Boolean, &[&x], expr))
    }

    pub(super) fn arithmetic(&mut self, expr: &Expr, op: Arithmetic, a: Typed, b: Typed) -> Result<Typed> {
        if let Some(made) = self.between_times(expr, op, &a, &b)? {
            return Ok(made);
        }
        if decimal::is_decimal(&a.data_type) && decimal::is_decimal(&b.data_type) {
            let options = *self.options;
            return decimal::bind(self, op, a, b, &options, expr);
        }
        if a.data_type != b.data_type {
            return Err(self.wrong(expr, format!("{} and {}; cast one", a.data_type, b.data_type)));
        }
        let to = a.data_type.clone();
        if to == DataType::Float16 {
            // Like the `half` crate: computed in 32 bits, and rounded after each step.
            let single =
                |binder: &mut Self, x: &Typed| binder.node(Op::Cast(true), DataType::Float32, &[x], expr);
            let (a, b) = (single(self, &a), single(self, &b));
            let made = self.node(Op::Arithmetic(op, Bad::Wraps), DataType::Float32, &[&a, &b], expr);
            return Ok(self.node(Op::Cast(true), to, &[&made], expr));
        }
        if !to.is_integer() && !to.is_floating() {
            return Err(self.wrong(expr, format!("no arithmetic of {to}")));
        }
        let bad = match op {
            _ if to.is_floating() => Bad::Wraps,
            Arithmetic::Div | Arithmetic::Rem if self.options.division_by_zero_is_null => Bad::Null,
            Arithmetic::Div | Arithmetic::Rem => Bad::Fails,
            _ => self.overflow(),
        };
        Ok(self.node(Op::Arithmetic(op, bad), to, &[&a, &b], expr))
    }

    pub(super) fn overflow(&self) -> Bad {
        match self.options.overflow {
            Overflow::Error => Bad::Fails,
            Overflow::Wrap => Bad::Wraps,
            Overflow::Null => Bad::Null,
        }
    }

    /// The treatment of decimals, times and durations that do not fit: always checked, even if arrow-rs'
    /// function is called "wrapping".
    pub(super) fn checked(&self) -> Bad {
        if self.options.overflow == Overflow::Null { Bad::Null } else { Bad::Fails }
    }

    pub(super) fn negate(&mut self, expr: &Expr, x: Typed) -> Result<Typed> {
        let number = self.number(expr, &x)?;
        let of = &x.data_type;
        if number == Number::Bit || of.is_unsigned_integer() {
            return Err(self.wrong(expr, format!("{of} has no negative values")));
        }
        let is_number = of.is_integer() || of.is_floating() || decimal::is_decimal(of);
        if !is_number && !matches!(of, DataType::Duration(_) | DataType::Interval(_)) {
            return Err(self.wrong(expr, format!("no arithmetic of {of}")));
        }
        let bad = match &x.data_type {
            of if of.is_floating() => Bad::Wraps,
            of if of.is_integer() => self.overflow(),
            _ => self.checked(),
        };
        Ok(self.node(Op::Negate(bad), x.data_type.clone(), &[&x], expr))
    }
}

/// The literal that an expression consists of, if it is one.
fn literal(expr: &Expr) -> Option<&Literal> {
    match &*expr.0 {
        Node::Literal(literal) => Some(literal),
        Node::Alias(inner, _) => literal(inner),
        _ => None,
    }
}
