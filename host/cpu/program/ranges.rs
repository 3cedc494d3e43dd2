//! Comparisons with constants, as ranges of the compared values. One loop serves them all, and two ranges of
//! one value merge into one.

use bowstring_kernels::map::function::Number;

use crate::expr::plan::{Id, Op, Plan};
use crate::expr::range::{self, in_order, limits, with_constant};

/// A test of whether the keys of a node's values lie between two, inclusive; `not` inverts it.
#[derive(Clone, Copy)]
pub(super) struct Range {
    pub of: Id,
    pub ends: [i128; 2],
    pub not: bool,
}

/// Returns the range of each node that is one.
pub(super) fn ranges(plan: &Plan) -> Vec<Option<Range>> {
    let mut ranges: Vec<Option<Range>> = vec![];
    for node in &plan.nodes {
        let range = match (&node.op, &node.inputs[..]) {
            (Op::Compare(how), &[a, b]) => comparison(plan, *how, a, b),
            (Op::And, &[a, b]) => both(ranges[a], ranges[b]),
            _ => None,
        };
        ranges.push(range);
    }
    ranges
}

/// Converts a comparison of a value with a constant.
fn comparison(plan: &Plan, how: u8, a: Id, b: Id) -> Option<Range> {
    let (of, how, value) = with_constant(plan, how, a, b)?;
    let number = plan.number(of);
    if matches!(number, Number::Bit | Number::I256) {
        return None;
    }
    let range = range::Range::compared(how, in_order(value, number), number);
    // The loop cannot express an empty range, so it becomes the inverse of the full one.
    let (ends, not) = match range.is_empty() {
        true => (limits(number), !range.inverted),
        false => ([range.low, range.high], range.inverted),
    };
    Some(Range { of, ends, not })
}

/// Returns the intersection of two ranges of one value, if it is a range that is not empty.
fn both(a: Option<Range>, b: Option<Range>) -> Option<Range> {
    let (a, b) = (a?, b?);
    let [low, high] = [a.ends[0].max(b.ends[0]), a.ends[1].min(b.ends[1])];
    (a.of == b.of && !a.not && !b.not && low <= high).then_some(Range { ends: [low, high], ..a })
}
