//! The safe side of the driver seam: owned streams, events and memory. A handle that exists is live, so the
//! calls that need only live handles are safe here. `pass` makes the unsafe calls, which queue work on
//! memory.

#![allow(unsafe_code)]

mod memory;
mod streams;
mod witness;

use std::sync::Arc;

use super::driver::{Driver, Failure, LoadFailure, RawEntry, RawEvent, Takes};
use crate::{Error, Result};
pub use memory::Allocator;
pub(crate) use memory::{Allocation, Pinned, Source, read_back};
pub(crate) use streams::{OwnedStream, Spares};
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

/// Whether a runtime cannot answer because the stream of an event is being captured into a graph: HIP looked
/// at the stream until 2026 (ROCm/rocm-systems 3169). The work may not have passed, and a wait fails at once.
pub(super) fn is_of_a_capture(failure: &Error) -> bool {
    // The codes of captures, which CUDA and HIP share.
    matches!(failure, Error::Driver { code: 900..=908, .. })
}
