//! Computes how many values and truths each node of a plan needs at hand, in the order of evaluation that
//! needs least.

use bowstring_kernels::map::function::Number;

use crate::expr::plan::{Id, Op, Plan};
use crate::{Error, Result};

/// The values and truths that a node needs at hand.
#[derive(Clone, Copy, Default)]
pub(super) struct Need {
    pub values: usize,
    pub truths: usize,
}

impl Need {
    /// Returns the need of two nodes evaluated one after the other.
    fn and(self, other: Need) -> Need {
        Need { values: self.values.max(other.values), truths: self.truths.max(other.truths) }
    }

    /// Returns the need while `values` values and `truths` truths wait.
    fn behind(self, values: usize, truths: usize) -> Need {
        Need { values: self.values + values, truths: self.truths + truths }
    }
}

/// The needs of the nodes of a plan computed so far.
pub(super) struct Needs<'a> {
    pub plan: &'a Plan,
    pub of: Vec<Need>,
}

impl Needs<'_> {
    pub fn is_truth(&self, id: Id) -> bool {
        self.plan.number(id) == Number::Bit
    }

    pub fn is_float(&self, id: Id) -> bool {
        matches!(self.plan.number(id), Number::F16 | Number::F32 | Number::F64)
    }

    /// Returns whether an instruction can read the node as an operand. Floats are compared by key, and
    /// columns do not hold keys.
    pub fn is_operand(&self, id: Id, compared: bool) -> bool {
        match self.plan.nodes[id].op {
            Op::Literal(_) => !self.is_truth(id),
            Op::Column(_) => !(self.is_truth(id) || compared && self.is_float(id)),
            _ => false,
        }
    }

    /// Whether a node is a column that an instruction can have as its operand.
    pub fn is_column(&self, id: Id) -> bool {
        matches!(self.plan.nodes[id].op, Op::Column(_)) && self.is_operand(id, false)
    }

    pub fn need(&self, id: Id) -> Need {
        let node = &self.plan.nodes[id];
        let of = |input: Id| {
            let need = self.of[input];
            // Even a truth takes one value once it is used as a value.
            Need { values: need.values.max(1), ..need }
        };
        let one = Need { values: 1, truths: 0 };
        let truth = Need { values: 0, truths: 1 };
        match (&node.op, &node.inputs[..]) {
            (Op::Column(_) | Op::Literal(_), _) => {
                if self.is_truth(id) {
                    truth
                } else {
                    one
                }
            }
            // Each input is computed before the node, and dropped.
            (Op::Checked(_), inputs) => {
                let own = if self.is_truth(id) { truth } else { one };
                inputs.iter().fold(own, |all, input| all.and(of(*input)))
            }
            (Op::Scaled(_), &[a, _, other]) => self.scaled(a, other),
            (Op::Compare(_) | Op::Distinct(_), &[a, b]) => self.pair(a, b, true).and(truth),
            (Op::Arithmetic(..), &[a, b]) => match self.scaled_beside(a, b) {
                Some((scaled, other)) => self.scaled(self.plan.nodes[scaled].inputs[0], other),
                None => self.pair(a, b, false),
            },
            (Op::Arithmetic(..), &[a, b, _]) if self.is_column(b) => of(a),
            (Op::Arithmetic(..), &[a, b, _]) => of(b).and(of(a).behind(1, 0)),
            (Op::Coalesce, &[a, b]) if !self.is_truth(id) => self.pair(a, b, false),
            (Op::And | Op::Or, &[a, b]) => {
                let (first, second) = self.truths_in_order(a, b);
                self.of[first].and(self.of[second].behind(0, 1))
            }
            (Op::Coalesce | Op::NullIf, &[a, b]) if self.is_truth(id) => {
                self.of[a].and(self.of[b].behind(0, 1))
            }
            (Op::NullIf, &[a, b]) => self.of[b].and(of(a).behind(0, 1)),
            (Op::Select, &[c, a, b]) if self.is_truth(id) => {
                let rest = self.of[a].behind(0, 1).and(self.of[b].behind(0, 2));
                self.of[c].and(rest)
            }
            (Op::Select, &[c, a, b]) => self.of[c].and(self.pair(a, b, false).behind(0, 1)),
            (Op::Negate(_), &[a]) => of(a).and(Need { values: 2, truths: 0 }),
            (Op::In(_) | Op::Valid(_), &[a]) => of(a).and(truth),
            (Op::Within(..), &[a]) => of(a).and(Need { values: 1, truths: 2 }),
            (_, inputs) => inputs.iter().fold(Need::default(), |all, input| all.and(self.of[*input])),
        }
    }

    /// Returns the need of an instruction of two values.
    pub fn pair(&self, a: Id, b: Id, compared: bool) -> Need {
        let of = |id: Id| Need { values: self.of[id].values.max(1), ..self.of[id] };
        match (self.is_operand(a, compared), self.is_operand(b, compared)) {
            (_, true) => of(a),
            (true, false) => of(b).and(Need { values: 2, truths: 0 }),
            (false, false) => {
                let (first, second) = if self.right_first(a, b) { (b, a) } else { (a, b) };
                of(first).and(of(second).behind(1, 0))
            }
        }
    }

    /// Returns the scaled one of two nodes, and the other, if the first is scaled beside the second: then
    /// each is computed only once.
    pub fn scaled_beside(&self, a: Id, b: Id) -> Option<(Id, Id)> {
        let beside = |scaled: Id, other: Id| {
            let node = &self.plan.nodes[scaled];
            matches!(node.op, Op::Scaled(_)) && node.inputs[2] == other
        };
        match (beside(a, b), beside(b, a)) {
            (true, _) => Some((a, b)),
            (false, true) => Some((b, a)),
            (false, false) => None,
        }
    }

    /// Returns the need of a scaled value together with the other.
    fn scaled(&self, of: Id, other: Id) -> Need {
        self.pair(of, other, false).and(Need { values: 2, truths: 1 })
    }

    pub fn right_first(&self, a: Id, b: Id) -> bool {
        self.of[b].values > self.of[a].values
    }

    pub fn truths_in_order(&self, a: Id, b: Id) -> (Id, Id) {
        if self.of[b].truths > self.of[a].truths { (b, a) } else { (a, b) }
    }
}

