//! Binds expressions whose rows are those of one operand or another. Numbers are chosen by the program; texts
//! by a step of their own, for which every choice depends on a condition.

use super::binder::{Binder, Typed};
use super::plan::{Op, is_text};
use super::{Comparison, Expr};
use crate::Result;

impl Binder<'_> {
    /// Binds the second operand where the condition is true, or else the third.
    pub fn if_else(&mut self, expr: &Expr, condition: &Expr, then: &Expr, otherwise: &Expr) -> Result<Typed> {
        let condition = self.truth("condition", condition)?;
        let (then, otherwise) = self.chosen(expr, ("then", then), ("else", otherwise))?;
        Ok(self.node(Op::Select, then.data_type.clone(), &[&condition, &then, &otherwise], expr))
    }

    /// Binds the first operand, or the second where it is null.
    pub fn coalesce(&mut self, expr: &Expr, a: &Expr, b: &Expr) -> Result<Typed> {
        let (a, b) = self.chosen(expr, ("left", a), ("right", b))?;
        let to = a.data_type.clone();
        if !is_text(&to) {
            return Ok(self.node(Op::Coalesce, to, &[&a, &b], expr));
        }
        let valid = self.valid(false, &a, expr);
        Ok(self.node(Op::Select, to, &[&valid, &a, &b], expr))
    }

    /// Binds the first operand, or null where it equals the second.
    pub fn null_if(&mut self, expr: &Expr, a: &Expr, b: &Expr) -> Result<Typed> {
        let (a, b) = self.chosen(expr, ("left", a), ("right", b))?;
        let to = a.data_type.clone();
        let equal = self.compare(Comparison::Eq, a.clone(), b, expr)?;
        if !is_text(&to) {
            return Ok(self.node(Op::NullIf, to, &[&a, &equal], expr));
        }
        let null = self.literal(None, to.clone(), expr);
        Ok(self.node(Op::Select, to, &[&equal, &null, &a], expr))
    }

    /// Binds two operands of one type, of which each row of the result is one. Text of a dictionary becomes
    /// plain.
    fn chosen(&mut self, whole: &Expr, a: (&str, &Expr), b: (&str, &Expr)) -> Result<(Typed, Typed)> {
        let (a, b) = self.same(whole, a, b)?;
        let (a, b) = (self.computable(whole, a, false)?, self.computable(whole, b, false)?);
        if !is_text(&a.data_type) {
            self.computed(whole, &a.data_type)?;
        }
        Ok((a, b))
    }
}
