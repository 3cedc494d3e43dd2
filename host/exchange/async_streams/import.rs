//! A foreign producer's batches as a stream: the reader of what a [`Consumer`] has been sent.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use arrow_schema::SchemaRef;
use futures_core::Stream;

use super::block_on;
use super::consumer::Consumer;
use crate::Result;
use crate::array::{Batch, Batches};
use crate::device::{Device, lock};
use crate::ffi::{AsyncHandler, DeviceType};

/// The batches of a foreign producer, in its order, as a stream. After an error or the end there is nothing more.
/// Dropping it cancels the producer; what comes afterwards all the same is let go of.
///
/// Batches that had come before an error are yielded before it. A producer that goes away without an end is an error, and
/// so is one that sends more than it was asked for. What the producer says of a batch is its [`Batch::metadata`].
#[derive(Debug)]
pub struct AsyncBatchReader {
    consumer: Arc<Consumer>,
    /// There has been an end or an error.
    done: bool,
}

/// Makes a reader, and the handler that a producer of batches on `device` is to be given. As soon as there is a schema,
/// `queue` batches are asked for (at least one), and one more for each that is taken.
///
/// The handler goes to a producer in C by [`AsyncHandler::into_raw`], or to
/// [`export_async_batches`](crate::exchange::export_async_batches). Dropped, it ends the stream with an error.
///
/// What is known of arrays from elsewhere ([`import_batch`](crate::exchange::import_batch)) is known of these, too, and
/// what is trusted there whoever calls the producer vouches for.
pub fn import_async_batches(device: &Device, queue: usize) -> (AsyncBatchReader, AsyncHandler) {
    let (consumer, handler) = Consumer::new(device, queue);
    (AsyncBatchReader { consumer, done: false }, handler)
}

impl AsyncBatchReader {
    /// The names, types, nullability and metadata of all batches, when they are known.
    pub fn poll_schema(&mut self, context: &mut Context<'_>) -> Poll<Result<SchemaRef>> {
        // Cloned outside of the lock: a waker may do anything.
        let waker = context.waker().clone();
        let mut state = lock(&self.consumer.state);
        match (&state.schema, &state.end) {
            (Some(schema), _) => Poll::Ready(Ok(schema.clone())),
            (None, Some(Err(error))) => Poll::Ready(Err(error.clone())),
            (None, _) => {
                let old = state.waker.replace(waker);
                drop(state);
                drop(old);
                Poll::Pending
            }
        }
    }

    /// The names, types, nullability and metadata of all batches, as soon as they are known.
    pub fn schema(&mut self) -> impl Future<Output = Result<SchemaRef>> + Send {
        std::future::poll_fn(|context| self.poll_schema(context))
    }

    /// What the producer says of the stream besides its schema: with it, and with the end once that has come.
    pub fn metadata(&self) -> BTreeMap<String, String> {
        lock(&self.consumer.state).metadata.clone()
    }

    /// The kind of memory that all batches are in; `None` before there is a schema.
    pub fn device_type(&self) -> Option<DeviceType> {
        let state = lock(&self.consumer.state);
        state.schema.as_ref().and_then(|_| DeviceType::from_abi(state.device_type))
    }

    /// As [`schema`](Self::schema), for who is not asynchronous.
    pub fn wait_for_schema(&mut self) -> Result<SchemaRef> {
        block_on(self.schema())
    }

    /// For who is not asynchronous: waits for the schema; the batches are then waited for by who asks for the next.
    pub fn wait(mut self) -> Result<Batches> {
        let schema = self.wait_for_schema()?;
        let place = self.consumer.place();
        let next = move || block_on(std::future::poll_fn(|context| Pin::new(&mut self).poll_next(context)));
        Ok(Batches::new(schema, place, std::iter::from_fn(next)))
    }
}

impl Stream for AsyncBatchReader {
    type Item = Result<Batch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Batch>>> {
        if self.done {
            return Poll::Ready(None);
        }
        let waker = context.waker().clone();
        let mut state = lock(&self.consumer.state);
        let (found, more) = match (state.tasks.pop_front(), &state.end) {
            (Some(task), end) => (Ok(task), end.is_none()),
            (None, Some(end)) => (Err(end.clone()), false),
            (None, None) => {
                let old = state.waker.replace(waker);
                drop(state);
                drop(old);
                return Poll::Pending;
            }
        };
        drop(state);
        if more {
            self.consumer.request(1);
        }
        let item = match found {
            Ok(task) => Some(self.consumer.take(task)),
            Err(end) => end.err().map(Err),
        };
        if !matches!(item, Some(Ok(_))) {
            self.done = true;
            self.consumer.close();
        }
        Poll::Ready(item)
    }
}

impl Drop for AsyncBatchReader {
    fn drop(&mut self) {
        self.consumer.close();
    }
}
