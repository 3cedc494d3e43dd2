//! Memory, with what the stand-in knows of each allocation and its owner.

use std::ops::{Deref, DerefMut};

use bowstring_sim::at;

/// The kind of an allocation's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryKind {
    Device,
    Pinned,
    Managed,
}

/// The owner of an allocation: its kind and its device.
#[derive(Clone, Copy, Debug)]
pub struct Owner {
    pub kind: MemoryKind,
    pub device: i32,
}

/// Every allocation of a runtime.
#[derive(Default)]
pub struct Memory {
    blocks: bowstring_sim::Memory<Owner>,
    /// The first byte that a kernel has written since this was last taken.
    pub written: Option<usize>,
}

impl Deref for Memory {
    type Target = bowstring_sim::Memory<Owner>;

    fn deref(&self) -> &Self::Target {
        &self.blocks
    }
}

impl DerefMut for Memory {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.blocks
    }
}

impl Memory {
    /// Flips a bit of the first byte that a kernel has written.
    pub fn spoil(&mut self) {
        if let Some(address) = self.written.take() {
            // SAFETY: `write` found it inside a live allocation, and the lock that `self` came from has not
            // been let go of.
            unsafe { *at(address) ^= 1 };
        }
    }

    /// The owner of the live allocation that an address is in.
    pub fn owner(&self, address: usize) -> Option<Owner> {
        self.block(address).map(|block| block.owner)
    }

    /// How many live allocations a device has, and how many bytes of its memory they take.
    pub fn of_device(&self, device: i32) -> (usize, usize) {
        let blocks = self.blocks().filter(|block| block.owner.device == device);
        blocks.fold((0, 0), |(count, bytes), block| {
            let own = if block.owner.kind == MemoryKind::Pinned { 0 } else { block.bytes };
            (count + 1, bytes + own)
        })
    }

    /// Refuses bytes that are not all inside one live allocation.
    pub fn check(&self, address: usize, bytes: usize) -> Result<(), String> {
        match bytes <= self.extent(address) {
            true => Ok(()),
            false => Err(format!("{bytes} bytes at {address:#x} are outside of every allocation")),
        }
    }

    /// Like [`check`](Memory::check), but accepts memory that the stand-in does not know, unless it is near
    /// its own memory or was part of it.
    pub fn check_host(&self, address: usize, bytes: usize) -> Result<(), String> {
        self.may_touch(address, bytes).or_else(|_| self.check(address, bytes))
    }
}

/// Copies within memory that was checked.
///
/// # Safety
///
/// Both must be readable and writable for so many bytes, and no other code may access them meanwhile.
pub unsafe fn copy(to: usize, from: usize, bytes: usize) {
    // SAFETY: the caller's promise; `copy` allows overlap.
    unsafe { std::ptr::copy(at(from).cast_const(), at(to), bytes) }
}

/// Sets memory that was checked.
///
/// # Safety
///
/// It must be writable for so many bytes, and no other code may access it meanwhile.
pub unsafe fn fill(to: usize, byte: u8, bytes: usize) {
    // SAFETY: the caller's promise.
    unsafe { at(to).write_bytes(byte, bytes) }
}

impl bowstring_watch::Memory for &mut Memory {
    fn read(&mut self, address: u64, into: &mut [u8]) -> Result<(), String> {
        // An aligned word may be read if its first byte is inside an allocation, as kernels do at the end of
        // a bitmap: no page ends within it.
        let aligned = address.is_multiple_of(into.len() as u64);
        let bytes = if aligned { into.len().min(1) } else { into.len() };
        self.check(address as usize, bytes)?;
        // SAFETY: inside a live allocation, or begun there and ended in its red zone, which is longer; the
        // lock that `self` came from keeps both to this thread.
        unsafe { at(address as usize).copy_to_nonoverlapping(into.as_mut_ptr(), into.len()) };
        Ok(())
    }

    fn write(&mut self, address: u64, from: &[u8]) -> Result<(), String> {
        self.check(address as usize, from.len())?;
        // SAFETY: as above.
        unsafe { at(address as usize).copy_from_nonoverlapping(from.as_ptr(), from.len()) };
        self.written.get_or_insert(address as usize);
        Ok(())
    }
}
