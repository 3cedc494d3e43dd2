//! Memory that ends where the next page may not be touched: whoever reads a byte too many dies of it, whether the byte shows
//! in a result or not.

use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

use crate::exchange::foreign::Elsewhere;

const PAGE: usize = 4096;

unsafe extern "C" {
    fn mmap(
        at: *mut c_void,
        bytes: usize,
        access: c_int,
        flags: c_int,
        file: c_int,
        offset: i64,
    ) -> *mut c_void;
    fn mprotect(at: *mut c_void, bytes: usize, access: c_int) -> c_int;
}

/// A copy of the bytes, the last one at the end of a page with a forbidden one behind and before all. The memory stays for
/// good: tests are few and it is small.
pub fn guarded(bytes: &[u8]) -> Elsewhere {
    const NOTHING: c_int = 0;
    const READ_AND_WRITE: c_int = 3;
    const PRIVATE_AND_ANONYMOUS: c_int = 0x22;
    let pages = bytes.len().div_ceil(PAGE).max(1) * PAGE;
    // SAFETY: new memory, of which the pages between the first and the last are made accessible, and written.
    let pointer = unsafe {
        let all = mmap(null_mut(), pages + 2 * PAGE, NOTHING, PRIVATE_AND_ANONYMOUS, -1, 0);
        assert_ne!(all.addr(), usize::MAX, "there is memory");
        let start = all.byte_add(PAGE);
        assert_eq!(mprotect(start, pages, READ_AND_WRITE), 0);
        let to = start.byte_add(pages - bytes.len()).cast::<u8>();
        to.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
        to.cast_const().cast::<c_void>()
    };
    pointer.expose_provenance();
    Elsewhere { pointer, spoil: Box::new(|| {}) }
}
