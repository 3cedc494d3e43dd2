//! The safe side of the driver seam: owned streams, events and memory. A handle that exists is a live one, so the calls
//! that need no more than that are safe here; what else is queued on memory is up to `pass`.

#![allow(unsafe_code)]

mod memory;

use std::ffi::c_void;
use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::driver::{Driver, Failure, LoadFailure, RawEntry, RawEvent, RawStream};
use super::gpu::Gpu;
use super::{Device, Stream};
use crate::array::{Owner, Place, Ready};
use crate::{Error, Result};
pub use memory::Allocator;
pub(crate) use memory::{Allocation, Pinned, Source, fetch};

/// Somebody's driver.
pub(crate) type SharedDriver = Arc<dyn Driver>;

/// The failure of a call that asked for no memory.
pub(super) fn error(driver: &SharedDriver, failure: Failure) -> Error {
    failure.error(0, driver.place())
}

/// Loads an entry of a kernel family.
pub(super) fn entry(driver: &SharedDriver, family: &'static str, name: &'static str) -> Result<RawEntry> {
    // SAFETY: no handles are passed.
    unsafe { driver.entry(family, name) }.map_err(|LoadFailure { failure, log }| match log.is_empty() {
        true => error(driver, failure),
        false => {
            let (call, code, device) = (failure.call, failure.code, driver.place().device_type);
            Error::Image { family, call, code, device, log }
        }
    })
}

/// A stream that is destroyed with this handle, unless it is the caller's.
pub(crate) struct OwnedStream {
    driver: SharedDriver,
    raw: RawStream,
    wrapped: bool,
}

impl OwnedStream {
    /// A new stream.
    pub fn create(driver: &SharedDriver, priority: i32) -> Result<OwnedStream> {
        // SAFETY: no handles are passed.
        let raw = unsafe { driver.stream(priority) }.map_err(|failure| error(driver, failure))?;
        Ok(OwnedStream { driver: driver.clone(), raw, wrapped: false })
    }

    /// The native handle.
    pub fn raw(&self) -> RawStream {
        self.raw
    }

    /// Records the event here.
    pub fn record(&self, event: &OwnedEvent) -> Result<()> {
        // SAFETY: both handles are live.
        unsafe { self.driver.record(event.raw, self.raw) }.map_err(|failure| error(&self.driver, failure))
    }

    /// Holds back further work until the event has passed.
    pub fn wait(&self, event: &OwnedEvent) -> Result<()> {
        // SAFETY: both handles are live.
        unsafe { self.driver.wait(self.raw, event.raw) }.map_err(|failure| error(&self.driver, failure))
    }

    /// Blocks until the stream's work has passed. Whatever this returns, none of it runs any more.
    pub fn synchronise(&self) -> Result<()> {
        // SAFETY: the handle is live.
        unsafe { self.driver.synchronise(self.raw) }.map_err(|failure| error(&self.driver, failure))
    }

    /// Runs `then` once the stream's work has passed.
    pub fn call(&self, then: Box<dyn FnOnce() + Send>) -> Result<()> {
        // SAFETY: the handle is live.
        unsafe { self.driver.call(self.raw, then) }.map_err(|failure| error(&self.driver, failure))
    }
}

impl Drop for OwnedStream {
    fn drop(&mut self) {
        if !self.wrapped {
            // SAFETY: made in `create`, and this is its only owner. There is nobody to tell of a failure.
            let _ = unsafe { self.driver.destroy_stream(self.raw) };
        }
    }
}

impl Device {
    /// A native stream of the caller's (a `CUstream`, a `hipStream_t`) as this device's: operations run there and
    /// nowhere else. The legacy default stream (`0` or `1`) and that of the calling thread (`2`) are streams too; the
    /// latter means that of whichever thread calls an operation, which runs between what is on it then and later.
    ///
    /// # Safety
    ///
    /// The handle must be a stream of this device, and stay one until the last clone of the [`Stream`] and every
    /// operation put on it is gone.
    pub unsafe fn wrap_stream(&self, handle: *mut c_void) -> Result<Stream> {
        let gpu = self.gpu_or("wrap_stream")?;
        let driver = gpu.driver().clone();
        let raw = RawStream(handle.addr());
        // SAFETY: the caller says that the handle is one; a driver that can tell looks again.
        unsafe { driver.check_stream(raw) }.map_err(|failure| error(&driver, failure))?;
        let given = OwnedStream { driver, raw, wrapped: true };
        if !gpu.driver().is_per_thread(raw) {
            return Ok(Stream::over(self, given, None));
        }
        Ok(Stream::over(self, OwnedStream::create(gpu.driver(), 0)?, Some(given)))
    }
}

