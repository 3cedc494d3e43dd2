//! Events, and the captures that they draw streams into.

use std::sync::atomic::Ordering;

use super::{Machine, PER_THREAD};
use crate::streams::Event;
use crate::{Outcome, code, handle, lock};

/// The flag of an event that keeps no time.
const UNTIMED: u32 = 2;

impl Machine {
    /// Makes an event. `flags` may say that it keeps no time.
    pub fn new_event(&self, device: i32, flags: u32) -> usize {
        let number = handle();
        lock(&self.events).insert(number, Event::new(device, flags & UNTIMED == 0));
        number
    }

    pub fn destroy_event(&self, event: usize) -> Outcome {
        lock(&self.events).remove(&event).map(drop).ok_or(code::INVALID_HANDLE)
    }

    pub fn event(&self, event: usize) -> Outcome<Event> {
        lock(&self.events).get(&event).cloned().ok_or(code::INVALID_HANDLE)
    }

    /// An event that can be asked: one that was recorded in a capture cannot.
    pub fn recorded(&self, event: usize) -> Outcome<Event> {
        if self.captures.has(event) { Err(code::CAPTURED_EVENT) } else { self.event(event) }
    }

    /// Records a fault if the stream that the event was recorded on is gone, which HIP reads all the same.
    pub fn look_at_its_stream(&self, event: usize) -> Outcome {
        let event = self.event(event)?;
        let stream = event.stream.load(Ordering::Relaxed);
        if stream <= PER_THREAD || lock(&self.streams).contains_key(&stream) {
            return Ok(());
        }
        let _ = self.fault(event.device, "event", "its stream has been destroyed".to_owned());
        Err(code::CAPTURED_EVENT)
    }

    pub fn record(&self, event: usize, handle: usize, current: i32) -> Outcome {
        let known = self.event(event)?;
        if self.captures.record(event, handle) {
            return Ok(());
        }
        let stream = self.stream(handle, current)?;
        if known.device != stream.device {
            return Err(code::INVALID_HANDLE);
        }
        known.stream.store(handle, Ordering::Relaxed);
        stream.record(known.record());
        Ok(())
    }

    /// Makes a stream wait until an event, of whatever device, has passed.
    pub fn wait(&self, handle: usize, current: i32, event: usize) -> Outcome {
        let recording = self.event(event)?.latest();
        if self.captures.draw_in(handle, event) {
            return Ok(());
        }
        self.stream(handle, current)?.push(move || recording.wait());
        Ok(())
    }
}
