//! L5: copies of arrays between the host and a device, between devices, and on a device. Each call lays out
//! all buffers as one block, and moves it with one copy.

#![allow(unsafe_code)]

mod block;
mod extents;
mod gathered;
mod host;
mod peer;

use std::sync::Arc;

pub(crate) use extents::{sized_arrays, sized_buffers};
pub(crate) use gathered::Gathered;

use crate::array::Buffer;
use crate::device::Staged;

/// The bytes of a host buffer. Its array must be readable now.
fn host_bytes(buffer: &Buffer) -> &[u8] {
    match buffer.bytes() {
        None | Some(0) => &[],
        // SAFETY: `Buffer::new` promised so many readable, unchanging bytes for as long as the buffer lives.
        Some(bytes) => unsafe {
            std::slice::from_raw_parts(std::ptr::with_exposed_provenance(buffer.address()), bytes)
        },
    }
}

/// The first bytes of a block of pinned memory as a buffer that keeps it. May be read once the copies to it
/// have finished.
fn pinned_buffer(staged: &Arc<Staged>, bytes: usize) -> Buffer {
    let address = staged.pinned().start().expose_provenance();
    // SAFETY: the block has the bytes, and lives as long as its owner.
    unsafe { Buffer::new(address, Some(bytes), staged.clone()) }
}
