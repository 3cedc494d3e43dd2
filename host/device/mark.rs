//! Points in a stream's work, and the times at which it reached them.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use super::{Event, Stream};
use crate::Result;

/// A point in a stream's work. The difference between the times of two marks is the time of the work between
/// them.
#[derive(Clone)]
pub struct Mark {
    time: Arc<OnceLock<Instant>>,
    /// Records the point on a GPU's stream.
    event: Option<Event>,
}

impl Mark {
    /// The time at which all work before it had passed; `None` while it has not. It is always known after
    /// [`Stream::synchronise`]; if the runtime has not called the host yet, it is the time of this call.
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
    /// Marks the end of the work that is on the stream now. A GPU's runtime reports the time by calling the
    /// host, some microseconds late, so marks suit work that takes longer. They do not hold up the stream's
    /// work. On the CPU a mark is reached at once.
    pub fn mark(&self) -> Result<Mark> {
        let time = Arc::new(OnceLock::new());
        let Some((gpu, queue)) = self.as_gpu() else {
            return Ok(Mark { time: Arc::new(Instant::now().into()), event: None });
        };
        queue.enter(gpu, "mark")?;
        let event = Event::new(gpu.core(), queue.number())?;
        event.record(queue.owned())?;
        let noted = time.clone();
        queue.call_behind(&event, Box::new(move || _ = noted.set(Instant::now())))?;
        Ok(Mark { time, event: Some(event) })
    }
}
