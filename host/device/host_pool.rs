//! Host memory for results, kept and reused: touching a fresh page costs more than most operations on it.
//!
//! Blocks come in size classes, four to a power of two, aligned to 256 bytes. All of a block's bytes are
//! initialised (fresh ones by the system's zero pages, used ones by what they held), so handing out plain
//! slices is sound.

#![allow(unsafe_code)]

use std::alloc::{Layout, alloc, alloc_zeroed, dealloc};
#[cfg(target_os = "linux")]
use std::ffi::{c_int, c_void};
use std::ptr::NonNull;
use std::sync::Arc;

use super::fork::Guarded;
use crate::array::Buffer;
use crate::{Error, Result};

/// Every block starts at a multiple of this: the alignment of GPU allocations, and more than any vector unit
/// needs.
const ALIGNMENT: usize = 256;
/// Blocks of at least this many bytes use pages of this size if the system has them. Random reads of a
/// result, as in a take, then take a third less time.
const HUGE: usize = 2 << 20;
/// From this many bytes on, [`HostPool::reserve`] probes the system for memory that other libraries allocate.
/// A process that cannot get less than this cannot go on anyway.
const PROBED: usize = 256 << 10;
/// The most bytes of unused blocks that are kept by default.
const DEFAULT_KEPT: usize = 4 << 30;

/// A bounded pool of host memory. A cheap handle.
#[derive(Clone)]
pub struct HostPool(Arc<Guarded<State>>);

struct State {
    /// Blocks that are not in use, by the number of their class.
    free: [Vec<NonNull<u8>>; CLASSES],
    usage: PoolUsage,
    limit: usize,
    keep: usize,
}

// SAFETY: the state owns the blocks that `free` points to; no other pointer to them exists.
unsafe impl Send for State {}

/// How much memory a pool holds, and how often it served requests from kept blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolUsage {
    /// Bytes in blocks that are in use.
    pub in_use: usize,
    /// The most bytes that were ever in use at once.
    pub peak: usize,
    /// Bytes in blocks kept for the next request.
    pub kept: usize,
    /// Requests served from kept blocks.
    pub hits: u64,
    /// Requests that had to ask the system.
    pub misses: u64,
}

/// The block size that serves a request: four to a power of two, so that at most a quarter is wasted.
pub(super) fn size_class(bytes: usize) -> Option<usize> {
    let bytes = bytes.max(ALIGNMENT);
    let step = (bytes.checked_next_power_of_two()? / 8).max(ALIGNMENT);
    bytes.checked_next_multiple_of(step).filter(|bytes| *bytes <= isize::MAX as usize - ALIGNMENT)
}

/// The number of size classes.
const CLASSES: usize = 8 + 4 * (usize::BITS as usize - 11);

/// The number of a class: up to 2 KiB they are the multiples of 256 bytes, from there on four to a power of
/// two.
fn number(class: usize) -> usize {
    if class <= 8 * ALIGNMENT {
        return class / ALIGNMENT - 1;
    }
    let power = (class - 1).ilog2() as usize;
    8 + 4 * (power - 11) + ((class - 1) >> (power - 2)) % 4
}

/// The class that has this number.
fn class(number: usize) -> usize {
    if number < 8 { (number + 1) * ALIGNMENT } else { ((number - 8) % 4 + 5) << ((number - 8) / 4 + 9) }
}

fn layout(class: usize) -> Layout {
    let alignment = if class >= HUGE { HUGE } else { ALIGNMENT };
    Layout::from_size_align(class, alignment).expect("a class is bounded")
}

/// Allocates a new block of zeros.
fn fresh(class: usize) -> Option<NonNull<u8>> {
    if class < HUGE {
        // SAFETY: a class is never zero.
        return NonNull::new(unsafe { alloc_zeroed(layout(class)) });
    }
    // SAFETY: as above.
    let start = NonNull::new(unsafe { alloc(layout(class)) })?;
    ask_for_huge_pages(start, class);
    // SAFETY: the block is `class` bytes, and this function is its only owner. The bytes are touched only
    // now, after the advice, so that pages come in their final size.
    unsafe { start.write_bytes(0, class) };
    Some(start)
}

