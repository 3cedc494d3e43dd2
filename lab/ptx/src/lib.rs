//! Runs PTX on the host, for tests: the shipped image itself, not the source it was made from.
//!
//! It supports exactly the subset that bowstring's kernels compile to: one-dimensional launches, no calls, no
//! local or shared memory, no barriers across warps. Anything else is an error when the text is parsed, never
//! a guess when it runs. Each of a warp's 32 lanes has its own program counter, and lanes at the same place
//! run together. As on hardware, the place that other lanes wait for runs first; with a seed, the order is
//! random. A `.sync` instruction runs when every lane in its mask has reached it; if that can never happen,
//! the launch fails. Every access goes through the caller's [`Memory`], which knows the valid addresses.
//!
//! For simplicity it refuses some valid programs: a collective whose mask names a lane that has ended, or
//! whose lanes name different masks; and a label that occurs in two blocks. A lane that reads, without an
//! atomic, what its own atomic wrote counts as a race. Atomics are relaxed, at the scope of the GPU (`red`,
//! `atom`, `ld.relaxed.gpu`).
//!
//! With [`Launch::races`] set, a byte written by one lane and touched by another in the same launch is an
//! error unless both accesses were atomic: nothing orders the lanes of these kernels but the end of the
//! launch.

mod alu;
mod meet;
mod module;
mod parse;
mod warp;

pub use bowstring_watch::Memory;
pub use module::{Error, Module};
pub use warp::{Launch, Ran};