/// The length of a program above which it is searched for parts that it would compute several times.
const STEPS: usize = 4096;
/// The length of such a part that makes a launch of its own worthwhile.
const PART: usize = 64;

/// Returns a part that the code of a long program would contain several times; nested, each level would
/// double the code. It is the first such part, so it contains no other.
pub(super) fn repeated(plan: &Plan) -> Option<Id> {
    let (mut steps, mut uses) = (vec![], vec![0; plan.nodes.len()]);
    for node in &plan.nodes {
        let inputs = node.inputs.iter().map(|input| steps[*input]);
        steps.push(inputs.fold(1, usize::saturating_add));
        node.inputs.iter().for_each(|input| uses[*input] += 1);
    }
    let all = plan
        .condition
        .iter()
        .chain(&plan.outputs)
        .fold(0, |sum: usize, root| sum.saturating_add(steps[*root]));
    (0..plan.nodes.len()).find(|id| all > STEPS && uses[*id] > 1 && steps[*id] >= PART)
}

/// Checks that sixteen bits number a program's columns, its outputs, and its steps if a row may fail in one.
pub(super) fn check_numbers(plan: &Plan, columns: usize) -> Result<()> {
    let steps = if plan.can_fail() { plan.nodes.len() } else { 0 };
    if columns.max(plan.outputs.len()).max(steps) > usize::from(u16::MAX) {
        return Err(Error::invalid("expression", format!("{columns} columns and {steps} steps at once")));
    }
    Ok(())
}
