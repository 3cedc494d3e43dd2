//! Decodes vector instructions, in each of their forms.

use super::words::{Words, bits, operand};
use crate::Target;
use crate::instruction::{Dpp, EXEC, Encoding, Instruction, Operand, Sdwa, VCC};
use crate::table::{Action, Format, Generation, Kind, Output, find};

/// Codes in the first operand's field that announce more fields in the next word.
const SDWA: u32 = 249;
const DPP: u32 = 250;

/// Decodes an instruction of one word and at most one more.
pub(super) fn short(target: Target, words: Words<'_>, first: u32) -> Result<Instruction, String> {
    let (format, code) = match bits(first, 25, 6) {
        0x3f => (Format::Vop1, bits(first, 9, 8)),
        0x3e => (Format::Vopc, bits(first, 17, 8)),
        code => (Format::Vop2, code),
    };
    let mut made = Instruction::new(target, format, code)?;
    made.encoding = if made.row.action.is_plain_lane_read() { Encoding::Only } else { Encoding::Short };
    let (to, second) = (bits(first, 17, 8), bits(first, 9, 8));
    let mut from = [bits(first, 0, 9), second + 256];
    match from[0] {
        SDWA if target.generation <= Generation::Gfx10 => {
            let word = words.at(1)?;
            made.size = 8;
            sdwa(&mut made, word, format == Format::Vopc)?;
            from[0] = bits(word, 0, 8) + if bits(word, 23, 1) == 0 { 256 } else { 0 };
            from[1] = second + if bits(word, 31, 1) == 0 { 256 } else { 0 };
        }
        DPP => {
            let word = words.at(1)?;
            made.size = 8;
            dpp(&mut made, word)?;
            from[0] = bits(word, 0, 8) + 256;
        }
        255 => made.size = 8,
        _ => {}
    }
    let kinds = made.kinds().0.to_vec();
    for (i, code) in from.into_iter().enumerate().take(kinds.len()) {
        made.from[i] = operand(target, code, words.at(1))?;
    }
    if format == Format::Vop2 {
        made.from[2] = match kinds.get(2) {
            Some(Kind::Mask) => Operand::Scalar(VCC),
            _ => Operand::None,
        };
    }
    made.to = Operand::Vector(to as u16);
    match made.kinds().1 {
        Some(Output::Mask) if made.sdwa.is_none() => {
            (made.to, made.bits_to) = (Operand::None, Operand::Scalar(VCC))
        }
        Some(Output::Mask) => made.to = Operand::None,
        Some(Output::Exec) => (made.to, made.bits_to) = (Operand::None, Operand::Scalar(EXEC)),
        Some(Output::Both(_)) => made.bits_to = Operand::Scalar(VCC),
        Some(Output::Lanes(_)) => {}
        // The destination of a lane read is a scalar register.
        None => made.to = operand(target, to, Err("a literal result".into()))?,
    }
    short_halves(&mut made);
    result_operand(&mut made);
    Ok(made)
}

/// From the third generation on, the short form numbers half registers by itself: the high half's number has
/// one bit more.
fn short_halves(made: &mut Instruction) {
    if made.target.generation < Generation::Gfx11 {
        return;
    }
    let (kinds, to) = made.kinds();
    let (kinds, to) = (kinds.to_vec(), to);
    let half = |operand: &mut Operand| match operand {
        Operand::Vector(register) if *register >= 128 => {
            *register -= 128;
            true
        }
        _ => false,
    };
    for (i, kind) in kinds.into_iter().enumerate() {
        if kind == Kind::B16 && half(&mut made.from[i]) {
            made.halves |= 1 << i;
        }
    }
    if to == Some(Output::Lanes(Kind::B16)) && half(&mut made.to) {
        made.halves |= 8;
    }
}

/// Sets the operand that is also the result's register.
fn result_operand(made: &mut Instruction) {
    if let Some(i) = made.kinds().0.iter().position(|kind| *kind == Kind::Result) {
        made.from[i] = made.to;
    }
}

