//! Turns predicates that only test single columns into terms (`bowstring_kernels::program::terms`).
//!
//! The one idea: a comparison with a constant is a range of the column's values in their order, and its
//! negation is a range too, or all but one. Negations move down to the comparisons. Ranges of one column
//! merge if both must hold. Only then are they expressed in bits.

use bowstring_kernels::map::function::Number;
use bowstring_kernels::program::terms::{Asks, TRUTHS, Term, Then};

use super::lower::End;
use crate::expr::plan::{Id, Op, Plan};
use crate::expr::range::{self, in_order, is_float, limits, with_constant};

/// The most ranges of an `In` list that become terms.
const LISTED: usize = 4;

/// The values of a column inside a range, or outside it.
#[derive(Clone, Copy)]
struct Range {
    slot: u16,
    number: Number,
    of: range::Range,
}

#[derive(Clone)]
enum Tree {
    Range(Range),
    /// Tests a column of booleans, or the validity of a column; negated if the flag is set.
    Column(Asks, u16, bool),
    All(Vec<Tree>),
    Any(Vec<Tree>),
}

/// Removes from the ends what terms can compute, and returns those terms: all ends, or the parts of a
/// condition that consist of terms.
pub(super) fn taken(plan: &Plan, ends: &mut Vec<End>) -> Vec<Term> {
    match ends[..] {
        [End::Keep(root) | End::Store(root, _)] if plan.number(root) == Number::Bit => {
            let terms = tree(plan, root, false).map_or(vec![], Tree::terms);
            if !terms.is_empty() {
                ends.clear();
            }
            terms
        }
        [End::Where(root), ref of @ ..] if of.iter().all(|end| matches!(end, End::Aggregate(..))) => {
            let (mut told, mut rest, mut waiting) = (vec![], vec![], vec![root]);
            while let Some(id) = waiting.pop() {
                match (tree(plan, id, false), &plan.nodes[id].op) {
                    (Some(tree), _) => told.push(tree),
                    (None, Op::And) => waiting.extend(plan.nodes[id].inputs.iter().rev()),
                    _ => rest.push(id),
                }
            }
            // A row that terms exclude would no longer fail.
            if told.is_empty() || plan.only(&rest).can_fail() {
                return vec![];
            }
            let terms = Tree::All(told).terms();
            if !terms.is_empty() {
                ends.splice(0..1, rest.into_iter().map(End::Where));
            }
            terms
        }
        _ => vec![],
    }
}

/// Converts a truth, or its negation; `None` if terms cannot express it.
fn tree(plan: &Plan, id: Id, negated: bool) -> Option<Tree> {
    let node = &plan.nodes[id];
    let slot = |id: Id| match plan.nodes[id].op {
        Op::Column(slot) => u16::try_from(slot).ok(),
        _ => None,
    };
    let joined = |and: bool, parts: Vec<Tree>| if and { Tree::All(parts) } else { Tree::Any(parts) };
    match (&node.op, &node.inputs[..]) {
        (Op::Column(_), _) => Some(Tree::Column(Asks::Bits, slot(id)?, negated)),
        (Op::Not, &[a]) => tree(plan, a, !negated),
        (Op::And | Op::Or, inputs) => {
            let parts = inputs.iter().map(|input| tree(plan, *input, negated)).collect::<Option<_>>()?;
            Some(joined((node.op == Op::And) != negated, parts))
        }
        (Op::Valid(null), &[a]) => Some(Tree::Column(Asks::Valid, slot(a)?, *null != negated)),
        (Op::Compare(how), &[a, b]) => compared(plan, *how, a, b, negated).map(Tree::Range),
        (Op::Distinct(how), &[a, b]) if matches!(how, 2 | 5) => {
            // This is never null: a null is known to differ from the constant.
            let distinct = (*how == 5) != negated;
            let range = compared(plan, *how, a, b, negated)?;
            Some(joined(!distinct, vec![Tree::Column(Asks::Valid, range.slot, distinct), Tree::Range(range)]))
        }
        (Op::In(values), &[a]) => {
            let (slot, number) = column(plan, a)?;
            let [least, most] = limits(number);
            let values = values.iter().map(|value| in_order(*value, number));
            let mut ranges: Vec<range::Range> = vec![];
            // The list's values ascend.
            for value in values.filter(|value| (least..=most).contains(value)) {
                match ranges.last_mut() {
                    Some(last) if value == last.high || value - 1 == last.high => last.high = value,
                    _ => ranges.push(range::Range { low: value, high: value, inverted: negated }),
                }
            }
            let ranges = ranges.into_iter().map(|of| Range { slot, number, of });
            let some = 1..=LISTED;
            some.contains(&ranges.len()).then(|| joined(negated, ranges.map(Tree::Range).collect()))
        }
        _ => None,
    }
}

