//! A decoded instruction: decoders create it, waves run it, and `text` prints it.

use crate::Target;
use crate::table::{Action, Format, Generation, Kind, Output, Row, find};

/// Scalar registers that have names.
pub(crate) const VCC: u8 = 106;
pub(crate) const EXEC: u8 = 126;

/// A source or destination of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) enum Operand {
    #[default]
    None,
    Vector(u16),
    Scalar(u8),
    /// Reads as 0, and discards results.
    Null,
    /// A constant that the operand's code stands for.
    Constant(u8),
    Literal(u32),
    /// Tests whether `vcc` or `exec` is 0; `Condition` reads the condition code.
    NoVcc,
    NoExec,
    Condition,
}

/// The encoding of a vector instruction, which is part of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    /// The instruction has one form only.
    Only,
    Short,
    Long,
}

/// Takes the first operand from another lane (DPP).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dpp {
    /// The distance in lanes to the source, which is below in the same row of 16.
    pub shift: u8,
    pub rows: u8,
    pub banks: u8,
    /// Lanes without a source read 0; if unset, they keep their old value.
    pub zero: bool,
}

/// Selects bytes or halves of operands and of the result (SDWA).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sdwa {
    pub to: u8,
    /// The rest of the result's register: 0 clears it, 1 fills it with the sign, 2 keeps it.
    pub rest: u8,
    pub from: [u8; 2],
    pub signed: [bool; 2],
}

/// A decoded instruction, ready to run or to print.
pub struct Instruction {
    pub(crate) row: &'static Row,
    pub(crate) target: Target,
    pub(crate) size: u8,
    pub(crate) encoding: Encoding,
    pub(crate) to: Operand,
    /// The destination of a result with one bit for each lane.
    pub(crate) bits_to: Operand,
    pub(crate) from: [Operand; 3],
    /// Flags with one bit for each operand.
    pub(crate) absolute: u8,
    pub(crate) negated: u8,
    /// Marks 16-bit operands that are the high half of their register; bit 3 is the result's. For packed
    /// operations it selects the half that goes into the low result, and `high_halves` selects the half for
    /// the high one.
    pub(crate) halves: u8,
    pub(crate) high_halves: u8,
    pub(crate) clamp: bool,
    pub(crate) dpp: Option<Dpp>,
    pub(crate) sdwa: Option<Sdwa>,
    /// The signed offset of an address or of a branch, or a wait's limits.
    pub(crate) immediate: i32,
    /// Whether an atomic update returns the old value.
    pub(crate) returns: bool,
    /// Whether a load is the first read of an update: see `Program`.
    pub(crate) first_look: bool,
    /// Cache bits as encoded. They change nothing here but whether a load is atomic.
    pub(crate) cache: u8,
    /// The second instruction of a pair; both run at once.
    pub(crate) pair: Option<Box<Instruction>>,
    /// The registers that the instruction reads or writes: whether they are vector registers, the first,
    /// their count, and whether they are written.
    pub(crate) touches: Vec<(bool, u16, u16, bool)>,
}

impl Operand {
    /// The value of an operand that is not a register, for this kind; `None` for registers.
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

    pub(crate) fn is_literal(self) -> bool {
        matches!(self, Operand::Literal(_))
    }
}

impl Instruction {
    /// The length of the encoding in bytes.
    pub fn size(&self) -> usize {
        self.size.into()
    }

    /// Whether the instruction runs once for the whole wave.
    pub(crate) fn is_scalar(&self) -> bool {
        use Format::*;
        matches!(self.row.format, Sop1 | Sop2 | Sopk | Sopc | Sopp | Smem)
    }

    /// Creates an instruction with only its row set.
    pub(crate) fn new(target: Target, format: Format, code: u32) -> Result<Instruction, String> {
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

    /// Whether this is a load with the cache bits of an atomic one: relaxed, at the scope of the system, as
    /// LLVM's memory model for AMD's GPUs encodes it. No other load of these kernels has them.
    pub(crate) fn is_atomic_load(&self) -> bool {
        let (bits, mask) = match (self.target.generation, self.target.name) {
            (Generation::Gfx9, "gfx90a") | (Generation::Gfx11, _) => (1, 7),
            (Generation::Gfx9 | Generation::Gfx10, _) => (5, 7),
            (Generation::Gfx12, _) => (3, 31),
        };
        matches!(self.row.action, Action::Load { .. }) && self.cache & mask == bits
    }

    /// The kinds of the operands, and the output.
    pub(crate) fn kinds(&self) -> (&[Kind], Option<Output>) {
        match &self.row.action {
            Action::Vector(vector) => (&vector.from, Some(vector.to)),
            Action::FirstLane => (&[Kind::B32], None),
            Action::OneLane | Action::IntoLane => (&[Kind::B32, Kind::B32], None),
            _ => (&[], None),
        }
    }
}
