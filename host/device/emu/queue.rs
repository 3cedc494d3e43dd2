//! The emulator's streams and events. A stream is a queue that a thread of its own runs; who waits for an
//! event waits for its recording of that moment, as in CUDA, whatever the event is used for later.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Condvar, LazyLock, Mutex};
use std::time::Duration;

use super::super::driver::{Failure, Outcome};
use super::super::lock;

/// What a job that panicked leaves its stream with.
const PANICKED: Failure = Failure { call: "a panic", code: 999, out_of_memory: false };

/// One piece of a stream's work. What it returns is the error that the stream is left with.
pub(super) type Job = Box<dyn FnOnce() -> Outcome + Send>;

/// A stream. Dropping it lets what is queued run to its end.
#[derive(Clone)]
pub(super) struct Queue {
    jobs: Sender<Job>,
    failed: Arc<Mutex<Outcome>>,
}

impl Queue {
    /// Starts the thread. Before each job it sleeps for a random time below `delay`.
    pub fn start(delay: Duration, seed: u64, ended: impl FnOnce() + Send + 'static) -> Option<Queue> {
        let (jobs, queue) = channel::<Job>();
        let failed = Arc::new(Mutex::new(Ok(())));
        let state = failed.clone();
        let mut random = seed | 1;
        let run = move || {
            for job in queue {
                if !delay.is_zero() {
                    random = splitmix(random);
                    std::thread::sleep(delay.mul_f64((random >> 40) as f64 / (1u64 << 24) as f64));
                }
                // A kernel that panics has shown a bug of ours; whoever waits for the stream must hear of it.
                let outcome = catch_unwind(AssertUnwindSafe(job)).unwrap_or(Err(PANICKED));
                let mut failed = lock(&state);
                *failed = failed.and(outcome);
            }
            ended();
        };
        std::thread::Builder::new().name("emulated stream".into()).spawn(run).ok()?;
        Some(Queue { jobs, failed })
    }

    /// Puts a job behind all others.
    pub fn push(&self, job: Job) {
        // The receiver lives until the last sender, this one, is gone.
        let _ = self.jobs.send(job);
    }

    /// What work has left the stream with: the first failure stays.
    pub fn state(&self) -> Arc<Mutex<Outcome>> {
        self.failed.clone()
    }

    /// Blocks until all of now's jobs have run.
    pub fn synchronise(&self) -> Outcome {
        let (done, wait) = channel();
        self.push(Box::new(move || {
            let _ = done.send(());
            Ok(())
        }));
        let _ = wait.recv();
        *lock(&self.failed)
    }
}

pub(super) fn splitmix(state: u64) -> u64 {
    let state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mixed = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

/// One recording of an event: a point that some stream comes to.
#[derive(Default)]
pub(super) struct Recording {
    outcome: Mutex<Option<Outcome>>,
    passed: Condvar,
}

impl Recording {
    /// The stream has come to it, in this state.
    pub fn pass(&self, outcome: Outcome) {
        *lock(&self.outcome) = Some(outcome);
        self.passed.notify_all();
    }

    /// Blocks until it has passed.
    pub fn wait(&self) -> Outcome {
        let mut outcome = lock(&self.outcome);
        loop {
            if let Some(outcome) = *outcome {
                return outcome;
            }
            outcome = self.passed.wait(outcome).unwrap_or_else(|poisoned| poisoned.into_inner());
        }
    }

    /// Whether it has passed.
    pub fn query(&self) -> Outcome<bool> {
        lock(&self.outcome).map_or(Ok(false), |outcome| outcome.map(|()| true))
    }
}

/// An event: whoever waits takes the recording of that moment, and later ones do not matter to it.
#[derive(Clone)]
pub(super) struct Point(Arc<Mutex<Arc<Recording>>>);

impl Point {
    fn new() -> Point {
        let never_recorded = Recording::default();
        never_recorded.pass(Ok(()));
        Point(Arc::new(Mutex::new(Arc::new(never_recorded))))
    }

    /// A new recording, which the caller makes some stream come to.
    pub fn record(&self) -> Arc<Recording> {
        let recording = Arc::<Recording>::default();
        *lock(&self.0) = recording.clone();
        recording
    }

    /// What someone who waits now waits for.
    pub fn latest(&self) -> Arc<Recording> {
        lock(&self.0).clone()
    }
}

/// Every emulated event of the process by its number: a stale or foreign number finds none, and is an error.
static POINTS: LazyLock<Mutex<HashMap<usize, Point>>> = LazyLock::new(Mutex::default);
static NEXT: AtomicUsize = AtomicUsize::new(1);

/// A number nothing else in this process has.
pub(super) fn fresh_number() -> usize {
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Makes an event.
pub(super) fn new_point() -> usize {
    let number = fresh_number();
    lock(&POINTS).insert(number, Point::new());
    number
}

/// Ends an event; who waits for it holds on to it.
pub(super) fn end_point(number: usize) -> bool {
    lock(&POINTS).remove(&number).is_some()
}

/// The event with this number.
pub(super) fn point(number: usize, call: &'static str) -> Outcome<Point> {
    let found = lock(&POINTS).get(&number).cloned();
    found.ok_or(Failure { call, code: super::INVALID_HANDLE, out_of_memory: false })
}
