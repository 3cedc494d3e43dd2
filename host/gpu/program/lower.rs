//! Lowers plans to code for the kernels' machine (`bowstring_kernels::program`), which has few values and
//! truths at hand.
//!
//! The one idea: the operand that needs more is computed first, so that the least waits meanwhile; then trees
//! of ten and more values need no more than four. If a plan does need more, [`lower`] names a part that a
//! launch of its own must compute.

use bowstring_kernels::map::function::Number;
use bowstring_kernels::program::code::{Bad, Instruction, Op as Does, Operand, UNSIGNED, VALUES, WORDS};
use bowstring_kernels::program::terms::Term;
use bowstring_kernels::program::word::key;

use super::calculation::calculation;
use super::needs::{Need, Needs};
use crate::expr::plan::{Id, Op, Plan};
use crate::expr::{Arithmetic, DatePart, Fold};

/// The use that a program makes of a node at its end.
#[derive(Clone, Copy, Debug)]
pub(super) enum End {
    /// Excludes the rows at which the node is not true.
    Where(Id),
    /// Writes the node to the output of this number.
    Store(Id, u16),
    /// Writes the node as a selection.
    Keep(Id),
    /// Aggregates the node into the accumulator of this number.
    Aggregate(Fold, Id, u16),
}

impl End {
    /// Returns the node that this ends.
    fn of(self) -> Id {
        match self {
            End::Where(id) | End::Store(id, _) | End::Keep(id) | End::Aggregate(_, id, _) => id,
        }
    }
}

/// A program, as kernels read it.
#[derive(Debug, Default)]
pub(super) struct Code {
    pub words: Vec<u64>,
    pub steps: u64,
    /// Whether the machine's values have sixteen bytes rather than eight.
    pub wide: bool,
    /// The values that the program needs at hand, if arithmetic runs it: `words` are then its code.
    pub calculates: Option<u32>,
    /// Tests that choose the program's rows in advance. If there are no steps, they are the whole program.
    pub terms: Vec<Term>,
}

/// Lowers the ends of a plan. `Err` names a node that must be computed first, by a program of its own.
pub(super) fn lower(plan: &Plan, ends: &[End]) -> Result<Code, Id> {
    let mut used = vec![false; plan.nodes.len()];
    ends.iter().for_each(|end| used[end.of()] = true);
    for (id, node) in plan.nodes.iter().enumerate().rev() {
        if used[id] {
            node.inputs.iter().for_each(|input| used[*input] = true);
        }
    }
    // A dividend that is scaled first may need twice the bytes of its type.
    let is_scaled =
        |id: Id| matches!(plan.nodes[id].op, Op::Arithmetic(..)) && plan.nodes[id].inputs.len() > 2;
    let wide = (0..plan.nodes.len()).any(|id| used[id] && (plan.number(id) == Number::I128 || is_scaled(id)));
    let limit = Need { values: VALUES, truths: if wide { 16 } else { 8 } };
    let mut lowering =
        Lowering { plan, wide, needs: Needs { plan, of: vec![] }, code: vec![], constants: vec![] };
    for (id, used) in used.into_iter().enumerate() {
        let need = lowering.needs.need(id);
        if used && (need.values > limit.values || need.truths > limit.truths) {
            let heaviest = plan.nodes[id].inputs.iter().copied().max_by_key(|input| {
                let need = lowering.needs.of[*input];
                (need.truths >= limit.truths / 2, need.values, need.truths)
            });
            return Err(heaviest.expect("a leaf fits"));
        }
        lowering.needs.of.push(need);
    }
    for end in ends {
        lowering.end(*end);
    }
    Ok(lowering.code())
}

pub(super) struct Lowering<'a> {
    pub(super) plan: &'a Plan,
    wide: bool,
    pub(super) needs: Needs<'a>,
    code: Vec<Instruction>,
    /// Appended to the instructions.
    constants: Vec<i128>,
}

