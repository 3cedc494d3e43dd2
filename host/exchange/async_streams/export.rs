//! The producing side: sends batches to a foreign handler, as many as it requests.

use std::collections::BTreeMap;
use std::ffi::{CString, c_int};
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use arrow_schema::SchemaRef;
use futures_core::Stream;

use super::link::{Demanded, Link, Sent};
use super::{ECANCELED, block_on};
use crate::array::{Batches, DeviceBatch, Place};
use crate::exchange::export::{device_array_keeping, unwritable};
use crate::exchange::streams::{EIO, anywhere, code, placed, rows_of, words};
use crate::ffi::{ArrowDeviceArray, AsyncHandler, DeviceType, FFI_ArrowSchema, metadata};
use crate::{Error, Result};

/// A future that sends a stream to a consumer. It completes when the consumer's handler has been released.
/// Its result is the error that ended the stream; the consumer has been told of it. Cancellation by the
/// consumer is not an error.
///
/// If the future is dropped before that, it reports the cancellation to the consumer, and releases the
/// handler.
#[must_use = "nothing is sent unless it is polled or run"]
pub struct AsyncExport {
    /// `None` once the handler has been released.
    handler: Option<AsyncHandler>,
    link: Arc<Link>,
    begun: bool,
    schema: SchemaRef,
    place: Place,
    batches: Sending,
    /// The reason why the stream's metadata cannot be sent.
    refused: Option<Error>,
}

type Sending = Pin<Box<dyn Stream<Item = Result<DeviceBatch>> + Send>>;

/// Sends batches to a consumer. All batches must have the given schema and be in one kind of memory. The
/// source is polled only for batches that the consumer has requested. The first error ends the stream. The
/// consumer also receives each batch's [`metadata`](DeviceBatch::metadata).
///
/// A batch in host memory to which a device still copies blocks the thread that polls until it has arrived:
/// the interface has no event for host memory. The source can wait for it instead, by
/// [`download_later`](crate::Stream::download_later).
///
/// ```
/// # use std::sync::Arc;
/// # use arrow_array::{Int32Array, RecordBatch};
/// # use bowstring::exchange::{batch_from_arrow, export_async_iterator, import_async_batches};
/// # use bowstring::{Device, array::{Batches, Place}};
/// let batch = RecordBatch::try_from_iter([("n", Arc::new(Int32Array::from(vec![1, 2])) as _)])?;
/// let schema = batch.schema();
/// let (reader, handler) = import_async_batches(&Device::cpu(), 2);
/// // The handler may be a foreign consumer's: `AsyncHandler::from_raw`.
/// let ours = Batches::new(schema, Place::CPU, vec![batch_from_arrow(&batch); 3].into_iter());
/// let export = export_async_iterator(ours, handler);
/// let sender = std::thread::spawn(|| export.run());
/// let batches = reader.wait()?;
/// assert_eq!(batches.map(|batch| batch.unwrap().len()).sum::<usize>(), 6);
/// sender.join().unwrap()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn export_async_batches(
    schema: SchemaRef,
    device_type: DeviceType,
    batches: impl Stream<Item = Result<DeviceBatch>> + Send + 'static,
    handler: AsyncHandler,
) -> AsyncExport {
    exported(schema, anywhere(device_type), batches, handler)
}

fn exported(
    schema: SchemaRef,
    place: Place,
    batches: impl Stream<Item = Result<DeviceBatch>> + Send + 'static,
    handler: AsyncHandler,
) -> AsyncExport {
    let (handler, link) = (Some(handler), Link::new(place.device_type, None));
    AsyncExport { handler, link, begun: false, schema, place, batches: Box::pin(batches), refused: None }
}

/// Sends the batches of an iterator, such as those in [`compute::batches`](crate::compute::batches). The
/// iterator runs on the thread that polls. Otherwise like [`export_async_batches`].
pub fn export_async_iterator(batches: Batches, handler: AsyncHandler) -> AsyncExport {
    exported(batches.schema().clone(), batches.place(), Always(batches), handler)
}

/// Adapts an iterator to a stream that is always ready.
struct Always<I>(I);

// The iterator is never pinned.
impl<I> Unpin for Always<I> {}

impl<I: Iterator> Stream for Always<I> {
    type Item = I::Item;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<I::Item>> {
        Poll::Ready(self.0.next())
    }
}

impl AsyncExport {
    /// Sets the stream's metadata, apart from that of its schema: `additional_metadata` in the C struct.
    pub fn with_metadata(mut self, metadata: &BTreeMap<String, String>) -> AsyncExport {
        if !self.begun {
            let encoded = metadata::encode(metadata);
            self.refused = encoded.as_ref().err().cloned();
            self.link = Link::new(self.place.device_type, encoded.unwrap_or_default());
        }
        self
    }

    /// Sends everything from this thread, which sleeps while the consumer requests nothing.
    pub fn run(self) -> Result<()> {
        block_on(self)
    }

    fn handler(&mut self) -> &mut AsyncHandler {
        self.handler.as_mut().expect("asked for before the end only")
    }

