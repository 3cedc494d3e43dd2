//! Events: whether work has passed, and its outcome.
//!
//! An [`Event`] is a point in a stream. It has passed or not, and it has an outcome: kernels write errors
//! that only the data shows (an index out of bounds) into device memory, and the host reads a copy of them
//! once the event has passed. An event whose inputs failed has failed too. So an error surfaces at the first
//! synchronisation after it, whichever call that is.

use std::ffi::c_void;
use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;

use super::core::Core;
use super::handles::{OwnedEvent, OwnedStream, is_of_a_capture};
use super::lock::lock;
use super::sync::Mutex;
use super::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::array::{DeviceArray, Ready};
use crate::{Error, Result};

/// The number of every device's service stream. No stream that passes run on has it.
pub(super) const SERVICE: u64 = u64::MAX;

/// Reads the errors that kernels have reported, once their work has passed.
pub(crate) type Check = Box<dyn FnOnce() -> Result<()> + Send>;

/// A point in one of our streams. A cheap handle.
#[derive(Clone)]
pub(crate) struct Event(Arc<Inner>);

struct Inner {
    core: Arc<Core>,
    /// Taken out only in `drop`, which returns it to the core's spare events.
    native: Option<OwnedEvent>,
    stream: u64,
    /// Its number among the device's recorded events; 0 until it is recorded.
    recorded: AtomicU64,
    passed: AtomicBool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    check: Option<Check>,
    /// The arrays that the check may read. They are dropped after the lock is released, because a producer's
    /// release may call anything.
    kept: Vec<DeviceArray>,
    parents: Vec<Event>,
    outcome: Option<Result<()>>,
}

impl Event {
    /// Makes an event that is not recorded yet, for stream number `stream`.
    pub fn new(core: &Arc<Core>, stream: u64) -> Result<Event> {
        Ok(Event(Arc::new(Inner {
            native: Some(core.take_event()?),
            core: core.clone(),
            stream,
            recorded: AtomicU64::new(0),
            passed: AtomicBool::new(false),
            state: Mutex::default(),
        })))
    }

    fn native(&self) -> &OwnedEvent {
        self.0.native.as_ref().expect("there until dropped")
    }

    /// The GPU on which it is recorded.
    pub fn core(&self) -> &Arc<Core> {
        &self.0.core
    }

    /// The number of its stream.
    pub fn stream(&self) -> u64 {
        self.0.stream
    }

    /// Sets what the outcome depends on, besides the device: the events of the work's inputs, and a check of
    /// the errors that its kernels report. `kept` are the arrays that the check may read.
    pub fn depends_on(&self, parents: Vec<Event>, check: Option<Check>, kept: Vec<DeviceArray>) {
        let mut state = lock(&self.0.state);
        state.parents = parents.into_iter().filter(Event::may_fail).collect();
        (state.check, state.kept) = (check, kept);
    }

    /// Marks the work as failed. [`Event::outcome`] drops the check and its arrays; this does not, because
    /// its callers hold locks (the pool's, for example) that such a drop may take.
    fn fail(&self, failure: Error) {
        lock(&self.0.state).outcome.get_or_insert(Err(failure));
    }

    /// Whether the outcome is not yet known to be good.
    fn may_fail(&self) -> bool {
        let state = lock(&self.0.state);
        match &state.outcome {
            Some(outcome) => outcome.is_err(),
            None => state.check.is_some() || !state.parents.is_empty(),
        }
    }

    /// Records it on the stream. If that fails, drains the stream instead, so that the event has passed in
    /// either case.
    pub fn record(&self, stream: &OwnedStream) -> Result<()> {
        let recorded = stream.record(self.native());
        if let Err(failure) = &recorded {
            let _ = stream.synchronise();
            self.fail(failure.clone());
            self.0.passed.store(true, Ordering::Release);
        }
        self.0.recorded.store(self.0.core.next_recording(), Ordering::Release);
        recorded
    }

    /// Marks work that is not queued any more as failed, and the event as passed without a recording.
    pub fn give_up(&self, failure: Error) {
        self.fail(failure);
        self.0.passed.store(true, Ordering::Release);
    }

    /// Orders the events of a device by when they were recorded.
    pub fn recording(&self) -> u64 {
        self.0.recorded.load(Ordering::Acquire)
    }

    /// Whether the work has passed, as far as is known without asking the driver.
    pub fn is_known_to_have_passed(&self) -> bool {
        self.0.passed.load(Ordering::Acquire)
    }

    /// Whether the work has passed, successfully or not.
    pub fn has_passed(&self) -> bool {
        if self.0.passed.load(Ordering::Acquire) {
            return true;
        }
        if self.recording() == 0 {
            return false;
        }
        let passed = match self.native().query() {
            Ok(passed) => passed,
            Err(failure) if is_of_a_capture(&failure) => false,
            // If the runtime cannot answer, it has passed after a wait; see `Driver::synchronise_event`.
            Err(_) => {
                if let Err(failure) = self.native().synchronise() {
                    self.fail(failure);
                }
                true
            }
        };
        self.0.passed.fetch_or(passed, Ordering::AcqRel);
        passed
    }

    /// Makes further work of the stream wait for it.
    pub fn hold_back(&self, stream: &OwnedStream) -> Result<()> {
        if self.0.passed.load(Ordering::Acquire) {
            return Ok(());
        }
        self.0.core.refuse_fork()?;
        stream.wait(self.native())
    }

    /// The outcome of work that has passed.
    pub fn outcome(&self) -> Result<()> {
        // The lock is held during the check, so that a second caller gets the same answer. Parents are older,
        // so they form no cycle.
        let mut state = lock(&self.0.state);
        let (parents, kept) = (std::mem::take(&mut state.parents), std::mem::take(&mut state.kept));
        let mut check = state.check.take();
        let outcome = state.outcome.get_or_insert_with(|| {
            let inherited = parents.iter().try_for_each(Event::outcome);
            inherited.and_then(|()| check.take().map_or(Ok(()), |check| check()))
        });
        let outcome = outcome.clone();
        drop(state);
        // Dropped also if the check did not run: a check may keep things that keep this event alive.
        drop((parents, kept, check));
        outcome
    }
}

impl Ready for Event {
    fn is_ready(&self) -> Result<bool> {
        if !self.0.passed.load(Ordering::Acquire) {
            self.0.core.refuse_fork()?;
            if self.recording() == 0 || !self.native().query()? {
                return Ok(false);
            }
            self.0.passed.store(true, Ordering::Release);
        }
        self.0.core.retire();
        self.outcome().map(|()| true)
    }

    fn wait(&self) -> Result<()> {
        if !self.0.passed.load(Ordering::Acquire) {
            self.0.core.refuse_fork()?;
            self.0.core.count_synchronisation();
            self.native().synchronise()?;
            self.0.passed.store(true, Ordering::Release);
        }
        self.0.core.retire();
        self.outcome()
    }

    fn sync_event(&self) -> Option<NonNull<c_void>> {
        // The handle does not move while any clone of this lives.
        Some(NonNull::from(self.native().raw()).cast())
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Event({}, {:#x})", self.0.core.place(), self.native().raw().0)
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if let Some(native) = self.native.take() {
            match self.core.is_parents() {
                true => std::mem::forget(native),
                false => self.core.give_event(native),
            }
        }
    }
}