fn dpp(made: &mut Instruction, word: u32) -> Result<(), String> {
    let control = bits(word, 8, 9);
    let shift = match control {
        0x111..=0x11f => (control - 0x110) as u8,
        _ => return Err(format!("lanes moved by {control:#x}")),
    };
    if bits(word, 17, 2) != 0 || bits(word, 20, 4) != 0 {
        return Err("operands that change on their way between lanes".into());
    }
    let (rows, banks) = (bits(word, 28, 4) as u8, bits(word, 24, 4) as u8);
    made.dpp = Some(Dpp { shift, rows, banks, zero: bits(word, 19, 1) != 0 });
    Ok(())
}

fn sdwa(made: &mut Instruction, word: u32, compares: bool) -> Result<(), String> {
    let flag = |bit| bits(word, bit, 1) != 0;
    let (from, signed) = ([bits(word, 16, 3) as u8, bits(word, 24, 3) as u8], [flag(19), flag(27)]);
    let to = if compares { 6 } else { bits(word, 8, 3) as u8 };
    let rest = if compares { 0 } else { bits(word, 11, 2) as u8 };
    if from.iter().any(|part| *part > 6) || to > 6 || rest > 2 {
        return Err("a part of a register that is none".into());
    }
    if !compares && bits(word, 13, 3) != 0 {
        return Err("a result that is clamped or scaled".into());
    }
    if bits(word, 22, 1) | bits(word, 30, 1) != 0 {
        return Err("a reserved bit".into());
    }
    made.negated = (bits(word, 20, 1) | bits(word, 28, 1) << 1) as u8;
    made.absolute = (bits(word, 21, 1) | bits(word, 29, 1) << 1) as u8;
    made.sdwa = Some(Sdwa { to, rest, from, signed });
    if compares {
        let named = operand(made.target, bits(word, 8, 7), Err("a literal result".into()))?;
        made.bits_to = if flag(15) { named } else { Operand::Scalar(VCC) };
    }
    Ok(())
}

/// Decodes an instruction of two words and at most one more.
pub(super) fn long(target: Target, words: Words<'_>, first: u32) -> Result<Instruction, String> {
    let second = words.at(1)?;
    let code = bits(first, 16, 10);
    let singles = if target.generation == Generation::Gfx9 { 0x140 } else { 0x180 };
    // Short instructions have opcodes here too; each format starts at its own number.
    let known = |format, code: u32| find(target.generation, format, code).is_some();
    let (format, code) = match code {
        0..=255 => (Format::Vopc, code),
        _ if (256..320).contains(&code) && known(Format::Vop2, code - 256) => (Format::Vop2, code - 256),
        _ if (singles..singles + 128).contains(&code) && known(Format::Vop1, code - singles) => {
            (Format::Vop1, code - singles)
        }
        _ => (Format::Vop3, code),
    };
    let mut made = Instruction::new(target, format, code)?;
    made.encoding = if format == Format::Vop3 { Encoding::Only } else { Encoding::Long };
    made.size = 8;
    let mut from = [bits(second, 0, 9), bits(second, 9, 9), bits(second, 18, 9)];
    if from[0] == DPP && target.generation >= Generation::Gfx11 {
        let third = words.at(2)?;
        made.size = 12;
        dpp(&mut made, third)?;
        from[0] = bits(third, 0, 8) + 256;
    }
    let newer = target.generation > Generation::Gfx9;
    let kinds = made.kinds().0.to_vec();
    for (i, code) in from.into_iter().enumerate() {
        if matches!(kinds.get(i), None | Some(Kind::Result | Kind::Lane)) {
            continue;
        }
        let literal = if newer { words.at(2) } else { Err("a literal in the long form".into()) };
        made.from[i] = operand(target, code, literal)?;
        if made.from[i].is_literal() {
            made.size = 12;
        }
    }
    if bits(second, 27, 2) != 0 {
        return Err("a result that is scaled".into());
    }
    made.negated = bits(second, 29, 3) as u8;
    made.clamp = bits(first, 15, 1) != 0;
    made.to = Operand::Vector(bits(first, 0, 8) as u16);
    let scalar = |code| operand(target, code, Err("a literal result".into()));
    match made.kinds().1 {
        Some(Output::Both(_)) => made.bits_to = scalar(bits(first, 8, 7))?,
        to => {
            made.absolute = bits(first, 8, 3) as u8;
            made.halves = bits(first, 11, 4) as u8;
            match to {
                Some(Output::Mask) => (made.to, made.bits_to) = (Operand::None, scalar(bits(first, 0, 8))?),
                Some(Output::Exec) => (made.to, made.bits_to) = (Operand::None, Operand::Scalar(EXEC)),
                Some(_) => {}
                None if matches!(made.row.action, Action::IntoLane) => {}
                None => made.to = scalar(bits(first, 0, 8))?,
            }
        }
    }
    let floats = |i: usize| kinds.get(i).is_some_and(|kind| kind.is_float() || *kind == Kind::Result);
    let changed = made.negated | made.absolute;
    // A selection between words may carry float modifiers, if they only change signs.
    let chooses = made.row.names.starts_with("v_cndmask_b32");
    if (0..3).any(|i| changed >> i & 1 != 0 && !floats(i) && !(chooses && i < 2)) {
        return Err("a sign changed of what has none".into());
    }
    let clampable = matches!(&made.row.action, Action::Vector(vector) if vector.clamped.is_some());
    if made.clamp && !clampable {
        return Err("a result that is clamped".into());
    }
    let is_half = |i: usize| kinds.get(i) == Some(&Kind::B16);
    let result_is_half = made.kinds().1 == Some(Output::Lanes(Kind::B16));
    if (0..3).any(|i| made.halves >> i & 1 != 0 && !is_half(i)) || made.halves >> 3 != 0 && !result_is_half {
        return Err("half of what has none".into());
    }
    result_operand(&mut made);
    Ok(made)
}

