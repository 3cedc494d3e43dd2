//! Turns the code of programs that calculate and compare into that of the kernels' arithmetic
//! (`bowstring_kernels::program::arithmetic`).
//!
//! The one idea: each instruction costs a wave the same whatever it does, and each value at hand costs
//! registers. So a cut becomes part of the operation before it. An operand that is pushed only to be the left
//! one of the next operation becomes its right one, turned. Floats are compared by keys without a step that
//! makes them.

use bowstring_kernels::program::arithmetic::TRUTHS;
use bowstring_kernels::program::code::{Instruction, KEYED, Op, Operand, TURNED};
use bowstring_kernels::program::word::key;

/// Returns the instructions as arithmetic runs them, and how many values they need at hand: one or two.
/// `None` if arithmetic cannot run them. `wide` values have sixteen bytes.
pub(super) fn calculation(code: &[Instruction], wide: bool) -> Option<(Vec<Instruction>, u32)> {
    let mut made: Vec<Instruction> = vec![];
    for step in code {
        match step.op {
            Op::Push if is_at_hand(step.operand) || step.operand == Operand::None => return None,
            Op::Fit => {
                let last = made.last_mut().filter(|last| matches!(last.op, Op::Add | Op::Sub | Op::Mul))?;
                (last.detail, last.bad, last.node) =
                    (last.detail & TURNED | step.detail, step.bad, step.node);
            }
            Op::Compare => compare(&mut made, *step, wide),
            Op::Add | Op::Sub | Op::Mul | Op::Xor => calculate(&mut made, *step),
            Op::AddF64 | Op::SubF64 | Op::MulF64 | Op::DivF64 => calculate(&mut made, *step),
            Op::AddF32 | Op::SubF32 | Op::MulF32 | Op::DivF32 => calculate(&mut made, *step),
            Op::Push | Op::Key | Op::Store => made.push(*step),
            Op::Valid | Op::Bits | Op::And | Op::Or | Op::Not | Op::Test => made.push(*step),
            Op::StoreTruth | Op::Keep => made.push(*step),
            _ => return None,
        }
    }
    let values = most(&made, |now, step| match step.op {
        Op::Push => now + 1,
        // Nothing waits behind the values that these take, so the next instruction pushes.
        Op::Compare | Op::Valid | Op::Store => 0,
        _ => now - u32::from(step.operand == Operand::Before),
    });
    let truths = most(&made, |now, step| match step.op {
        Op::Compare | Op::Valid | Op::Bits => now + 1,
        Op::And | Op::Or | Op::StoreTruth | Op::Keep => now - 1,
        _ => now,
    });
    (values <= 2 && truths <= TRUTHS).then(|| (made, values.max(1)))
}

/// Returns the most that is at hand at once, where `after` an instruction so much is.
fn most(code: &[Instruction], after: impl Fn(u32, &Instruction) -> u32) -> u32 {
    let mut now = 0;
    let each = code.iter().map(|step| {
        now = after(now, step);
        now
    });
    each.max().unwrap_or(0)
}

fn is_at_hand(operand: Operand) -> bool {
    matches!(operand, Operand::Newest | Operand::Before)
}

/// Appends an operation. One of two values at hand becomes one of the newest and an operand.
fn calculate(made: &mut Vec<Instruction>, mut step: Instruction) {
    if is_at_hand(step.operand) && turns(made, &mut step) {
        step.detail |= TURNED;
    }
    made.push(step);
}

/// Appends a comparison, in the same way.
fn compare(made: &mut Vec<Instruction>, mut step: Instruction, wide: bool) {
    if is_at_hand(step.operand) {
        if let [.., first, pushed, second] = &made[..]
            && [(first, Op::Key), (pushed, Op::Push), (second, Op::Key)]
                .iter()
                .all(|(step, op)| step.op == *op)
        {
            // The pushed value is an operand as it is.
            let pushed = *pushed;
            made.truncate(made.len() - 3);
            made.push(pushed);
            step.detail |= KEYED;
        }
        if turns(made, &mut step) {
            // Less becomes greater, and greater less.
            step.detail = step.detail & !5 | step.detail << 2 & 4 | step.detail >> 2 & 1;
        }
    } else if made.last().is_some_and(|last| last.op == Op::Key) {
        made.pop();
        step.detail |= KEYED;
        if step.operand == Operand::Constant {
            // A key's key is the value.
            step.constant = if wide { key(step.constant) } else { key(step.constant as i64).into() };
        }
    }
    made.push(step);
}

/// Makes the second of two values at hand an operand, and returns whether that is the left one now.
fn turns(made: &mut Vec<Instruction>, step: &mut Instruction) -> bool {
    let newest_is_left = step.operand == Operand::Before;
    match made.last() {
        Some(pushed) if pushed.op == Op::Push => {
            (step.operand, step.slot, step.constant) = (pushed.operand, pushed.slot, pushed.constant);
            made.pop();
            newest_is_left
        }
        _ => {
            step.operand = Operand::Before;
            !newest_is_left
        }
    }
}
