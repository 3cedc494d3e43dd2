//! Captures of graphs. A graph is never run here, and no work can be put into one. A capture is voided by
//! forbidden calls of threads, and by work on a captured stream. An event may be recorded there, and draws
//! streams that wait for it into the capture.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Mutex;
use std::thread::ThreadId;

use crate::{Outcome, code, lock};

/// A mode of threads and of captures, in which calls of other threads count as well.
const GLOBAL: i32 = 0;
/// The mode of a thread that may make any call.
const RELAXED: i32 = 2;

/// The calls that a capture forbids, without the `cu` or `hip` that they start with.
const UNSAFE: [&str; 16] = [
    "MemAlloc_v2",
    "MemAllocManaged",
    "MemFree_v2",
    "MemHostAlloc",
    "MemFreeHost",
    "Malloc",
    "MallocManaged",
    "Free",
    "HostMalloc",
    "HostFree",
    "StreamSynchronize",
    "EventQuery",
    "EventSynchronize",
    "MemAllocFromPoolAsync",
    "MallocAsync",
    "ModuleLoadDataEx",
];

/// All captures of a machine, and the modes of its threads.
#[derive(Default)]
pub struct Captures(Mutex<State>);

#[derive(Default)]
struct State {
    modes: HashMap<ThreadId, i32>,
    /// By the handles of their streams.
    ongoing: HashMap<usize, Capture>,
    /// The events whose latest recording is in a capture, and the stream with which it began.
    events: HashMap<usize, usize>,
}

#[derive(Clone)]
struct Capture {
    /// The stream with which it began.
    first: usize,
    device: i32,
    /// Whether the legacy default stream waits for its stream.
    blocking: bool,
    mode: i32,
    thread: ThreadId,
    void: bool,
}

fn current() -> ThreadId {
    std::thread::current().id()
}

impl Captures {
    pub fn begin(&self, stream: usize, device: i32, blocking: bool, mode: i32) -> Outcome {
        if !(GLOBAL..=RELAXED).contains(&mode) {
            return Err(code::INVALID_VALUE);
        }
        let capture = Capture { first: stream, device, blocking, mode, thread: current(), void: false };
        match lock(&self.0).ongoing.entry(stream) {
            // The capture that has begun goes on.
            Entry::Occupied(_) => Err(code::CAPTURE_UNSUPPORTED),
            Entry::Vacant(place) => {
                place.insert(capture);
                Ok(())
            }
        }
    }

    /// Ends a capture; fails if it is void, or has drawn in other streams: none of them can be joined here.
    pub fn end(&self, stream: usize) -> Outcome {
        let mut state = lock(&self.0);
        let ended = state.ongoing.get(&stream).filter(|capture| capture.first == stream).cloned();
        let ended = ended.ok_or(code::INVALID_VALUE)?;
        let before = state.ongoing.len();
        state.ongoing.retain(|_, capture| capture.first != stream);
        match before - state.ongoing.len() {
            _ if ended.void => Err(code::CAPTURE_INVALIDATED),
            1 => Ok(()),
            _ => Err(code::CAPTURE_UNJOINED),
        }
    }

    /// Notes where an event is recorded. Returns whether that is in a capture.
    pub fn record(&self, event: usize, stream: usize) -> bool {
        let mut state = lock(&self.0);
        let first = state.ongoing.get(&stream).map(|capture| capture.first);
        match first {
            Some(first) => state.events.insert(event, first),
            None => state.events.remove(&event),
        };
        first.is_some()
    }

    /// Whether an event was recorded in a capture.
    pub fn has(&self, event: usize) -> bool {
        lock(&self.0).events.contains_key(&event)
    }

    /// Makes a stream part of the capture, if one is under way, in which an event was recorded.
    pub fn draw_in(&self, stream: usize, event: usize) -> bool {
        let mut state = lock(&self.0);
        let first = state.events.get(&event).copied();
        let capture = first.and_then(|first| state.ongoing.get(&first)).cloned();
        capture.is_some_and(|capture| {
            state.ongoing.entry(stream).or_insert(capture);
            true
        })
    }

    /// Sets this thread's mode, and returns the mode before.
    pub fn exchange(&self, mode: i32) -> Outcome<i32> {
        if !(GLOBAL..=RELAXED).contains(&mode) {
            return Err(code::INVALID_VALUE);
        }
        Ok(lock(&self.0).modes.insert(current(), mode).unwrap_or(GLOBAL))
    }

    /// 0 if a stream is not captured, 1 if it is, 2 if its capture is void. `legacy` says that it is the
    /// default stream that waits for others.
    pub fn status(&self, stream: usize, device: i32, legacy: bool) -> Outcome<i32> {
        let state = lock(&self.0);
        if legacy && state.ongoing.values().any(|capture| capture.device == device && capture.blocking) {
            return Err(code::CAPTURE_IMPLICIT);
        }
        Ok(state.ongoing.get(&stream).map_or(0, |capture| 1 + i32::from(capture.void)))
    }

    /// Fails, and voids the capture, if work is put on a captured stream.
    pub fn work_on(&self, stream: usize, device: i32, legacy: bool) -> Outcome {
        let mut state = lock(&self.0);
        if let Some(capture) = state.ongoing.get_mut(&stream) {
            capture.void = true;
            return Err(code::CAPTURE_UNSUPPORTED);
        }
        let waited_for = |capture: &&mut Capture| legacy && capture.device == device && capture.blocking;
        match state.ongoing.values_mut().filter(waited_for).map(|capture| capture.void = true).count() {
            0 => Ok(()),
            _ => Err(code::CAPTURE_IMPLICIT),
        }
    }

    /// Fails if this thread may not make a call while others capture on its device.
    pub fn permits(&self, call: &str, device: i32) -> Outcome {
        let name = call.strip_prefix("hip").or(call.strip_prefix("cu")).unwrap_or(call);
        if !UNSAFE.contains(&name) {
            return Ok(());
        }
        let mut state = lock(&self.0);
        let own = state.modes.get(&current()).copied().unwrap_or(GLOBAL);
        if own == RELAXED {
            return Ok(());
        }
        let forbids = |capture: &&mut Capture| {
            let of_this_thread = capture.thread == current() && capture.mode != RELAXED;
            let of_all = own == GLOBAL && capture.mode == GLOBAL;
            capture.device == device && (of_this_thread || of_all)
        };
        match state.ongoing.values_mut().filter(forbids).map(|capture| capture.void = true).count() {
            0 => Ok(()),
            _ => Err(code::CAPTURE_UNSUPPORTED),
        }
    }
}
