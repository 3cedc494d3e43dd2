//! The state that everything on one GPU shares: its driver, the service stream, spare events, loaded entries,
//! and things to keep until work has passed. Events and memory pools are built on it, so it knows neither.

use std::collections::{HashMap, VecDeque};
use std::marker::PhantomData;
use std::sync::{Arc, OnceLock};

use super::driver::{Before, RawEntry, Takes};
use super::fork;
use super::handles::{OwnedEvent, OwnedStream, SharedDriver, Spares, Witness, entry, error, takes};
use super::lock::lock;
use super::released::{Fenced, Released, fence, let_go_late};
use super::sync::Mutex;
use super::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use super::wakes::Wakes;
use crate::array::Place;
use crate::{Error, Result};

/// A GPU's driver and the state over it that pools, events and streams share.
pub(crate) struct Core {
    driver: SharedDriver,
    streams: Arc<Spares>,
    service: Arc<OwnedStream>,
    events: Mutex<Vec<OwnedEvent>>,
    entries: Mutex<HashMap<&'static str, RawEntry>>,
    held: Mutex<HashMap<u64, VecDeque<Box<dyn Held>>>>,
    released: Mutex<Consumers>,
    /// Whether memory that consumers have released is kept until their work has passed.
    export_fence: AtomicBool,
    synchronisations: AtomicU64,
    /// The number of events recorded so far.
    recordings: AtomicU64,
    wakes: Wakes,
    /// Shown every launch, for diagnosis.
    witness: OnceLock<Arc<dyn Witness>>,
    /// The fork generation of the process that opened it.
    process: u32,
}

/// Memory that consumers have released, with no event recorded after their work yet.
#[derive(Default)]
struct Consumers {
    released: Vec<Released>,
    /// Whether the device is gone, so that no operation follows.
    closed: bool,
}

/// Things that work on a stream uses. They are dropped once it has passed.
pub(super) trait Held: Send {
    /// Whether the work has passed.
    fn has_passed(&self) -> bool;
    /// Blocks until it has.
    fn wait(&self);
    /// Determines the work's outcome while the things that it used still exist.
    fn settle(&self);
}

/// Restores the thread's state (another current device, for example) when it is dropped.
pub(crate) struct Entered<'a>(&'a Core, Before, PhantomData<*const ()>);

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        self.0.driver.leave(self.1);
    }
}

impl Held for Fenced {
    fn has_passed(&self) -> bool {
        Fenced::has_passed(self)
    }

    fn wait(&self) {
        Fenced::wait(self);
    }

    fn settle(&self) {}
}

impl Core {
    /// Makes the shared state of a driver's GPU.
    pub(super) fn new(driver: SharedDriver) -> Result<Arc<Core>> {
        let streams = Spares::new(&driver);
        let service = Arc::new(OwnedStream::create(&streams, 0)?);
        Ok(Arc::new(Core {
            streams,
            service,
            events: Mutex::default(),
            entries: Mutex::default(),
            held: Mutex::default(),
            released: Mutex::default(),
            export_fence: AtomicBool::new(true),
            synchronisations: AtomicU64::new(0),
            recordings: AtomicU64::new(0),
            wakes: Wakes::default(),
            witness: OnceLock::new(),
            process: fork::generation(),
            driver,
        }))
    }

    /// The driver, through which all calls into the runtime go.
    pub fn driver(&self) -> &SharedDriver {
        &self.driver
    }

