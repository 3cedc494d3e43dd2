//! Parts of plans that are code of several instructions: decimals that are scaled beside others, and what is computed for the rows
//! that it fails.

use bowstring_kernels::program::code::{Bad, Instruction, Op as Does, Operand};

use super::lower::Lowering;
use crate::expr::plan::{Id, Op};

impl Lowering<'_> {
    /// Computes what may fail rows, for that alone.
    pub fn checked(&mut self, inputs: &[Id], behind: usize, id: Id) {
        for input in inputs {
            self.value(*input, behind);
            self.put(Does::Drop, id);
        }
    }

    /// The newest value and the one before it change places.
    pub fn swap(&mut self, id: Id) {
        self.put(Does::Push, id).operand = Operand::Before;
    }

    /// Makes a scaled node the newest value. The value that it is null beside is the one before, unless an instruction can have
    /// it as its operand; that says what comes back.
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

    /// An instruction of two values, of which one is scaled beside the other.
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
        // The left one is the newest, but where it has waited.
        step.operand = if scaled != a && waits { Operand::Newest } else { Operand::Before };
        step
    }
}
