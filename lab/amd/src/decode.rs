//! Decodes bytes to instructions. The format gives the fields, the table the opcode's meaning. Anything that
//! is in neither is an error, and so is every bit that would change an instruction's effect but is not
//! modelled.

mod vectors;
mod words;

use crate::instruction::{Instruction, Operand};
use crate::table::{Action, Format, Generation, Scalar};
use crate::{Target, touches};
use words::{Words, bits, operand, signed};

impl Instruction {
    /// Decodes the instruction at the start of these bytes.
    pub fn decode(target: Target, bytes: &[u8]) -> Result<Instruction, String> {
        let words = Words(bytes);
        let first = words.at(0)?;
        let mut made = if first >> 31 == 0 {
            vectors::short(target, words, first)?
        } else if first >> 30 == 0b10 {
            scalar(target, words, first)?
        } else {
            long(target, words, first)?
        };
        made.touches = touches::of(&made);
        Ok(made)
    }
}

/// Formats whose first bits are `10`.
fn scalar(target: Target, words: Words<'_>, first: u32) -> Result<Instruction, String> {
    let literal = || words.at(1);
    let source = |code| operand(target, code, literal());
    let half = first as u16 as i16;
    let mut made = match first >> 23 {
        0b1_0111_1101 => {
            let mut made = Instruction::new(target, Format::Sop1, bits(first, 8, 8))?;
            made.to = source(bits(first, 16, 7))?;
            let from = source(bits(first, 0, 8))?;
            made.from = match made.row.action {
                Action::Scalar(Scalar { onto: true, .. }) => [made.to, from, Operand::None],
                _ => [from, Operand::None, Operand::None],
            };
            made
        }
        0b1_0111_1110 => {
            let mut made = Instruction::new(target, Format::Sopc, bits(first, 16, 7))?;
            made.from = [source(bits(first, 0, 8))?, source(bits(first, 8, 8))?, Operand::None];
            made
        }
        0b1_0111_1111 => {
            let mut made = Instruction::new(target, Format::Sopp, bits(first, 16, 7))?;
            made.immediate = half.into();
            // Other messages may reach the host.
            if made.row.names.starts_with("s_sendmsg") && half != 3 {
                return Err(format!("message {half}"));
            }
            made
        }
        top if top >> 5 == 0b1011 => {
            let mut made = Instruction::new(target, Format::Sopk, bits(first, 23, 5))?;
            let register = source(bits(first, 16, 7))?;
            made.immediate = half.into();
            let Action::Scalar(action) = &made.row.action else { return Err("an immediate".into()) };
            made.to = if action.to > 0 { register } else { Operand::None };
            let onto = if action.onto { register } else { Operand::None };
            made.from = [onto, Operand::Literal(i32::from(half) as u32), Operand::None];
            return Ok(made);
        }
        _ => {
            let mut made = Instruction::new(target, Format::Sop2, bits(first, 23, 7))?;
            made.to = source(bits(first, 16, 7))?;
            made.from = [source(bits(first, 0, 8))?, source(bits(first, 8, 8))?, Operand::None];
            made
        }
    };
    if made.from.iter().any(|operand| operand.is_literal()) {
        made.size = 8;
    }
    Ok(made)
}

/// Formats whose first bits are `11`.
fn long(target: Target, words: Words<'_>, first: u32) -> Result<Instruction, String> {
    use Generation::{Gfx9, Gfx12};
    let newer = target.generation > Gfx9;
    match first >> 26 {
        0b110000 if !newer => scalar_load(target, first, words.at(1)?),
        0b111101 if newer => scalar_load(target, first, words.at(1)?),
        0b110100 if !newer && first >> 23 == 0b1_1010_0111 => vectors::packed(target, first, words.at(1)?),
        0b110100 if !newer => vectors::long(target, words, first),
        0b110101 if newer => vectors::long(target, words, first),
        0b110010 if target.generation >= Generation::Gfx11 => vectors::pair(target, words, first),
        0b110110 => shared(target, first, words.at(1)?),
        0b110111 if target.generation < Gfx12 => global(target, first, words.at(1)?),
        0b111011 if target.generation == Gfx12 => global_newest(target, first, words.at(1)?, words.at(2)?),
        _ => Err(format!("encoding {first:#010x}")),
    }
}

