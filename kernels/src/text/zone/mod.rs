//! Time zones, and the casts that involve one.

pub mod functions;
pub mod kernels;
pub mod table;
