//! L4: the operations on host memory.

pub(crate) mod bitmap;
pub(crate) mod cast;
mod cast_narrow;
mod cast_rows;
pub(crate) mod filter;
mod filter_bytes;
pub(crate) mod indices;
mod intrinsics;
pub(crate) mod memory;
pub(crate) mod nulls;
mod rows;
mod run_ends;
pub(crate) mod selection;
pub(crate) mod take;
mod take_bytes;
mod vectorise;