impl Lowering<'_> {
    fn code(mut self) -> Code {
        let calculation = calculation(&self.code, self.wide);
        let calculates = calculation.as_ref().map(|(_, values)| *values);
        if let Some((code, _)) = calculation {
            self.code = code;
        }
        let steps = self.code.len() as u64;
        let behind = steps * WORDS;
        for step in self.code.iter_mut().filter(|step| step.op == Does::In) {
            step.constant = (behind as i128) + step.constant * 2;
        }
        let mut words: Vec<u64> = self.code.iter().flat_map(Instruction::words).collect();
        words.extend(self.constants.iter().flat_map(|value| [*value as u64, (*value >> 64) as u64]));
        Code { words, steps, wide: self.wide, calculates, terms: vec![] }
    }

    pub(super) fn put(&mut self, op: Does, node: Id) -> &mut Instruction {
        self.code.push(Instruction { node: node.min(0xffff) as u16, ..Instruction::new(op) });
        self.code.last_mut().expect("just pushed")
    }

    /// Appends an instruction whose operand is a column or a constant.
    pub(super) fn put_with(&mut self, op: Does, operand: Id, compared: bool, node: Id) -> &mut Instruction {
        let number = self.plan.number(operand);
        let (of, slot, constant) = match self.plan.nodes[operand].op {
            Op::Column(slot) | Op::Checked(slot) => (column_operand(number, self.wide), slot as u16, 0),
            Op::Literal(None) => (Operand::Null, 0, 0),
            Op::Literal(Some(value)) if compared && self.needs.is_float(operand) => {
                (Operand::Constant, 0, keyed(value, self.wide))
            }
            Op::Literal(Some(value)) => (Operand::Constant, 0, value),
            _ => unreachable!("an operand is a column or a literal"),
        };
        let step = self.put(op, node);
        (step.operand, step.slot, step.constant) = (of, slot, constant);
        step
    }

    /// Makes a node the newest value, while `behind` values wait.
    pub(super) fn value(&mut self, id: Id, behind: usize) {
        let node = &self.plan.nodes[id];
        if self.needs.is_truth(id) {
            self.truth(id, behind);
            self.put(Does::Value, id);
            return;
        }
        let inputs = node.inputs.clone();
        match (node.op.clone(), &inputs[..]) {
            (Op::Column(_) | Op::Checked(_) | Op::Literal(_), inputs) => {
                self.checked(inputs, behind, id);
                self.put_with(Does::Push, id, false, id);
            }
            (Op::Scaled(_), _) => {
                if self.scaled(id, behind) {
                    self.swap(id);
                    self.put(Does::Drop, id);
                }
            }
            (Op::Arithmetic(op, bad), &[a, b]) => {
                let (does, detail) = self.arithmetic(op, id);
                let number = self.plan.number(id);
                let cut = self.cut(number);
                let step = match self.needs.scaled_beside(a, b) {
                    Some((scaled, _)) => self.pair_with_scaled(does, (a, b), scaled, id, behind),
                    None => self.pair_of(does, (a, b), false, id, behind),
                };
                step.detail = detail;
                // The range check after the cut reports overflow.
                let divides = matches!(op, Arithmetic::Div | Arithmetic::Rem);
                step.bad = if cut.is_none() || divides { bad } else { Bad::Wraps };
                self.fit(number, bad, id);
            }
            (Op::Arithmetic(_, bad), &[a, b, by]) => self.scaled_quotient((a, b, by), bad, id, behind),
            (Op::Negate(bad), &[a]) => {
                self.value(a, behind);
                let number = self.plan.number(id);
                let sign = match number {
                    Number::F16 => 15,
                    Number::F32 => 31,
                    Number::F64 => 63,
                    _ => {
                        self.put(Does::Push, id).operand = Operand::Constant;
                        let alone = self.cut(number).is_none();
                        let step = self.put(Does::Sub, id);
                        step.operand = Operand::Before;
                        step.bad = if alone { bad } else { Bad::Wraps };
                        self.fit(number, bad, id);
                        return;
                    }
                };
                let step = self.put(Does::Xor, id);
                (step.operand, step.constant) = (Operand::Constant, -1 << sign);
            }
            (Op::Plain, &[a]) => {
                self.value(a, behind);
                let single = self.plan.number(id) == Number::F32;
                self.put(if single { Does::PlainF32 } else { Does::PlainF64 }, id);
            }
            (Op::Widen, &[a]) => self.value(a, behind),
            (Op::Within(low, high), &[a]) => {
                self.value(a, behind);
                for (how, end) in [(1, low), (4, high)] {
                    let step = self.put(Does::Compare, id);
                    (step.operand, step.constant, step.detail) = (Operand::Constant, end.into(), how);
                }
                self.put(Does::Or, id);
                self.put(Does::NullIf, id);
            }
            (Op::FloorDiv(by), &[a]) => {
                self.value(a, behind);
                let step = self.put(Does::FloorDiv, id);
                (step.operand, step.constant) = (Operand::Constant, by.into());
            }
            (Op::FloorRem(by), &[a]) => {
                self.value(a, behind);
                let step = self.put(Does::FloorRem, id);
                (step.operand, step.constant) = (Operand::Constant, by.into());
            }
            (Op::Date(part), &[a]) => {
                self.value(a, behind);
                self.put(Does::Date, id).detail = match part {
                    DatePart::Year => 0,
                    DatePart::Month => 1,
                    _ => 2,
                };
            }
            (Op::Select, &[c, a, b]) => {
                self.truth(c, behind);
                self.pair_of(Does::Select, (a, b), false, id, behind);
            }
            (Op::Coalesce, &[a, b]) => {
                self.pair_of(Does::Coalesce, (a, b), false, id, behind);
            }
            (Op::NullIf, &[a, condition]) => {
                self.truth(condition, behind);
                self.value(a, behind);
                self.put(Does::NullIf, id);
            }
            (op, _) => unreachable!("{op:?} gives no value"),
        }
    }

    /// Makes a node the newest truth, while `behind` values wait.
    fn truth(&mut self, id: Id, behind: usize) {
        let node = &self.plan.nodes[id];
        let inputs = node.inputs.clone();
        match (node.op.clone(), &inputs[..]) {
            (Op::Column(slot) | Op::Checked(slot), inputs) => {
                self.checked(inputs, behind, id);
                self.put(Does::Bits, id).slot = slot as u16;
            }
            (Op::Literal(value), _) => {
                self.put(Does::Truth, id).detail = value.map_or(0, |value| 2 | (value != 0) as u8);
            }
            (Op::Compare(how) | Op::Distinct(how), &[a, b]) => {
                let does = if matches!(node.op, Op::Compare(_)) { Does::Compare } else { Does::Distinct };
                let unsigned = self.unsigned(a);
                self.pair_of(does, (a, b), true, id, behind).detail = how | unsigned;
                self.dropped(behind, id);
            }
            (Op::In(values), &[a]) => {
                self.compared_value(a, behind);
                let (keys, wide) = (self.needs.is_float(a), self.wide);
                let keyed = |value| keyed(value, wide);
                let (at, count) = (self.constants.len(), values.len());
                self.constants.extend(values.iter().map(|value| if keys { keyed(*value) } else { *value }));
                let step = self.put(Does::In, id);
                (step.slot, step.constant) = (count as u16, at as i128);
                self.dropped(behind, id);
            }
            (Op::Valid(null), &[a]) => {
                self.value(a, behind);
                self.put(Does::Valid, id).detail = null.into();
                self.dropped(behind, id);
            }
            (Op::And | Op::Or, &[a, b]) => {
                let does = if node.op == Op::And { Does::And } else { Does::Or };
                let (first, second) = self.needs.truths_in_order(a, b);
                self.truth(first, behind);
                self.truth(second, behind);
                self.put(does, id);
            }
            (Op::Not, &[a]) => {
                self.truth(a, behind);
                self.put(Does::Not, id);
            }
            (Op::Test(bits), &[a]) => {
                self.truth(a, behind);
                self.put(Does::Test, id).detail = bits;
            }
            (op, inputs) => {
                inputs.iter().for_each(|input| self.truth(*input, behind));
                self.put(
                    match op {
                        Op::Select => Does::SelectTruth,
                        Op::Coalesce => Does::CoalesceTruth,
                        Op::NullIf => Does::NullIfTruth,
                        op => unreachable!("{op:?} gives no truth"),
                    },
                    id,
                );
            }
        }
    }

    /// Drops the newest value, unless no other value waits: then nothing needs its place.
    fn dropped(&mut self, behind: usize, id: Id) {
        if behind > 0 {
            self.put(Does::Drop, id);
        }
    }

    /// Makes a node the newest value in the form that comparisons take.
    fn compared_value(&mut self, id: Id, behind: usize) {
        self.value(id, behind);
        if self.needs.is_float(id) {
            self.put(Does::Key, id);
        }
    }

    /// Appends an instruction of two values.
    fn pair_of(
        &mut self,
        does: Does,
        (a, b): (Id, Id),
        compared: bool,
        id: Id,
        behind: usize,
    ) -> &mut Instruction {
        let value = |lowering: &mut Self, id: Id, behind: usize| match compared {
            true => lowering.compared_value(id, behind),
            false => lowering.value(id, behind),
        };
        match (self.needs.is_operand(a, compared), self.needs.is_operand(b, compared)) {
            (_, true) => {
                value(self, a, behind);
                self.put_with(does, b, compared, id)
            }
            (true, false) => {
                value(self, b, behind);
                self.put_with(Does::Push, a, compared, a);
                let step = self.put(does, id);
                step.operand = Operand::Before;
                step
            }
            (false, false) => {
                let right_first = self.needs.right_first(a, b);
                let (first, second) = if right_first { (b, a) } else { (a, b) };
                value(self, first, behind);
                value(self, second, behind + 1);
                let step = self.put(does, id);
                step.operand = if right_first { Operand::Before } else { Operand::Newest };
                step
            }
        }
    }

    fn unsigned(&self, id: Id) -> u8 {
        if self.plan.number(id) == Number::U64 && !self.wide { UNSIGNED } else { 0 }
    }

    fn arithmetic(&self, op: Arithmetic, id: Id) -> (Does, u8) {
        use Arithmetic::*;
        let does = match (self.plan.number(id), op) {
            (Number::F64, Add) => Does::AddF64,
            (Number::F64, Sub) => Does::SubF64,
            (Number::F64, Mul) => Does::MulF64,
            (Number::F64, Div) => Does::DivF64,
            (Number::F64, Rem) => Does::RemF64,
            (Number::F32, Add) => Does::AddF32,
            (Number::F32, Sub) => Does::SubF32,
            (Number::F32, Mul) => Does::MulF32,
            (Number::F32, Div) => Does::DivF32,
            (Number::F32, Rem) => Does::RemF32,
            (_, Add) => Does::Add,
            (_, Sub) => Does::Sub,
            (_, Mul) => Does::Mul,
            (_, Div) => Does::Div,
            (_, Rem) => Does::Rem,
        };
        (does, self.unsigned(id))
    }

    /// Returns the integer type that results are cut to; `None` if the machine's values have that type.
    pub(super) fn cut(&self, number: Number) -> Option<u8> {
        let signed = match number {
            Number::I8 | Number::I16 | Number::I32 | Number::I64 => 0,
            Number::U8 | Number::U16 | Number::U32 | Number::U64 => UNSIGNED,
            _ => return None,
        };
        (self.wide || number.bits() < 64).then_some(number.bits() as u8 | signed)
    }

    pub(super) fn fit(&mut self, number: Number, bad: Bad, id: Id) {
        if let Some(detail) = self.cut(number) {
            let step = self.put(Does::Fit, id);
            (step.detail, step.bad) = (detail, bad);
        }
    }

    fn end(&mut self, end: End) {
        match end {
            End::Where(id) => {
                self.truth(id, 0);
                self.put(Does::Where, id);
            }
            End::Keep(id) => {
                self.truth(id, 0);
                self.put(Does::Keep, id);
            }
            End::Store(id, slot) if self.needs.is_truth(id) => {
                self.truth(id, 0);
                self.put(Does::StoreTruth, id).slot = slot;
            }
            End::Store(id, slot) => {
                self.value(id, 0);
                let width = self.plan.number(id).width();
                let step = self.put(Does::Store, id);
                (step.slot, step.detail) = (slot, width.trailing_zeros() as u8);
            }
            End::Aggregate(kind, id, slot) => {
                let extreme = matches!(kind, Fold::Min | Fold::Max);
                if extreme {
                    self.compared_value(id, 0)
                } else {
                    self.value(id, 0)
                }
                let unsigned = self.unsigned(id);
                if extreme && unsigned != 0 {
                    let step = self.put(Does::Xor, id);
                    (step.operand, step.constant) = (Operand::Constant, i128::from(i64::MIN));
                }
                let does = match (kind, self.plan.number(id)) {
                    (Fold::Sum, Number::F64) => Does::SumF64,
                    (Fold::Sum, Number::F32) => Does::SumF32,
                    (Fold::Sum, _) => Does::Sum,
                    (Fold::Min, _) => Does::Min,
                    (Fold::Max, _) => Does::Max,
                    (Fold::Count, _) => Does::Count,
                };
                let step = self.put(does, id);
                (step.slot, step.detail) = (slot, unsigned);
            }
        }
    }
}

/// Returns the key of a float's bits, in the width of the machine's values.
fn keyed(value: i128, wide: bool) -> i128 {
    if wide { key(value) } else { key(value as i64).into() }
}

fn column_operand(number: Number, wide: bool) -> Operand {
    match number {
        Number::I8 | Number::Bit => Operand::I8,
        Number::I16 | Number::F16 => Operand::I16,
        Number::I32 | Number::F32 => Operand::I32,
        Number::I64 | Number::F64 => Operand::I64,
        Number::U8 => Operand::U8,
        Number::U16 => Operand::U16,
        Number::U32 => Operand::U32,
        Number::U64 if wide => Operand::U64,
        Number::U64 => Operand::I64,
        Number::I128 | Number::I256 => Operand::I128,
    }
}
