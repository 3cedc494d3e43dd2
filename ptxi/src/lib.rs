//! Runs PTX on the host, for tests: the shipped image itself, not the source it was made from.
//!
//! Exactly the subset that bowstring's kernels compile to: one-dimensional launches, no calls, no local or shared memory,
//! no barriers across warps; anything else is an error when the text is parsed, never a guess when it runs. A warp's
//! 32 lanes each have their own program counter. Lanes at the same place run together; which place goes first is
//! that for whose lanes others wait, as on hardware, or, given a seed, any. A `.sync` instruction runs when every lane its mask names has come to it; when
//! that can never happen the launch fails. Every access goes through the caller's [`Memory`], which says what exists.
//!
//! It refuses more than it must, to be simple: a collective whose mask names a lane that has ended, or whose lanes name different
//! masks; labels that stand in two blocks; and a lane that reads, without an atomic, what its own atomic wrote counts as a race.
//!
//! With [`Launch::races`] set, a byte written by one lane and touched by another in the same launch is an error unless
//! both used atomic updates: nothing orders the lanes of these kernels but the end of the launch.

mod alu;
mod meet;
mod module;
mod parse;
mod warp;

pub use bowstring_watch::Memory;
pub use module::{Error, Module};
pub use warp::{Launch, Ran};
