//! The emulator's memory: host memory with a red zone around each allocation, spoilt when it is freed, and kept in
//! quarantine for a while, so that a stray access reads rubbish or leaves a trace instead of being undefined.

use std::alloc::{Layout, alloc, dealloc};
use std::collections::{BTreeMap, VecDeque};

/// Every allocation starts at a multiple of this, as on GPUs.
const ALIGNMENT: usize = 256;
/// Bytes in front of and behind an allocation that nobody may touch.
const ZONE: usize = 256;
/// What red zones hold.
const ZONE_BYTE: u8 = 0xFD;
/// What memory holds that nobody has written yet, or whose contents were discarded.
pub(super) const FRESH_BYTE: u8 = 0xA5;
/// What freed memory holds.
const FREED_BYTE: u8 = 0xDB;
/// Freed bytes that stay in quarantine.
const QUARANTINE: usize = 64 << 20;

/// Something that is wrong with memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryFault {
    /// Bytes outside of an allocation were written.
    RedZoneWritten,
    /// Bytes were written after they were freed.
    WrittenAfterFree,
    /// Work was queued that would touch freed memory or a red zone.
    OutsideAllocation,
    /// An address was freed that is not an allocation.
    BadFree,
}

struct Block {
    bytes: usize,
    layout: Layout,
}

/// All allocations of one emulated device.
pub(super) struct Memory {
    live: BTreeMap<usize, Block>,
    freed: BTreeMap<usize, Block>,
    order: VecDeque<usize>,
    quarantined: usize,
    pub bytes: usize,
}

impl Memory {
    pub fn new() -> Memory {
        Memory {
            live: BTreeMap::new(),
            freed: BTreeMap::new(),
            order: VecDeque::new(),
            quarantined: 0,
            bytes: 0,
        }
    }

    /// How many allocations are live.
    pub fn count(&self) -> usize {
        self.live.len()
    }

    /// A new allocation; `None` where the host has no memory.
    pub fn alloc(&mut self, bytes: usize) -> Option<usize> {
        let whole = bytes.checked_next_multiple_of(ALIGNMENT)?.checked_add(2 * ZONE)?;
        let layout = Layout::from_size_align(whole, ALIGNMENT).ok()?;
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
        self.live.insert(address, Block { bytes, layout });
        self.bytes += bytes;
        Some(address)
    }

    /// Ends an allocation: spoils it and puts it in quarantine.
    pub fn free(&mut self, address: usize) -> Result<(), MemoryFault> {
        let block = self.live.remove(&address).ok_or(MemoryFault::BadFree)?;
        let intact = zones_intact(address, &block);
        // SAFETY: the block is still allocated, and its owner gave it up.
        unsafe { at(address).write_bytes(FREED_BYTE, block.bytes) };
        self.bytes -= block.bytes;
        self.quarantined += block.bytes;
        self.freed.insert(address, block);
        self.order.push_back(address);
        let mut result = if intact { Ok(()) } else { Err(MemoryFault::RedZoneWritten) };
        while self.quarantined > QUARANTINE {
            let Some(oldest) = self.order.pop_front() else { break };
            result = result.and(self.release(oldest));
        }
        result
    }

    /// Whether nobody wrote a red zone or freed memory.
    pub fn check(&self) -> Result<(), MemoryFault> {
        if !self.live.iter().all(|(address, block)| zones_intact(*address, block)) {
            return Err(MemoryFault::RedZoneWritten);
        }
        match self.freed.iter().all(|(address, block)| spoilt(*address, block)) {
            true => Ok(()),
            false => Err(MemoryFault::WrittenAfterFree),
        }
    }

    /// Whether work may touch these bytes: yes inside a live allocation and in memory that is not ours.
    pub fn may_touch(&self, address: usize, bytes: usize) -> Result<(), MemoryFault> {
        if bytes == 0 || self.holding(&self.live, address).is_some_and(|end| address + bytes <= end) {
            return Ok(());
        }
        let end = address.saturating_add(bytes);
        let near = |blocks: &BTreeMap<usize, Block>| {
            let first = blocks.range(..end.saturating_add(ZONE)).next_back();
            first.is_some_and(|(start, block)| address < start + block.bytes + ZONE)
        };
        match near(&self.live) || near(&self.freed) {
            true => Err(MemoryFault::OutsideAllocation),
            false => Ok(()),
        }
    }

    /// Whether the address was freed and is still in quarantine.
    pub fn was_freed(&self, address: usize) -> bool {
        self.holding(&self.freed, address).is_some()
    }

