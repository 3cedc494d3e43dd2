//! From bytes to instructions. The format says where fields are, the table what the opcode means; whatever is in neither,
//! and every bit that would change what an instruction does but is not modelled, is an error.

mod vectors;

use crate::Target;
use crate::table::{Action, Format, Generation, Kind, Output, Row, Scalar, find};

/// Scalar registers that have names.
pub(crate) const VCC: u8 = 106;
pub(crate) const EXEC: u8 = 126;

/// A source or a destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) enum Operand {
    #[default]
    None,
    Vector(u16),
    Scalar(u8),
    /// Reads 0, keeps nothing.
    Null,
    /// A value that the instruction's field itself stands for.
    Constant(u8),
    Literal(u32),
    /// Whether `vcc` or `exec` is 0, and the condition code.
    NoVcc,
    NoExec,
    Condition,
}

/// How an instruction of vectors was written, which is part of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    /// There is one form only.
    Only,
    Short,
    Long,
}

/// Where lanes get their first operand from, instead of from themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dpp {
    /// So many lanes below, in the same row of 16.
    pub shift: u8,
    pub rows: u8,
    pub banks: u8,
    /// Lanes without a source read 0; without this they keep what they have.
    pub zero: bool,
}

/// Bytes or halves of operands and of the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sdwa {
    pub to: u8,
    /// What becomes of the rest of the result's register: 0 is zeroes, 1 the sign, 2 what is there.
    pub rest: u8,
    pub from: [u8; 2],
    pub signed: [bool; 2],
}

/// A decoded instruction.
pub struct Instruction {
    pub(crate) row: &'static Row,
    pub(crate) target: Target,
    pub(crate) size: u8,
    pub(crate) encoding: Encoding,
    pub(crate) to: Operand,
    /// Where bits go, one for each lane.
    pub(crate) bits_to: Operand,
    pub(crate) from: [Operand; 3],
    /// A bit for each operand.
    pub(crate) absolute: u8,
    pub(crate) negated: u8,
    /// Operands of 16 bits that are the high half of their register; bit 3 is the result's. Of packed operations: which
    /// half goes into the low result, and `high_halves` into the high one.
    pub(crate) halves: u8,
    pub(crate) high_halves: u8,
    pub(crate) clamp: bool,
    pub(crate) dpp: Option<Dpp>,
    pub(crate) sdwa: Option<Sdwa>,
    /// The signed offset of an address or of a branch, or what a wait says.
    pub(crate) immediate: i32,
    /// Whether an atomic update gives back the old value.
    pub(crate) returns: bool,
    /// Whether a load is the first look of an update: see `Program`.
    pub(crate) first_look: bool,
    /// Bits for caches, which change nothing here: as the encoding has them.
    pub(crate) cache: u8,
    /// The second of a pair, which runs at once with this.
    pub(crate) pair: Option<Box<Instruction>>,
    /// The registers that are read or written: whether they are vectors, the first, how many, and whether written.
    pub(crate) touches: Vec<(bool, u16, u16, bool)>,
}

/// Bits `from..from + len` of a word.
pub(super) fn bits(word: u32, from: u32, len: u32) -> u32 {
    word >> from & ((1u64 << len) - 1) as u32
}

pub(super) fn signed(value: u32, bits: u32) -> i32 {
    (value << (32 - bits)) as i32 >> (32 - bits)
}

/// The words of an instruction, as far as there are any.
#[derive(Clone, Copy)]
pub(super) struct Words<'a>(&'a [u8]);

impl Words<'_> {
    fn at(&self, i: usize) -> Result<u32, String> {
        let bytes = self.0.get(i * 4..i * 4 + 4).ok_or("cut off")?;
        Ok(u32::from_le_bytes(bytes.try_into().expect("4 bytes")))
    }
}

