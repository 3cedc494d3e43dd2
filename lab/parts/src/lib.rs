//! The parts of simulated GPUs: of the emulator inside the library, and of the stand-ins for `libcuda` and
//! `libamdhip64`.
//!
//! The one idea: a simulator is stricter than the hardware. [`Memory`] surrounds each allocation with red
//! zones and overwrites freed memory, so a stray access leaves a trace. A [`Queue`] is a stream with a thread
//! of its own and random delays, so a missing wait gives a wrong answer. An [`Injector`] fails the nth call.
//! None of the three knows a runtime: the simulator defines return values, owners of allocations and
//! failures.

mod injector;
mod memory;
mod queue;
pub mod sync;

use sync::{Mutex, MutexGuard};

pub use injector::Injector;
pub use memory::{Block, FRESH_BYTE, Memory, MemoryFault, ZONE, at};
pub use queue::{Job, Point, Queue, Recording};

/// Locks a mutex even if a holder has panicked: the data under these locks is consistent between any two
/// statements.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
