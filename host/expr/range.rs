//! Comparisons with constants as ranges. The one idea: numbers are ordered, floats by their keys, and a
//! comparison with a constant selects a range in that order, or everything but a range.

use bowstring_kernels::map::function::Number;

use super::extended;
use super::plan::{Id, Op, Plan};

/// The values from `low` to `high` in their order or, if `inverted`, all others. Empty if `low` is above
/// `high`.
#[derive(Clone, Copy)]
pub(crate) struct Range {
    pub low: i128,
    pub high: i128,
    pub inverted: bool,
}

impl Range {
    /// The values that compare to `value` as `how` selects: 1 less, 2 equal, 4 greater. `value` is a position
    /// in the order.
    pub fn compared(how: u8, value: i128, number: Number) -> Range {
        let [least, most] = limits(number);
        // "Not equal" is the inverse of "equal"; all other comparisons are plain ranges.
        let inverted = how == 5;
        let how = if inverted { 2 } else { how };
        let low = match how {
            _ if how & 1 != 0 => Some(least),
            _ if how & 2 != 0 => Some(value),
            _ => value.checked_add(1),
        };
        let high = match how {
            _ if how & 4 != 0 => Some(most),
            _ if how & 2 != 0 => Some(value),
            _ => value.checked_sub(1),
        };
        match (how, low, high) {
            (1.., Some(low), Some(high)) => Range { low: low.max(least), high: high.min(most), inverted },
            _ => Range { low: most, high: least, inverted },
        }
    }

    pub fn is_empty(self) -> bool {
        self.low > self.high
    }

    /// The intersection; `None` if only one of the ranges is inverted.
    pub fn and(self, other: Range) -> Option<Range> {
        let (low, high) = (self.low.max(other.low), self.high.min(other.high));
        (self.inverted == other.inverted).then_some(Range { low, high, ..self })
    }
}

/// Rewrites a comparison of two nodes as one with a constant, if either is: the node, the operator, and the
/// constant's extended bits.
pub(crate) fn with_constant(plan: &Plan, how: u8, a: Id, b: Id) -> Option<(Id, u8, i128)> {
    let constant = |id: Id| match plan.nodes[id].op {
        Op::Literal(value) => value.map(|value| extended(value as u128, plan.number(id))),
        _ => None,
    };
    match (constant(a), constant(b)) {
        (None, Some(value)) => Some((a, how, value)),
        (Some(value), None) => Some((b, how & 2 | how << 2 & 4 | how >> 2 & 1, value)),
        _ => None,
    }
}

pub(crate) fn is_float(number: Number) -> bool {
    matches!(number, Number::F16 | Number::F32 | Number::F64)
}

/// The limits of a number type in its order; for floats, those of their keys.
pub(crate) fn limits(number: Number) -> [i128; 2] {
    let above = 128 - number.bits();
    match number.signed() == number {
        true => [i128::MIN >> above, i128::MAX >> above],
        false => [0, (u128::MAX >> above) as i128],
    }
}

/// The position of a value in its order. For a float's bits this is its key; the function is its own inverse.
pub(crate) fn in_order(value: i128, number: Number) -> i128 {
    if is_float(number) && value < 0 { value ^ limits(number)[1] } else { value }
}