fn scalar_load(target: Target, first: u32, second: u32) -> Result<Instruction, String> {
    let generation = target.generation;
    let newest = generation == Generation::Gfx12;
    let code = if newest { bits(first, 13, 6) } else { bits(first, 18, 8) };
    let mut made = Instruction::new(target, Format::Smem, code)?;
    made.size = 8;
    made.to = Operand::Scalar(bits(first, 6, 7) as u8);
    made.from[0] = Operand::Scalar(bits(first, 0, 6) as u8 * 2);
    // The offset is immediate, in a scalar register, or both.
    let register = match generation {
        // Bit 4 marks an immediate, bit 1 a register.
        Generation::Gfx9 => match bits(first, 13, 5) {
            0b10000 => None,
            0b10010 => Some(bits(second, 25, 7)),
            _ => return Err("a scalar load that says something of caches".into()),
        },
        Generation::Gfx10 | Generation::Gfx11 if bits(first, 13, 5) == 0 => Some(bits(second, 25, 7)),
        Generation::Gfx12 if bits(first, 19, 7) == 0 => Some(bits(second, 25, 7)),
        _ => return Err("a scalar load that says something of caches".into()),
    };
    made.immediate = if newest { signed(second, 24) } else { signed(second, 21) };
    made.from[1] = match register.map(|code| operand(target, code, Err("a literal offset".into()))) {
        None | Some(Ok(Operand::Null)) => Operand::None,
        Some(Ok(Operand::Scalar(register))) => Operand::Scalar(register),
        Some(other) => return Err(format!("a scalar load's offset in {other:?}")),
    };
    Ok(made)
}

fn shared(target: Target, first: u32, second: u32) -> Result<Instruction, String> {
    let (code, odd) = match target.generation {
        Generation::Gfx9 => (bits(first, 17, 8), bits(first, 16, 1) + bits(first, 25, 1)),
        _ => (bits(first, 18, 8), bits(first, 16, 2)),
    };
    let mut made = Instruction::new(target, Format::Ds, code)?;
    if odd != 0 || bits(second, 16, 8) != 0 {
        return Err("a field that shared memory here does not have".into());
    }
    let vector = |from| Operand::Vector(bits(second, from, 8) as u16);
    made.size = 8;
    made.immediate = bits(first, 0, 16) as i32;
    (made.to, made.from) = (vector(24), [vector(0), vector(8), Operand::None]);
    Ok(made)
}

fn global(target: Target, first: u32, second: u32) -> Result<Instruction, String> {
    let mut made = Instruction::new(target, Format::Global, bits(first, 18, 7))?;
    let (segment, offset, cache, odd) = match target.generation {
        Generation::Gfx9 => {
            let cache = bits(first, 16, 2) | bits(first, 25, 1) << 2;
            (bits(first, 14, 2), signed(first, 13), cache, bits(first, 13, 1) | bits(second, 23, 1))
        }
        Generation::Gfx10 => {
            let cache = bits(first, 16, 2) | bits(first, 12, 1) << 2;
            (bits(first, 14, 2), signed(first, 12), cache, bits(first, 13, 1) | bits(first, 25, 1))
        }
        _ => {
            let cache = bits(first, 14, 2) | bits(first, 13, 1) << 2;
            (bits(first, 16, 2), signed(first, 13), cache, bits(first, 25, 1) | bits(second, 23, 1))
        }
    };
    if segment != 2 || odd != 0 {
        return Err("memory that is not global".into());
    }
    made.size = 8;
    (made.immediate, made.cache) = (offset, cache as u8);
    let off = if target.generation >= Generation::Gfx11 { 124 } else { 125 };
    let base = match bits(second, 16, 7) {
        127 => Operand::None,
        base if base == off && target.generation > Generation::Gfx9 => Operand::None,
        base => operand(target, base, Err("a literal address".into()))?,
    };
    let vector = |from| Operand::Vector(bits(second, from, 8) as u16);
    reach(&mut made, vector(0), vector(8), base, vector(24), cache & 1 != 0);
    Ok(made)
}

fn global_newest(target: Target, first: u32, second: u32, third: u32) -> Result<Instruction, String> {
    if bits(first, 24, 8) != 0xee
        || bits(first, 7, 6) | bits(first, 21, 3) | bits(second, 8, 9) | bits(second, 31, 1) != 0
    {
        return Err("memory that is not global".into());
    }
    let mut made = Instruction::new(target, Format::Global, bits(first, 13, 8))?;
    made.size = 12;
    made.immediate = signed(third >> 8, 24);
    // The scope, then the temporal hint.
    made.cache = bits(second, 18, 5) as u8;
    let base = match bits(first, 0, 7) {
        124 => Operand::None,
        base => operand(target, base, Err("a literal address".into()))?,
    };
    let vector = |word, from| Operand::Vector(bits(word, from, 8) as u16);
    let returns = bits(second, 20, 1) != 0;
    reach(&mut made, vector(third, 0), vector(second, 23), base, vector(second, 0), returns);
    Ok(made)
}

/// Sets the operands of a memory access: its address, the stored value, the base added to the address, and
/// the destination.
fn reach(made: &mut Instruction, address: Operand, data: Operand, base: Operand, to: Operand, returns: bool) {
    made.from = [address, data, base];
    match made.row.action {
        Action::Load { .. } => (made.to, made.from[1]) = (to, Operand::None),
        Action::Atomic { .. } if returns => (made.to, made.returns) = (to, true),
        _ => {}
    }
}
