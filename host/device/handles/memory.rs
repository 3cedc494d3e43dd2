//! Owned handles of memory: device memory from the runtime or an engine's allocator, and pinned host memory.

use std::ffi::c_void;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Arc;

use super::{OwnedStream, SharedDriver, Spares, error};
use crate::array::Buffer;
use crate::device::driver::RawStream;
use crate::{Error, Result};

/// A source of device memory that replaces the library's own pool: an engine's arena, an RMM resource.
///
/// Both functions are stream-ordered: memory that was freed on a stream may be handed out again to work that
/// comes later on that stream. `stream` is the native handle. Any thread may call them; a thread that drops
/// the last owner of an array calls `free`.
///
/// # Safety
///
/// `alloc` must return that many bytes of the device's memory, aligned to 256, that nothing else uses until
/// `free`.
pub unsafe trait Allocator: Send + Sync {
    /// Returns the address of `bytes` (not zero) of memory, or [`Error::OutOfMemory`].
    fn alloc(&self, bytes: usize, stream: *mut c_void) -> Result<usize>;

    /// Takes memory back once the work that is on `stream` now has passed.
    ///
    /// # Safety
    ///
    /// `address` must come from `alloc` with the same `bytes`, and not be used by anything but work on
    /// `stream`.
    unsafe fn free(&self, address: usize, bytes: usize, stream: *mut c_void);
}

/// The source of a device's memory.
#[derive(Clone)]
pub(crate) enum Source {
    Driver,
    User(Arc<dyn Allocator>),
}

/// Device memory that is freed with this handle, on the service stream: see
/// [`super::super::core::Core::service`].
pub(crate) struct Allocation {
    source: Source,
    service: Arc<OwnedStream>,
    address: usize,
    bytes: usize,
}

impl Allocation {
    /// `bytes` of new memory for work on `stream`.
    pub fn create(
        source: &Source,
        service: &Arc<OwnedStream>,
        bytes: usize,
        stream: &OwnedStream,
    ) -> Result<Allocation> {
        let driver = service.driver();
        let address = match source {
            // SAFETY: the stream is live.
            Source::Driver => unsafe { driver.alloc(bytes, stream.raw()) }
                .map_err(|failure| failure.error(bytes, driver.place()))?,
            Source::User(allocator) => allocator.alloc(bytes, handle(stream.raw()))?,
        };
        Ok(Allocation { source: source.clone(), service: service.clone(), address, bytes })
    }

    pub fn address(&self) -> usize {
        self.address
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Declares the contents unused by work on `stream` from here on.
    pub fn discard(&self, stream: &OwnedStream) -> Result<()> {
        let driver = self.service.driver();
        // SAFETY: the memory is this handle's, and its stream is live.
        unsafe { driver.discard(self.address, self.bytes, stream.raw()) }
            .map_err(|failure| error(driver, failure))
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        let (driver, service) = (self.service.driver(), self.service.raw());
        match &self.source {
            // SAFETY: allocated in `create`; before this is dropped its work has passed, or the service
            // stream waits for it. A failure cannot be reported from here.
            Source::Driver => drop(unsafe { driver.free(self.address, service) }),
            // SAFETY: as above, with the bytes that it was allocated with.
            Source::User(allocator) => unsafe {
                allocator.free(self.address, self.bytes, handle(service));
            },
        }
    }
}

fn handle(stream: RawStream) -> *mut c_void {
    std::ptr::without_provenance_mut(stream.0)
}

/// Pinned host memory that is freed with this handle.
pub(crate) struct Pinned {
    driver: SharedDriver,
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the memory belongs to this value alone, as a `Box<[u8]>` would.
unsafe impl Send for Pinned {}
// SAFETY: `&Pinned` gives read access only.
unsafe impl Sync for Pinned {}

impl Pinned {
    /// `bytes` (not zero) of new pinned memory.
    pub fn create(driver: &SharedDriver, bytes: usize) -> Result<Pinned> {
        // SAFETY: no handles are passed.
        let start = unsafe { driver.alloc_pinned(bytes) };
        let start = start.map_err(|failure| failure.error(bytes, driver.place()))?;
        let start =
            NonNull::new(start).ok_or(Error::OutOfMemory { bytes, device: driver.place().device_type })?;
        Ok(Pinned { driver: driver.clone(), start, bytes })
    }

    pub fn start(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    pub fn len(&self) -> usize {
        self.bytes
    }

    /// All its bytes. No copy to it may be under way.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: `bytes` initialised bytes, borrowed with `self`.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.bytes) }
    }

    /// All its bytes, writable. No copy from or to it may be under way.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.bytes) }
    }
}

impl Pinned {
    /// Some of its bytes, writable. No copy from or to that part may be under way.
    pub fn part_mut(&mut self, part: Range<usize>) -> &mut [u8] {
        assert!(part.start <= part.end && part.end <= self.bytes, "the part is inside the block");
        // SAFETY: inside of `bytes` initialised bytes, borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr().add(part.start), part.len()) }
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // SAFETY: made in `create`, and this is its only owner. A failure cannot be reported from here.
        let _ = unsafe { self.driver.free_pinned(self.start.as_ptr()) };
    }
}

/// Reads a few bytes of device memory that no work writes any more. Blocks, on a stream without other work.
pub(crate) fn read_back(spares: &Arc<Spares>, from: &Buffer, bytes: usize) -> Result<Vec<u8>> {
    let from = from.slice(0, Some(bytes));
    let stream = OwnedStream::create(spares, 0)?;
    let driver = stream.driver();
    let to = Pinned::create(driver, bytes.max(1))?;
    // SAFETY: the buffer has the bytes, as its maker promised, and so has the block; both live until the copy
    // has passed.
    let queued = unsafe { driver.copy_out(to.start(), from.address(), bytes, stream.raw()) };
    let passed = stream.synchronise();
    queued.map_err(|failure| error(driver, failure)).and(passed)?;
    Ok(to.bytes()[..bytes].to_vec())
}
