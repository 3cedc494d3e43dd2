//! Device memory that a pass has allocated, for use by kernels and arrays.

use std::sync::Arc;

use bowstring_kernels::memory::{In, Out};
use bowstring_kernels::target::Value;

use crate::array::Buffer;
use crate::device::Memory;

/// Device memory that a pass has allocated, or part of it. Clones refer to the same memory.
#[derive(Clone)]
pub(crate) struct Region {
    memory: Arc<Memory>,
    /// The offset of its first byte in the memory, followed by its length.
    at: usize,
    bytes: usize,
}

impl Region {
    /// The first bytes of an allocation.
    pub(super) fn of(memory: Arc<Memory>, bytes: usize) -> Region {
        Region { memory, at: 0, bytes }
    }

    /// The part of `bytes` bytes from `at` on.
    pub fn piece(&self, at: usize, bytes: usize) -> Region {
        assert!(at <= self.bytes && bytes <= self.bytes - at, "the piece is inside the region");
        Region { memory: self.memory.clone(), at: self.at + at, bytes }
    }

    /// The allocation that contains it.
    pub(super) fn memory(&self) -> &Arc<Memory> {
        &self.memory
    }

    /// The device address of its first byte.
    pub fn address(&self) -> usize {
        self.memory.address() + self.at
    }

    /// An output for a kernel of this pass, which may write up to the next 16-byte boundary.
    pub fn out<T: Value>(&self) -> Out<T> {
        Out::new(self.address() as u64, self.bytes.next_multiple_of(16) as u64)
    }

    /// An output from byte `from` on, for a kernel of this pass.
    pub fn out_from<T: Value>(&self, from: usize) -> Out<T> {
        assert!(from <= self.bytes, "the part is inside the region");
        Out::new((self.address() + from) as u64, (self.bytes - from) as u64)
    }

    /// An input for a later kernel of this pass.
    pub fn input<T: Value>(&self) -> In<T> {
        In::new(self.address() as u64, self.bytes.next_multiple_of(16) as u64)
    }

    /// Bytes `from .. to` as an input for a later kernel of this pass.
    pub fn part<T: Value>(&self, from: usize, to: usize) -> In<T> {
        assert!(from <= to && to <= self.bytes, "the part is inside the region");
        In::new((self.address() + from) as u64, (to - from) as u64)
    }

    /// A buffer for an array, which may be read once the pass has finished.
    pub fn buffer(&self) -> Buffer {
        // SAFETY: the memory has the bytes and lives as long as its owner; after the pass no code writes it.
        unsafe { Buffer::new(self.address(), Some(self.bytes), self.memory.clone()) }
    }

    /// The length in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}
