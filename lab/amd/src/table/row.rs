//! A row of the table: one instruction in every generation that has it.

/// The generations of architectures. Encodings differ between them; the effects of operations hardly do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Generation {
    /// The GCN and CDNA architectures.
    Gfx9,
    /// RDNA 1 and 2.
    Gfx10,
    /// The RDNA 3 architecture.
    Gfx11,
    /// The RDNA 4 architecture.
    Gfx12,
}

/// An encoding format, which determines the fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Format {
    Sop1,
    Sop2,
    Sopk,
    Sopc,
    Sopp,
    Smem,
    Vop1,
    Vop2,
    Vop3,
    Vop3p,
    Vopc,
    /// The first and the second half of a pair; both run at once.
    VopdX,
    VopdY,
    Ds,
    Global,
}

/// The number of lanes in the widest wave.
pub(crate) const WIDE: usize = 64;
/// A value for each lane.
pub(crate) type Wide = [u64; WIDE];
/// The operands of one operation, for all lanes.
pub(crate) type Sources = [Wide; 4];

/// The kind of an operand: it determines the number of registers, and how constants are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    B16,
    B32,
    B64,
    F32,
    F64,
    /// One bit for each lane, in scalar registers.
    Mask,
    /// The old value of the result's register.
    Result,
    /// The lane's number; not an encoded operand.
    Lane,
    /// The lane's bit in `vcc`, not an encoded operand. It comes last.
    Vcc,
}

impl Kind {
    pub(crate) fn bits(self) -> u32 {
        match self {
            Kind::B16 => 16,
            Kind::B64 | Kind::F64 => 64,
            _ => 32,
        }
    }

    pub(crate) fn is_float(self) -> bool {
        matches!(self, Kind::F32 | Kind::F64)
    }
}

/// The destination of the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Output {
    Lanes(Kind),
    /// One bit for each lane, in scalar registers.
    Mask,
    /// One bit for each lane, in `exec`.
    Exec,
    /// A value in a vector register, and a bit for each lane.
    Both(Kind),
}

/// Computes the values of this many lanes, and returns their bits.
pub(super) type Body = Box<dyn Fn(&Sources, usize, &mut Wide) -> u64 + Send + Sync>;

pub(crate) struct Vector {
    pub to: Output,
    pub from: Vec<Kind>,
    pub run: Body,
    /// The saturating variant, for instructions with the clamp bit.
    pub clamped: Option<Body>,
    pub packed: Option<Packed>,
}

/// Two results at once, in the halves of a value. Bits of the instruction choose the operands' halves.
#[derive(Clone, Copy)]
pub(crate) struct Packed {
    pub run: fn(u64, u64) -> u64,
    /// The width of a half in bits.
    pub half: u32,
    /// Whether each half of the result is a half of one operand, not a result of both.
    pub moves: bool,
}

/// The properties of a scalar operation.
#[derive(Clone, Copy)]
pub(crate) struct Scalar {
    /// The widths of the result and of the operands in bits; 0 if absent.
    pub to: u32,
    pub from: [u32; 2],
    /// Computes the result and the new condition code from the operands and the condition code; `None` keeps
    /// the code.
    pub run: fn(u64, u64, bool) -> (u64, Option<bool>),
    /// Whether the result's register is also the first operand.
    pub onto: bool,
}

/// The condition of a branch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum When {
    Always,
    Condition(bool),
    /// Tests whether any bit of `vcc`, or of `exec`, is set.
    Vcc(bool),
    Exec(bool),
}

/// The encoding of a wait's limits in its immediate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Waits {
    /// All counters in one number, in the generation's packing.
    Packed,
    Loads,
    Scalars,
    Shared,
    LoadsAndShared,
}

pub(crate) enum Action {
    Scalar(Scalar),
    /// Saves the old `exec` to the destination, and computes a new one from it and the operand.
    SaveExec(u32, fn(u64, u64) -> u64),
    Branch(When),
    End,
    Nothing,
    Wait(Waits),
    Vector(Vector),
    /// Copies one lane's value to a scalar register: the first active lane's, or that of the lane in the
    /// second operand.
    FirstLane,
    OneLane,
    /// Copies a scalar value to the lane in the second operand.
    IntoLane,
    /// Gives each lane the value of the lane that its address names.
    Permute,
    ScalarLoad {
        words: u8,
    },
    Load {
        bytes: u8,
        signed: bool,
        into: Part,
    },
    Store {
        bytes: u8,
        high: bool,
    },
    /// An atomic update: computes the new value from the old one and the operands.
    Atomic {
        bytes: u8,
        operands: u8,
        run: fn(u64, [u64; 2]) -> u64,
    },
}

/// The part of its register that a load writes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Part {
    Whole,
    Low,
    High,
}

/// Marks an opcode that a generation does not have.
pub(super) const N: u16 = u16::MAX;

/// One instruction in all generations.
pub(crate) struct Row {
    pub format: Format,
    pub codes: [u16; 4],
    /// The first generation's name, followed by the later names, each after its generation's number:
    /// `s_andn2_b32 11:s_and_not1_b32`.
    pub names: &'static str,
    pub action: Action,
}

impl Row {
    pub(crate) fn name(&self, generation: Generation) -> &'static str {
        let known = |name: &&'static str| match name.split_once(':') {
            Some((from, _)) => from.parse::<u32>().is_ok_and(|from| from <= generation as u32 + 9),
            None => true,
        };
        let last = self.names.split(' ').rfind(known).unwrap_or_default();
        last.split_once(':').map_or(last, |(_, name)| name)
    }
}

/// Makes a row of the table.
pub(super) fn row(format: Format, codes: [u16; 4], names: &'static str, action: Action) -> Row {
    Row { format, codes, names, action }
}

impl Action {
    /// Whether the instruction copies a lane's value to a scalar register; it then has one form only.
    pub(crate) fn is_plain_lane_read(&self) -> bool {
        matches!(self, Action::FirstLane | Action::OneLane)
    }
}