    /// Makes the device current on the calling thread until the result is dropped. Each call makes it current
    /// by itself if need be; this saves an operation's calls from doing so one by one.
    pub fn enter(&self) -> Result<Entered<'_>> {
        self.refuse_fork()?;
        let before = self.driver.enter().map_err(|failure| error(&self.driver, failure))?;
        Ok(Entered(self, before, PhantomData))
    }

    /// Returns [`Error::NoDevice`] in a process that was forked after the device was opened.
    pub fn refuse_fork(&self) -> Result<()> {
        match self.is_parents() {
            true => Err(Error::NoDevice {
                device: self.place().device_type,
                reason: "it was opened before this process was forked".to_owned(),
            }),
            false => Ok(()),
        }
    }

    /// Returns the number of the next event that is recorded. Numbers begin at 1.
    pub fn next_recording(&self) -> u64 {
        self.recordings.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Whether this process was forked after the device was opened. The runtime does not work then, and no
    /// work ever passes.
    pub fn is_parents(&self) -> bool {
        self.process != fork::generation()
    }

    /// The device's type and number.
    pub fn place(&self) -> Place {
        self.driver.place()
    }

    /// The streams that have no handle.
    pub fn streams(&self) -> &Arc<Spares> {
        &self.streams
    }

    /// The service stream, on which memory is freed, so that a caller's stream is never used after a call.
    pub fn service(&self) -> &Arc<OwnedStream> {
        &self.service
    }

    /// Blocks until the runtime has received all memory freed so far.
    pub fn await_frees(&self) {
        if !self.is_parents() {
            self.count_synchronisation();
            // The caller's next call reports a failure, too.
            let _ = self.service.synchronise();
            let _ = self.driver.trim();
        }
    }

    /// The witness that sees every launch; `None` if none is set.
    pub fn witness(&self) -> Option<&dyn Witness> {
        self.witness.get().map(|witness| &**witness)
    }

    /// Sets the witness that sees every launch from now on. Later calls have no effect.
    pub fn set_witness(&self, witness: Arc<dyn Witness>) {
        let _ = self.witness.set(witness);
    }

    /// The thread that wakes tasks waiting for the device's work.
    pub fn wakes(&self) -> &Wakes {
        &self.wakes
    }

    /// A spare event, or a new one.
    pub fn take_event(&self) -> Result<OwnedEvent> {
        self.refuse_fork()?;
        let spare = lock(&self.events).pop();
        spare.map_or_else(|| OwnedEvent::create(&self.driver), Ok)
    }

    /// Returns an event that will be neither recorded nor waited for any more. Waits that have begun are not
    /// affected.
    pub fn give_event(&self, event: OwnedEvent) {
        lock(&self.events).push(event);
    }

    /// The loaded form of an entry, loaded at its first use.
    pub fn entry(&self, family: &'static str, name: &'static str) -> Result<RawEntry> {
        if let Some(entry) = lock(&self.entries).get(name) {
            return Ok(*entry);
        }
        let loaded = entry(&self.driver, family, name)?;
        lock(&self.entries).insert(name, loaded);
        Ok(loaded)
    }

    /// Loads an entry, and returns the resources that it takes per lane; `None` if the runtime does not
    /// compile entries.
    pub fn takes(&self, family: &'static str, name: &'static str) -> Result<Option<Takes>> {
        takes(&self.driver, self.entry(family, name)?)
    }

    /// Counts a call that may block the host until work on the device has passed.
    pub fn count_synchronisation(&self) {
        self.synchronisations.fetch_add(1, Ordering::Relaxed);
    }

    /// The number of calls counted by [`Core::count_synchronisation`].
    pub fn synchronisations(&self) -> u64 {
        self.synchronisations.load(Ordering::Relaxed)
    }

    /// Keeps things until the work on stream number `stream` that uses them has passed. A later call drops
    /// them, on any thread: see [`Core::retire`].
    pub(super) fn hold(&self, stream: u64, held: Box<dyn Held>) {
        lock(&self.held).entry(stream).or_default().push_back(held);
    }

    /// Sets whether memory that consumers have released is kept until their work has passed.
    pub fn set_export_fence(&self, kept: bool) {
        self.export_fence.store(kept, Ordering::Relaxed);
    }

    /// Takes an array that its consumer has released.
    pub(super) fn let_go(&self, released: Released) {
        // Nothing runs in a forked child, which must not call the runtime either.
        if !self.export_fence.load(Ordering::Relaxed) || self.is_parents() {
            return;
        }
        let mut consumers = lock(&self.released);
        if !consumers.closed {
            return consumers.released.push(released);
        }
        drop(consumers);
        let_go_late(&self.service, released);
    }

    /// Records events on the streams of consumers that have released memory, so that it is dropped once their
    /// work has passed.
    fn fence(&self) {
        let released = std::mem::take(&mut lock(&self.released).released);
        self.fence_these(released);
    }

    fn fence_these(&self, released: Vec<Released>) {
        if released.is_empty() {
            return;
        }
        let (fenced, unfenced) = fence(&self.driver, released);
        let mut consumers = lock(&self.released);
        if consumers.closed {
            // The device was closed meanwhile, so no operation looks at what is held.
            drop(consumers);
            fenced.into_iter().for_each(|fenced| fenced.leave_to(&self.service));
            return unfenced.into_iter().for_each(|released| let_go_late(&self.service, released));
        }
        consumers.released.extend(unfenced);
        for fenced in fenced {
            self.hold(fenced.number(), Box::new(fenced));
        }
    }

    /// Marks the device as gone: memory released from now on is no longer kept for a later operation.
    pub fn close(&self) {
        let released = {
            let mut consumers = lock(&self.released);
            consumers.closed = true;
            std::mem::take(&mut consumers.released)
        };
        released.into_iter().for_each(|released| let_go_late(&self.service, released));
    }

    /// Drops everything that is kept, even if its work has not passed: for tests, which must notice.
    #[cfg(test)]
    pub fn let_go_too_early(&self) {
        lock(&self.held).clear();
    }

    /// Drops things that were kept for work that has passed. Does not block.
    pub fn retire(&self) {
        // No work passes in a forked child, and the producers of what it uses are in the parent.
        if self.is_parents() {
            return;
        }
        self.fence();
        let mut passed = vec![];
        {
            // A thread that holds the lock is doing this already.
            let Ok(mut held) = self.held.try_lock() else { return };
            held.retain(|_, queue| {
                while queue.front().is_some_and(|first| first.has_passed()) {
                    passed.extend(queue.pop_front());
                }
                !queue.is_empty()
            });
        }
        // Outside the lock, because a producer's release may call anything.
        release(passed);
    }

    /// Blocks until all work for which things are kept has passed, and drops them. Returns whether any were
    /// kept.
    pub fn drain(&self) -> bool {
        if self.is_parents() {
            return false;
        }
        self.fence();
        let all = std::mem::take(&mut *lock(&self.held));
        let all: Vec<Box<dyn Held>> = all.into_values().flatten().collect();
        let any = !all.is_empty();
        for held in all.iter().filter(|held| !held.has_passed()) {
            self.count_synchronisation();
            held.wait();
        }
        release(all);
        any
    }
}

fn release(passed: Vec<Box<dyn Held>>) {
    for held in passed {
        held.settle();
    }
}

#[cfg(test)]
mod tests;