/// Decodes an instruction with two results, in halves of registers.
pub(super) fn packed(target: Target, first: u32, second: u32) -> Result<Instruction, String> {
    let mut made = Instruction::new(target, Format::Vop3p, bits(first, 16, 7))?;
    made.size = 8;
    for (i, code) in [bits(second, 0, 9), bits(second, 9, 9)].into_iter().enumerate() {
        made.from[i] = operand(target, code, Err("a literal in the packed form".into()))?;
    }
    let (low, high) = (bits(second, 29, 3), bits(first, 8, 3));
    if bits(first, 15, 1) != 0 || low != high || low != 0 && made.kinds().1 != Some(Output::Lanes(Kind::B64))
    {
        return Err("the sign of one half changed or a result clamped, packed".into());
    }
    made.negated = low as u8;
    made.to = Operand::Vector(bits(first, 0, 8) as u16);
    made.halves = bits(first, 11, 3) as u8;
    made.high_halves = (bits(second, 27, 2) | bits(first, 14, 1) << 2) as u8;
    Ok(made)
}

/// Decodes two short instructions that share one encoding.
pub(super) fn pair(target: Target, words: Words<'_>, first: u32) -> Result<Instruction, String> {
    let second = words.at(1)?;
    let mut one = Instruction::new(target, Format::VopdX, bits(first, 22, 4))?;
    let mut other = Instruction::new(target, Format::VopdY, bits(first, 17, 5))?;
    let (to, other_to) = (bits(second, 24, 8), bits(second, 17, 7));
    one.to = Operand::Vector(to as u16);
    other.to = Operand::Vector((other_to << 1 | !to & 1) as u16);
    for (made, from, second) in [
        (&mut one, bits(first, 0, 9), bits(first, 9, 8)),
        (&mut other, bits(second, 0, 9), bits(second, 9, 8)),
    ] {
        let kinds = made.kinds().0.to_vec();
        made.from[0] = operand(target, from, words.at(2))?;
        if kinds.len() > 1 {
            made.from[1] = Operand::Vector(second as u16);
        }
        if kinds.get(2) == Some(&Kind::Mask) {
            made.from[2] = Operand::Scalar(VCC);
        }
        result_operand(made);
    }
    one.size = if one.from[0].is_literal() || other.from[0].is_literal() { 12 } else { 8 };
    one.pair = Some(Box::new(other));
    Ok(one)
}
