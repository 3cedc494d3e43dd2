//! Points in a stream's work, and when it came to them.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use super::{Event, Stream};
use crate::Result;

/// A point in a stream's work. What lies between two of them is what took the time between.
#[derive(Clone)]
pub struct Mark {
    time: Arc<OnceLock<Instant>>,
    /// Records the point on a GPU's stream.
    event: Option<Event>,
}

impl Mark {
    /// When all work before it had passed; `None` as long as it has not. It is always known after
    /// [`Stream::synchronise`], with the time of this call where the runtime has not called the host yet.
    pub fn reached(&self) -> Option<Instant> {
        if self.event.as_ref().is_some_and(|event| !event.has_passed()) {
            return None;
        }
        Some(*self.time.get_or_init(Instant::now))
    }
}

impl fmt::Debug for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mark").field("reached", &self.time.get()).finish()
    }
}

impl Stream {
    /// Marks the point up to which there is work on it now. A GPU's runtime says when it comes there by a
    /// call on the host, which comes some microseconds later: this is for what takes longer. The stream's
    /// work is not held up. On the CPU it is there at once.
    pub fn mark(&self) -> Result<Mark> {
        let time = Arc::new(OnceLock::new());
        let Some((gpu, queue)) = self.as_gpu() else {
            return Ok(Mark { time: Arc::new(Instant::now().into()), event: None });
        };
        let event = Event::new(gpu.core(), queue.number())?;
        event.record(queue.owned())?;
        let noted = time.clone();
        queue.call_behind(&event, Box::new(move || _ = noted.set(Instant::now())))?;
        Ok(Mark { time, event: Some(event) })
    }
}
