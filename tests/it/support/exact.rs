//! Memory without spare bytes at its end, for buffers of other libraries. AddressSanitizer detects a read of
//! the first byte after it, which spare bytes, or a rounding allocator, would hide.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ptr::NonNull;
use std::sync::Mutex;

/// Buffers start at a given distance from a multiple of this.
const ALIGNMENT: usize = 64;

/// A copy of some bytes, without spare bytes after the last.
pub struct Exact {
    start: NonNull<u8>,
    layout: Layout,
    skipped: usize,
}

// SAFETY: this value alone owns the memory.
unsafe impl Send for Exact {}
// SAFETY: as above; nothing is written through a shared reference.
unsafe impl Sync for Exact {}

impl Exact {
    /// Copies bytes to memory that starts `by` bytes past an aligned address.
    pub fn holding(bytes: &[u8], by: usize) -> Exact {
        // Even empty memory must have an address that nothing else has.
        let size = (by + bytes.len()).max(1);
        let layout = Layout::from_size_align(size, ALIGNMENT).expect("a test's memory is small");
        // SAFETY: the layout is not empty.
        let start = NonNull::new(unsafe { alloc(layout) }).unwrap_or_else(|| handle_alloc_error(layout));
        // SAFETY: `by + bytes.len()` bytes were just allocated.
        unsafe {
            start.write_bytes(0xa5, size);
            start.add(by).copy_from_nonoverlapping(NonNull::from(bytes).cast(), bytes.len());
        }
        Exact { start, layout, skipped: by }
    }

    /// The address of the first byte.
    pub fn address(&self) -> usize {
        self.start.as_ptr().expose_provenance() + self.skipped
    }

    /// The bytes from [`Exact::address`] on.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: all of the memory was initialised, this value owns it, and `skipped` is within its size.
        unsafe {
            let start = self.start.as_ptr().add(self.skipped);
            std::slice::from_raw_parts(start, self.layout.size() - self.skipped)
        }
    }

    /// Ends the memory, as its owner may: a later read is a bug that should show. Under AddressSanitizer
    /// (`BOWSTRING_SANITIZED`) the memory is freed, so the sanitizer reports the read; otherwise it is filled
    /// with poison and kept for a while, so that no other data gets there.
    pub fn bury(self) {
        static GRAVEYARD: Mutex<Vec<Exact>> = Mutex::new(vec![]);
        if std::env::var_os("BOWSTRING_SANITIZED").is_some() {
            return;
        }
        // SAFETY: this value owns all of the memory.
        unsafe { self.start.write_bytes(0xdb, self.layout.size()) };
        let mut graves = GRAVEYARD.lock().unwrap();
        graves.push(self);
        let old = graves.len().saturating_sub(50_000);
        graves.drain(..old / 2);
    }
}

impl Drop for Exact {
    fn drop(&mut self) {
        // SAFETY: allocated in `holding` with this layout.
        unsafe { dealloc(self.start.as_ptr(), self.layout) };
    }
}
