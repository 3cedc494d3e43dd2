//! How many values and truths the nodes of a plan need at hand, computed in the order that needs least.

use bowstring_kernels::function::Number;

use crate::expr::plan::{Id, Op, Plan};

/// What a node needs at hand: values and truths.
#[derive(Clone, Copy, Default)]
pub(super) struct Need {
    pub values: usize,
    pub truths: usize,
}

impl Need {
    /// Of two, one after the other.
    fn and(self, other: Need) -> Need {
        Need { values: self.values.max(other.values), truths: self.truths.max(other.truths) }
    }

    /// While so many values and truths wait.
    fn behind(self, values: usize, truths: usize) -> Need {
        Need { values: self.values + values, truths: self.truths + truths }
    }
}

/// Those of the nodes of a plan so far.
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

    /// Whether an instruction can have it as its operand. Compared floats are keys, which columns have not.
    pub fn is_operand(&self, id: Id, compared: bool) -> bool {
        match self.plan.nodes[id].op {
            Op::Literal(_) => !self.is_truth(id),
            Op::Column(_) => !(self.is_truth(id) || compared && self.is_float(id)),
            _ => false,
        }
    }

    pub fn need(&self, id: Id) -> Need {
        let node = &self.plan.nodes[id];
        let of = |input: Id| {
            let need = self.of[input];
            // As a value, where values are meant.
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
            // Each before it, and gone.
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

    /// Of two values.
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

    /// Which of two is the other's partner, scaled, and that other: then both are computed once.
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

    /// The need of a value that is scaled, and of the other.
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

/// Steps of a program above which parts that it would compute several times are looked for.
const STEPS: usize = 4096;
/// Steps of such a part that make it worth a launch.
const PART: usize = 64;

/// A part that code would have several times, where that makes the code long: nested parts would double it each
/// time. The first: no such part is inside of it.
pub(super) fn repeated(plan: &Plan) -> Option<Id> {
    let (mut steps, mut uses) = (vec![], vec![0; plan.nodes.len()]);
    for node in &plan.nodes {
        let inputs = node.inputs.iter().map(|input| steps[*input]);
        steps.push(inputs.fold(1, usize::saturating_add));
        node.inputs.iter().for_each(|input| uses[*input] += 1);
    }
    let all = plan.roots.iter().fold(0, |sum: usize, root| sum.saturating_add(steps[*root]));
    (0..plan.nodes.len()).find(|id| all > STEPS && uses[*id] > 1 && steps[*id] >= PART)
}
