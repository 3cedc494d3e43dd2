//! Simulates device memory in host memory. It knows every allocation, surrounds each with red zones,
//! overwrites freed memory and keeps it in quarantine for a while. So a stray access reads garbage or leaves
//! a trace instead of being undefined.

use std::alloc::{Layout, alloc, dealloc};
use std::collections::{BTreeMap, VecDeque};
use std::fmt;

/// The bytes before and after an allocation that no access may touch. Allocations start at multiples of it,
/// as on GPUs.
pub const ZONE: usize = 256;
/// The value of bytes that were not written yet, or whose contents were discarded.
pub const FRESH_BYTE: u8 = 0xA5;
/// The value of bytes in red zones.
const ZONE_BYTE: u8 = 0xFD;
/// The value of bytes in freed memory.
const FREED_BYTE: u8 = 0xDB;
/// The number of freed bytes that stay in quarantine.
const QUARANTINE: usize = 64 << 20;

/// An error in the use of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryFault {
    /// Work wrote bytes outside any allocation.
    RedZoneWritten,
    /// Work wrote bytes after they were freed.
    WrittenAfterFree,
    /// A call queued work that would touch freed memory or a red zone.
    OutsideAllocation,
    /// A call freed an address that is not an allocation.
    BadFree,
}

impl fmt::Display for MemoryFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            MemoryFault::RedZoneWritten => "bytes around an allocation were written",
            MemoryFault::WrittenAfterFree => "memory was written after it was freed",
            MemoryFault::OutsideAllocation => "bytes outside of every allocation",
            MemoryFault::BadFree => "an address was freed that is not a live allocation",
        })
    }
}

/// An allocation, with its owner.
#[derive(Clone, Copy, Debug)]
pub struct Block<T> {
    /// The address of the first byte.
    pub address: usize,
    /// The size in bytes.
    pub bytes: usize,
    /// The simulator's own note about the allocation.
    pub owner: T,
    layout: Layout,
}

impl<T> Block<T> {
    fn end(&self) -> usize {
        self.address + self.bytes
    }

    fn holds(&self, address: usize) -> bool {
        (self.address..self.end()).contains(&address)
    }

    fn zones_intact(&self) -> bool {
        let rest = self.address - ZONE + self.layout.size() - self.end();
        all_are(ZONE_BYTE, self.address - ZONE, ZONE) && all_are(ZONE_BYTE, self.end(), rest)
    }

    fn spoilt(&self) -> bool {
        all_are(FREED_BYTE, self.address, self.bytes)
    }

    /// Returns the memory to the host.
    fn release(self) {
        // SAFETY: allocated in `alloc` with this layout; the block has left both maps.
        unsafe { dealloc(at(self.address - ZONE), self.layout) };
    }
}

/// All allocations of a simulator.
pub struct Memory<T> {
    live: BTreeMap<usize, Block<T>>,
    freed: BTreeMap<usize, Block<T>>,
    order: VecDeque<usize>,
    quarantined: usize,
    bytes: usize,
}

impl<T> Default for Memory<T> {
    fn default() -> Self {
        let (live, freed, order) = (BTreeMap::new(), BTreeMap::new(), VecDeque::new());
        Memory { live, freed, order, quarantined: 0, bytes: 0 }
    }
}

impl<T: Copy> Memory<T> {
    /// The number of live allocations.
    pub fn count(&self) -> usize {
        self.live.len()
    }

    /// The total size of live allocations in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The live allocations, by address.
    pub fn blocks(&self) -> impl Iterator<Item = &Block<T>> {
        self.live.values()
    }

    /// Allocates memory and returns its address; `None` if the host has no memory.
    pub fn alloc(&mut self, bytes: usize, owner: T) -> Option<usize> {
        let whole = bytes.checked_next_multiple_of(ZONE)?.checked_add(2 * ZONE)?;
        let layout = Layout::from_size_align(whole, ZONE).ok()?;
        // SAFETY: the layout holds two red zones, so it is not empty.
        let start = unsafe { alloc(layout) };
        if start.is_null() {
            return None;
        }
        // SAFETY: `whole` bytes were just allocated, and the parts lie inside.
        unsafe {
            start.write_bytes(ZONE_BYTE, whole);
            start.add(ZONE).write_bytes(FRESH_BYTE, bytes);
        }
        let address = start.expose_provenance() + ZONE;
        self.live.insert(address, Block { address, bytes, owner, layout });
        self.bytes += bytes;
        Some(address)
    }

    /// Frees an allocation: overwrites it and puts it in quarantine.
    pub fn free(&mut self, address: usize) -> Result<(), MemoryFault> {
        let block = self.live.remove(&address).ok_or(MemoryFault::BadFree)?;
        let mut result = if block.zones_intact() { Ok(()) } else { Err(MemoryFault::RedZoneWritten) };
        // SAFETY: the block is still allocated, and its owner gave it up.
        unsafe { at(address).write_bytes(FREED_BYTE, block.bytes) };
        self.bytes -= block.bytes;
        self.quarantined += block.bytes;
        self.freed.insert(address, block);
        self.order.push_back(address);
        while self.quarantined > QUARANTINE
            && let Some(oldest) = self.order.pop_front().and_then(|oldest| self.freed.remove(&oldest))
        {
            self.quarantined -= oldest.bytes;
            if !oldest.spoilt() {
                result = result.and(Err(MemoryFault::WrittenAfterFree));
            }
            oldest.release();
        }
        result
    }

