//! Comparisons with constants as ranges of what is compared. One loop does them all, and two of the same value are one.

use bowstring_kernels::function::Number;

use crate::expr::extended;
use crate::expr::plan::{Id, Op, Plan};

/// Whether the keys of a node's values are between two, ends included; or whether they are not.
#[derive(Clone, Copy)]
pub(super) struct Range {
    pub of: Id,
    pub ends: [i128; 2],
    pub not: bool,
}

/// Which nodes are ranges.
pub(super) fn ranges(plan: &Plan) -> Vec<Option<Range>> {
    let mut ranges: Vec<Option<Range>> = vec![];
    for (id, node) in plan.nodes.iter().enumerate() {
        let range = match (&node.op, &node.inputs[..]) {
            (Op::Compare(how), _) => comparison(plan, id, *how),
            (Op::And, &[a, b]) => both(ranges[a], ranges[b]),
            _ => None,
        };
        ranges.push(range);
    }
    ranges
}

/// A comparison of a value with a constant.
fn comparison(plan: &Plan, id: Id, how: u8) -> Option<Range> {
    let constant = |id: Id| match plan.nodes[id].op {
        Op::Literal(value) => value,
        _ => None,
    };
    let &[a, b] = &plan.nodes[id].inputs[..] else { return None };
    let number = plan.number(a);
    let (of, value, how) = match (constant(a), constant(b)) {
        (None, Some(value)) => (a, value, how),
        (Some(value), None) => (b, value, how & 2 | how >> 2 | (how & 1) << 2),
        _ => return None,
    };
    let [least, most] = limits(number)?;
    let key = key(value, number);
    let none = Range { of, ends: [least, most], not: true };
    let between = |low: Option<i128>, high: Option<i128>| match (low, high) {
        (Some(low), Some(high)) => Range { of, ends: [low, high], not: false },
        _ => none,
    };
    let (above, below) = ((key < most).then(|| key + 1), (key > least).then(|| key - 1));
    Some(match how {
        1 => between(Some(least), below),
        2 => between(Some(key), Some(key)),
        3 => between(Some(least), Some(key)),
        4 => between(above, Some(most)),
        5 => Range { not: true, ..between(Some(key), Some(key)) },
        6 => between(Some(key), Some(most)),
        _ => return None,
    })
}

/// What is in two ranges.
fn both(a: Option<Range>, b: Option<Range>) -> Option<Range> {
    let (a, b) = (a?, b?);
    let [low, high] = [a.ends[0].max(b.ends[0]), a.ends[1].min(b.ends[1])];
    (a.of == b.of && !a.not && !b.not && low <= high).then_some(Range { ends: [low, high], ..a })
}

/// The least key and the greatest.
fn limits(number: Number) -> Option<[i128; 2]> {
    let above = 128 - number.bits();
    Some(match number {
        Number::Bit | Number::I256 => return None,
        Number::U8 | Number::U16 | Number::U32 | Number::U64 => [0, (u128::MAX >> above) as i128],
        _ => [i128::MIN >> above, i128::MAX >> above],
    })
}

/// The key of a value by its bits.
fn key(value: i128, number: Number) -> i128 {
    let value = extended(value as u128, number);
    match number {
        Number::F16 | Number::F32 | Number::F64 => {
            value ^ ((value >> 127) as u128 >> (129 - number.bits())) as i128
        }
        _ => value,
    }
}
