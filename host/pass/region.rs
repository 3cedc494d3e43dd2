//! Device memory that a pass has allocated, as kernels and arrays take it.

use std::sync::Arc;

use bowstring_kernels::memory::{In, Out};
use bowstring_kernels::target::Value;

use crate::array::Buffer;
use crate::device::Memory;

/// Device memory that a pass has allocated, or part of it. Clones are the same memory.
#[derive(Clone)]
pub(crate) struct Region {
    memory: Arc<Memory>,
    /// Where in the memory it starts, and how long it is.
    at: usize,
    bytes: usize,
}

impl Region {
    /// The first bytes of some memory.
    pub(super) fn of(memory: Arc<Memory>, bytes: usize) -> Region {
        Region { memory, at: 0, bytes }
    }

    /// So many bytes from a place on.
    pub(super) fn piece(&self, at: usize, bytes: usize) -> Region {
        assert!(at <= self.bytes && bytes <= self.bytes - at, "the piece is inside the region");
        Region { memory: self.memory.clone(), at: self.at + at, bytes }
    }

    /// The allocation that it is part of.
    pub(super) fn memory(&self) -> &Arc<Memory> {
        &self.memory
    }

    /// Where it starts.
    pub fn address(&self) -> usize {
        self.memory.address() + self.at
    }

    /// To be written by a kernel of this pass, up to the next 16-byte boundary.
    pub fn out<T: Value>(&self) -> Out<T> {
        Out::new(self.address() as u64, self.bytes.next_multiple_of(16) as u64)
    }

    /// From byte `from` on, to be written by a kernel of this pass.
    pub fn out_from<T: Value>(&self, from: usize) -> Out<T> {
        assert!(from <= self.bytes, "the part is inside the region");
        Out::new((self.address() + from) as u64, (self.bytes - from) as u64)
    }

    /// To be read by a later kernel of this pass.
    pub fn input<T: Value>(&self) -> In<T> {
        In::new(self.address() as u64, self.bytes.next_multiple_of(16) as u64)
    }

    /// Bytes `from .. to`, to be read by a later kernel of this pass.
    pub fn part<T: Value>(&self, from: usize, to: usize) -> In<T> {
        assert!(from <= to && to <= self.bytes, "the part is inside the region");
        In::new((self.address() + from) as u64, (to - from) as u64)
    }

    /// Part of an array, to be read once the pass has passed.
    pub fn buffer(&self) -> Buffer {
        // SAFETY: the memory has the bytes and lives as long as its owner; after the pass nobody writes it.
        unsafe { Buffer::new(self.address(), Some(self.bytes), self.memory.clone()) }
    }

    /// How many bytes it has.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}