    /// Whether the address is inside a live allocation.
    pub fn is_live(&self, address: usize) -> bool {
        self.holding(&self.live, address).is_some()
    }

    /// The end of the block that holds the address.
    fn holding(&self, blocks: &BTreeMap<usize, Block>, address: usize) -> Option<usize> {
        let (start, block) = blocks.range(..=address).next_back()?;
        (address < start + block.bytes).then_some(start + block.bytes)
    }

    fn release(&mut self, address: usize) -> Result<(), MemoryFault> {
        let Some(block) = self.freed.remove(&address) else { return Ok(()) };
        self.quarantined -= block.bytes;
        let intact = spoilt(address, &block);
        // SAFETY: allocated in `alloc` with this layout; nobody else knows of it any more.
        unsafe { dealloc(at(address - ZONE), block.layout) };
        if intact { Ok(()) } else { Err(MemoryFault::WrittenAfterFree) }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        for (address, block) in self.live.iter().chain(&self.freed) {
            // SAFETY: allocated in `alloc` with this layout; the device and all its streams are gone.
            unsafe { dealloc(at(address - ZONE), block.layout) };
        }
    }
}

fn at(address: usize) -> *mut u8 {
    std::ptr::with_exposed_provenance_mut(address)
}

fn all_are(byte: u8, address: usize, bytes: usize) -> bool {
    // SAFETY: callers pass parts of blocks that are still allocated and were initialised by `alloc`; jobs that write
    // device memory run under the same lock as these checks.
    unsafe { std::slice::from_raw_parts(at(address), bytes) }.iter().all(|b| *b == byte)
}

fn zones_intact(address: usize, block: &Block) -> bool {
    let end = address + block.bytes;
    let rest = address - ZONE + block.layout.size() - end;
    all_are(ZONE_BYTE, address - ZONE, ZONE) && all_are(ZONE_BYTE, end, rest)
}

fn spoilt(address: usize, block: &Block) -> bool {
    all_are(FREED_BYTE, address, block.bytes)
}

/// The emulated device's memory as an executor of kernels sees it, for one launch.
pub struct DeviceMemory<'a> {
    memory: &'a Memory,
    extents: &'a [(u64, u64, bool)],
}

/// Kernels read bitmaps by whole aligned words, up to this many bytes each, of which parts may be outside.
const WORD: u64 = 16;

impl<'a> DeviceMemory<'a> {
    pub(super) fn new(memory: &'a Memory, extents: &'a [(u64, u64, bool)]) -> DeviceMemory<'a> {
        DeviceMemory { memory, extents }
    }

    /// Reads at an address that the kernel made.
    pub fn read(&mut self, address: u64, into: &mut [u8]) -> Result<(), String> {
        self.check(address, into.len(), false)?;
        // SAFETY: inside an allocation, or inside (in the last word of) what the launch was given.
        unsafe { at(address as usize).cast_const().copy_to_nonoverlapping(into.as_mut_ptr(), into.len()) };
        Ok(())
    }

    /// Writes at an address that the kernel made.
    pub fn write(&mut self, address: u64, from: &[u8]) -> Result<(), String> {
        self.check(address, from.len(), true)?;
        // SAFETY: as in `read`, and an output of the launch.
        unsafe { at(address as usize).copy_from_nonoverlapping(from.as_ptr(), from.len()) };
        Ok(())
    }

    /// Whether the bytes are in an allocation of the device, or in the last word of one. What was imported is not.
    pub fn allocated(&self, address: u64, bytes: usize) -> bool {
        let end = self.memory.holding(&self.memory.live, address as usize);
        end.is_some_and(|end| (address as usize).saturating_add(bytes) <= end.next_multiple_of(WORD as usize))
    }

    fn check(&self, address: u64, bytes: usize, write: bool) -> Result<(), String> {
        let end = address.wrapping_add(bytes as u64);
        let given = self.extents.iter().any(|(start, len, written)| {
            let (start, past) = (start / WORD * WORD, (start + len).next_multiple_of(WORD));
            (!write || *written) && address >= start && end <= past && end > address
        });
        // What tables describe is not among the arguments: then the allocations decide. Nobody's is in the first page.
        match given
            || end > address && address >= 4096 && self.memory.may_touch(address as usize, bytes).is_ok()
        {
            true => Ok(()),
            false => Err(format!("{} {bytes} bytes at {address:#x}", if write { "writes" } else { "reads" })),
        }
    }
}
