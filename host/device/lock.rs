//! Locks that a panicking holder leaves usable.

/// Takes a lock that a panicking holder leaves usable: what these guard is consistent between any two statements.
pub(crate) use bowstring_sim::lock;
