//! L4: the operations on host memory.

pub(crate) mod memory;