/// Whether the system can allocate as many bytes now. They are not touched.
fn available(bytes: usize) -> bool {
    let mut probe: Vec<u8> = Vec::new();
    let available = probe.try_reserve_exact(bytes).is_ok();
    // Otherwise the compiler may remove the allocation, which is not used.
    std::hint::black_box(probe.as_mut_ptr());
    available
}

#[cfg(target_os = "linux")]
fn ask_for_huge_pages(start: NonNull<u8>, bytes: usize) {
    const MADV_HUGEPAGE: c_int = 14;
    unsafe extern "C" {
        fn madvise(start: *mut c_void, bytes: usize, advice: c_int) -> c_int;
    }
    // SAFETY: advice on memory of ours, which changes nothing in it. The result does not matter.
    unsafe { madvise(start.as_ptr().cast(), bytes, MADV_HUGEPAGE) };
}

#[cfg(not(target_os = "linux"))]
fn ask_for_huge_pages(_: NonNull<u8>, _: usize) {}

/// Tells AddressSanitizer that no code may touch these bytes: those after the end of a buffer, and blocks
/// that are not in use. Does nothing in a build without it; `tools/sanitize` makes one with it.
fn unreadable(start: NonNull<u8>, bytes: usize) {
    #[cfg(sanitized)]
    // SAFETY: the bytes are a block's; the call changes nothing in them.
    unsafe {
        __asan_poison_memory_region(start.as_ptr().cast(), bytes)
    };
    #[cfg(not(sanitized))]
    let _ = (start, bytes);
}

/// Tells AddressSanitizer that these bytes may be touched again.
fn readable(start: NonNull<u8>, bytes: usize) {
    #[cfg(sanitized)]
    // SAFETY: as above.
    unsafe {
        __asan_unpoison_memory_region(start.as_ptr().cast(), bytes)
    };
    #[cfg(not(sanitized))]
    let _ = (start, bytes);
}

#[cfg(sanitized)]
unsafe extern "C" {
    fn __asan_poison_memory_region(start: *const c_void, bytes: usize);
    fn __asan_unpoison_memory_region(start: *const c_void, bytes: usize);
}

impl HostPool {
    /// Makes a pool without a limit on the bytes in use.
    pub fn new() -> HostPool {
        HostPool(Arc::new(Guarded::new(State {
            free: [const { Vec::new() }; CLASSES],
            usage: PoolUsage::default(),
            limit: usize::MAX,
            keep: DEFAULT_KEPT,
        })))
    }

    /// Bounds the bytes in use; a request beyond it is [`Error::OutOfMemory`].
    pub fn set_limit(&self, bytes: usize) {
        self.with(|state| state.limit = bytes);
    }

    /// Bounds the bytes kept for later; kept bytes beyond it go back to the system now.
    pub fn set_keep(&self, bytes: usize) {
        self.with(|state| {
            state.keep = bytes;
            state.trim(bytes);
        });
    }

    /// The pool's current use, and its counts of requests so far.
    pub fn usage(&self) -> PoolUsage {
        self.with(|state| state.usage)
    }

    /// Allocates at least `bytes` of memory, of unspecified contents.
    pub fn alloc(&self, bytes: usize) -> Result<HostMemory> {
        let out_of_memory = || Error::out_of_host_memory(bytes);
        let class = size_class(bytes).ok_or_else(out_of_memory)?;
        let kept = self.with(|state| {
            state.charge(class).ok_or_else(out_of_memory)?;
            let kept = state.free[number(class)].pop();
            match kept {
                Some(start) => {
                    readable(start, class);
                    state.usage.kept -= class;
                    state.usage.hits += 1;
                }
                None => state.usage.misses += 1,
            }
            Ok(kept)
        })?;
        match kept.or_else(|| fresh(class)).or_else(|| self.give_back_kept().then(|| fresh(class))?) {
            Some(start) => Ok(HostMemory { start, class, pool: self.clone() }),
            None => {
                self.with(|state| state.usage.in_use -= class);
                Err(out_of_memory())
            }
        }
    }

    /// Counts `bytes` that other libraries allocate against the limit, for as long as the result lives. It is
    /// also an error if the system does not have as many now.
    pub(crate) fn reserve(&self, bytes: usize) -> Result<Reserved> {
        let out_of_memory = || Error::out_of_host_memory(bytes);
        self.with(|state| state.charge(bytes)).ok_or_else(out_of_memory)?;
        let reserved = Reserved { bytes, pool: self.clone() };
        let available = bytes < PROBED || available(bytes) || self.give_back_kept() && available(bytes);
        if available { Ok(reserved) } else { Err(out_of_memory()) }
    }

