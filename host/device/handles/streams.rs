//! Streams: the caller's, and those that we make.
//!
//! The one idea: a stream of ours is destroyed only with its device. HIP's events go on reading the stream
//! that they were recorded on, even after its end; and `hipStreamDestroy` waits for the stream's work. So a
//! stream without a handle is spare, and used again once its work has passed.

use std::sync::Arc;

use super::{OwnedEvent, SharedDriver, error};
use crate::device::driver::RawStream;
use crate::device::fork;
use crate::device::lock::lock;
use crate::device::sync::Mutex;
use crate::device::sync::atomic::{AtomicBool, Ordering};
use crate::{Error, Result};

/// The streams of a device that have no handle.
pub(crate) struct Spares {
    driver: SharedDriver,
    spares: Mutex<Vec<Spare>>,
    /// The fork generation of the process that made them.
    process: u32,
}

struct Spare {
    raw: RawStream,
    priority: i32,
    /// Passes when the stream's work has; `None` if it could not be recorded, as in a capture.
    idle: Option<OwnedEvent>,
}

impl Spares {
    pub fn new(driver: &SharedDriver) -> Arc<Spares> {
        Arc::new(Spares { driver: driver.clone(), spares: Mutex::default(), process: fork::generation() })
    }

    /// Takes a stream of a priority without work.
    fn take(&self, priority: i32) -> Option<RawStream> {
        let mut spares = lock(&self.spares);
        let is_free = |spare: &Spare| {
            spare.priority == priority && spare.idle.as_ref().is_some_and(|idle| idle.query() == Ok(true))
        };
        let place = spares.iter().position(is_free)?;
        Some(spares.swap_remove(place).raw)
    }

    fn give(&self, stream: &OwnedStream, priority: i32) {
        if self.process != fork::generation() {
            return;
        }
        let (raw, event) = (stream.raw, OwnedEvent::create(&self.driver).ok());
        let idle = event.filter(|event| !stream.is_captured_now() && stream.record(event).is_ok());
        lock(&self.spares).push(Spare { raw, priority, idle });
    }
}

impl Drop for Spares {
    fn drop(&mut self) {
        let spares = std::mem::take(&mut *lock(&self.spares));
        if self.process != fork::generation() {
            return std::mem::forget(spares);
        }
        for spare in spares {
            // HIP's events need their stream.
            drop(spare.idle);
            // SAFETY: made for this list, which was its only owner. A failure cannot be reported from here.
            let _ = unsafe { self.driver.destroy_stream(spare.raw) };
        }
    }
}

/// A stream that is spare once this handle is dropped, unless it is the caller's.
pub(crate) struct OwnedStream {
    driver: SharedDriver,
    raw: RawStream,
    /// The list that it goes to, and its priority; `None` for one of the caller's.
    home: Option<(Arc<Spares>, i32)>,
    /// Whether others may have made it part of a capture: it is theirs, they know its handle, or it has
    /// waited for an event of theirs.
    is_known: AtomicBool,
}

impl OwnedStream {
    /// Takes a spare stream, or creates one; lower priorities are more urgent, 0 is usual.
    pub fn create(spares: &Arc<Spares>, priority: i32) -> Result<OwnedStream> {
        let driver = spares.driver.clone();
        let raw = match spares.take(priority) {
            Some(raw) => raw,
            // SAFETY: no handles are passed.
            None => unsafe { driver.stream(priority) }.map_err(|failure| error(&driver, failure))?,
        };
        let home = Some((spares.clone(), priority));
        Ok(OwnedStream { driver, raw, home, is_known: AtomicBool::new(false) })
    }

    fn callers(driver: &SharedDriver, raw: RawStream) -> OwnedStream {
        OwnedStream { driver: driver.clone(), raw, home: None, is_known: AtomicBool::new(true) }
    }

    /// Wraps a stream of the caller's, if the driver accepts the handle as one of its own.
    ///
    /// # Safety
    ///
    /// The handle must be a stream of the driver's device for as long as this lives.
    pub unsafe fn wrap(driver: &SharedDriver, raw: RawStream) -> Result<OwnedStream> {
        // SAFETY: the caller says that the handle is one; a driver that can tell looks again.
        unsafe { driver.check_stream(raw) }.map_err(|failure| error(driver, failure))?;
        let stream = OwnedStream::callers(driver, raw);
        stream.refuse_capture("wrap_stream").map(|()| stream)
    }

    /// The default stream that synchronises with other libraries' blocking streams, if the runtime has one.
    pub fn legacy(driver: &SharedDriver) -> Option<OwnedStream> {
        let raw = driver.legacy_stream()?;
        Some(OwnedStream::callers(driver, raw))
    }

    /// Whether the stream belongs to the caller, who destroys it.
    pub fn is_wrapped(&self) -> bool {
        self.home.is_none()
    }

    /// Notes that others may make it part of a capture from now on.
    pub fn set_known(&self) {
        self.is_known.store(true, Ordering::Relaxed);
    }

    /// Whether work queued on it now becomes part of a graph instead of running.
    pub fn is_captured(&self) -> Result<bool> {
        // SAFETY: the handle is live.
        unsafe { self.driver.is_captured(self.raw) }.map_err(|failure| error(&self.driver, failure))
    }

    /// Whether the stream is known to be captured; no is also the answer if the runtime gives none.
    pub fn is_captured_now(&self) -> bool {
        self.is_known.load(Ordering::Relaxed) && self.is_captured() == Ok(true)
    }

    /// Refuses a stream that is captured into a graph: we would reuse memory and events for other work while
    /// the graph goes on using them. A stream of ours becomes part of a capture when it waits for an event
    /// that was recorded in one.
    pub fn refuse_capture(&self, operation: &'static str) -> Result<()> {
        if !self.is_known.load(Ordering::Relaxed) || !self.is_captured()? {
            return Ok(());
        }
        Err(OwnedStream::refusal(operation))
    }

    /// The error of an operation on a stream that is captured into a graph.
    pub fn refusal(operation: &'static str) -> Error {
        let problem = "the stream is being captured into a graph, which our work cannot be part of";
        Error::invalid(operation, problem)
    }

    /// The runtime's handle of the stream.
    pub fn raw(&self) -> RawStream {
        self.raw
    }

    /// The driver that made the stream.
    pub fn driver(&self) -> &SharedDriver {
        &self.driver
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

    /// Blocks until the stream's work has passed. None of it runs any more, even if this fails.
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
        if let Some((spares, priority)) = &self.home {
            spares.give(self, *priority);
        }
    }
}
