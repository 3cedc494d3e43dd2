//! What threads meet by: locks, atomics, channels and threads, as the standard library has them, for this crate and for the
//! library over it.
//!
//! The one idea: a build with `cfg(shuttle)`, which only `tests/models` makes, has shuttle's instead. They decide who runs
//! next, so a model tries orders that no machine would happen on; and the code that is tried is the code that ships.

#[cfg(not(shuttle))]
pub use std::{
    sync::{Condvar, Mutex, MutexGuard, atomic, mpsc},
    thread, thread_local,
};

#[cfg(shuttle)]
pub use shuttle::{
    sync::{Condvar, Mutex, MutexGuard, atomic, mpsc},
    thread, thread_local,
};
