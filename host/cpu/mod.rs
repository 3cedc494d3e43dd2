//! L6: the operations on host memory.

pub(crate) mod bitmap;
pub(crate) mod building;
pub(crate) mod cast_bytes;
pub(crate) mod concat_bytes;
mod count;
pub(crate) mod filter;
mod filter_bytes;
pub(crate) mod indices;
mod intrinsics;
pub(crate) mod map;
mod map_narrow;
mod map_rows;
pub(crate) mod memory;
pub(crate) mod nulls;
pub(crate) mod program;
mod ranges;
mod rows;
mod run_ends;
pub(crate) mod selection;
mod spans;
pub(crate) mod take;
mod take_bytes;
pub(crate) mod text;
pub(crate) mod threads;
mod vectorise;
pub(crate) mod written;

pub(crate) use vectorise::VectorLevel;
