//! Memory that a pass has allocated, for use by kernels and arrays.

use std::sync::Arc;

use bowstring_kernels::memory::{In, Out};
use bowstring_kernels::target::Value;

use crate::array::Buffer;
use crate::device::{Memory, Staged};

/// Memory that a pass has allocated, or part of it. Clones refer to the same memory.
#[derive(Clone)]
pub(crate) struct Region {
    memory: Allocated,
    /// The offset of its first byte in the memory, followed by its length.
    at: usize,
    bytes: usize,
}

/// The allocation that a region is part of.
#[derive(Clone)]
pub(super) enum Allocated {
    Device(Arc<Memory>),
    /// Pinned memory of the host, which the pass keeps until its work has finished.
    Pinned(Arc<Staged>),
}

impl Region {
    /// The first bytes of an allocation.
    pub(super) fn of(memory: Arc<Memory>, bytes: usize) -> Region {
        Region { memory: Allocated::Device(memory), at: 0, bytes }
    }

    /// The first bytes of a pinned block.
    pub(super) fn pinned(block: Arc<Staged>, bytes: usize) -> Region {
        assert!(bytes <= block.pinned().len(), "the block is long enough");
        Region { memory: Allocated::Pinned(block), at: 0, bytes }
    }

    /// The block and the place of the first byte in it, if the region is pinned memory.
    pub(super) fn on_host(&self) -> Option<(&Arc<Staged>, usize)> {
        match &self.memory {
            Allocated::Device(_) => None,
            Allocated::Pinned(block) => Some((block, self.at)),
        }
    }

    /// The part of `bytes` bytes from `at` on.
    pub fn piece(&self, at: usize, bytes: usize) -> Region {
        assert!(at <= self.bytes && bytes <= self.bytes - at, "the piece is inside the region");
        Region { memory: self.memory.clone(), at: self.at + at, bytes }
    }

    /// The allocation that contains it.
    pub(super) fn memory(&self) -> &Allocated {
        &self.memory
    }

    /// The address of its first byte for kernels.
    pub fn address(&self) -> usize {
        let start = match &self.memory {
            Allocated::Device(memory) => memory.address(),
            Allocated::Pinned(block) => block.pinned().start().expose_provenance(),
        };
        start + self.at
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
        let Allocated::Device(memory) = &self.memory else { panic!("an array's memory is the device's") };
        // SAFETY: the memory has the bytes and lives as long as its owner; after the pass no code writes it.
        unsafe { Buffer::new(self.address(), Some(self.bytes), memory.clone()) }
    }

    /// The length in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}
