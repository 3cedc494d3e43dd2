//! A parsed image: the parser creates it, and warps run it.

use std::collections::HashMap;
use std::fmt;

/// An error in parsing or running an image, with its line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// The line of the PTX text, from 1; 0 if there is none.
    pub line: u32,
    /// The reason, as text for people.
    pub reason: String,
}

impl Error {
    pub(crate) fn new(line: u32, reason: impl Into<String>) -> Error {
        Error { line, reason: reason.into() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.reason)
    }
}

impl std::error::Error for Error {}

/// A parsed PTX image.
pub struct Module {
    pub(crate) entries: HashMap<String, Entry>,
    pub(crate) constants: Vec<u8>,
}

/// One kernel of an image.
pub(crate) struct Entry {
    pub(crate) params: usize,
    pub(crate) registers: usize,
    pub(crate) code: Vec<Instruction>,
    /// The post-dominator depth of each instruction: see [`meet`](crate::meet).
    pub(crate) depths: Vec<u32>,
}

impl Module {
    /// The names of the kernels, sorted.
    pub fn entries(&self) -> Vec<&str> {
        let mut names: Vec<_> = self.entries.keys().map(String::as_str).collect();
        names.sort_unstable();
        names
    }

    /// The size of a kernel's parameters in bytes; `None` if the image has no such kernel.
    pub fn params(&self, entry: &str) -> Option<usize> {
        self.entries.get(entry).map(|entry| entry.params)
    }
}

/// The virtual address of the image's constants; no host allocation lies there.
pub(crate) const CONSTANTS: u64 = 0x00ff_0000_0000_0000;

pub(crate) type Register = u32;
pub(crate) type Value = [u64; 4];
pub(crate) type Function = Box<dyn Fn(&Value) -> u64 + Send + Sync>;

/// The source of an operand's value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Operand {
    Register(Register),
    Immediate(u64),
    Special(Special),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Special {
    Lane,
    Thread,
    Block,
    BlockSize,
    Blocks,
    LanesEqual,
    LanesBelow,
    LanesUpTo,
    LanesAbove,
    Zero,
    One,
}

pub(crate) struct Instruction {
    pub(crate) line: u32,
    /// Runs only in lanes whose predicate is set (with `true`: is not set).
    pub(crate) guard: Option<(Register, bool)>,
    pub(crate) op: Op,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Vote {
    Ballot,
    Any,
    All,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Shuffle {
    Index,
    Up,
    Down,
    Butterfly,
}

pub(crate) struct Place {
    pub(crate) base: Operand,
    pub(crate) offset: u64,
}

pub(crate) enum Op {
    /// Computes in each lane on its own.
    Alu {
        function: Function,
        to: Register,
        from: [Operand; 4],
    },
    /// Addition or subtraction with a carry in or out.
    Carry {
        bits: u32,
        subtract: bool,
        takes: bool,
        leaves: bool,
        to: Register,
        from: [Operand; 2],
    },
    Pack {
        to: Register,
        from: Vec<Operand>,
        bits: u32,
    },
    Unpack {
        to: Vec<Option<Register>>,
        from: Operand,
        bits: u32,
    },
    Param {
        to: Register,
        offset: usize,
        bytes: usize,
        signed: bool,
    },
    Load {
        to: Vec<Option<Register>>,
        at: Place,
        bytes: usize,
        signed: bool,
        atomic: bool,
    },
    Store {
        from: Vec<Operand>,
        at: Place,
        bytes: usize,
    },
    /// `function` computes the new value from the old value and the operands.
    Atomic {
        function: Function,
        to: Option<Register>,
        at: Place,
        from: [Operand; 2],
        bytes: usize,
    },
    Vote {
        kind: Vote,
        to: Register,
        from: Operand,
        not: bool,
        mask: Operand,
    },
    Shuffle {
        kind: Shuffle,
        to: Register,
        found: Option<Register>,
        from: Operand,
        by: Operand,
        clamp: Operand,
        mask: Operand,
    },
    SyncWarp {
        mask: Operand,
    },
    Branch {
        target: usize,
    },
    BranchTable {
        index: Operand,
        targets: Vec<usize>,
    },
    Exit,
    Trap,
}