/// Returns a column's slot and its own number type, seen through widenings.
fn column(plan: &Plan, id: Id) -> Option<(u16, Number)> {
    match (&plan.nodes[id].op, &plan.nodes[id].inputs[..]) {
        (Op::Column(slot), _) if plan.number(id) != Number::Bit => {
            Some((u16::try_from(*slot).ok()?, plan.number(id)))
        }
        (Op::Widen, &[a]) => column(plan, a),
        _ => None,
    }
}

/// Converts a comparison of a column with a constant, or its negation.
fn compared(plan: &Plan, how: u8, a: Id, b: Id, negated: bool) -> Option<Range> {
    let (of, how, value) = with_constant(plan, how, a, b)?;
    let (slot, number) = column(plan, of)?;
    let how = if negated { how ^ 7 } else { how };
    Some(Range { slot, number, of: range::Range::compared(how, in_order(value, number), number) })
}

impl Range {
    /// Returns the same rows as a range of the complement, if that is one range.
    fn opposite(self) -> Option<Range> {
        let [least, most] = limits(self.number);
        let range::Range { low, high, inverted } = self.of;
        let (low, high) = if self.of.is_empty() {
            (least, most)
        } else if low == least {
            // No value lies above the greatest.
            if high == most { (most, least) } else { (high + 1, most) }
        } else if high == most {
            (least, low - 1)
        } else {
            return None;
        };
        Some(Range { of: range::Range { low, high, inverted: !inverted }, ..self })
    }

    /// Returns the range in bits: its first value, the distance to its last, and whether it is inverted;
    /// `None` if it would be two ranges.
    fn bits(self) -> Option<(u128, u128, bool)> {
        let all = u128::MAX >> (128 - self.number.bits());
        let bits = |value: i128| in_order(value, self.number) as u128 & all;
        let range::Range { low, high, inverted } = self.of;
        if self.of.is_empty() || [low, high] == limits(self.number) {
            return Some((0, all, inverted != self.of.is_empty()));
        }
        if is_float(self.number) && low < 0 && high >= 0 {
            return self.opposite()?.bits();
        }
        // Negative floats ascend in the opposite order of their bits.
        let turned = is_float(self.number) && low < 0;
        let (first, last) = if turned { (high, low) } else { (low, high) };
        let (first, last) = (bits(first), bits(last));
        if first > last && self.number.bits() < 32 {
            // Narrow values are compared in wider words, which do not wrap as they do.
            return Some((last + 1, first - last - 2, !inverted));
        }
        Some((first, last.wrapping_sub(first) & all, inverted))
    }

    /// Returns the conjunction of two ranges of one column, if that is a range.
    fn and(self, other: Range) -> Option<Range> {
        let of = self.of.and(other.of).filter(|_| self.slot == other.slot)?;
        Some(Range { of, ..self })
    }
}

impl Tree {
    /// Returns the terms; empty if they need more truths at hand than there are.
    fn terms(self) -> Vec<Term> {
        let (tree, mut terms) = (self.merged(), vec![]);
        if tree.depth() <= TRUTHS {
            tree.put(Then::Push, &mut terms);
        }
        terms
    }

