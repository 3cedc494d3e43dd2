//! Host memory for results, kept and used again: touching a fresh page costs more than most operations do with it.
//!
//! Blocks come in size classes, four to a power of two, aligned to 256 bytes. All of a block's bytes are initialised
//! (fresh ones by the system's zero pages, used ones by what they held), so handing out plain slices is sound.

#![allow(unsafe_code)]

use std::alloc::{Layout, alloc, alloc_zeroed, dealloc};
#[cfg(target_os = "linux")]
use std::ffi::{c_int, c_void};
use std::ptr::NonNull;
use std::sync::Arc;

use super::fork::Guarded;
use crate::array::Buffer;
use crate::ffi::DeviceType;
use crate::{Error, Result};

/// Every block starts at a multiple of this: what GPUs give, and more than any vector unit asks for.
const ALIGNMENT: usize = 256;
/// Blocks of at least this are put on pages of this size where the system has them: reading a result all over the place,
/// as a take does, takes a third less time then.
const HUGE: usize = 2 << 20;
/// What others allocate is asked for first from this on: below, whoever cannot have it cannot go on anyway.
const PROBED: usize = 256 << 10;
/// Unused blocks kept by default.
const DEFAULT_KEPT: usize = 4 << 30;

/// A bounded pool of host memory. A cheap handle.
#[derive(Clone)]
pub struct HostPool(Arc<Guarded<State>>);

struct State {
    /// Blocks that wait for their next use, by the number of their class.
    free: [Vec<NonNull<u8>>; CLASSES],
    usage: PoolUsage,
    limit: usize,
    keep: usize,
}

// SAFETY: the pointers in `free` are blocks that nobody else knows of; they belong to the state.
unsafe impl Send for State {}

/// What a pool holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolUsage {
    /// Bytes in blocks that are in use.
    pub in_use: usize,
    /// The most that this ever was.
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

/// How many classes there are.
const CLASSES: usize = 8 + 4 * (usize::BITS as usize - 11);

/// The number of a class: up to 2 KiB they are the multiples of 256 bytes, from there on four to a power of two.
fn number(class: usize) -> usize {
    if class <= 8 * ALIGNMENT {
        return class / ALIGNMENT - 1;
    }
    let power = (class - 1).ilog2() as usize;
    8 + 4 * (power - 11) + ((class - 1) >> (power - 2)) % 4
}

/// The class of a number that some class has.
fn class(number: usize) -> usize {
    if number < 8 { (number + 1) * ALIGNMENT } else { ((number - 8) % 4 + 5) << ((number - 8) / 4 + 9) }
}

fn layout(class: usize) -> Layout {
    let alignment = if class >= HUGE { HUGE } else { ALIGNMENT };
    Layout::from_size_align(class, alignment).expect("a class is bounded")
}

/// A new block of zeros.
fn fresh(class: usize) -> Option<NonNull<u8>> {
    if class < HUGE {
        // SAFETY: a class is never zero.
        return NonNull::new(unsafe { alloc_zeroed(layout(class)) });
    }
    // SAFETY: as above.
    let start = NonNull::new(unsafe { alloc(layout(class)) })?;
    ask_for_huge_pages(start, class);
    // SAFETY: the block is `class` bytes, and nobody else's. They are touched only now: pages come in their final size.
    unsafe { start.write_bytes(0, class) };
    Some(start)
}

/// Whether the system gives as many bytes now. They are not touched.
fn available(bytes: usize) -> bool {
    let mut probe: Vec<u8> = Vec::new();
    let available = probe.try_reserve_exact(bytes).is_ok();
    // The compiler may leave out an allocation that is not used.
    std::hint::black_box(probe.as_mut_ptr());
    available
}

#[cfg(target_os = "linux")]
fn ask_for_huge_pages(start: NonNull<u8>, bytes: usize) {
    const MADV_HUGEPAGE: c_int = 14;
    unsafe extern "C" {
        fn madvise(start: *mut c_void, bytes: usize, advice: c_int) -> c_int;
    }
    // SAFETY: advice on memory of ours, which changes nothing in it; whether it is taken does not matter.
    unsafe { madvise(start.as_ptr().cast(), bytes, MADV_HUGEPAGE) };
}

#[cfg(not(target_os = "linux"))]
fn ask_for_huge_pages(_: NonNull<u8>, _: usize) {}

/// Tells AddressSanitizer that nobody may touch these bytes: what is behind a buffer, and blocks that nobody has. In a build
/// without it (`tests/sanitize.sh` makes the other) nothing is told.
fn unreadable(start: NonNull<u8>, bytes: usize) {
    #[cfg(sanitized)]
    // SAFETY: the bytes are a block's; the call changes nothing in them.
    unsafe {
        __asan_poison_memory_region(start.as_ptr().cast(), bytes)
    };
    #[cfg(not(sanitized))]
    let _ = (start, bytes);
}

