//! The safe side of the driver seam: owned streams, events and memory. A handle that exists is live, so the
//! calls that need only live handles are safe here. `pass` makes the unsafe calls, which queue work on
//! memory.

#![allow(unsafe_code)]

mod memory;
mod witness;

use std::sync::Arc;

use super::driver::{Driver, Failure, LoadFailure, RawEntry, RawEvent, RawStream, Takes};
use crate::{Error, Result};
pub use memory::Allocator;
pub(crate) use memory::{Allocation, Pinned, Source, read_back};
pub(crate) use witness::witnessed;
pub use witness::{Witness, Witnessed};

/// A driver, shared by the handles that it made.
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

pub(super) fn takes(driver: &SharedDriver, loaded: RawEntry) -> Result<Option<Takes>> {
    // SAFETY: entries are never unloaded.
    unsafe { driver.takes(loaded) }.map_err(|failure| error(driver, failure))
}

/// A stream that is destroyed with this handle, unless it is the caller's.
pub(crate) struct OwnedStream {
    driver: SharedDriver,
    raw: RawStream,
    wrapped: bool,
}

impl OwnedStream {
    /// Creates a stream; lower priorities are more urgent, 0 is usual.
    pub fn create(driver: &SharedDriver, priority: i32) -> Result<OwnedStream> {
        // SAFETY: no handles are passed.
        let raw = unsafe { driver.stream(priority) }.map_err(|failure| error(driver, failure))?;
        Ok(OwnedStream { driver: driver.clone(), raw, wrapped: false })
    }

    /// Wraps a stream of the caller's, if the driver accepts the handle as one of its own.
    ///
    /// # Safety
    ///
    /// The handle must be a stream of the driver's device for as long as this lives.
    pub unsafe fn wrap(driver: &SharedDriver, raw: RawStream) -> Result<OwnedStream> {
        // SAFETY: the caller says that the handle is one; a driver that can tell looks again.
        unsafe { driver.check_stream(raw) }.map_err(|failure| error(driver, failure))?;
        let stream = OwnedStream { driver: driver.clone(), raw, wrapped: true };
        stream.refuse_capture("wrap_stream").map(|()| stream)
    }

    /// The default stream that synchronises with other libraries' blocking streams, if the runtime has one.
    pub fn legacy(driver: &SharedDriver) -> Option<OwnedStream> {
        let raw = driver.legacy_stream()?;
        Some(OwnedStream { driver: driver.clone(), raw, wrapped: true })
    }

    /// Whether the stream belongs to the caller, who destroys it.
    pub fn is_wrapped(&self) -> bool {
        self.wrapped
    }

    /// Whether work queued on it now becomes part of a graph instead of running.
    pub fn is_captured(&self) -> Result<bool> {
        // SAFETY: the handle is live.
        unsafe { self.driver.is_captured(self.raw) }.map_err(|failure| error(&self.driver, failure))
    }

    /// Refuses a stream of the caller's that is captured into a graph: we would reuse memory and events for
    /// other work while the graph goes on using them.
    pub fn refuse_capture(&self, operation: &'static str) -> Result<()> {
        if !self.wrapped || !self.is_captured()? {
            return Ok(());
        }
        Err(Error::invalid(
            operation,
            "the stream is being captured into a graph, which our work cannot be part of",
        ))
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
        if !self.wrapped {
            // SAFETY: made in `create`, and this is its only owner. A failure cannot be reported from here.
            let _ = unsafe { self.driver.destroy_stream(self.raw) };
        }
    }
}

/// An event that is destroyed with this handle.
pub(crate) struct OwnedEvent {
    driver: SharedDriver,
    raw: RawEvent,
}

impl OwnedEvent {
    /// Creates an event, which counts as passed until it is recorded.
    pub fn create(driver: &SharedDriver) -> Result<OwnedEvent> {
        // SAFETY: no handles are passed.
        let raw = unsafe { driver.event() }.map_err(|failure| error(driver, failure))?;
        Ok(OwnedEvent { driver: driver.clone(), raw })
    }

    /// The native handle, in place: a `sync_event` points to this field.
    pub fn raw(&self) -> &RawEvent {
        &self.raw
    }

    /// Whether it has passed.
    pub fn query(&self) -> Result<bool> {
        // SAFETY: the handle is live.
        unsafe { self.driver.query(self.raw) }.map_err(|failure| error(&self.driver, failure))
    }

    /// Blocks until it has passed. The work before it runs no more, even if this fails.
    pub fn synchronise(&self) -> Result<()> {
        // SAFETY: the handle is live.
        let outcome = unsafe { self.driver.synchronise_event(self.raw) };
        outcome.map_err(|failure| error(&self.driver, failure))
    }
}

impl Drop for OwnedEvent {
    fn drop(&mut self) {
        // SAFETY: made in `create`, and this is its only owner. A failure cannot be reported from here.
        let _ = unsafe { self.driver.destroy_event(self.raw) };
    }
}
