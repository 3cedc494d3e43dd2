//! Events: when work has passed, and what came of it.
//!
//! An [`Event`] is a point in a stream. Besides having passed or not, it has an outcome: kernels put errors that only the
//! data shows (an index out of bounds) into device memory, a copy of which is looked at once the event has passed; an
//! event whose inputs failed has failed too. So an error surfaces at the first synchronisation after it, wherever that is.

use std::ffi::c_void;
use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;

use super::core::Core;
use super::handles::{OwnedEvent, OwnedStream};
use super::lock::lock;
use super::sync::Mutex;
use super::sync::atomic::{AtomicBool, Ordering};
use crate::array::{Array, Ready};
use crate::{Error, Result};

/// The number of every device's own stream, which is none of those that passes run on.
pub(super) const SERVICE: u64 = u64::MAX;

/// Looks at what kernels have reported, once their work has passed.
pub(crate) type Check = Box<dyn FnOnce() -> Result<()> + Send>;

/// A point in one of our streams. A cheap handle.
#[derive(Clone)]
pub(crate) struct Event(Arc<Inner>);

struct Inner {
    core: Arc<Core>,
    /// Taken out only when dropped, for the next one who needs an event.
    native: Option<OwnedEvent>,
    stream: u64,
    recorded: AtomicBool,
    passed: AtomicBool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    check: Option<Check>,
    /// What the check may look at. Let go of behind the lock: a producer's release may call anything.
    kept: Vec<Array>,
    parents: Vec<Event>,
    outcome: Option<Result<()>>,
}

impl Event {
    /// An event that is yet to be recorded, on stream number `stream`.
    pub fn new(core: &Arc<Core>, stream: u64) -> Result<Event> {
        Ok(Event(Arc::new(Inner {
            native: Some(core.take_event()?),
            core: core.clone(),
            stream,
            recorded: AtomicBool::new(false),
            passed: AtomicBool::new(false),
            state: Mutex::default(),
        })))
    }

    fn native(&self) -> &OwnedEvent {
        self.0.native.as_ref().expect("there until dropped")
    }

    /// The GPU that it is an event of.
    pub fn core(&self) -> &Arc<Core> {
        &self.0.core
    }

    /// The number of its stream.
    pub fn stream(&self) -> u64 {
        self.0.stream
    }

    /// What decides the outcome besides the device: the events of what the work read, and a look at its reports, for which
    /// the arrays are kept.
    pub fn depends_on(&self, parents: Vec<Event>, check: Option<Check>, kept: Vec<Array>) {
        let mut state = lock(&self.0.state);
        state.parents = parents.into_iter().filter(Event::may_fail).collect();
        (state.check, state.kept) = (check, kept);
    }

    /// The work has failed. What it would have been asked is let go of by [`Event::outcome`] and not here, where callers
    /// hold the locks of what that may come to: the pool's, say.
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

    /// Records it on the stream. Where that fails the stream is drained instead, so that the event has passed either way.
    pub fn record(&self, stream: &OwnedStream) -> Result<()> {
        let recorded = stream.record(self.native());
        if let Err(failure) = &recorded {
            let _ = stream.synchronise();
            self.fail(failure.clone());
            self.0.passed.store(true, Ordering::Release);
        }
        self.0.recorded.store(true, Ordering::Release);
        recorded
    }

    /// Whether the work has passed, with whatever outcome.
    pub fn has_passed(&self) -> bool {
        if self.0.passed.load(Ordering::Acquire) {
            return true;
        }
        if !self.0.recorded.load(Ordering::Acquire) {
            return false;
        }
        // Where the runtime cannot say, waiting makes it true; see `Driver::synchronise_event`.
        let passed = self.native().query().unwrap_or_else(|_| {
            if let Err(failure) = self.native().synchronise() {
                self.fail(failure);
            }
            true
        });
        self.0.passed.fetch_or(passed, Ordering::AcqRel);
        passed
    }

    /// Makes further work of the stream wait for it.
    pub fn hold_back(&self, stream: &OwnedStream) -> Result<()> {
        if self.0.passed.load(Ordering::Acquire) {
            return Ok(());
        }
        stream.wait(self.native())
    }

    /// What came of work that has passed.
    pub fn outcome(&self) -> Result<()> {
        // The lock is held meanwhile, so that a second caller gets the same answer; parents are older, never circular.
        let mut state = lock(&self.0.state);
        let (parents, kept) = (std::mem::take(&mut state.parents), std::mem::take(&mut state.kept));
        let mut check = state.check.take();
        let outcome = state.outcome.get_or_insert_with(|| {
            let inherited = parents.iter().try_for_each(Event::outcome);
            inherited.and_then(|()| check.take().map_or(Ok(()), |check| check()))
        });
        let outcome = outcome.clone();
        drop(state);
        // Also where nobody looks: a check may keep what keeps this event.
        drop((parents, kept, check));
        outcome
    }
}

impl Ready for Event {
    fn is_ready(&self) -> Result<bool> {
        if !self.0.passed.load(Ordering::Acquire) {
            if !self.0.recorded.load(Ordering::Acquire) || !self.native().query()? {
                return Ok(false);
            }
            self.0.passed.store(true, Ordering::Release);
        }
        self.0.core.retire();
        self.outcome().map(|()| true)
    }

    fn wait(&self) -> Result<()> {
        if !self.0.passed.load(Ordering::Acquire) {
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
            self.core.give_event(native);
        }
    }
}
