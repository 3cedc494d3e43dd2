//! Reads the batches of a foreign producer, which a [`Consumer`] receives, as a stream.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use arrow_schema::SchemaRef;
use futures_core::Stream;

use super::block_on;
use super::consumer::Consumer;
use crate::Result;
use crate::array::{Batches, DeviceBatch};
use crate::device::{Device, lock};
use crate::ffi::{AsyncHandler, DeviceType};

/// A stream of the batches of a foreign producer, in its order. The stream ends after an error. Dropping the
/// reader cancels the producer and discards batches that still arrive.
///
/// Batches that arrived before an error are yielded before it. The stream ends with an error if the producer
/// releases the handler without an end, or sends more than was requested. [`DeviceBatch::metadata`] has the
/// producer's metadata for each batch.
#[derive(Debug)]
pub struct AsyncBatchReader {
    consumer: Arc<Consumer>,
    /// The stream has ended or failed.
    done: bool,
}

/// Creates a reader, and the handler to pass to a producer of batches on `device`. When the schema arrives,
/// the reader requests `queue` batches (at least one), and one more for each batch that is taken.
///
/// Pass the handler to a producer in C with [`AsyncHandler::into_raw`], or to
/// [`export_async_batches`](crate::exchange::export_async_batches). Dropping it ends the stream with an
/// error.
///
/// The arrays are checked as in [`import_batch`](crate::exchange::import_batch). The code that calls the
/// producer must guarantee what that function's safety section requires.
pub fn import_async_batches(device: &Device, queue: usize) -> (AsyncBatchReader, AsyncHandler) {
    let (consumer, handler) = Consumer::new(device, queue);
    (AsyncBatchReader { consumer, done: false }, handler)
}

impl AsyncBatchReader {
    /// Polls for the schema of all batches: names, types, nullability and metadata.
    pub fn poll_schema(&mut self, context: &mut Context<'_>) -> Poll<Result<SchemaRef>> {
        // Cloned outside of the lock: a waker's code is arbitrary.
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

    /// Waits for the schema of all batches: names, types, nullability and metadata.
    pub fn schema(&mut self) -> impl Future<Output = Result<SchemaRef>> + Send {
        std::future::poll_fn(|context| self.poll_schema(context))
    }

    /// The producer's metadata of the stream, apart from that of the schema. It arrives with the schema; the
    /// end of the stream may add to it.
    pub fn metadata(&self) -> BTreeMap<String, String> {
        lock(&self.consumer.state).metadata.clone()
    }

    /// The kind of memory that holds all batches; `None` before the schema has arrived.
    pub fn device_type(&self) -> Option<DeviceType> {
        let state = lock(&self.consumer.state);
        state.schema.as_ref().and_then(|_| DeviceType::from_abi(state.device_type))
    }

    /// Blocks until the schema has arrived; otherwise like [`schema`](Self::schema).
    pub fn wait_for_schema(&mut self) -> Result<SchemaRef> {
        block_on(self.schema())
    }

    /// Converts the reader into a blocking iterator. Blocks until the schema has arrived; the iterator blocks
    /// for each batch.
    pub fn wait(mut self) -> Result<Batches> {
        let schema = self.wait_for_schema()?;
        let place = self.consumer.place();
        let next = move || {
            let next = std::future::poll_fn(|context| Pin::new(&mut self).poll_next(context));
            let next = block_on(async { next.await.transpose() });
            if next.is_err() {
                self.done = true;
                self.consumer.close();
            }
            next.transpose()
        };
        Ok(Batches::new(schema, place, std::iter::from_fn(next)))
    }
}

impl Stream for AsyncBatchReader {
    type Item = Result<DeviceBatch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<DeviceBatch>>> {
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
