//! What everything on one GPU shares: its driver, a stream of our own, spare events, loaded entries, and what must be kept
//! until work has passed. It knows neither events nor memory of ours: those are made over it.

use std::collections::{HashMap, VecDeque};
use std::marker::PhantomData;
use std::sync::{Arc, OnceLock, Weak};

use super::driver::{Before, RawEntry, Takes};
use super::fork;
use super::handles::{OwnedEvent, OwnedStream, SharedDriver, Witness, entry, error, takes};
use super::lock::lock;
use super::released::{Fenced, Released, fence, let_go_late};
use super::sync::Mutex;
use super::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use super::wakes::Wakes;
use crate::array::Place;
use crate::{Error, Result};

/// One GPU's runtime.
pub(crate) struct Core {
    driver: SharedDriver,
    service: Arc<OwnedStream>,
    events: Mutex<Vec<OwnedEvent>>,
    entries: Mutex<HashMap<&'static str, RawEntry>>,
    held: Mutex<HashMap<u64, VecDeque<Box<dyn Held>>>>,
    released: Mutex<Consumers>,
    /// Whether memory that consumers let go of is kept until their work has passed.
    export_fence: AtomicBool,
    synchronisations: AtomicU64,
    wakes: Wakes,
    /// Shown every launch, for diagnosis.
    witness: OnceLock<Arc<dyn Witness>>,
    /// The process that opened it.
    process: u32,
}

/// Memory that consumers have let go of and that no event is behind yet, and the streams they may read on.
#[derive(Default)]
struct Consumers {
    released: Vec<Released>,
    /// Streams of the caller's that were wrapped, some of them still held.
    wrapped: Vec<Weak<OwnedStream>>,
    /// The device is gone, and no operation follows.
    closed: bool,
}

/// Things that work on a stream uses, and that are dropped once it has passed.
pub(super) trait Held: Send {
    /// Whether the work has passed.
    fn has_passed(&self) -> bool;
    /// Blocks until it has.
    fn wait(&self);
    /// Settles what came of the work, while what it used is still there.
    fn settle(&self);
}

/// Puts back what the thread had, such as another device that was current, when it is dropped.
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
    /// The runtime behind a driver.
    pub(super) fn new(driver: SharedDriver) -> Result<Arc<Core>> {
        let service = Arc::new(OwnedStream::create(&driver, 0)?);
        Ok(Arc::new(Core {
            service,
            events: Mutex::default(),
            entries: Mutex::default(),
            held: Mutex::default(),
            released: Mutex::default(),
            export_fence: AtomicBool::new(true),
            synchronisations: AtomicU64::new(0),
            wakes: Wakes::default(),
            witness: OnceLock::new(),
            process: fork::generation(),
            driver,
        }))
    }

    /// The runtime's functions.
    pub fn driver(&self) -> &SharedDriver {
        &self.driver
    }

    /// Makes the device current on the calling thread until what this returns is dropped. Calls make sure of that themselves;
    /// this saves those of an operation from doing so one by one.
    pub fn enter(&self) -> Result<Entered<'_>> {
        if self.is_parents() {
            let reason = "it was opened before this process was forked".to_owned();
            return Err(Error::NoDevice { device: self.place().device_type, reason });
        }
        let before = self.driver.enter().map_err(|failure| error(&self.driver, failure))?;
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

    /// Blocks until the runtime has the memory again that was given back so far.
    pub fn await_frees(&self) {
        if !self.is_parents() {
            self.count_synchronisation();
            // A failure shows in what the caller tries next, too.
            let _ = self.service.synchronise();
            let _ = self.driver.trim();
        }
    }

    /// Who is shown every launch.
    pub fn witness(&self) -> Option<&dyn Witness> {
        self.witness.get().map(|witness| &**witness)
    }

    /// Has somebody shown every launch from now on; the first who asks for it.
    pub fn set_witness(&self, witness: Arc<dyn Witness>) {
        let _ = self.witness.set(witness);
    }

    /// The thread that wakes tasks which wait for its work.
    pub fn wakes(&self) -> &Wakes {
        &self.wakes
    }

    /// A spare event, or a new one.
    pub fn take_event(&self) -> Result<OwnedEvent> {
        let spare = lock(&self.events).pop();
        spare.map_or_else(|| OwnedEvent::create(&self.driver), Ok)
    }

    /// Takes an event back that will be neither recorded nor waited for any more. Waits that have begun are not affected.
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

    /// What a lane of an entry takes, which is loaded; `None` where nobody knows.
    pub fn takes(&self, family: &'static str, name: &'static str) -> Result<Option<Takes>> {
        takes(&self.driver, self.entry(family, name)?)
    }

    /// Counts a call that may block the host until the device has come somewhere.
    pub fn count_synchronisation(&self) {
        self.synchronisations.fetch_add(1, Ordering::Relaxed);
    }

    /// How often that was.
    pub fn synchronisations(&self) -> u64 {
        self.synchronisations.load(Ordering::Relaxed)
    }

    /// Keeps things until the work on stream number `stream` that uses them has passed. Some later call drops them, on
    /// whatever thread: see [`Core::retire`].
    pub(super) fn hold(&self, stream: u64, held: Box<dyn Held>) {
        lock(&self.held).entry(stream).or_default().push_back(held);
    }

    /// Whether what consumers let go of is kept until their work has passed.
    pub fn set_export_fence(&self, kept: bool) {
        self.export_fence.store(kept, Ordering::Relaxed);
    }

    /// A consumer has let go of memory of this device's.
    pub(super) fn let_go(&self, released: Released) {
        // Nothing runs in a child, which must not ask the runtime for anything either.
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

    /// Puts events behind what consumers have let go of, so that it is dropped once their work has passed.
    fn fence(&self) {
        let (released, wrapped) = {
            let mut consumers = lock(&self.released);
            if consumers.released.is_empty() {
                return;
            }
            (std::mem::take(&mut consumers.released), consumers.wrapped.clone())
        };
        let (fenced, unfenced) = fence(&self.driver, &wrapped, released);
        for fenced in fenced {
            self.hold(fenced.number(), Box::new(fenced));
        }
        lock(&self.released).released.extend(unfenced);
    }

    /// The caller has wrapped a stream, and promises it for as long as he holds that.
    pub(super) fn wrapped(&self, stream: &Arc<OwnedStream>) {
        let mut consumers = lock(&self.released);
        consumers.wrapped.retain(|known| known.strong_count() > 0);
        consumers.wrapped.push(Arc::downgrade(stream));
    }

    /// The device is gone: what is let go of from now on is no longer kept for later.
    pub fn close(&self) {
        let released = {
            let mut consumers = lock(&self.released);
            consumers.closed = true;
            std::mem::take(&mut consumers.released)
        };
        drop(released);
    }

    /// Drops everything that is kept, whether its work has passed or not: for tests, which must notice.
    #[cfg(test)]
    pub fn let_go_too_early(&self) {
        lock(&self.held).clear();
    }

    /// Drops what was kept for work that has passed. Does not block.
    pub fn retire(&self) {
        self.fence();
        let mut passed = vec![];
        {
            // Another thread that holds the lock is doing this already.
            let Ok(mut held) = self.held.try_lock() else { return };
            held.retain(|_, queue| {
                while queue.front().is_some_and(|first| first.has_passed()) {
                    passed.extend(queue.pop_front());
                }
                !queue.is_empty()
            });
        }
        // Outside of the lock: a producer's release may call anything.
        release(passed);
    }

    /// Blocks until all work that something is kept for has passed, and drops that. Whether there was any.
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