    /// Gives all kept blocks back to the system. Returns whether it had any.
    fn give_back_kept(&self) -> bool {
        self.with(|state| {
            let any = state.usage.kept > 0;
            state.trim(0);
            any
        })
    }

    /// Allocates memory whose first `bytes` are zero.
    pub fn alloc_zeroed(&self, bytes: usize) -> Result<HostMemory> {
        let mut memory = self.alloc(bytes)?;
        memory.bytes_mut()[..bytes].fill(0);
        Ok(memory)
    }

    fn with<R>(&self, work: impl FnOnce(&mut State) -> R) -> R {
        self.0.with(work)
    }
}

impl Default for HostPool {
    fn default() -> Self {
        HostPool::new()
    }
}

impl State {
    /// Counts bytes as in use; `None` if that is over the limit.
    fn charge(&mut self, bytes: usize) -> Option<()> {
        self.usage.in_use = self.usage.in_use.checked_add(bytes).filter(|sum| *sum <= self.limit)?;
        self.usage.peak = self.usage.peak.max(self.usage.in_use);
        Some(())
    }

    /// Gives kept blocks back to the system until they have at most `keep` bytes.
    fn trim(&mut self, keep: usize) {
        for (number, free) in self.free.iter_mut().enumerate().rev() {
            while self.usage.kept > keep
                && let Some(start) = free.pop()
            {
                self.usage.kept -= class(number);
                readable(start, class(number));
                // SAFETY: allocated in `fresh` with this class's layout, and not in use.
                unsafe { dealloc(start.as_ptr(), layout(class(number))) };
            }
        }
    }
}

impl Drop for State {
    fn drop(&mut self) {
        self.trim(0);
    }
}

/// A block of host memory, written by its one owner and then frozen into a [`Buffer`]. It returns to its pool
/// when dropped.
pub struct HostMemory {
    start: NonNull<u8>,
    class: usize,
    pool: HostPool,
}

// SAFETY: the block belongs to this value alone, as a `Box<[u8]>` would.
unsafe impl Send for HostMemory {}
// SAFETY: `&HostMemory` gives read access only.
unsafe impl Sync for HostMemory {}

impl HostMemory {
    /// All bytes of the block: at least as many as were requested.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the block is `class` initialised bytes, and borrowed with `self`.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.class) }
    }

    /// All bytes of the block, writable.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: the block is `class` initialised bytes, and borrowed mutably with `self`.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.class) }
    }

    /// Turns the first `bytes` into a shared buffer. The rest of the last 64 bytes is zeroed for code that
    /// reads whole blocks.
    pub fn freeze(mut self, bytes: usize) -> Buffer {
        let padded = bytes.next_multiple_of(64).min(self.class);
        if bytes < padded {
            self.bytes_mut()[bytes..padded].fill(0);
        }
        // SAFETY: `padded` is at most `class`.
        unreadable(unsafe { self.start.add(padded) }, self.class - padded);
        let address = self.start.as_ptr().expose_provenance();
        // SAFETY: the block is readable for `bytes`, and `self`, the owner, no longer writes it.
        unsafe { Buffer::new(address, Some(bytes), Arc::new(self)) }
    }
}

impl Drop for HostMemory {
    fn drop(&mut self) {
        self.pool.with(|state| {
            unreadable(self.start, self.class);
            state.usage.in_use -= self.class;
            state.usage.kept += self.class;
            state.free[number(self.class)].push(self.start);
            if state.usage.kept > state.keep {
                state.trim(state.keep);
            }
        });
    }
}

/// Bytes that other libraries allocate and that count as in use.
pub(crate) struct Reserved {
    bytes: usize,
    pool: HostPool,
}

impl Reserved {
    /// Changes the number of bytes counted. They are allocated already, so no limit applies.
    pub(crate) fn resize(&mut self, bytes: usize) {
        self.pool.with(|state| state.usage.in_use = state.usage.in_use - self.bytes + bytes);
        self.bytes = bytes;
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        self.pool.with(|state| state.usage.in_use -= self.bytes);
    }
}

#[cfg(test)]
mod tests;
