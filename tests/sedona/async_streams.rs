//! Sedona sends to us, we send to it.

use std::pin::Pin;
use std::ptr::NonNull;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::thread;

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{Int32Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use bowstring::exchange::{batch_from_arrow, batch_to_arrow, export_async_iterator, import_async_batches};
use bowstring::ffi::{AsyncHandler, DeviceType};
use bowstring::{Device, Error};
use datafusion_common::DataFusionError;
use datafusion_execution::{RecordBatchStream, SendableRecordBatchStream};
use futures::Stream;
use futures::executor::{block_on, block_on_stream};
use sedona_extension::export_sendable_record_batch_stream::drive_stream_to_handler;
use sedona_extension::import_sendable_record_batch_stream::ImportedAsyncDeviceStream;

const BATCHES: i32 = 20;
const ROUNDS: u64 = 50;

fn schema() -> SchemaRef {
    let fields = vec![Field::new("n", DataType::Int32, true), Field::new("s", DataType::Utf8, true)];
    Arc::new(Schema::new(fields))
}

fn texts(n: i32) -> impl Iterator<Item = Option<String>> {
    (n..n + 10).map(|i| (i % 3 != 0).then(|| format!("number {i}")))
}

fn theirs(n: i32) -> RecordBatch {
    let numbers = Int32Array::from_iter((n..n + 10).map(|i| (i % 7 != 0).then_some(i)));
    let columns = vec![Arc::new(numbers) as _, Arc::new(StringArray::from_iter(texts(n))) as _];
    RecordBatch::try_new(schema(), columns).unwrap()
}

/// The same in the version of arrow that bowstring knows.
fn ours(n: i32) -> arrow_array_60::RecordBatch {
    let numbers = arrow_array_60::Int32Array::from_iter((n..n + 10).map(|i| (i % 7 != 0).then_some(i)));
    let words = arrow_array_60::StringArray::from_iter(texts(n));
    arrow_array_60::RecordBatch::try_from_iter([("n", Arc::new(numbers) as _), ("s", Arc::new(words) as _)])
        .unwrap()
}

/// Batches, then an error, if it is to.
struct Source {
    next: i32,
    fails: bool,
}

impl Stream for Source {
    type Item = Result<RecordBatch, DataFusionError>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.next += 1;
        Poll::Ready(match self.next - 1 {
            n if n < BATCHES => Some(Ok(theirs(n))),
            _ if self.fails => Some(Err(DataFusionError::Execution("the disk is on fire".into()))),
            _ => None,
        })
    }
}

impl RecordBatchStream for Source {
    fn schema(&self) -> SchemaRef {
        schema()
    }
}

/// Has Sedona send on another thread.
fn sedona_sends(fails: bool, handler: AsyncHandler) -> thread::JoinHandle<()> {
    thread::spawn(move || {
        let source: SendableRecordBatchStream = Box::pin(Source { next: 0, fails });
        let handler = handler.into_raw().as_ptr().cast();
        // SAFETY: both describe the same struct, which is there until it is released.
        block_on(unsafe { drive_stream_to_handler(source, handler) });
    })
}

#[test]
fn what_sedona_sends_comes_here() {
    for round in 0..ROUNDS {
        let (reader, handler) = import_async_batches(&Device::cpu(), round as usize % 4);
        let sender = sedona_sends(false, handler);
        let (_, batches) = reader.wait().unwrap();
        let mut count = 0;
        for (n, batch) in (0..).zip(batches) {
            assert_eq!(batch_to_arrow(&batch.unwrap()).unwrap().columns(), ours(n).columns());
            count += 1;
        }
        sender.join().unwrap();
        assert_eq!(count, BATCHES);
    }
}

#[test]
fn an_error_of_sedonas_comes_last() {
    let (reader, handler) = import_async_batches(&Device::cpu(), 3);
    let sender = sedona_sends(true, handler);
    let (_, batches) = reader.wait().unwrap();
    let got: Vec<_> = batches.collect();
    sender.join().unwrap();
    assert_eq!(got.len(), BATCHES as usize + 1);
    match got.last() {
        Some(Err(Error::Producer { message, .. })) => {
            assert!(message.contains("the disk is on fire"), "{message}")
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_reader_that_goes_away_stops_sedona() {
    for taken in 0..4 {
        let (reader, handler) = import_async_batches(&Device::cpu(), 2);
        let sender = sedona_sends(false, handler);
        let (_, batches) = reader.wait().unwrap();
        assert_eq!(batches.take(taken).filter(Result::is_ok).count(), taken);
        sender.join().unwrap();
    }
}

/// Sends to Sedona from another thread.
fn we_send(
    fails: bool,
    prefetch: u64,
) -> (ImportedAsyncDeviceStream, thread::JoinHandle<bowstring::Result<()>>) {
    let (consumer, handler) = ImportedAsyncDeviceStream::new(prefetch);
    let handler = NonNull::new(handler.into_raw().cast()).unwrap();
    // SAFETY: both describe the same struct, which is there until it is released.
    let handler = unsafe { AsyncHandler::from_raw(handler) };
    let given = (0..BATCHES).map(|n| batch_from_arrow(&ours(n)));
    let error = fails.then(|| Err(Error::Invalid { operation: "test", problem: "no more".into() }));
    let export = export_async_iterator(ours(0).schema(), DeviceType::Cpu, given.chain(error), handler);
    (consumer, thread::spawn(|| export.run()))
}

#[test]
fn what_we_send_comes_to_sedona() {
    for round in 0..ROUNDS {
        let (consumer, sender) = we_send(false, 1 + round % 4);
        let got: Vec<_> = block_on_stream(consumer).map(Result::unwrap).collect();
        sender.join().unwrap().unwrap();
        assert_eq!(got.len(), BATCHES as usize);
        for (n, batch) in (0..).zip(got) {
            assert_eq!(batch.columns(), theirs(n).columns());
            assert_eq!(batch.column(0).as_primitive::<Int32Type>().len(), 10);
        }
    }
}

#[test]
fn an_error_of_ours_comes_to_sedona() {
    let (consumer, sender) = we_send(true, 2);
    let last = block_on_stream(consumer).last();
    assert!(sender.join().unwrap().is_err());
    assert!(last.unwrap().unwrap_err().to_string().contains("no more"));
}

#[test]
fn sedona_going_away_stops_us() {
    for taken in 0..4 {
        let (consumer, sender) = we_send(false, 2);
        let mut consumer = block_on_stream(consumer);
        assert_eq!(consumer.by_ref().take(taken).filter(Result::is_ok).count(), taken);
        drop(consumer);
        // It cancels, and refuses what comes before that is heard.
        match sender.join().unwrap() {
            Ok(()) => {}
            Err(error) => assert!(error.to_string().contains("the consumer refused with code 1"), "{error}"),
        }
    }
}
