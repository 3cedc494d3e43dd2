//! Which rows of each node are needed. If the first part of a conjunction is false in a row, its second part
//! is not needed there; if a condition is not true, neither are the aggregated values.

use super::blocks::inside;
use super::ranges::Range;
use super::slots::WORDS;
use crate::cpu::intrinsics::count_ones;
use crate::expr::plan::{Id, Op, Plan};

/// The rows at which another node's truth is true.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct Guard {
    pub of: Id,
    /// Whether rows at which it is unknown are included.
    pub unknown: bool,
}

/// The rows of a node that are needed.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Asked {
    Nothing,
    Where(Guard),
    All,
}

impl Asked {
    /// Adds the demand of another node.
    fn add(&mut self, other: Asked) {
        *self = match (*self, other) {
            (Asked::Nothing, asked) => asked,
            (own, other) if own == other => own,
            _ => Asked::All,
        };
    }
}

/// Computes the demand for each node. With a condition, the outputs are needed only at rows where it is true.
pub(super) fn asked(plan: &Plan, ranges: &[Option<Range>]) -> Vec<Asked> {
    let mut asked = vec![Asked::Nothing; plan.nodes.len()];
    let met = plan.condition.map(|of| Guard { of, unknown: false });
    plan.outputs.iter().for_each(|output| asked[*output].add(met.map_or(Asked::All, Asked::Where)));
    plan.condition.into_iter().for_each(|id| asked[id] = Asked::All);
    for (id, node) in plan.nodes.iter().enumerate().rev() {
        // A row that fails is an error even if its value is not needed, unless the condition excludes it.
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

/// The needed rows of a chunk.
pub(super) struct Rows {
    /// The number of rows in the chunk.
    pub all: usize,
    /// The mask of needed rows, and their number.
    pub words: [u64; WORDS],
    pub asked: usize,
}

impl Rows {
    /// All rows of a chunk; at least 1.
    pub fn all(all: usize) -> Rows {
        Rows { all, words: masked(all, |_| !0), asked: all }
    }

    /// Builds the mask from the words that `f` returns. `all` must be at least 1.
    pub fn of(all: usize, f: impl Fn(usize) -> u64) -> Rows {
        let words = masked(all, f);
        Rows { all, words, asked: count_ones(&words) }
    }
}

/// The words that `f` returns, without bits past the last of `all` rows.
fn masked(all: usize, f: impl Fn(usize) -> u64) -> [u64; WORDS] {
    let mut words = [0; WORDS];
    let last = (all - 1) / 64;
    words[..=last].iter_mut().enumerate().for_each(|(k, word)| *word = f(k));
    words[last] &= inside(all, last);
    words
}
