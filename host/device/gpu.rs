//! What all handles of one GPU share: its driver, a stream of our own, spare events, loaded entries, the pools, and what
//! must be kept until work has passed.

use std::collections::{HashMap, VecDeque};
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use super::driver::RawEntry;
use super::emu::testing::Mutation;
use super::event::Event;
use super::fork;
use super::handles::{OwnedEvent, OwnedStream, SharedDriver, Source};
use super::lock;
use super::pool::DevicePool;
use super::staging::{Staged, Staging};
use crate::array::{Array, Buffer, Place, Ready};
use crate::{Error, Result};

/// One GPU.
pub(crate) struct Gpu {
    driver: SharedDriver,
    service: Arc<OwnedStream>,
    pool: DevicePool,
    staging: Staging,
    events: Mutex<Vec<OwnedEvent>>,
    entries: Mutex<HashMap<&'static str, RawEntry>>,
    held: Mutex<HashMap<u64, VecDeque<Held>>>,
    synchronisations: AtomicU64,
    switches: Switches,
    /// The process that opened it.
    process: u32,
}

/// What puts back what was current on its thread.
pub(crate) struct Entered<'a>(&'a Gpu, Option<usize>, PhantomData<*const ()>);

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        if let Some(before) = self.1 {
            self.0.driver.leave(before);
        }
    }
}

/// Something that work on a stream uses and that must outlive it: held only to be dropped.
#[allow(dead_code)]
pub(crate) enum Kept {
    Array(Array),
    Buffer(Buffer),
    Staged(Staged),
}

struct Held {
    until: Event,
    kept: Vec<Kept>,
}

impl Gpu {
    /// A GPU behind a driver; its pool keeps at most `keep` unused bytes.
    pub(super) fn new(driver: SharedDriver, source: Source, keep: Option<usize>) -> Result<Arc<Gpu>> {
        let service = Arc::new(OwnedStream::create(&driver, 0)?);
        Ok(Arc::new(Gpu {
            pool: DevicePool::new(source, keep),
            staging: Staging::default(),
            service,
            events: Mutex::default(),
            entries: Mutex::default(),
            held: Mutex::default(),
            synchronisations: AtomicU64::new(0),
            switches: Switches::default(),
            process: fork::generation(),
            driver,
        }))
    }

    /// Whose runtime.
    pub fn driver(&self) -> &SharedDriver {
        &self.driver
    }

    /// Makes it current on the calling thread until what this returns is dropped. Calls make sure of that themselves; this
    /// saves those of an operation from doing so one by one.
    pub fn enter(&self) -> Result<Entered<'_>> {
        if self.is_parents() {
            let reason = "it was opened before this process was forked".to_owned();
            return Err(Error::NoDevice { device: self.place().device_type, reason });
        }
        let before = self.driver.enter().map_err(|failure| super::handles::error(&self.driver, failure))?;
        Ok(Entered(self, before, PhantomData))
    }

    /// Whether this process was forked after it was opened: no runtime works then, and no work ever passes.
    fn is_parents(&self) -> bool {
        self.process != fork::generation()
    }

    /// Which device.
    pub fn place(&self) -> Place {
        self.driver.place()
    }

    /// Our own stream, on which memory is freed: so nothing is ever asked of a caller's stream after a call.
    pub fn service(&self) -> &Arc<OwnedStream> {
        &self.service
    }

    /// Device memory.
    pub fn pool(&self) -> &DevicePool {
        &self.pool
    }

    /// Pinned host memory.
    pub fn staging(&self) -> &Staging {
        &self.staging
    }

    /// The library's deliberate mutations.
    pub fn switches(&self) -> &Switches {
        &self.switches
    }

    /// A spare event, or a new one.
    pub fn take_event(&self) -> Result<OwnedEvent> {
        let spare = lock(&self.events).pop();
        spare.map_or_else(|| OwnedEvent::create(&self.driver), Ok)
    }

    /// Takes an event back that nobody will record or wait for any more. Who waits for it already is not affected.
    pub fn give_event(&self, event: OwnedEvent) {
        lock(&self.events).push(event);
    }

    /// The loaded form of an entry, loaded at its first use.
    pub fn entry(&self, family: &'static str, name: &'static str) -> Result<RawEntry> {
        if let Some(entry) = lock(&self.entries).get(name) {
            return Ok(*entry);
        }
        let entry = super::handles::entry(&self.driver, family, name)?;
        lock(&self.entries).insert(name, entry);
        Ok(entry)
    }

    /// Counts a call that may block the host until the device has come somewhere.
    pub fn count_synchronisation(&self) {
        self.synchronisations.fetch_add(1, Ordering::Relaxed);
    }

    /// How often that was.
    pub fn synchronisations(&self) -> u64 {
        self.synchronisations.load(Ordering::Relaxed)
    }

    /// Keeps things until the event, on stream number `stream`, has passed. Some later call lets go of them, on whatever
    /// thread: see [`Gpu::retire`].
    pub fn keep(&self, stream: u64, until: &Event, kept: Vec<Kept>) {
        if !self.switches.on(Mutation::FreeAtDrop) {
            lock(&self.held).entry(stream).or_default().push_back(Held { until: until.clone(), kept });
        }
    }

    /// Lets go of what was kept for work that has passed. Does not block.
    pub fn retire(&self) {
        let mut passed = vec![];
        {
            // Whoever holds the lock is doing this already.
            let Ok(mut held) = self.held.try_lock() else { return };
            held.retain(|_, queue| {
                while queue.front().is_some_and(|first| first.until.has_passed()) {
                    passed.extend(queue.pop_front());
                }
                !queue.is_empty()
            });
        }
        // Outside of the lock: a producer's release may call anything.
        release(passed);
    }

    /// Blocks until all work that something is kept for has passed, and lets go. Whether there was any.
    pub fn drain(&self) -> bool {
        if self.is_parents() {
            return false;
        }
        let all = std::mem::take(&mut *lock(&self.held));
        let all: Vec<Held> = all.into_values().flatten().collect();
        let any = !all.is_empty();
        for held in &all {
            if !held.until.has_passed() {
                self.count_synchronisation();
                let _ = held.until.wait();
                let _ = held.until.has_passed();
            }
        }
        release(all);
        any
    }
}

/// Settles what came of the work while its inputs are still there, then drops them.
fn release(passed: Vec<Held>) {
    for held in passed {
        let _ = held.until.outcome();
        drop(held.kept);
    }
}

/// Which mutations of the library are on: see [`Mutation`].
#[derive(Default)]
pub(crate) struct Switches(AtomicU8);

impl Switches {
    /// Whether it is.
    pub fn on(&self, mutation: Mutation) -> bool {
        self.0.load(Ordering::Relaxed) & 1 << mutation as u8 != 0
    }

    /// Turns it on or off.
    pub fn set(&self, mutation: Mutation, on: bool) {
        match on {
            true => self.0.fetch_or(1 << mutation as u8, Ordering::Relaxed),
            false => self.0.fetch_and(!(1 << mutation as u8), Ordering::Relaxed),
        };
    }
}
