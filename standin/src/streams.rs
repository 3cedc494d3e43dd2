//! Streams and events. A stream is a queue that a thread of its own runs; who waits for an event waits for its recording
//! of that moment, whatever it is recorded for later.

use std::ffi::c_void;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use crate::{Code, Outcome, code, lock};

/// What a program has called back with its data alone.
pub type HostFunction = unsafe extern "C" fn(*mut c_void);
/// The same with the stream's handle and code.
pub type Callback = unsafe extern "C" fn(usize, Code, *mut c_void);

/// One piece of a stream's work. What it returns is the error that the stream is left with.
pub type Job = Box<dyn FnOnce() -> Outcome + Send>;

/// What a stream has to do with the legacy default stream of its device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It is that one.
    Legacy,
    /// They wait for each other.
    Blocking,
    /// Nothing.
    Free,
}

/// A stream. When its last handle is gone, what is queued still runs.
#[derive(Clone)]
pub struct Stream {
    pub device: i32,
    pub order: Kind,
    pub priority: i32,
    jobs: Sender<Job>,
    failed: Arc<Mutex<Outcome>>,
}

impl Stream {
    /// Starts its thread, which sleeps for a random time below `delay` before each job.
    pub fn start(device: i32, order: Kind, priority: i32, delay: Duration, seed: u64) -> Outcome<Stream> {
        let (jobs, queue) = channel::<Job>();
        let failed = Arc::new(Mutex::new(Ok(())));
        let (state, mut random) = (failed.clone(), seed | 1);
        let run = move || {
            for job in queue {
                if !delay.is_zero() {
                    random ^= random << 13;
                    random ^= random >> 7;
                    random ^= random << 17;
                    std::thread::sleep(delay.mul_f64((random >> 40) as f64 / (1u64 << 24) as f64));
                }
                let outcome = job();
                let mut failed = lock(&state);
                *failed = failed.and(outcome);
            }
        };
        let thread = std::thread::Builder::new().name(format!("stream of device {device}"));
        thread.spawn(run).map_err(|_| code::OUT_OF_MEMORY)?;
        Ok(Stream { device, order, priority, jobs, failed })
    }

    /// Puts a job behind all others.
    pub fn push(&self, job: impl FnOnce() -> Outcome + Send + 'static) {
        // The receiver lives until the last sender, this one, is gone.
        let _ = self.jobs.send(Box::new(job));
    }

    /// Blocks until all of now's jobs have run.
    pub fn synchronise(&self) -> Outcome {
        let recording = Arc::<Recording>::default();
        self.record(recording.clone());
        recording.wait()
    }

    /// Lets a recording pass when the stream comes to it.
    pub fn record(&self, recording: Arc<Recording>) {
        self.then(move |outcome| recording.pass(outcome));
    }

    /// Calls a function of the host, but not once the stream has failed.
    ///
    /// # Safety
    ///
    /// The function must take the data, on any thread.
    pub unsafe fn host_function(&self, function: HostFunction, data: usize) {
        self.then(move |outcome| {
            if outcome.is_ok() {
                // SAFETY: the caller's promise.
                unsafe { function(std::ptr::with_exposed_provenance_mut(data)) };
            }
        });
    }

    /// Calls a function of the host, whatever has come of the stream, with its handle and the code of that.
    ///
    /// # Safety
    ///
    /// As for [`Stream::host_function`].
    pub unsafe fn callback(&self, function: Callback, handle: usize, data: usize) {
        self.then(move |outcome| {
            let data = std::ptr::with_exposed_provenance_mut(data);
            // SAFETY: the caller's promise.
            unsafe { function(handle, outcome.err().unwrap_or(0), data) };
        });
    }

    /// Calls something with what came of all before it.
    pub fn then(&self, call: impl FnOnce(Outcome) + Send + 'static) {
        let state = self.failed.clone();
        self.push(move || {
            let outcome = *lock(&state);
            call(outcome);
            Ok(())
        });
    }
}

/// One recording of an event: a point that some stream comes to.
#[derive(Default)]
pub struct Recording {
    outcome: Mutex<Option<(Outcome, Instant)>>,
    passed: Condvar,
}

impl Recording {
    /// The stream has come to it, in this state.
    pub fn pass(&self, outcome: Outcome) {
        *lock(&self.outcome) = Some((outcome, Instant::now()));
        self.passed.notify_all();
    }

    /// Blocks until it has passed.
    pub fn wait(&self) -> Outcome {
        let mut outcome = lock(&self.outcome);
        loop {
            if let Some((outcome, _)) = *outcome {
                return outcome;
            }
            outcome = self.passed.wait(outcome).unwrap_or_else(|poisoned| poisoned.into_inner());
        }
    }

    /// What it has passed with; `NOT_READY` where it has not.
    pub fn query(&self) -> Result<(), Code> {
        self.passed_at().and_then(|(outcome, _)| outcome)
    }

    /// What it has passed with, and when.
    fn passed_at(&self) -> Result<(Outcome, Instant), Code> {
        lock(&self.outcome).ok_or(code::NOT_READY)
    }
}

/// An event.
#[derive(Clone)]
pub struct Event {
    pub device: i32,
    timed: bool,
    latest: Arc<Mutex<Arc<Recording>>>,
}

impl Event {
    /// One that was never recorded, which counts as passed.
    pub fn new(device: i32, timed: bool) -> Event {
        let never = Recording::default();
        never.pass(Ok(()));
        Event { device, timed, latest: Arc::new(Mutex::new(Arc::new(never))) }
    }

    /// A new recording, which some stream comes to.
    pub fn record(&self) -> Arc<Recording> {
        let recording = Arc::<Recording>::default();
        *lock(&self.latest) = recording.clone();
        recording
    }

    /// What someone who waits now waits for.
    pub fn latest(&self) -> Arc<Recording> {
        lock(&self.latest).clone()
    }

    /// Milliseconds from another event's latest recording to this one's. Both must keep time and have passed.
    pub fn since(&self, start: &Event) -> Result<f32, Code> {
        if !(self.timed && start.timed && self.device == start.device) {
            return Err(code::INVALID_HANDLE);
        }
        let (from, to) = (start.latest().passed_at()?.1, self.latest().passed_at()?.1);
        Ok(to.saturating_duration_since(from).as_secs_f32() * 1e3)
    }
}
