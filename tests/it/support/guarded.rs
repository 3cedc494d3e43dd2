//! Memory that ends at a protected page: a read beyond its end crashes, even if the byte would not affect a
//! result. A read after its release crashes, too.

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

/// Copies bytes so that the last one is at the end of a page, with protected pages before and after the
/// memory. Spoiling the memory unmaps it.
pub fn guarded(bytes: &[u8]) -> Elsewhere {
    const NOTHING: c_int = 0;
    const READ_AND_WRITE: c_int = 3;
    const PRIVATE_AND_ANONYMOUS: c_int = 0x22;
    let pages = bytes.len().div_ceil(PAGE).max(1) * PAGE;
    let whole = pages + 2 * PAGE;
    // SAFETY: the memory is new; only the pages between the first and the last become accessible, and are
    // written.
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
    // SAFETY: this is the memory from above, and its users must not read it after release.
    let spoil = move || assert_eq!(unsafe { munmap(all, whole) }, 0);
    Elsewhere { pointer, spoil: Box::new(spoil) }
}
