//! What threads meet by, and locks that a panicking holder leaves usable.

/// Takes a lock that a panicking holder leaves usable: what these guard is consistent between any two statements.
pub(crate) use bowstring_sim::lock;
/// The standard library's locks, atomics and threads, or those that models are run with.
pub(crate) use bowstring_sim::sync;
