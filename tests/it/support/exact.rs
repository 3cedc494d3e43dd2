//! Memory that ends where its contents do, for whatever a stranger hands over: AddressSanitizer then sees a read of the first
//! byte behind it, which spare bytes, or an allocator that rounds up, would hide.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ptr::NonNull;
use std::sync::Mutex;

/// Buffers start so many bytes behind an address that this divides.
const ALIGNMENT: usize = 64;

/// A copy of some bytes, with nothing behind the last.
pub struct Exact {
    start: NonNull<u8>,
    layout: Layout,
    skipped: usize,
}

// SAFETY: the memory is this value's alone.
unsafe impl Send for Exact {}
// SAFETY: as above; nothing is written through a shared reference.
unsafe impl Sync for Exact {}

impl Exact {
    /// A copy that starts `by` bytes past an aligned address.
    pub fn holding(bytes: &[u8], by: usize) -> Exact {
        // Not even of nothing may an address be that something else has.
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

    /// Where the bytes are.
    pub fn address(&self) -> usize {
        self.start.as_ptr().expose_provenance() + self.skipped
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: all of the memory was initialised, and is this value's; what was skipped is not more than it has.
        unsafe {
            let start = self.start.as_ptr().add(self.skipped);
            std::slice::from_raw_parts(start, self.layout.size() - self.skipped)
        }
    }

    /// Ends the memory, as its owner may from now on: whoever still reads it is wrong, and is to notice. Under
    /// AddressSanitizer (`BOWSTRING_SANITIZED`) it is freed, which that sees; else it holds poison for long, rather than
    /// another's data.
    pub fn bury(self) {
        static GRAVEYARD: Mutex<Vec<Exact>> = Mutex::new(vec![]);
        if std::env::var_os("BOWSTRING_SANITIZED").is_some() {
            return;
        }
        // SAFETY: all of the memory is this value's.
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
