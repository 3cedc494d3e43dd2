//! Which rows of a node anybody asks for. Where a conjunction's first part is false, nobody asks what the second is; where a
//! condition is not true, nobody asks for what is aggregated.

use super::blocks::inside;
use super::ranges::Range;
use super::slots::WORDS;
use crate::cpu::intrinsics::count_ones;
use crate::expr::plan::{Id, Op, Plan};

/// The rows where a truth is as it has to be.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct Guard {
    pub of: Id,
    /// Those where it is not known as well.
    pub unknown: bool,
}

/// What is asked of a node.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Asked {
    Nothing,
    Where(Guard),
    All,
}

impl Asked {
    /// And by another, too.
    fn add(&mut self, other: Asked) {
        *self = match (*self, other) {
            (Asked::Nothing, asked) => asked,
            (own, other) if own == other => own,
            _ => Asked::All,
        };
    }
}

/// What is asked of each node, where roots but the `condition` are asked for where that is true.
pub(super) fn asked(plan: &Plan, ranges: &[Option<Range>], condition: Option<Id>) -> Vec<Asked> {
    let mut asked = vec![Asked::Nothing; plan.nodes.len()];
    let met = condition.map(|of| Guard { of, unknown: false });
    plan.roots.iter().for_each(|root| asked[*root].add(met.map_or(Asked::All, Asked::Where)));
    condition.into_iter().for_each(|id| asked[id] = Asked::All);
    for (id, node) in plan.nodes.iter().enumerate().rev() {
        // A row that fails is an error, whoever asks; unless the condition leaves it out.
        let fails = node.can_fail();
        let constant = matches!(node.op, Op::Literal(_));
        let own = match asked[id] {
            Asked::Where(guard) if guard.of >= id || constant || fails && Some(guard) != met => Asked::All,
            own => own,
        };
        asked[id] = own;
        match (&node.op, &node.inputs[..], ranges[id]) {
            _ if own == Asked::Nothing => {}
            (_, _, Some(range)) => asked[range.of].add(own),
            (Op::And, &[a, b], None) => {
                asked[a].add(own);
                asked[b].add(Asked::Where(Guard { of: a, unknown: true }));
            }
            (_, inputs, None) => inputs.iter().for_each(|input| asked[*input].add(own)),
        }
    }
    asked
}

/// Rows of a chunk.
pub(super) struct Rows {
    /// How many there are.
    pub all: usize,
    /// Those that are asked for, and how many.
    pub words: [u64; WORDS],
    pub asked: usize,
}

impl Rows {
    /// Of one row or more those that `f` has, by words.
    pub fn of(all: usize, f: impl Fn(usize) -> u64) -> Rows {
        let mut words = [0; WORDS];
        let last = (all - 1) / 64;
        words[..=last].iter_mut().enumerate().for_each(|(k, word)| *word = f(k));
        words[last] &= inside(all, last);
        Rows { all, words, asked: count_ones(&words) }
    }
}
