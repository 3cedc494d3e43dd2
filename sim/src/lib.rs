//! What simulated GPUs are made of: the emulator inside the library, and the stand-ins for `libcuda` and `libamdhip64`.
//!
//! The one idea: a simulator is stricter than the hardware. [`Memory`] surrounds each allocation with red zones and spoils
//! what is freed, so a stray access leaves a trace; a [`Queue`] is a stream with a thread of its own and random delays, so a
//! forgotten wait gives a wrong answer; an [`Injector`] fails the nth call. None of the three knows a runtime: what a call
//! returns, whose an allocation is and what fails are the simulator's own.

mod injector;
mod memory;
mod queue;
pub mod sync;

use sync::{Mutex, MutexGuard};

pub use injector::Injector;
pub use memory::{Block, FRESH_BYTE, Memory, MemoryFault, ZONE, at};
pub use queue::{Job, Point, Queue, Recording};

/// A lock that a panicking holder leaves usable: what these guard is consistent between any two statements.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
