//! Points in a stream's work, and when it came to them.

use std::sync::{Arc, OnceLock};
use std::time::Instant;

use super::{Event, Stream};
use crate::Result;

/// A point in a stream's work. What lies between two of them is what took the time between.
#[derive(Clone, Debug, Default)]
pub struct Mark(Arc<OnceLock<Instant>>);

impl Mark {
    /// When all work before it had passed; `None` as long as it has not.
    pub fn reached(&self) -> Option<Instant> {
        self.0.get().copied()
    }
}

impl Stream {
    /// Marks the point up to which there is work on it now. A GPU's runtime says when it comes there by a
    /// call on the host, which comes some microseconds later: this is for what takes longer. The stream's
    /// work is not held up. On the CPU it is there at once.
    pub fn mark(&self) -> Result<Mark> {
        let mark = Mark::default();
        let there = mark.clone();
        let reached = move || {
            let _first = there.0.set(Instant::now());
        };
        match self.as_gpu() {
            None => reached(),
            Some((gpu, queue)) => {
                let event = Event::new(gpu.core(), queue.number())?;
                event.record(queue.owned())?;
                queue.call_behind(&event, Box::new(reached))?;
            }
        }
        Ok(mark)
    }
}
