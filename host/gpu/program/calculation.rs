//! Turns the code of programs that only calculate into that of the kernels' arithmetic
//! (`bowstring_kernels::program::arithmetic`).
//!
//! The one idea: each instruction costs a wave the same whatever it does, and each value at hand costs registers.
//! So a cut becomes part of the operation before it, and an operand that is pushed only to be the left one of the
//! next operation becomes its right one, turned.

use bowstring_kernels::program::arithmetic::TURNED;
use bowstring_kernels::program::code::{Instruction, Op, Operand};

/// Returns the instructions as arithmetic runs them, and how many values they need at hand: one or two. `None` if
/// arithmetic cannot run them.
pub(super) fn calculation(code: &[Instruction]) -> Option<(Vec<Instruction>, u32)> {
    let mut made: Vec<Instruction> = vec![];
    for step in code {
        match step.op {
            Op::Push if !is_at_hand(step.operand) && step.operand != Operand::None => made.push(*step),
            Op::Store => made.push(*step),
            Op::Fit => {
                let last = made.last_mut().filter(|last| matches!(last.op, Op::Add | Op::Sub | Op::Mul))?;
                (last.detail, last.bad, last.node) =
                    (last.detail & TURNED | step.detail, step.bad, step.node);
            }
            Op::Add | Op::Sub | Op::Mul | Op::Xor => made.push(*step),
            Op::AddF64 | Op::SubF64 | Op::MulF64 | Op::DivF64 => made.push(*step),
            Op::AddF32 | Op::SubF32 | Op::MulF32 | Op::DivF32 => made.push(*step),
            _ => return None,
        }
        if !matches!(step.op, Op::Push | Op::Store) && is_at_hand(step.operand) {
            turn(&mut made);
        }
    }
    let mut values = 0;
    let at_hand = made.iter().map(|step| {
        match step.op {
            Op::Push => values += 1,
            Op::Store => values -= 1,
            _ => values -= u32::from(step.operand == Operand::Before),
        }
        values
    });
    let most = at_hand.max().unwrap_or(0);
    (most <= 2).then_some((made, most))
}

fn is_at_hand(operand: Operand) -> bool {
    matches!(operand, Operand::Newest | Operand::Before)
}

/// Makes the last operation, of two values at hand, one of the newest and an operand.
fn turn(made: &mut Vec<Instruction>) {
    let Some(mut step) = made.pop() else { return };
    let newest_is_left = step.operand == Operand::Before;
    let is_turned = match made.last() {
        Some(pushed) if pushed.op == Op::Push => {
            (step.operand, step.slot, step.constant) = (pushed.operand, pushed.slot, pushed.constant);
            made.pop();
            newest_is_left
        }
        _ => {
            step.operand = Operand::Before;
            !newest_is_left
        }
    };
    if is_turned {
        step.detail |= TURNED;
    }
    made.push(step);
}
