//! Memory that ends where the next page may not be touched: whoever reads a byte too many dies of it, whether the byte shows
//! in a result or not. So does whoever reads it after it was given back.

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
    fn munmap(at: *mut c_void, bytes: usize) -> c_int;
}

/// A copy of the bytes, the last one at the end of a page with a forbidden one behind and before all. To spoil it is to give
/// the memory back.
pub fn guarded(bytes: &[u8]) -> Elsewhere {
    const NOTHING: c_int = 0;
    const READ_AND_WRITE: c_int = 3;
    const PRIVATE_AND_ANONYMOUS: c_int = 0x22;
    let pages = bytes.len().div_ceil(PAGE).max(1) * PAGE;
    let whole = pages + 2 * PAGE;
    // SAFETY: new memory, of which the pages between the first and the last are made accessible, and written.
    let (all, pointer) = unsafe {
        let all = mmap(null_mut(), whole, NOTHING, PRIVATE_AND_ANONYMOUS, -1, 0);
        assert_ne!(all.addr(), usize::MAX, "there is memory");
        let start = all.byte_add(PAGE);
        assert_eq!(mprotect(start, pages, READ_AND_WRITE), 0);
        let to = start.byte_add(pages - bytes.len()).cast::<u8>();
        to.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
        (all, to.cast_const().cast::<c_void>())
    };
    pointer.expose_provenance();
    // SAFETY: the memory from above, and whoever still reads it is wrong.
    let spoil = move || assert_eq!(unsafe { munmap(all, whole) }, 0);
    Elsewhere { pointer, spoil: Box::new(spoil) }
}
