//! L4: the operations on host memory.

pub(crate) mod bitmap;
pub(crate) mod filter;
mod filter_bytes;
pub(crate) mod indices;
pub(crate) mod map;
mod map_narrow;
mod map_rows;
pub(crate) mod memory;
pub(crate) mod nulls;
mod rows;
mod run_ends;
pub(crate) mod selection;
mod simd;
mod simd_wide;
pub(crate) mod take;
mod take_bytes;
