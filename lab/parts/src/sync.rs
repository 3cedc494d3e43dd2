//! The synchronisation primitives (locks, atomics, channels and threads) of this crate and of the library
//! above it: the standard library's.
//!
//! The one idea: a build with `cfg(shuttle)`, which only `tests/models` makes, uses shuttle's instead.
//! Shuttle chooses the next thread to run, so a model tries orders that real machines rarely produce, with
//! the same code that ships.

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
