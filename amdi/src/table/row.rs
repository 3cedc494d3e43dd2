//! A row of the table: what one instruction is, in every generation that has it.

/// Encodings change with these; what an operation does hardly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Generation {
    /// GCN and CDNA.
    Gfx9,
    /// RDNA 1 and 2.
    Gfx10,
    /// RDNA 3.
    Gfx11,
    /// RDNA 4.
    Gfx12,
}

/// Which fields an instruction has.
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
    /// The first and the second half of a pair that runs at once.
    VopdX,
    VopdY,
    Ds,
    Global,
}

/// The lanes of the widest wave.
pub(crate) const WIDE: usize = 64;
/// A value for each lane.
pub(crate) type Wide = [u64; WIDE];
/// An operation's operands.
pub(crate) type Sources = [Wide; 4];

/// What an operand is, which says how many registers it takes and how constants are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    B16,
    B32,
    B64,
    F32,
    F64,
    /// A bit for each lane, in scalar registers.
    Mask,
    /// The register that the result goes to.
    Result,
    /// No operand, but the lane's number.
    Lane,
    /// No operand, but the lane's bit in `vcc`. It comes last.
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

/// What becomes of the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Output {
    Lanes(Kind),
    /// A bit for each lane, to scalar registers.
    Mask,
    /// To `exec`.
    Exec,
    /// A value, and a bit for each lane.
    Both(Kind),
}

/// Gives lanes and bits, for so many lanes.
pub(super) type Body = Box<dyn Fn(&Sources, usize, &mut Wide) -> u64 + Send + Sync>;

pub(crate) struct Vector {
    pub to: Output,
    pub from: Vec<Kind>,
    pub run: Body,
    /// What it does where the instruction asks for the nearest value that fits instead of the low bits.
    pub clamped: Option<Body>,
    pub packed: Option<Packed>,
}

/// Two results at once, in the halves of a value, from halves of the operands that bits of the instruction choose.
#[derive(Clone, Copy)]
pub(crate) struct Packed {
    pub run: fn(u64, u64) -> u64,
    /// Bits of a half.
    pub half: u32,
    /// The result's halves are halves of one operand each, not results of both.
    pub moves: bool,
}

/// What a scalar operation needs besides two operands, and what it leaves.
#[derive(Clone, Copy)]
pub(crate) struct Scalar {
    /// Bits of the result and of the operands; 0 where there is none.
    pub to: u32,
    pub from: [u32; 2],
    /// From operands and the condition code, the result and what becomes of the condition code.
    pub run: fn(u64, u64, bool) -> (u64, Option<bool>),
    /// Whether the result's register is an operand too, the first.
    pub onto: bool,
}

/// When a branch is taken.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum When {
    Always,
    Condition(bool),
    /// Whether any bit of `vcc`, or of `exec`, is set.
    Vcc(bool),
    Exec(bool),
}

/// How the immediate of a waiting instruction says up to how many may be left.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Waits {
    /// All counters in one number, packed as the generation does.
    Packed,
    Loads,
    Scalars,
    Shared,
    LoadsAndShared,
}

pub(crate) enum Action {
    Scalar(Scalar),
    /// The old `exec` to the destination, and a new one from it and the operand.
    SaveExec(u32, fn(u64, u64) -> u64),
    Branch(When),
    End,
    Nothing,
    Wait(Waits),
    Vector(Vector),
    /// One lane's value to a scalar register: the first active one's, or that which the second operand names.
    FirstLane,
    OneLane,
    /// A scalar value to that lane.
    IntoLane,
    /// Each lane's value from the lane that its address names.
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
    /// An update: from the old value and the operands the new one.
    Atomic {
        bytes: u8,
        operands: u8,
        run: fn(u64, [u64; 2]) -> u64,
    },
}

/// Which part of its register a load writes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Part {
    Whole,
    Low,
    High,
}

/// An opcode that a generation does not have.
pub(super) const N: u16 = u16::MAX;

/// One instruction of every generation that has it.
pub(crate) struct Row {
    pub format: Format,
    pub codes: [u16; 4],
    /// The first generation's name, then, each with the generation's number before it, those that came later:
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

/// A row.
pub(super) fn row(format: Format, codes: [u16; 4], names: &'static str, action: Action) -> Row {
    Row { format, codes, names, action }
}

impl Action {
    /// Whether it hands a lane's value to a scalar register: such an instruction has one form only.
    pub(crate) fn is_plain_lane_read(&self) -> bool {
        matches!(self, Action::FirstLane | Action::OneLane)
    }
}