    /// Checks that every red zone and all freed memory are unchanged.
    pub fn check(&self) -> Result<(), MemoryFault> {
        if !self.live.values().all(Block::zones_intact) {
            return Err(MemoryFault::RedZoneWritten);
        }
        match self.freed.values().all(Block::spoilt) {
            true => Ok(()),
            false => Err(MemoryFault::WrittenAfterFree),
        }
    }

    /// The live allocation that contains an address.
    pub fn block(&self, address: usize) -> Option<&Block<T>> {
        holding(&self.live, address)
    }

    /// Whether the address was freed and is still in quarantine.
    pub fn was_freed(&self, address: usize) -> bool {
        holding(&self.freed, address).is_some()
    }

    /// The number of bytes from an address to the end of its allocation; 0 outside all allocations.
    pub fn extent(&self, address: usize) -> usize {
        self.block(address).map_or(0, |block| block.end() - address)
    }

    /// Checks that work may touch these bytes: inside a live allocation, or in memory that is not the
    /// simulator's.
    pub fn may_touch(&self, address: usize, bytes: usize) -> Result<(), MemoryFault> {
        if bytes <= self.extent(address) {
            return Ok(());
        }
        let reach = address.saturating_add(bytes).saturating_add(ZONE);
        let near = |blocks: &BTreeMap<usize, Block<T>>| {
            let last = blocks.range(..reach).next_back();
            last.is_some_and(|(_, block)| address < block.end() + ZONE)
        };
        match near(&self.live) || near(&self.freed) {
            true => Err(MemoryFault::OutsideAllocation),
            false => Ok(()),
        }
    }
}

impl<T> Drop for Memory<T> {
    fn drop(&mut self) {
        let blocks = std::mem::take(&mut self.live).into_values();
        blocks.chain(std::mem::take(&mut self.freed).into_values()).for_each(Block::release);
    }
}

/// The block that contains the address.
fn holding<T>(blocks: &BTreeMap<usize, Block<T>>, address: usize) -> Option<&Block<T>> {
    let (_, block) = blocks.range(..=address).next_back()?;
    block.holds(address).then_some(block)
}

/// The pointer for an address of simulated memory.
pub fn at(address: usize) -> *mut u8 {
    std::ptr::with_exposed_provenance_mut(address)
}

fn all_are(byte: u8, address: usize, bytes: usize) -> bool {
    // SAFETY: callers pass parts of blocks that are still allocated and were initialised by `alloc`; work
    // that writes simulated memory runs under the same lock as these checks.
    unsafe { std::slice::from_raw_parts(at(address), bytes) }.iter().all(|b| *b == byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strays_leave_a_trace() {
        let mut memory = Memory::default();
        let first = memory.alloc(100, 'a').unwrap();
        assert_eq!((memory.count(), memory.bytes(), memory.extent(first + 40)), (1, 100, 60));
        assert_eq!(memory.block(first).map(|block| block.owner), Some('a'));
        assert_eq!(memory.may_touch(first, 100), Ok(()));
        assert_eq!(memory.may_touch(first, 101), Err(MemoryFault::OutsideAllocation));
        assert_eq!(memory.may_touch(first - 1, 1), Err(MemoryFault::OutsideAllocation));
        assert_eq!((memory.may_touch(first - ZONE, 0), memory.check()), (Ok(()), Ok(())));
        // SAFETY: a red zone is part of the allocation.
        unsafe { at(first + 100).write(1) };
        assert_eq!(memory.check(), Err(MemoryFault::RedZoneWritten));
        assert_eq!(memory.free(first), Err(MemoryFault::RedZoneWritten));
        assert_eq!(memory.free(first), Err(MemoryFault::BadFree));
        assert!(memory.was_freed(first + 99) && !memory.was_freed(first + 100));
        assert_eq!(memory.may_touch(first, 1), Err(MemoryFault::OutsideAllocation));
        assert_eq!(memory.check(), Ok(()));
        // SAFETY: memory in quarantine is still allocated.
        unsafe { at(first).write(1) };
        assert_eq!(memory.check(), Err(MemoryFault::WrittenAfterFree));
    }

    #[test]
    fn what_leaves_the_quarantine_is_looked_at() {
        let mut memory = Memory::default();
        let first = memory.alloc(QUARANTINE, ()).unwrap();
        let second = memory.alloc(1, ()).unwrap();
        memory.free(first).unwrap();
        // SAFETY: memory in quarantine is still allocated.
        unsafe { at(first).write(1) };
        assert_eq!(memory.free(second), Err(MemoryFault::WrittenAfterFree));
        assert!(!memory.was_freed(first) && memory.was_freed(second));
    }
}
