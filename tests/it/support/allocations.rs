//! Counts the memory that a thread has allocated: it is the test binary's allocator.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

thread_local! {
    static NOW: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
}

fn count(bytes: isize) {
    let _ = NOW.try_with(|now| {
        now.set(now.get().saturating_add(bytes));
        let _ = PEAK.try_with(|peak| peak.set(peak.get().max(now.get())));
    });
}

// SAFETY: the system's allocator does all the work; counting does not allocate.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: as the caller promised.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: as the caller promised.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: as the caller promised.
        unsafe { System.dealloc(start, layout) }
    }

    /// For a moment both blocks exist, as far as a caller can tell.
    unsafe fn realloc(&self, start: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        count(bytes as isize);
        count(-(layout.size() as isize));
        // SAFETY: as the caller promised.
        unsafe { System.realloc(start, layout, bytes) }
    }
}

/// The peak of this thread's allocated memory during `work`, beyond the memory allocated before.
pub fn peak(work: impl FnOnce()) -> usize {
    let before = NOW.with(Cell::get);
    PEAK.with(|peak| peak.set(before));
    work();
    usize::try_from(PEAK.with(Cell::get) - before).unwrap_or(0)
}
