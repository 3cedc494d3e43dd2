//! The locks, atomics and threads that the library uses.

/// Takes a lock, also one whose holder panicked: the values under these locks are consistent between any two
/// statements.
pub(crate) use bowstring_sim::lock;
/// The standard library's locks, atomics and threads, or shuttle's in model tests.
pub(crate) use bowstring_sim::sync;
