//! Memory: host memory of which every allocation is known, with red zones around each and rubbish in what is fresh or freed.

use std::alloc::{Layout, alloc, dealloc};
use std::collections::{BTreeMap, VecDeque};

/// Allocations start at multiples of this, and this much around each is nobody's.
const ZONE: usize = 256;
/// What red zones, fresh and freed memory hold.
const ZONE_BYTE: u8 = 0xFD;
const FRESH_BYTE: u8 = 0xA5;
const FREED_BYTE: u8 = 0xDB;
/// Freed bytes that are kept, to see whether somebody writes to them.
const QUARANTINE: usize = 32 << 20;

/// Whose memory it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Device,
    Pinned,
    Managed,
}

/// An allocation.
#[derive(Clone, Copy, Debug)]
pub struct Block {
    pub address: usize,
    pub bytes: usize,
    pub kind: Kind,
    pub device: i32,
    layout: Layout,
}

/// Every allocation of a runtime.
#[derive(Default)]
pub struct Memory {
    live: BTreeMap<usize, Block>,
    freed: BTreeMap<usize, Block>,
    order: VecDeque<usize>,
    quarantined: usize,
}

fn at(address: usize) -> *mut u8 {
    std::ptr::with_exposed_provenance_mut(address)
}

fn all_are(byte: u8, address: usize, bytes: usize) -> bool {
    // SAFETY: callers pass parts of blocks that are still allocated, all of which `alloc` initialised.
    unsafe { std::slice::from_raw_parts(at(address), bytes) }.iter().all(|b| *b == byte)
}

impl Block {
    fn zones_intact(&self) -> bool {
        let end = self.address + self.bytes;
        let rest = self.address - ZONE + self.layout.size() - end;
        all_are(ZONE_BYTE, self.address - ZONE, ZONE) && all_are(ZONE_BYTE, end, rest)
    }
}

impl Memory {
    /// New memory, or none.
    pub fn alloc(&mut self, bytes: usize, kind: Kind, device: i32) -> Option<usize> {
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
        self.live.insert(address, Block { address, bytes, kind, device, layout });
        Some(address)
    }

    /// Ends an allocation that starts at the address.
    pub fn free(&mut self, address: usize) -> Result<(), String> {
        let block =
            self.live.remove(&address).ok_or_else(|| format!("{address:#x} is freed, but not live"))?;
        let intact = block.zones_intact();
        // SAFETY: the block is still allocated, and its owner gave it up.
        unsafe { at(address).write_bytes(FREED_BYTE, block.bytes) };
        self.quarantined += block.bytes;
        self.freed.insert(address, block);
        self.order.push_back(address);
        let mut result = if intact { Ok(()) } else { Err(format!("around {address:#x} was written")) };
        while self.quarantined > QUARANTINE
            && let Some(block) = self.order.pop_front().and_then(|oldest| self.freed.remove(&oldest))
        {
            self.quarantined -= block.bytes;
            if !all_are(FREED_BYTE, block.address, block.bytes) {
                result = Err(format!("{:#x} was written after it was freed", block.address));
            }
            // SAFETY: allocated in `alloc` with this layout; nobody else knows of it any more.
            unsafe { dealloc(at(block.address - ZONE), block.layout) };
        }
        result
    }

    /// The live allocation that an address is in.
    pub fn block(&self, address: usize) -> Option<&Block> {
        let (_, block) = self.live.range(..=address).next_back()?;
        (address - block.address < block.bytes.max(1)).then_some(block)
    }

    /// The bytes from an address to the end of its allocation; none where it is in none.
    pub fn extent(&self, address: u64) -> u64 {
        let address = address as usize;
        self.block(address).map_or(0, |block| (block.address + block.bytes - address) as u64)
    }

    /// The live allocations of a device.
    pub fn of_device(&self, device: i32) -> impl Iterator<Item = &Block> {
        self.live.values().filter(move |block| block.device == device)
    }

    /// Refuses bytes that are not all inside one live allocation.
    pub fn check(&self, address: usize, bytes: usize) -> Result<(), String> {
        match bytes as u64 <= self.extent(address as u64) {
            true => Ok(()),
            false => Err(format!("{bytes} bytes at {address:#x} are outside of every allocation")),
        }
    }

    /// The same of what may be memory that we do not know: refused where it is near ours, or was.
    pub fn check_host(&self, address: usize, bytes: usize) -> Result<(), String> {
        let end = address.saturating_add(bytes + ZONE);
        let near = |blocks: &BTreeMap<usize, Block>| {
            let last = blocks.range(..end).next_back();
            last.is_some_and(|(_, block)| address < block.address + block.bytes + ZONE)
        };
        match near(&self.live) || near(&self.freed) {
            true => self.check(address, bytes),
            false => Ok(()),
        }
    }
}

/// Copies within memory that was checked.
///
/// # Safety
///
/// Both must be readable, writable and nobody else's for so many bytes.
pub unsafe fn copy(to: usize, from: usize, bytes: usize) {
    // SAFETY: the caller's promise; `copy` allows overlap.
    unsafe { std::ptr::copy(at(from).cast_const(), at(to), bytes) }
}

/// Sets memory that was checked.
///
/// # Safety
///
/// It must be writable and nobody else's for so many bytes.
pub unsafe fn fill(to: usize, byte: u8, bytes: usize) {
    // SAFETY: the caller's promise.
    unsafe { at(to).write_bytes(byte, bytes) }
}

impl bowstring_watch::Memory for &mut Memory {
    fn read(&mut self, address: u64, into: &mut [u8]) -> Result<(), String> {
        // What is aligned may be read whole where only its first bytes are inside, as kernels do at the end of a bitmap: no
        // page ends within it.
        let aligned = address.is_multiple_of(into.len() as u64);
        let bytes = if aligned { into.len().min(1) } else { into.len() };
        self.check(address as usize, bytes)?;
        // SAFETY: inside a live allocation, or begun there and ended in its red zone, which is longer; the lock that `self`
        // came from keeps both to this thread.
        unsafe { at(address as usize).copy_to_nonoverlapping(into.as_mut_ptr(), into.len()) };
        Ok(())
    }

    fn write(&mut self, address: u64, from: &[u8]) -> Result<(), String> {
        self.check(address as usize, from.len())?;
        // SAFETY: as above.
        unsafe { at(address as usize).copy_from_nonoverlapping(from.as_ptr(), from.len()) };
        Ok(())
    }
}
