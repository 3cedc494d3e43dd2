//! Runs AMD code objects on the host, for tests: the shipped object itself, not the source it was made from.
//!
//! It supports exactly the instructions that bowstring's kernels compile to, on six architectures. Any other
//! instruction is an error when a kernel is decoded, never a guess when it runs. A wave's lanes run together,
//! under `exec`, as on hardware. The order of waves, and the order in which lanes reach memory, is drawn from
//! a seed. Every access goes through the caller's [`Memory`], which knows the valid addresses. Registers
//! start with random contents. Reading a register before its load has arrived, without an `s_waitcnt`, is an
//! error. Atomics that meet at an element do not race; a load is one of them if its cache bits say that it is
//! atomic, or if it starts a loop around a compare-and-swap.
//!
//! Not modelled: the cycles that must lie between two instructions (hazards that the instruction set leaves
//! to the compiler: `s_nop`, `s_delay_alu`, `s_wait_alu`), caches, local memory, barriers, scratch.
//! Reciprocals are exactly rounded here; hardware gives them to within one unit in the last place, and
//! divisions correct them.

mod counters;
mod decode;
mod instruction;
mod launch;
mod object;
mod table;
mod text;
mod touches;
mod wave;

use std::fmt;

pub use bowstring_watch::Memory;
pub use instruction::Instruction;
pub use launch::{Launch, Program, Ran};
pub use object::{Argument, CodeObject, Kernel};
pub use table::Generation;
pub use wave::State;

/// An error in decoding or running a kernel, with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// The byte offset of the instruction from the kernel's start.
    pub at: usize,
    /// The instruction as text; empty if it could not be decoded.
    pub instruction: String,
    /// The reason, as text for people.
    pub reason: String,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at {:#x}, {}: {}", self.at, self.instruction, self.reason)
    }
}

impl std::error::Error for Error {}

/// The architecture that instructions are encoded for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// The architecture's name, as in `gfx11-generic`.
    pub name: &'static str,
    /// The generation, which decides the encodings.
    pub generation: Generation,
    /// The number of lanes in a wave.
    pub lanes: u32,
}

impl Target {
    /// The targets for which code objects are shipped.
    pub const ALL: [Target; 6] = [
        Target { name: "gfx90a", generation: Generation::Gfx9, lanes: 64 },
        Target { name: "gfx942", generation: Generation::Gfx9, lanes: 64 },
        Target { name: "gfx9-4-generic", generation: Generation::Gfx9, lanes: 64 },
        Target { name: "gfx10-3-generic", generation: Generation::Gfx10, lanes: 32 },
        Target { name: "gfx11-generic", generation: Generation::Gfx11, lanes: 32 },
        Target { name: "gfx12-generic", generation: Generation::Gfx12, lanes: 32 },
    ];

    /// Finds a target by its name.
    pub fn named(name: &str) -> Option<Target> {
        Target::ALL.into_iter().find(|target| target.name == name)
    }
}
