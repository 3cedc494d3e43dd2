//! A GPU: its [`Core`], and its pools of memory.

use std::ops::Deref;
use std::sync::Arc;

use super::core::{Core, Held};
use super::driver::RawEntry;
use super::event::Event;
use super::handles::{SharedDriver, Source, read_back};
use super::pool::DevicePool;
use super::staging::{Staged, Staging};
use crate::array::{Buffer, DeviceArray, Ready};
use crate::{Error, Result};

/// A GPU's core and its memory pools, as every handle of the GPU shares them.
pub(crate) struct Gpu {
    core: Arc<Core>,
    pool: Arc<DevicePool>,
    staging: Arc<Staging>,
}

impl Deref for Gpu {
    type Target = Core;

    fn deref(&self) -> &Core {
        &self.core
    }
}

/// Something that work on a stream uses and that must outlive the work. It is only held to be dropped.
#[allow(dead_code)]
pub(crate) enum Kept {
    Array(DeviceArray),
    Buffer(Buffer),
    Staged(Staged),
    Shared(Arc<Staged>),
}

/// Things that are kept until an event has passed.
struct KeptUntil {
    until: Event,
    _kept: Vec<Kept>,
}

impl Held for KeptUntil {
    fn has_passed(&self) -> bool {
        self.until.has_passed()
    }

    fn wait(&self) {
        let _ = self.until.wait();
        let _ = self.until.has_passed();
    }

    fn settle(&self) {
        let _ = self.until.outcome();
    }
}

impl Gpu {
    /// Makes a GPU over a driver; its pool keeps at most `keep` unused bytes.
    pub(super) fn new(driver: SharedDriver, source: Source, keep: Option<usize>) -> Result<Arc<Gpu>> {
        let core = Core::new(driver)?;
        let (pool, staging) = (DevicePool::new(&core, source, keep), Staging::new(&core));
        Ok(Arc::new(Gpu { core, pool, staging }))
    }

    pub fn core(&self) -> &Arc<Core> {
        &self.core
    }

    pub fn pool(&self) -> &Arc<DevicePool> {
        &self.pool
    }

    pub fn staging(&self) -> &Arc<Staging> {
        &self.staging
    }

    /// The loaded form of an entry. If there is no memory to load it, unused memory is released for it.
    pub fn entry(&self, family: &'static str, name: &'static str) -> Result<RawEntry> {
        match self.core.entry(family, name) {
            Err(Error::OutOfMemory { .. }) if self.pool.release() => self.core.entry(family, name),
            loaded => loaded,
        }
    }

    /// Keeps things until the event, on stream number `stream`, has passed: see [`Core::retire`].
    pub fn keep(&self, stream: u64, until: &Event, kept: Vec<Kept>) {
        self.hold(stream, Box::new(KeptUntil { until: until.clone(), _kept: kept }));
    }
}

/// Reads a few bytes that no work writes any more, for an error's message. Blocks for a copy on a stream of
/// its own, so that it waits for no other work.
pub(crate) fn fetch(gpu: &Gpu, from: &Buffer, bytes: usize) -> Result<Vec<u8>> {
    gpu.count_synchronisation();
    read_back(gpu.streams(), from, bytes)
}
