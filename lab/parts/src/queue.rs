//! Streams and events. A stream is a queue with a thread of its own. A wait for an event waits for its latest
//! recording at that moment, as in CUDA; later recordings do not matter.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::lock;
use crate::sync::mpsc::{Sender, channel};
use crate::sync::{Condvar, Mutex, thread};

/// One piece of a stream's work. An error that it returns becomes the stream's error.
pub type Job<E> = Box<dyn FnOnce() -> Result<(), E> + Send>;

/// A stream. Queued work still runs after the last handle is dropped.
pub struct Queue<E> {
    jobs: Sender<Job<E>>,
    failed: Arc<Mutex<Result<(), E>>>,
}

impl<E> Clone for Queue<E> {
    fn clone(&self) -> Self {
        Queue { jobs: self.jobs.clone(), failed: self.failed.clone() }
    }
}

impl<E: Copy + Send + 'static> Queue<E> {
    /// Starts the thread; `None` if the system cannot. Before each job it sleeps for a random time below
    /// `delay`. A job that panics leaves the stream with `panicked`. The thread calls `ended` when it ends.
    pub fn start(
        name: String,
        delay: Duration,
        seed: u64,
        panicked: E,
        ended: impl FnOnce() + Send + 'static,
    ) -> Option<Queue<E>> {
        let (jobs, queue) = channel::<Job<E>>();
        let failed = Arc::new(Mutex::new(Ok(())));
        let state = failed.clone();
        let mut random = seed;
        let run = move || {
            for job in queue {
                if !delay.is_zero() {
                    random = splitmix(random);
                    thread::sleep(delay.mul_f64((random >> 40) as f64 / (1u64 << 24) as f64));
                }
                // A panicking job has shown a bug of ours; threads that wait for the stream must see an
                // error.
                let outcome = catch_unwind(AssertUnwindSafe(job)).unwrap_or(Err(panicked));
                let mut failed = lock(&state);
                *failed = failed.and(outcome);
            }
            ended();
        };
        thread::Builder::new().name(name).spawn(run).ok()?;
        Some(Queue { jobs, failed })
    }

    /// Queues a job after all others.
    pub fn push(&self, job: impl FnOnce() -> Result<(), E> + Send + 'static) {
        // The receiver lives until the last sender, this one, is gone.
        let _ = self.jobs.send(Box::new(job));
    }

    /// Queues a call that gets the outcome of all earlier work: the first failure stays.
    pub fn then(&self, call: impl FnOnce(Result<(), E>) + Send + 'static) {
        let state = self.failed.clone();
        self.push(move || {
            let outcome = *lock(&state);
            call(outcome);
            Ok(())
        });
    }

    /// Makes the recording pass when the stream reaches it.
    pub fn record(&self, recording: Arc<Recording<E>>) {
        self.then(move |outcome| recording.pass(outcome));
    }

    /// Blocks the stream until the recording has passed.
    pub fn wait(&self, recording: Arc<Recording<E>>) {
        self.push(move || recording.wait());
    }

    /// Blocks until all work queued so far has run; returns its outcome.
    pub fn synchronise(&self) -> Result<(), E> {
        let recording = Arc::<Recording<E>>::default();
        self.record(recording.clone());
        recording.wait()
    }
}

fn splitmix(state: u64) -> u64 {
    let state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mixed = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

/// One recording of an event: a point that a stream reaches.
pub struct Recording<E> {
    outcome: Mutex<Option<(Result<(), E>, Instant)>>,
    passed: Condvar,
}

impl<E> Default for Recording<E> {
    fn default() -> Self {
        Recording { outcome: Mutex::new(None), passed: Condvar::new() }
    }
}

impl<E: Copy> Recording<E> {
    /// Marks the recording as passed, with the stream's outcome.
    pub fn pass(&self, outcome: Result<(), E>) {
        *lock(&self.outcome) = Some((outcome, Instant::now()));
        self.passed.notify_all();
    }

    /// Blocks until the recording has passed.
    pub fn wait(&self) -> Result<(), E> {
        let mut outcome = lock(&self.outcome);
        loop {
            if let Some((outcome, _)) = *outcome {
                return outcome;
            }
            outcome = self.passed.wait(outcome).unwrap_or_else(|poisoned| poisoned.into_inner());
        }
    }

    /// The outcome and the time at which the recording passed; `None` if it has not passed yet.
    pub fn passed(&self) -> Option<(Result<(), E>, Instant)> {
        *lock(&self.outcome)
    }
}

/// An event. A wait uses the latest recording at that moment; later recordings do not affect it.
pub struct Point<E>(Arc<Mutex<Arc<Recording<E>>>>);

impl<E> Clone for Point<E> {
    fn clone(&self) -> Self {
        Point(self.0.clone())
    }
}

impl<E: Copy> Default for Point<E> {
    /// An event that was never recorded; it counts as passed.
    fn default() -> Self {
        let never_recorded = Recording::default();
        never_recorded.pass(Ok(()));
        Point(Arc::new(Mutex::new(Arc::new(never_recorded))))
    }
}

impl<E: Copy> Point<E> {
    /// Starts a new recording; the caller queues it on a stream.
    pub fn record(&self) -> Arc<Recording<E>> {
        let recording = Arc::<Recording<E>>::default();
        *lock(&self.0) = recording.clone();
        recording
    }

    /// The recording that a wait would use now.
    pub fn latest(&self) -> Arc<Recording<E>> {
        lock(&self.0).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue() -> Queue<u8> {
        Queue::start("test".into(), Duration::ZERO, 0, 255, || ()).unwrap()
    }

    #[test]
    fn the_first_failure_stays_and_a_panic_is_one() {
        let stream = queue();
        stream.push(|| Ok(()));
        assert_eq!(stream.synchronise(), Ok(()));
        stream.push(|| panic!("meant"));
        stream.push(|| Err(3));
        assert_eq!(stream.synchronise(), Err(255));
    }

    #[test]
    fn a_waiter_takes_the_recording_of_its_moment() {
        let (first, second, event) = (queue(), queue(), Point::<u8>::default());
        assert!(event.latest().passed().is_some());
        let recording = event.record();
        second.wait(event.latest());
        let later = event.record();
        recording.pass(Err(7));
        assert_eq!((second.synchronise(), first.synchronise()), (Err(7), Ok(())));
        assert!(later.passed().is_none());
    }
}
