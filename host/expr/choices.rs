//! Binds expressions whose rows are those of one operand or another. Numbers are chosen by the program; texts
//! by a step of their own, for which every choice depends on a condition.

use arrow_schema::DataType;

use super::binder::{Binder, Typed};
use super::plan::{Bound, Id, Op, is_text};
use super::{Comparison, Expr, Node};
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
        let (one, other) = (a.1, b.1);
        let (a, b) = self.same(whole, a, b)?;
        let (a, b) = (self.computable(whole, a, false)?, self.computable(whole, b, false)?);
        let was_fixed = self.was_fixed(one, &a) || self.was_fixed(other, &b);
        if was_fixed && !self.is_long(one, &a) && !self.is_long(other, &b) {
            return Ok((self.as_binary(whole, &a), self.as_binary(whole, &b)));
        }
        if !is_text(&a.data_type) {
            self.computed(whole, &a.data_type)?;
        }
        Ok((a, b))
    }

    /// Two operands. If one is a binary of fixed width, which has become a long one, a plain one does, too.
    pub fn as_long(
        &mut self,
        (a, left): (&Expr, Typed),
        (b, right): (&Expr, Typed),
        whole: &Expr,
    ) -> (Typed, Typed) {
        let long = DataType::LargeBinary;
        match (&left.data_type, &right.data_type) {
            (DataType::LargeBinary, DataType::Binary) if self.was_fixed(a, &left) => {
                (left, self.node(Op::Cast(false), long, &[&right], whole))
            }
            (DataType::Binary, DataType::LargeBinary) if self.was_fixed(b, &right) => {
                (self.node(Op::Cast(false), long, &[&left], whole), right)
            }
            _ => (left, right),
        }
    }

    /// Whether a value is a binary of fixed width, in another type that the program did not name.
    fn was_fixed(&self, written: &Expr, value: &Typed) -> bool {
        let is_fixed = |of: &DataType| matches!(of, DataType::FixedSizeBinary(_));
        self.was(written, value, is_fixed)
    }

    /// Whether a value is a long binary that was no other one, and no constant.
    fn is_long(&self, written: &Expr, value: &Typed) -> bool {
        let is_other = |of: &DataType| matches!(of, DataType::FixedSizeBinary(_) | DataType::Binary);
        let is_constant = matches!(self.plan.nodes[value.id].op, Op::Bytes(_) | Op::Literal(_));
        value.data_type == DataType::LargeBinary && !is_constant && !self.was(written, value, is_other)
    }

    /// Whether a value was of such a type before a cast that the program did not write.
    fn was(&self, written: &Expr, value: &Typed, such: impl Fn(&DataType) -> bool) -> bool {
        let node = &self.plan.nodes[value.id];
        let is_such = |id: &Id| such(&self.plan.nodes[*id].data_type);
        let is_cast = matches!(node.op, Op::Cast(_)) && node.inputs.iter().any(is_such);
        is_cast && written_type(written) != Some(&value.data_type)
    }

    /// A long binary as a plain one: of binaries of fixed width, choices are plain ones.
    fn as_binary(&mut self, whole: &Expr, value: &Typed) -> Typed {
        let Bound { op, inputs, .. } = &self.plan.nodes[value.id];
        let (op, inputs) = match op {
            Op::Bytes(_) | Op::Literal(_) => (op.clone(), vec![]),
            Op::Cast(_) => {
                let typed = |id: &Id| Typed { id: *id, data_type: self.plan.nodes[*id].data_type.clone() };
                let inputs: Vec<Typed> = inputs.iter().map(typed).collect();
                match &inputs[..] {
                    [plain] if plain.data_type == DataType::Binary => return plain.clone(),
                    _ => (op.clone(), inputs),
                }
            }
            _ => (Op::Cast(false), vec![value.clone()]),
        };
        self.node(op, DataType::Binary, &inputs.iter().collect::<Vec<_>>(), whole)
    }
}

/// The type that a program names for a value.
fn written_type(expr: &Expr) -> Option<&DataType> {
    match &*expr.0 {
        Node::Cast(_, to, _) => Some(to),
        Node::Alias(inner, _) => written_type(inner),
        _ => None,
    }
}
