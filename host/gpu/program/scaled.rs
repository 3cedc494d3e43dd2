//! Parts of plans that take several instructions: decimals scaled beside others, and inputs computed only for
//! the rows that they fail.

use bowstring_kernels::program::code::{Bad, Instruction, Op as Does, Operand};

use super::lower::Lowering;
use crate::expr::plan::{Id, Op};

impl Lowering<'_> {
    /// Computes the inputs only because they may fail rows; their values are dropped.
    pub fn checked(&mut self, inputs: &[Id], behind: usize, id: Id) {
        for input in inputs {
            self.value(*input, behind);
            self.put(Does::Drop, id);
        }
    }

    /// Exchanges the newest value and the one before it.
    pub fn swap(&mut self, id: Id) {
        self.put(Does::Push, id).operand = Operand::Before;
    }

    /// Makes a scaled node the newest value. It is null wherever its partner is null. Returns whether the
    /// partner waits as the value before it; otherwise an instruction can have the partner as its operand.
    pub fn scaled(&mut self, id: Id, behind: usize) -> bool {
        let node = &self.plan.nodes[id];
        let (&[of, power, other], Op::Scaled(bad)) = (&node.inputs[..], &node.op) else {
            unreachable!("a scaled node has three inputs")
        };
        let (bad, waits) = (*bad, !self.needs.is_operand(other, false));
        if waits {
            let other_first = self.needs.right_first(of, other);
            let (first, second) = if other_first { (other, of) } else { (of, other) };
            self.value(first, behind);
            self.value(second, behind + 1);
            if other_first {
                self.swap(id);
            }
        } else {
            self.value(of, behind);
            self.put_with(Does::Push, other, false, other);
        }
        self.put(Does::Valid, id).detail = 1;
        if waits {
            self.swap(id);
        } else {
            self.put(Does::Drop, id);
        }
        self.put(Does::NullIf, id);
        let cut = self.cut(self.plan.number(id));
        let step = self.put_with(Does::Mul, power, false, id);
        step.bad = if cut.is_none() { bad } else { Bad::Wraps };
        self.fit(self.plan.number(id), bad, id);
        waits
    }

    /// Makes the quotient of a scaled dividend the newest value.
    pub fn scaled_quotient(&mut self, (a, b, by): (Id, Id, Id), bad: Bad, id: Id, behind: usize) {
        let Op::Literal(Some(factor)) = self.plan.nodes[by].op else {
            unreachable!("a factor is a constant")
        };
        let step = match self.needs.is_column(b) {
            true => {
                self.value(a, behind);
                self.put_with(Does::Div, b, false, id)
            }
            false => {
                self.value(b, behind);
                self.value(a, behind + 1);
                let step = self.put(Does::Div, id);
                step.operand = Operand::Before;
                step
            }
        };
        (step.bad, step.detail) = (bad, factor.ilog10() as u8);
        self.fit(self.plan.number(id), bad, id);
    }

    /// Appends an instruction of two values, one of which is scaled beside the other.
    pub fn pair_with_scaled(
        &mut self,
        does: Does,
        (a, b): (Id, Id),
        scaled: Id,
        id: Id,
        behind: usize,
    ) -> &mut Instruction {
        let waits = self.scaled(scaled, behind);
        match (scaled == a, waits) {
            (true, false) => return self.put_with(does, b, false, id),
            (false, false) => {
                self.put_with(Does::Push, a, false, a);
            }
            _ => {}
        }
        let step = self.put(does, id);
        // The left operand is the newest value, unless it has waited.
        step.operand = if scaled != a && waits { Operand::Newest } else { Operand::Before };
        step
    }
}
