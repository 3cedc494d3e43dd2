//! Lists the registers that an instruction reads and writes: no access in flight may write them when it runs.

use crate::instruction::{EXEC, Instruction, Operand, VCC};
use crate::table::{Action, Kind, Output, When};

type Touches = Vec<(bool, u16, u16, bool)>;

/// The number of 32-bit registers that an operand of this kind takes.
fn registers(kind: Kind, lanes: u32) -> u16 {
    match kind {
        Kind::Mask => (lanes / 32) as u16,
        kind => kind.bits().div_ceil(32) as u16,
    }
}

fn touch(all: &mut Touches, operand: Operand, count: u16, written: bool) {
    match operand {
        Operand::Vector(first) => all.push((true, first, count, written)),
        Operand::Scalar(first) => all.push((false, first.into(), count, written)),
        _ => {}
    }
}

pub(crate) fn of(made: &Instruction) -> Touches {
    let mut all = vec![];
    let lanes = made.target.lanes;
    let mut add = |operand, count, written| touch(&mut all, operand, count, written);
    match &made.row.action {
        Action::Scalar(scalar) => {
            for (operand, bits) in made.from.iter().zip(scalar.from) {
                add(*operand, (bits / 32) as u16, false);
            }
            add(made.to, (scalar.to / 32) as u16, true);
        }
        Action::SaveExec(bits, _) => {
            add(made.from[0], (bits / 32) as u16, false);
            add(made.to, (bits / 32) as u16, true);
            add(Operand::Scalar(EXEC), (bits / 32) as u16, true);
        }
        Action::Branch(When::Vcc(_)) => add(Operand::Scalar(VCC), (lanes / 32) as u16, false),
        Action::Branch(_) | Action::End | Action::Nothing | Action::Wait(_) => {}
        Action::Vector(vector) => {
            for (operand, kind) in made.from.iter().zip(&vector.from) {
                let kind = if *kind == Kind::Result { result_kind(vector.to) } else { *kind };
                add(*operand, registers(kind, lanes), false);
            }
            if vector.from.contains(&Kind::Vcc) {
                add(Operand::Scalar(VCC), registers(Kind::Mask, lanes), false);
            }
            match vector.to {
                Output::Lanes(kind) | Output::Both(kind) => add(made.to, registers(kind, lanes), true),
                Output::Mask | Output::Exec => {}
            }
            add(made.bits_to, registers(Kind::Mask, lanes), true);
        }
        Action::FirstLane | Action::OneLane | Action::IntoLane => {
            add(made.from[0], 1, false);
            add(made.from[1], 1, false);
            add(made.to, 1, true);
        }
        Action::Permute => {
            add(made.from[0], 1, false);
            add(made.from[1], 1, false);
            add(made.to, 1, true);
        }
        Action::ScalarLoad { words } => {
            add(made.from[0], 2, false);
            add(made.from[1], 1, false);
            add(made.to, u16::from(*words), true);
        }
        Action::Load { bytes, .. } => {
            address(made, &mut add);
            add(made.to, u16::from(*bytes).div_ceil(4), true);
        }
        Action::Store { bytes, .. } => {
            address(made, &mut add);
            add(made.from[1], u16::from(*bytes).div_ceil(4), false);
        }
        Action::Atomic { bytes, operands, .. } => {
            address(made, &mut add);
            add(made.from[1], u16::from(bytes / 4 * operands), false);
            add(made.to, u16::from(bytes / 4), true);
        }
    }
    if let Some(pair) = &made.pair {
        all.extend(of(pair));
    }
    all
}

/// An address of 64 bits in vector registers, or of 32 bits added to a scalar one.
fn address(made: &Instruction, add: &mut impl FnMut(Operand, u16, bool)) {
    add(made.from[0], if made.from[2] == Operand::None { 2 } else { 1 }, false);
    add(made.from[2], 2, false);
}

fn result_kind(to: Output) -> Kind {
    match to {
        Output::Lanes(kind) | Output::Both(kind) => kind,
        Output::Mask | Output::Exec => Kind::Mask,
    }
}