    /// Merges ranges of one column: by intersection under `All`, and under `Any` by intersection of their
    /// complements. Flattens joins nested in joins of their kind.
    fn merged(self) -> Tree {
        let (parts, all) = match self {
            Tree::All(parts) => (parts, true),
            Tree::Any(parts) => (parts, false),
            leaf => return leaf.in_bits(),
        };
        let mut merged: Vec<Tree> = vec![];
        let mut waiting: Vec<Tree> = parts.into_iter().rev().collect();
        while let Some(part) = waiting.pop() {
            match part {
                Tree::All(parts) if all => waiting.extend(parts.into_iter().rev()),
                Tree::Any(parts) if !all => waiting.extend(parts.into_iter().rev()),
                Tree::Range(range) => {
                    // Under `Any`, ranges merge by their complements.
                    let wanted =
                        if range.of.inverted == all { range.opposite().unwrap_or(range) } else { range };
                    let mergeable = wanted.of.inverted != all;
                    let with = merged.iter_mut().find_map(|old| match old {
                        Tree::Range(old) if mergeable => old.and(wanted).map(|both| (old, both)),
                        _ => None,
                    });
                    match with {
                        Some((old, both)) => *old = both,
                        None => merged.push(Tree::Range(wanted)),
                    }
                }
                other => merged.push(other),
            }
        }
        let mut parts = vec![];
        for part in merged.into_iter().map(Tree::merged) {
            match part {
                Tree::All(inner) if all => parts.extend(inner),
                Tree::Any(inner) if !all => parts.extend(inner),
                other => parts.push(other),
            }
        }
        match (parts.len(), all) {
            (1, _) => parts.remove(0),
            // The part that needs most comes first, while nothing waits.
            (_, true) => Tree::All(heaviest_first(parts)),
            (_, false) => Tree::Any(heaviest_first(parts)),
        }
    }

    /// Converts a leaf to leaves that are ranges of bits.
    fn in_bits(self) -> Tree {
        match self {
            Tree::Range(range) if range.bits().is_none() => {
                // A float range across zero becomes two: everything from its low end up, and everything up to
                // its high end.
                let [least, most] = limits(range.number);
                let part = |of| Tree::Range(Range { of, ..range });
                let parts = vec![
                    part(range::Range { high: most, ..range.of }),
                    part(range::Range { low: least, ..range.of }),
                ];
                if range.of.inverted { Tree::Any(parts) } else { Tree::All(parts) }
            }
            leaf => leaf,
        }
    }

    /// Returns the truths that the tree needs at hand. A leaf needs none, because it joins the newest truth
    /// directly.
    fn depth(&self) -> usize {
        match self {
            Tree::All(parts) | Tree::Any(parts) => {
                let waits = |(i, part): (usize, &Tree)| part.depth() + usize::from(i > 0 && part.depth() > 0);
                parts.iter().enumerate().map(waits).max().unwrap_or(0).max(1)
            }
            _ => 0,
        }
    }

    fn put(&self, then: Then, terms: &mut Vec<Term>) {
        let nothing = Term { asks: Asks::Join, then, slot: 0, inverted: false, low: 0, span: 0 };
        match self {
            Tree::All(parts) | Tree::Any(parts) => {
                let join = if matches!(self, Tree::All(_)) { Then::And } else { Then::Or };
                for (i, part) in parts.iter().enumerate() {
                    part.put(if i == 0 { Then::Push } else { join }, terms);
                }
                if then != Then::Push {
                    terms.push(nothing);
                }
            }
            Tree::Column(asks, slot, inverted) => {
                terms.push(Term { asks: *asks, slot: *slot, inverted: *inverted, ..nothing });
            }
            Tree::Range(range) => {
                let (low, span, inverted) = range.bits().expect("one range of bits");
                let asks = match range.number.width() {
                    1 => Asks::Range1,
                    2 => Asks::Range2,
                    4 => Asks::Range4,
                    8 => Asks::Range8,
                    _ => Asks::Range16,
                };
                terms.push(Term { asks, slot: range.slot, inverted, low, span, ..nothing });
            }
        }
    }
}

fn heaviest_first(mut parts: Vec<Tree>) -> Vec<Tree> {
    parts.sort_by_key(|part| std::cmp::Reverse(part.depth()));
    parts
}
