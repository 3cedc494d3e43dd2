//! Runs AMD code objects on the host, for tests: the shipped object itself, not the source it was made from.
//!
//! Exactly the instructions that bowstring's kernels compile to, of six architectures; anything else is an error when a
//! kernel is decoded, never a guess when it runs. A wave's lanes run together, under `exec`, as hardware runs them; which
//! wave goes on, and which lane reaches memory first, is drawn from a seed. Every access goes through the caller's
//! [`Memory`], which says what exists; registers start as rubbish; and whoever reads a register that a load is still to
//! write, because no `s_waitcnt` came between, is told.
//!
//! Not modelled: how many cycles must lie between two instructions (hazards that the instruction set leaves to the
//! compiler: `s_nop`, `s_delay_alu`, `s_wait_alu`), caches, local memory, barriers, scratch. Reciprocals, which hardware
//! gives to within one unit in the last place, are the nearest here: what divides by them corrects them.

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

/// What went wrong, and at which byte of the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// The place of the instruction, from the kernel's start.
    pub at: usize,
    /// The instruction as text; empty where there is none.
    pub instruction: String,
    /// The reason.
    pub reason: String,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at {:#x}, {}: {}", self.at, self.instruction, self.reason)
    }
}

impl std::error::Error for Error {}

/// What instructions are encoded for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// The architecture's name, as in `gfx11-generic`.
    pub name: &'static str,
    /// Whose encodings it has.
    pub generation: Generation,
    /// Lanes of a wave.
    pub lanes: u32,
}

impl Target {
    /// Those that code objects are shipped for.
    pub const ALL: [Target; 6] = [
        Target { name: "gfx90a", generation: Generation::Gfx9, lanes: 64 },
        Target { name: "gfx942", generation: Generation::Gfx9, lanes: 64 },
        Target { name: "gfx9-4-generic", generation: Generation::Gfx9, lanes: 64 },
        Target { name: "gfx10-3-generic", generation: Generation::Gfx10, lanes: 32 },
        Target { name: "gfx11-generic", generation: Generation::Gfx11, lanes: 32 },
        Target { name: "gfx12-generic", generation: Generation::Gfx12, lanes: 32 },
    ];

    /// The one with a name.
    pub fn named(name: &str) -> Option<Target> {
        Target::ALL.into_iter().find(|target| target.name == name)
    }
}
