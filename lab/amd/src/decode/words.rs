//! Reads the words of instructions: bit fields, and the meaning of operand codes.

use crate::Target;
use crate::instruction::Operand;
use crate::table::Generation;

/// Bits `from..from + len` of a word.
pub(super) fn bits(word: u32, from: u32, len: u32) -> u32 {
    word >> from & ((1u64 << len) - 1) as u32
}

pub(super) fn signed(value: u32, bits: u32) -> i32 {
    (value << (32 - bits)) as i32 >> (32 - bits)
}

/// The bytes of an instruction, read as words; the last ones may be missing.
#[derive(Clone, Copy)]
pub(super) struct Words<'a>(pub &'a [u8]);

impl Words<'_> {
    pub fn at(&self, i: usize) -> Result<u32, String> {
        let bytes = self.0.get(i * 4..i * 4 + 4).ok_or("cut off")?;
        Ok(u32::from_le_bytes(bytes.try_into().expect("4 bytes")))
    }
}

/// Decodes an operand of 8 bits, as scalar instructions have, or of 9, which may be a vector register.
pub(super) fn operand(target: Target, code: u32, literal: Result<u32, String>) -> Result<Operand, String> {
    let newer = target.generation >= Generation::Gfx11;
    Ok(match code {
        124 if newer => Operand::Null,
        125 if newer => Operand::Scalar(124),
        125 if target.generation == Generation::Gfx10 => Operand::Null,
        0..=107 | 124 | 126 | 127 => Operand::Scalar(code as u8),
        // The newest generation passes the work-group's index in one of these registers.
        108..=123 => Operand::Scalar(code as u8),
        128..=208 | 240..=248 => Operand::Constant(code as u8),
        251 => Operand::NoVcc,
        252 => Operand::NoExec,
        253 => Operand::Condition,
        255 => Operand::Literal(literal?),
        256..=511 => Operand::Vector(code as u16 - 256),
        _ => return Err(format!("operand {code}")),
    })
}