/// An event that is destroyed with this handle.
pub(crate) struct OwnedEvent {
    driver: SharedDriver,
    raw: RawEvent,
}

impl OwnedEvent {
    /// A new event.
    pub fn create(driver: &SharedDriver) -> Result<OwnedEvent> {
        // SAFETY: no handles are passed.
        let raw = unsafe { driver.event() }.map_err(|failure| error(driver, failure))?;
        Ok(OwnedEvent { driver: driver.clone(), raw })
    }

    /// The native handle. What a `sync_event` points to is this field, where it is.
    pub fn raw(&self) -> &RawEvent {
        &self.raw
    }

    /// Whether it has passed.
    pub fn query(&self) -> Result<bool> {
        // SAFETY: the handle is live.
        unsafe { self.driver.query(self.raw) }.map_err(|failure| error(&self.driver, failure))
    }

    /// Blocks until it has passed. Whatever this returns, the work before it runs no more.
    pub fn synchronise(&self) -> Result<()> {
        // SAFETY: the handle is live.
        let outcome = unsafe { self.driver.synchronise_event(self.raw) };
        outcome.map_err(|failure| error(&self.driver, failure))
    }
}

impl Drop for OwnedEvent {
    fn drop(&mut self) {
        // SAFETY: made in `create`, and this is its only owner. There is nobody to tell of a failure.
        let _ = unsafe { self.driver.destroy_event(self.raw) };
    }
}

/// An event of somebody else's, from a `sync_event`.
pub(crate) struct ForeignEvent {
    gpu: Arc<Gpu>,
    raw: RawEvent,
    /// Once it has, nobody need ask the runtime again.
    passed: AtomicBool,
    _owner: Owner,
}

impl ForeignEvent {
    /// The device whose array it came with.
    pub fn gpu(&self) -> &Arc<Gpu> {
        &self.gpu
    }

    /// Makes further work of the stream wait for it.
    pub fn hold_back(&self, stream: &OwnedStream) -> Result<()> {
        if self.passed.load(Ordering::Acquire) {
            return Ok(());
        }
        // SAFETY: `import_event` was promised that the event lives as long as `_owner`.
        let outcome = unsafe { stream.driver.wait(stream.raw, self.raw) };
        outcome.map_err(|failure| error(&stream.driver, failure))
    }
}

impl Ready for ForeignEvent {
    fn is_ready(&self) -> Result<bool> {
        let driver = self.gpu.driver();
        if !self.passed.load(Ordering::Acquire) {
            // SAFETY: as in `hold_back`.
            let passed = unsafe { driver.query(self.raw) }.map_err(|failure| error(driver, failure))?;
            self.passed.store(passed, Ordering::Release);
        }
        Ok(self.passed.load(Ordering::Acquire))
    }

    fn wait(&self) -> Result<()> {
        if self.passed.load(Ordering::Acquire) {
            return Ok(());
        }
        let driver = self.gpu.driver();
        self.gpu.count_synchronisation();
        // SAFETY: as in `hold_back`.
        unsafe { driver.synchronise_event(self.raw) }.map_err(|failure| error(driver, failure))?;
        self.passed.store(true, Ordering::Release);
        Ok(())
    }

    fn sync_event(&self) -> Option<NonNull<c_void>> {
        Some(NonNull::from(&self.raw).cast())
    }
}

impl fmt::Debug for ForeignEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ForeignEvent({}, {:#x})", self.gpu.place(), self.raw.0)
    }
}

impl Device {
    /// The event behind a producer's `sync_event`, which points to a native handle. Nothing is waited for.
    ///
    /// # Safety
    ///
    /// `pointer` must point to a live event handle of this device's runtime, which lives as long as `owner` does.
    pub(crate) unsafe fn import_event(
        &self,
        pointer: NonNull<c_void>,
        owner: Owner,
    ) -> Result<Arc<dyn Ready>> {
        let gpu = self.gpu_or("import")?.clone();
        // SAFETY: the caller's promise; producers need not align what it points to.
        let raw = RawEvent(unsafe { pointer.cast::<usize>().read_unaligned() });
        Ok(Arc::new(ForeignEvent { gpu, raw, passed: AtomicBool::new(false), _owner: owner }))
    }

    /// Which memory an address, which may be anything, is in; `None` for memory that the device's runtime does not know. The
    /// CPU knows none.
    pub fn place_of(&self, address: usize) -> Result<Option<Place>> {
        let driver = self.gpu_or("place_of")?.driver();
        // SAFETY: any address will do.
        unsafe { driver.classify(address) }.map_err(|failure| error(driver, failure))
    }
}