/// Takes that back.
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
    /// A pool without a limit on what is in use.
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

    /// Bounds the bytes kept for later; what is over it goes back to the system now.
    pub fn set_keep(&self, bytes: usize) {
        self.with(|state| {
            state.keep = bytes;
            state.trim(bytes);
        });
    }

    /// What it holds now.
    pub fn usage(&self) -> PoolUsage {
        self.with(|state| state.usage)
    }

    /// At least `bytes` of memory, of unspecified contents.
    pub fn alloc(&self, bytes: usize) -> Result<HostMemory> {
        let out_of_memory = || Error::OutOfMemory { bytes, device: DeviceType::Cpu };
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

    /// Counts `bytes` that others allocate against the limit, for as long as the result lives. An error, too, where the
    /// system does not have as many now.
    pub(crate) fn reserve(&self, bytes: usize) -> Result<Reserved> {
        let out_of_memory = || Error::OutOfMemory { bytes, device: DeviceType::Cpu };
        self.with(|state| state.charge(bytes)).ok_or_else(out_of_memory)?;
        let reserved = Reserved { bytes, pool: self.clone() };
        let available = bytes < PROBED || available(bytes) || self.give_back_kept() && available(bytes);
        if available { Ok(reserved) } else { Err(out_of_memory()) }
    }

    /// Gives all kept blocks back to the system; whether there were any.
    fn give_back_kept(&self) -> bool {
        self.with(|state| {
            let any = state.usage.kept > 0;
            state.trim(0);
            any
        })
    }

    /// Memory of `bytes` zero bytes.
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
    /// Counts bytes as in use; `None` where that is over the limit.
    fn charge(&mut self, bytes: usize) -> Option<()> {
        self.usage.in_use = self.usage.in_use.checked_add(bytes).filter(|sum| *sum <= self.limit)?;
        self.usage.peak = self.usage.peak.max(self.usage.in_use);
        Some(())
    }

    /// Gives kept blocks back to the system until there are at most `keep` bytes of them.
    fn trim(&mut self, keep: usize) {
        for (number, free) in self.free.iter_mut().enumerate().rev() {
            while self.usage.kept > keep
                && let Some(start) = free.pop()
            {
                self.usage.kept -= class(number);
                readable(start, class(number));
                // SAFETY: allocated in `fresh` with this class's layout, and in nobody's hands.
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

/// A block of host memory, written by its one owner and then frozen into a [`Buffer`]. Returns to its pool.
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
    /// All of it: at least what was asked for.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the block is `class` initialised bytes, and borrowed with `self`.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.class) }
    }

    /// All of it, to be written.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: the block is `class` initialised bytes, and borrowed mutably with `self`.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.class) }
    }

    /// The first `bytes` as a shared buffer; the rest of the last 64 bytes is zeroed for those who over-read.
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

/// Bytes of others that count as in use.
pub(crate) struct Reserved {
    bytes: usize,
    pool: HostPool,
}

impl Reserved {
    /// Counts so many bytes from now on, which are there already: no limit stops that.
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
mod tests {
    use super::*;

    #[test]
    fn blocks_come_back_and_limits_hold() {
        let pool = HostPool::new();
        let first = pool.alloc(1000).unwrap().freeze(1000);
        let address = first.address();
        assert_eq!(address % ALIGNMENT, 0);
        drop(first);
        assert_eq!(pool.usage().in_use, 0);
        let again = pool.alloc(1000).unwrap();
        assert_eq!(again.bytes().as_ptr() as usize, address);
        assert_eq!((pool.usage().hits, pool.usage().misses), (1, 1));

        pool.set_limit(4096);
        assert!(matches!(pool.alloc(4096), Err(Error::OutOfMemory { bytes: 4096, .. })));
        assert!(matches!(pool.alloc(usize::MAX), Err(Error::OutOfMemory { .. })));
        drop(again);
        assert!(pool.alloc(4096).is_ok());
        pool.set_keep(0);
        assert_eq!(pool.usage().kept, 0);
        drop(pool.alloc(4096).unwrap());
        assert_eq!(pool.usage().kept, 0);
    }

    #[test]
    fn classes_waste_at_most_a_quarter() {
        for bytes in [
            1,
            255,
            256,
            257,
            2048,
            2049,
            2561,
            3072,
            4095,
            4096,
            4097,
            65_537,
            1 << 30,
            isize::MAX as usize / 2,
        ] {
            let class = size_class(bytes).unwrap();
            assert!(class >= bytes && class.is_multiple_of(ALIGNMENT));
            assert!(bytes < 4096 || class <= bytes + bytes / 4, "{bytes} -> {class}");
            assert_eq!(super::class(number(class)), class);
        }
    }
}