    /// Connects the handler to the link, and sends the schema.
    fn begin(&mut self) -> Result<(), Stop> {
        self.begun = true;
        // The producer must be connected even if the first message is an error.
        let producer = &raw const self.link.producer;
        // SAFETY: the export keeps the link until it has released the handler.
        unsafe { self.handler().connect(producer) };
        if let Some(missing) = self.handler().missing() {
            return Err(Stop::Failed(Error::out_of_spec(format!("handler.{missing}"), "null")));
        }
        self.refused.take().map_or(Ok(()), Err)?;
        let schema = FFI_ArrowSchema::try_from(self.schema.as_ref()).map_err(unwritable)?;
        match self.handler().on_schema(schema) {
            0 => Ok(()),
            code => Err(Stop::Refused(code)),
        }
    }

    /// Performs one step. `Ready` means that it was the last one, or that another is possible at once.
    fn step(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Stop>> {
        if !self.begun {
            self.begin()?;
        }
        match self.link.demand(context) {
            Demanded::Nothing => return Poll::Pending,
            Demanded::Batch => {}
            Demanded::End => return Poll::Ready(Err(Stop::Over)),
            Demanded::Nonsense(n) => {
                let problem = format!("the consumer requested {n} batches");
                return Poll::Ready(Err(Error::invalid("export", problem).into()));
            }
        }
        let next = match catch_unwind(AssertUnwindSafe(|| self.batches.as_mut().poll_next(context))) {
            Ok(Poll::Pending) => return Poll::Pending,
            Ok(Poll::Ready(next)) => next.transpose()?,
            Err(panic) => {
                let message = format!("panicked: {}", words(panic.as_ref()));
                let metadata = BTreeMap::new();
                return Poll::Ready(Err(Error::Producer { code: EIO, message, metadata }.into()));
            }
        };
        let refused = match next {
            Some(batch) => {
                // Exported here, so that extracting it cannot fail.
                let rows = placed(rows_of(&batch, self.schema.fields(), self.place)?, self.place)?;
                let array = device_array_keeping(&rows, Some(self.link.clone()))?;
                let metadata = metadata::encode(batch.metadata())?;
                self.link.served();
                self.send(array, metadata.as_deref())
            }
            None => match self.handler().on_end() {
                0 => return Poll::Ready(Err(Stop::Over)),
                code => code,
            },
        };
        Poll::Ready(if refused == 0 { Ok(()) } else { Err(Stop::Refused(refused)) })
    }

    fn send(&mut self, array: ArrowDeviceArray, metadata: Option<&[u8]>) -> c_int {
        let (sent, task) = Sent::new(array, self.link.clone());
        let mut task = ManuallyDrop::new(task);
        let refused = self.handler().on_next_task(&mut task, metadata);
        if refused != 0 {
            sent.take_back();
        }
        refused
    }

    /// Drops the source, sends the end or the error, and releases the handler.
    fn finish(&mut self, stop: Stop) -> Result<()> {
        let outcome = match stop {
            Stop::Over => Ok(()),
            Stop::Refused(code) => {
                Err(Error::invalid("export", format!("the consumer refused with code {code}")))
            }
            Stop::Failed(error) => {
                self.tell(code(&error), &error);
                Err(error)
            }
        };
        self.link.end();
        let nothing = export_nothing();
        let source = std::mem::replace(&mut self.batches, nothing);
        let _ = catch_unwind(AssertUnwindSafe(|| drop(source)));
        self.handler = None;
        outcome
    }

    fn tell(&mut self, code: c_int, error: &Error) {
        let (message, metadata) = match error {
            Error::Producer { message, metadata, .. } => {
                (message.clone(), metadata::encode(metadata).unwrap_or_default())
            }
            other => (other.to_string(), None),
        };
        let message = CString::new(message.replace('\0', "\u{fffd}")).unwrap_or_default();
        self.handler().on_error(code, &message, metadata.as_deref());
    }
}

fn export_nothing() -> Sending {
    Box::pin(Always(std::iter::empty()))
}

impl Future for AsyncExport {
    type Output = Result<()>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        let this = &mut *self;
        if this.handler.is_none() {
            return Poll::Ready(Ok(()));
        }
        match this.step(context) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Err(stop)) => Poll::Ready(this.finish(stop)),
            Poll::Ready(Ok(())) => {
                // Yields, so that other tasks on this thread run between two batches.
                context.waker().wake_by_ref();
                Poll::Pending
            }
        }
    }
}

impl Drop for AsyncExport {
    fn drop(&mut self) {
        if self.handler.is_some() {
            if !self.begun {
                let producer = &raw const self.link.producer;
                // SAFETY: the export keeps the link until it has released the handler, a few lines on.
                unsafe { self.handler().connect(producer) };
            }
            let message = "the export was dropped".into();
            let given_up = Error::Producer { code: ECANCELED, message, metadata: BTreeMap::new() };
            let _ = self.finish(Stop::Failed(given_up));
        }
    }
}

/// The reason why the stream sends no more.
enum Stop {
    /// The end was sent, or the consumer cancelled.
    Over,
    /// The consumer returned an error code; it only expects its release now.
    Refused(c_int),
    Failed(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Stop {
        Stop::Failed(error)
    }
}
