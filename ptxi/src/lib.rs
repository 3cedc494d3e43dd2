//! Runs PTX on the host, for tests: the shipped image itself, not the source it was made from.
//!
//! Exactly the subset that bowstring's kernels compile to: one-dimensional launches, no calls, no local or shared memory,
//! no barriers across warps; anything else is an error when the text is parsed, never a guess when it runs. A warp's
//! 32 lanes each have their own program counter. Lanes at the same place run together; which place goes first is the
//! lowest one, or, given a seed, any. A `.sync` instruction runs when every lane its mask names has come to it; when
//! that can never happen the launch fails. Every access goes through the caller's [`Memory`], which says what exists.
//!
//! With [`Launch::races`] set, a byte written by one lane and touched by another in the same launch is an error unless
//! both used atomic updates: nothing orders the lanes of these kernels but the end of the launch.

mod alu;
mod parse;
mod warp;

use std::collections::HashMap;
use std::fmt;

pub use bowstring_watch::Memory;
pub use warp::{Launch, Ran};

/// What went wrong, and on which line of the image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// The line of the PTX text, from 1; 0 where there is none.
    pub line: u32,
    /// The reason.
    pub reason: String,
}

impl Error {
    fn new(line: u32, reason: impl Into<String>) -> Error {
        Error { line, reason: reason.into() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.reason)
    }
}

impl std::error::Error for Error {}

/// A parsed image.
pub struct Module {
    entries: HashMap<String, Entry>,
    constants: Vec<u8>,
}

/// One kernel.
struct Entry {
    params: usize,
    registers: usize,
    code: Vec<Instruction>,
}

impl Module {
    /// Parses a whole image. An instruction outside the subset is an error here.
    pub fn parse(text: &str) -> Result<Module, Error> {
        parse::module(text)
    }

    /// The names of its kernels, sorted.
    pub fn entries(&self) -> Vec<&str> {
        let mut names: Vec<_> = self.entries.keys().map(String::as_str).collect();
        names.sort_unstable();
        names
    }

    /// How many bytes of parameters a kernel takes; `None` where there is no such kernel.
    pub fn params(&self, entry: &str) -> Option<usize> {
        self.entries.get(entry).map(|entry| entry.params)
    }
}

/// Where the image's own constants appear in the address space: nowhere that a host allocation is.
const CONSTANTS: u64 = 0x00ff_0000_0000_0000;

type Register = u32;
type Value = [u64; 4];
type Function = Box<dyn Fn(&Value) -> u64 + Send + Sync>;

/// A source of a value.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Operand {
    Register(Register),
    Immediate(u64),
    Special(Special),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Special {
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

struct Instruction {
    line: u32,
    /// Runs only in lanes where the predicate is (or with `true`: is not) set.
    guard: Option<(Register, bool)>,
    op: Op,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Vote {
    Ballot,
    Any,
    All,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Shuffle {
    Index,
    Up,
    Down,
    Butterfly,
}

struct Place {
    base: Operand,
    offset: u64,
}

enum Op {
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
    },
    Load {
        to: Vec<Option<Register>>,
        at: Place,
        bytes: usize,
        signed: bool,
    },
    Store {
        from: Vec<Operand>,
        at: Place,
        bytes: usize,
    },
    /// `function` gets the old value and the operands, and gives the new one.
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
