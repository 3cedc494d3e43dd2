//! Streams and events, with the properties that the runtimes report of each: a device, the order relative to
//! the legacy default stream, whether an event keeps time.

use std::cell::Cell;
use std::ffi::c_void;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use bowstring_sim::{Point, Queue};

use crate::{Code, Outcome, code};

/// A program's callback that receives only its data.
pub type HostFunction = unsafe extern "C" fn(*mut c_void);
/// A program's callback that also receives the stream's handle and code.
pub type Callback = unsafe extern "C" fn(usize, Code, *mut c_void);

thread_local! {
    /// The device whose stream is running a callback on this thread.
    static CALLS_BACK: Cell<Option<i32>> = const { Cell::new(None) };
}

/// The device whose stream called the code that runs on this thread, if any.
pub fn called_back_by() -> Option<i32> {
    CALLS_BACK.get()
}

fn call_back(device: i32, call: impl FnOnce()) {
    CALLS_BACK.set(Some(device));
    call();
    CALLS_BACK.set(None);
}

/// How a stream is ordered relative to the legacy default stream of its device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// This is the legacy default stream.
    Legacy,
    /// Both streams wait for each other.
    Blocking,
    /// Neither waits for the other.
    Free,
}

/// A queue of jobs on a device, with a thread of its own.
#[derive(Clone)]
pub struct Stream {
    pub device: i32,
    pub order: Order,
    pub priority: i32,
    queue: Queue<Code>,
}

/// A point in a stream, and the outcome of the work before it.
pub type Recording = bowstring_sim::Recording<Code>;

impl Deref for Stream {
    type Target = Queue<Code>;

    fn deref(&self) -> &Queue<Code> {
        &self.queue
    }
}

impl Stream {
    /// Starts its thread, which sleeps for a random time below `delay` before each job.
    pub fn start(device: i32, order: Order, priority: i32, delay: Duration, seed: u64) -> Outcome<Stream> {
        let name = format!("stream of device {device}");
        let queue = Queue::start(name, delay, seed, code::UNKNOWN, || ()).ok_or(code::OUT_OF_MEMORY)?;
        Ok(Stream { device, order, priority, queue })
    }

    /// Calls a function of the host, unless the stream has failed.
    ///
    /// # Safety
    ///
    /// The function must take the data, on any thread.
    pub unsafe fn host_function(&self, function: HostFunction, data: usize) {
        let device = self.device;
        self.then(move |outcome| {
            if outcome.is_ok() {
                // SAFETY: the caller's promise.
                call_back(device, || unsafe { function(std::ptr::with_exposed_provenance_mut(data)) });
            }
        });
    }

    /// Calls a function of the host with the stream's handle and its code, even if the stream has failed.
    ///
    /// # Safety
    ///
    /// The function must take the handle and the data, on any thread.
    pub unsafe fn callback(&self, function: Callback, handle: usize, data: usize) {
        let device = self.device;
        self.then(move |outcome| {
            let data = std::ptr::with_exposed_provenance_mut(data);
            // SAFETY: the caller's promise.
            call_back(device, || unsafe { function(handle, outcome.err().unwrap_or(0), data) });
        });
    }
}

/// An event, which is recorded on streams of one device.
#[derive(Clone)]
pub struct Event {
    pub device: i32,
    timed: bool,
    point: Point<Code>,
    /// The handle of the stream that it was recorded on last; 0 before.
    pub stream: Arc<AtomicUsize>,
}

impl Deref for Event {
    type Target = Point<Code>;

    fn deref(&self) -> &Point<Code> {
        &self.point
    }
}

impl Event {
    /// An event that was never recorded, which counts as passed.
    pub fn new(device: i32, timed: bool) -> Event {
        Event { device, timed, point: Point::default(), stream: Arc::default() }
    }

    /// The code that its latest recording has passed with; `NOT_READY` if it has not passed.
    pub fn query(&self) -> Result<(), Code> {
        self.latest().passed().ok_or(code::NOT_READY)?.0
    }

    /// Milliseconds from another event's latest recording to this one's. Both must keep time and have passed.
    pub fn since(&self, start: &Event) -> Result<f32, Code> {
        if !(self.timed && start.timed && self.device == start.device) {
            return Err(code::INVALID_HANDLE);
        }
        let passed_at = |event: &Event| event.latest().passed().map(|(_, at)| at).ok_or(code::NOT_READY);
        let (from, to) = (passed_at(start)?, passed_at(self)?);
        Ok(to.saturating_duration_since(from).as_secs_f32() * 1e3)
    }
}
