//! Foreign events, which come with a producer's arrays, and waits for events of any kind.

#![allow(unsafe_code)]

use std::ffi::c_void;
use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;

use super::Device;
use super::core::Core;
use super::driver::RawEvent;
use super::event::{Event, SERVICE};
use super::handles::{OwnedStream, error};
use super::sync::atomic::{AtomicBool, Ordering};
use crate::Result;
use crate::array::{Owner, Place, Ready};

/// A producer's event, from a `sync_event`.
pub(crate) struct ForeignEvent {
    core: Arc<Core>,
    raw: RawEvent,
    /// Once it has passed, the runtime is not asked again.
    passed: AtomicBool,
    _owner: Owner,
}

impl ForeignEvent {
    /// The device whose array it came with.
    pub fn core(&self) -> &Arc<Core> {
        &self.core
    }

    /// Makes further work of the stream wait for it. An error if the event is part of a graph that is being
    /// captured, because then the stream is, too, until the capture ends.
    pub fn hold_back(&self, stream: &OwnedStream) -> Result<()> {
        if self.passed.load(Ordering::Acquire) {
            return Ok(());
        }
        self.core.refuse_fork()?;
        stream.set_known();
        // SAFETY: `import_event` was promised that the event lives as long as `_owner`.
        let outcome = unsafe { stream.driver().wait(stream.raw(), self.raw) };
        outcome.map_err(|failure| error(stream.driver(), failure))?;
        stream.refuse_capture("wait")
    }
}

impl Ready for ForeignEvent {
    fn is_ready(&self) -> Result<bool> {
        let driver = self.core.driver();
        if !self.passed.load(Ordering::Acquire) {
            self.core.refuse_fork()?;
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
        self.core.refuse_fork()?;
        let driver = self.core.driver();
        self.core.count_synchronisation();
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
        write!(f, "ForeignEvent({}, {:#x})", self.core.place(), self.raw.0)
    }
}

impl Device {
    /// The event that a producer's `sync_event` refers to: it points to a native handle. Does not wait.
    ///
    /// # Safety
    ///
    /// `pointer` must point to a live event handle of this device's runtime, which lives as long as `owner`
    /// does.
    pub(crate) unsafe fn import_event(
        &self,
        pointer: NonNull<c_void>,
        owner: Owner,
    ) -> Result<Arc<dyn Ready>> {
        let core = self.gpu_or("import")?.core().clone();
        // SAFETY: the caller's promise; producers need not align the handle.
        let raw = RawEvent(unsafe { pointer.cast::<usize>().read_unaligned() });
        Ok(Arc::new(ForeignEvent { core, raw, passed: AtomicBool::new(false), _owner: owner }))
    }

    /// The memory that contains an address, which may be any number; `None` for memory that the device's
    /// runtime does not know. On the CPU this is an error.
    pub fn place_of(&self, address: usize) -> Result<Option<Place>> {
        let driver = self.gpu_or("place_of")?.driver();
        // SAFETY: any address will do.
        unsafe { driver.classify(address) }.map_err(|failure| error(driver, failure))
    }
}

/// Makes a stream's further work wait until `ready`. For another runtime's events, the host waits.
pub(crate) fn hold_back(stream: &OwnedStream, place: Place, ready: &dyn Ready) -> Result<()> {
    let same = |other: Place| other.device_type == place.device_type;
    let any: &dyn std::any::Any = ready;
    if let Some(event) = any.downcast_ref::<Event>()
        && same(event.core().place())
    {
        return event.hold_back(stream);
    }
    if let Some(event) = any.downcast_ref::<ForeignEvent>()
        && same(event.core().place())
    {
        return event.hold_back(stream);
    }
    ready.wait()
}

/// The GPU on which an event is recorded; `None` for those of no GPU.
pub(super) fn core_of(ready: &Arc<dyn Ready>) -> Option<Arc<Core>> {
    let any: &dyn std::any::Any = &**ready;
    let own = any.downcast_ref::<Event>().map(Event::core);
    own.or_else(|| any.downcast_ref::<ForeignEvent>().map(ForeignEvent::core)).cloned()
}

/// Joins several events into one, recorded after all of them on a stream of the first one's device.
/// The host waits only for events of other runtimes, and for values of [`Ready`] that have no native event.
pub(crate) fn joined(all: Vec<Arc<dyn Ready>>) -> Result<Option<Arc<dyn Ready>>> {
    let Some(core) = all.iter().find_map(core_of) else {
        return all.iter().try_for_each(|ready| ready.wait()).map(|()| None);
    };
    if let [_] = all[..] {
        return Ok(all.into_iter().next());
    }
    // Not the service stream, which somebody's event could make part of a capture.
    let (event, stream) = (Event::new(&core, SERVICE)?, OwnedStream::create(core.streams(), 0)?);
    for ready in &all {
        hold_back(&stream, core.place(), &**ready)?;
    }
    event.record(&stream)?;
    let own = all.iter().filter_map(|ready| {
        let any: &dyn std::any::Any = &**ready;
        any.downcast_ref::<Event>().cloned()
    });
    event.depends_on(own.collect(), None, vec![]);
    Ok(Some(Arc::new(event)))
}