/// An operand of 8 bits, of scalar instructions, or of 9, which may be a vector register.
pub(super) fn operand(target: Target, code: u32, literal: Result<u32, String>) -> Result<Operand, String> {
    let newer = target.generation >= Generation::Gfx11;
    Ok(match code {
        124 if newer => Operand::Null,
        125 if newer => Operand::Scalar(124),
        125 if target.generation == Generation::Gfx10 => Operand::Null,
        0..=107 | 124 | 126 | 127 => Operand::Scalar(code as u8),
        // Where the newest generation puts the work-group's index.
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

impl Operand {
    /// The value of what is no register, for an operand of this kind.
    pub(crate) fn constant(self, kind: Kind) -> Option<u64> {
        let fraction = |code: u8| [0.5, -0.5, 1.0, -1.0, 2.0, -2.0, 4.0, -4.0][usize::from(code - 240)];
        let value = match self {
            Operand::Null => 0,
            Operand::Constant(code @ 128..=192) => u64::from(code) - 128,
            Operand::Constant(code @ 193..=208) => (192 - i64::from(code)) as u64,
            Operand::Constant(248) if kind.bits() == 64 => 0x3fc4_5f30_6dc9_c882,
            Operand::Constant(248) => 0x3e22_f983,
            Operand::Constant(code) if kind.bits() == 64 => f64::to_bits(fraction(code)),
            Operand::Constant(code) => (fraction(code) as f32).to_bits().into(),
            Operand::Literal(word) if kind == Kind::F64 => u64::from(word) << 32,
            Operand::Literal(word) => word.into(),
            _ => return None,
        };
        Some(if kind.bits() == 64 { value } else { value & 0xffff_ffff })
    }

    pub(super) fn is_literal(self) -> bool {
        matches!(self, Operand::Literal(_))
    }
}

impl Instruction {
    /// Decodes the instruction that these bytes start with.
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
        made.touches = crate::touches::of(&made);
        Ok(made)
    }

    /// Its length in bytes.
    pub fn size(&self) -> usize {
        self.size.into()
    }

    /// Whether it is one for the whole wave.
    pub(crate) fn is_scalar(&self) -> bool {
        use Format::*;
        matches!(self.row.format, Sop1 | Sop2 | Sopk | Sopc | Sopp | Smem)
    }

    pub(super) fn new(target: Target, format: Format, code: u32) -> Result<Instruction, String> {
        let row = find(target.generation, format, code).ok_or_else(|| format!("{format:?} opcode {code}"))?;
        Ok(Instruction {
            row,
            target,
            size: 4,
            encoding: Encoding::Only,
            to: Operand::None,
            bits_to: Operand::None,
            from: [Operand::None; 3],
            absolute: 0,
            negated: 0,
            halves: 0,
            high_halves: 0,
            clamp: false,
            dpp: None,
            sdwa: None,
            immediate: 0,
            returns: false,
            first_look: false,
            cache: 0,
            pair: None,
            touches: vec![],
        })
    }

    /// The kinds of an operation's operands, and of its result.
    pub(crate) fn kinds(&self) -> (&[Kind], Option<Output>) {
        match &self.row.action {
            Action::Vector(vector) => (&vector.from, Some(vector.to)),
            Action::FirstLane => (&[Kind::B32], None),
            Action::OneLane => (&[Kind::B32, Kind::B32], None),
            _ => (&[], None),
        }
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
            // Messages may reach the host.
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
    // An immediate offset, that in a scalar register, or both.
    let register = match generation {
        // Bit 4 of this says that there is an immediate, bit 1 that there is a register.
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

/// The operands of a reach to memory: its address, what is stored, what is added to the address, and what is loaded.
fn reach(made: &mut Instruction, address: Operand, data: Operand, base: Operand, to: Operand, returns: bool) {
    made.from = [address, data, base];
    match made.row.action {
        Action::Load { .. } => (made.to, made.from[1]) = (to, Operand::None),
        Action::Atomic { .. } if returns => (made.to, made.returns) = (to, true),
        _ => {}
    }
}
