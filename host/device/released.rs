//! Device memory that a consumer of an exported array has released. The consumer calls the deleter when its
//! program is done, and work that reads the memory may still be queued. So the memory is kept until that work
//! has passed.
//!
//! The one idea: releasing memory makes no call into the runtime, because a consumer may release it in one of
//! the runtime's callbacks. The next operation on the device, which could be given that memory, first records
//! an event on the consumer's stream.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::driver::RawStream;
use super::handles::{OwnedEvent, OwnedStream, SharedDriver, is_of_a_capture};
use crate::Result;
use crate::array::DeviceArray;

/// The streams of callers that were wrapped, through whichever handle of their device; some may be gone.
static WRAPPED: Mutex<Vec<Weak<OwnedStream>>> = Mutex::new(vec![]);

/// Notes a stream that the caller has wrapped and keeps alive while holding the handle.
pub(super) fn note_wrapped(stream: &Arc<OwnedStream>) {
    let mut all = WRAPPED.lock().unwrap_or_else(PoisonError::into_inner);
    all.retain(|known| known.strong_count() > 0);
    all.push(Arc::downgrade(stream));
}

/// Finds a stream of the caller's, if a handle over it exists.
fn wrapped(driver: &SharedDriver, raw: RawStream) -> Option<Arc<OwnedStream>> {
    let all = WRAPPED.lock().unwrap_or_else(PoisonError::into_inner);
    let mut held = all.iter().filter_map(Weak::upgrade);
    held.find(|held| held.raw() == raw && Arc::ptr_eq(held.driver(), driver))
}

/// The stream on which a consumer reads, as the consumer named it.
#[derive(Clone, Default)]
pub(crate) enum Reader {
    /// The consumer named none, or a default stream. The stream is then assumed to be one that the legacy
    /// default stream waits for.
    #[default]
    Unnamed,
    /// A stream that the library made.
    Own(Arc<OwnedStream>),
    /// A stream of the caller's, who keeps it alive while a handle over it exists.
    Wrapped(RawStream),
}

/// An array that a consumer has released, and the stream on which it was read.
pub(super) struct Released {
    array: DeviceArray,
    reader: Reader,
}

impl Released {
    pub fn new(array: DeviceArray, reader: Reader) -> Released {
        Released { array, reader }
    }

    /// The stream whose work the array waits for; `None` if the consumer named none and the runtime has no
    /// legacy default stream.
    fn stream(&self, driver: &SharedDriver) -> Option<Arc<OwnedStream>> {
        let named = match &self.reader {
            Reader::Unnamed => None,
            Reader::Own(stream) => Some(stream.clone()),
            Reader::Wrapped(raw) => wrapped(driver, *raw),
        };
        named.or_else(|| OwnedStream::legacy(driver).map(Arc::new))
    }
}

/// Arrays that are kept until an event of their consumer's stream has passed.
pub(super) struct Fenced {
    /// A number for the stream that differs from that of every stream that passes run on. The stream itself
    /// may be gone.
    number: u64,
    event: OwnedEvent,
    _arrays: Vec<DeviceArray>,
}

impl Fenced {
    /// The number under which [`super::core::Core`] holds them.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Whether their consumer's work has passed. If the runtime cannot answer, waits until it has.
    pub fn has_passed(&self) -> bool {
        self.event.query().unwrap_or_else(|failure| {
            let passed = !is_of_a_capture(&failure);
            if passed {
                self.wait();
            }
            passed
        })
    }

    /// Blocks until it has.
    pub fn wait(&self) {
        let _ = self.event.synchronise();
    }

    /// Drops the arrays. Memory freed on the service stream from now on waits for their consumer's work.
    pub fn leave_to(self, service: &OwnedStream) {
        if service.wait(&self.event).is_err() {
            self.wait();
        }
    }
}

/// Records one event on each consumer's stream. The second result is the arrays whose stream is being
/// captured into a graph, of which an event would become part; they stay for the next call.
pub(super) fn fence(driver: &SharedDriver, released: Vec<Released>) -> (Vec<Fenced>, Vec<Released>) {
    let mut streams: Vec<(Arc<OwnedStream>, Vec<Released>)> = vec![];
    for released in released {
        let Some(stream) = released.stream(driver) else { continue };
        match streams.iter_mut().find(|(known, _)| known.raw() == stream.raw()) {
            Some((_, all)) => all.push(released),
            None => streams.push((stream, vec![released])),
        }
    }
    let (mut fenced, mut unfenced) = (vec![], vec![]);
    for (stream, all) in streams {
        match recorded(&stream) {
            Ok(Some(event)) => {
                let arrays = all.into_iter().map(|released| released.array).collect();
                let number = 1 << 63 | stream.raw().0 as u64;
                fenced.push(Fenced { number, event, _arrays: arrays });
            }
            Ok(None) => unfenced.extend(all),
            // If the stream takes no event, none of its work may be left running.
            Err(_) => drop(stream.synchronise()),
        }
    }
    (fenced, unfenced)
}

/// Records an event after a stream's work; `None` while the stream is captured.
fn recorded(stream: &OwnedStream) -> Result<Option<OwnedEvent>> {
    if stream.is_captured()? {
        return Ok(None);
    }
    let event = OwnedEvent::create(stream.driver())?;
    stream.record(&event).map(|()| Some(event))
}

/// Drops an array whose device is gone. Its memory is freed on the service stream, which waits for the
/// consumer's stream.
pub(super) fn let_go_late(service: &OwnedStream, released: Released) {
    let (fenced, _captured) = fence(service.driver(), vec![released]);
    fenced.into_iter().for_each(|fenced| fenced.leave_to(service));
}
