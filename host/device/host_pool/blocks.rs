//! Blocks of host memory in size classes, and lists of those that are not in use.
//!
//! Classes are four to a power of two, aligned to 256 bytes. All of a block's bytes are initialised (fresh
//! ones by the system's zero pages, used ones by what they held), so handing out plain slices is sound.

#![allow(unsafe_code)]

use std::alloc::{Layout, alloc, alloc_zeroed, dealloc};
#[cfg(target_os = "linux")]
use std::ffi::{c_int, c_void};
use std::ptr::NonNull;

/// Every block starts at a multiple of this: the alignment of GPU allocations, and more than any vector unit
/// needs.
pub const ALIGNMENT: usize = 256;
/// Blocks of at least this many bytes use pages of this size if the system has them. Random reads of a
/// result, as in a take, then take a third less time.
const HUGE: usize = 2 << 20;

/// The block size that serves a request: four to a power of two, so that at most a quarter is wasted.
pub(in crate::device) fn size_class(bytes: usize) -> Option<usize> {
    let bytes = bytes.max(ALIGNMENT);
    let step = (bytes.checked_next_power_of_two()? / 8).max(ALIGNMENT);
    bytes.checked_next_multiple_of(step).filter(|bytes| *bytes <= isize::MAX as usize - ALIGNMENT)
}

/// The number of size classes.
pub const CLASSES: usize = 8 + 4 * (usize::BITS as usize - 11);

/// The number of a class: up to 2 KiB they are the multiples of 256 bytes, from there on four to a power of
/// two.
pub const fn number(class: usize) -> usize {
    if class <= 8 * ALIGNMENT {
        return class / ALIGNMENT - 1;
    }
    let power = (class - 1).ilog2() as usize;
    8 + 4 * (power - 11) + ((class - 1) >> (power - 2)) % 4
}

/// The class that has this number.
pub fn class(number: usize) -> usize {
    if number < 8 { (number + 1) * ALIGNMENT } else { ((number - 8) % 4 + 5) << ((number - 8) / 4 + 9) }
}

fn layout(class: usize) -> Layout {
    let alignment = if class >= HUGE { HUGE } else { ALIGNMENT };
    Layout::from_size_align(class, alignment).expect("a class is bounded")
}

/// Allocates a new block of zeros.
pub fn fresh(class: usize) -> Option<NonNull<u8>> {
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
pub fn unreadable(start: NonNull<u8>, bytes: usize) {
    #[cfg(sanitized)]
    // SAFETY: the bytes are a block's; the call changes nothing in them.
    unsafe {
        __asan_poison_memory_region(start.as_ptr().cast(), bytes)
    };
    #[cfg(not(sanitized))]
    let _ = (start, bytes);
}

/// Tells AddressSanitizer that these bytes may be touched again.
pub fn readable(start: NonNull<u8>, bytes: usize) {
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

/// Blocks that are not in use, of the first `N` classes.
pub struct Free<const N: usize> {
    blocks: [Vec<NonNull<u8>>; N],
    /// The bytes of all of them.
    bytes: usize,
}

// SAFETY: the value owns the blocks; no other pointer to them exists.
unsafe impl<const N: usize> Send for Free<N> {}

impl<const N: usize> Free<N> {
    pub const fn new() -> Free<N> {
        Free { blocks: [const { Vec::new() }; N], bytes: 0 }
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Takes a block of a class, to be used.
    pub fn take(&mut self, class: usize) -> Option<NonNull<u8>> {
        let start = self.blocks[number(class)].pop()?;
        readable(start, class);
        self.bytes -= class;
        Some(start)
    }

    /// Adds a block, which is no longer used.
    pub fn add(&mut self, start: NonNull<u8>, class: usize) {
        unreadable(start, class);
        self.bytes += class;
        self.blocks[number(class)].push(start);
    }

    /// Adds all blocks of another list, which has none that are larger.
    pub fn append<const M: usize>(&mut self, other: &mut Free<M>) {
        self.bytes += std::mem::take(&mut other.bytes);
        self.blocks.iter_mut().zip(&mut other.blocks).for_each(|(own, blocks)| own.append(blocks));
    }

    /// Gives blocks back to the system, the largest first, until the others have at most `keep` bytes.
    pub fn trim(&mut self, keep: usize) {
        // Each block that returns comes here, and there are hundreds of classes.
        if self.bytes <= keep {
            return;
        }
        for (number, blocks) in self.blocks.iter_mut().enumerate().rev() {
            while self.bytes > keep
                && let Some(start) = blocks.pop()
            {
                self.bytes -= class(number);
                readable(start, class(number));
                // SAFETY: allocated in `fresh` with this class's layout, and not in use.
                unsafe { dealloc(start.as_ptr(), layout(class(number))) };
            }
        }
    }
}

impl<const N: usize> Drop for Free<N> {
    fn drop(&mut self) {
        self.trim(0);
    }
}
