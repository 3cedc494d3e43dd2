//! Tests imported asynchronous streams, with a hand-written producer that follows the rules, and with one
//! that breaks each of them.

mod misbehaviour;

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;

use std::task::{Context, Poll, Waker};

use arrow_array::{ArrayRef, Int32Array, RecordBatch, StructArray};
use arrow_schema::{DataType, Field};
use bowstring::exchange::{AsyncBatchReader, batch_to_arrow, import_async_batches};
use bowstring::ffi::FFI_ArrowSchema;
use bowstring::{Device, DeviceBatch, Error, Result};
use futures_core::Stream;

use super::foreign::{RawDeviceArray, Releases, produce, structs};
use super::foreign_async::{RawTask, Wakes};
use super::foreign_sender::{RawSender, pair};

fn rows(range: std::ops::Range<i32>) -> StructArray {
    let column: ArrayRef = Arc::new(Int32Array::from_iter_values(range));
    StructArray::from(vec![(Arc::new(Field::new("n", DataType::Int32, true)), column)])
}

pub fn schema() -> FFI_ArrowSchema {
    super::foreign::schema(arrow_array::Array::data_type(&rows(0..1)))
}

pub const STRUCTS: usize = 2;

pub fn array(range: std::ops::Range<i32>, releases: &Releases) -> RawDeviceArray {
    let data = arrow_array::Array::to_data(&rows(range));
    assert_eq!(structs(&data), STRUCTS);
    produce(&data, 1, releases).on_cpu()
}

pub fn reader(queue: usize) -> (AsyncBatchReader, RawSender) {
    let (reader, handler) = import_async_batches(&Device::cpu(), queue);
    (reader, RawSender::new(handler))
}

/// Polls once; the caller checks how often the waker was used.
fn poll(reader: &mut AsyncBatchReader, wakes: &Arc<Wakes>) -> Poll<Option<Result<DeviceBatch>>> {
    Pin::new(reader).poll_next(&mut Context::from_waker(&Waker::from(wakes.clone())))
}

/// The batch that is ready now.
pub fn next(reader: &mut AsyncBatchReader) -> Option<Result<DeviceBatch>> {
    match poll(reader, &Arc::default()) {
        Poll::Ready(item) => item,
        Poll::Pending => panic!("nothing has come"),
    }
}

fn is_pending(reader: &mut AsyncBatchReader) -> bool {
    poll(reader, &Arc::default()).is_pending()
}

pub fn assert_rows(batch: Option<Result<DeviceBatch>>, range: std::ops::Range<i32>) {
    let batch = batch.expect("not the end").expect("no error");
    assert_eq!(batch_to_arrow(&batch).unwrap(), RecordBatch::from(rows(range)));
}

pub fn out_of_spec(at: &str, problem: &str) -> Option<Result<DeviceBatch>> {
    Some(Err(Error::OutOfSpec { at: at.into(), problem: problem.into() }))
}

pub fn assert_same_end(got: Option<Result<DeviceBatch>>, expected: Option<Result<DeviceBatch>>) {
    match (got, expected) {
        (Some(Err(got)), Some(Err(expected))) => assert_eq!(got, expected),
        (None, None) => {}
        (got, expected) => panic!("{got:?}, not {expected:?}"),
    }
}

#[test]
fn as_many_are_asked_for_as_the_queue_holds_and_one_for_each_that_is_taken() {
    let (mut reader, mut sender) = reader(3);
    let releases = Releases::default();
    assert!(is_pending(&mut reader) && sender.asked.lock().unwrap().requests.is_empty());
    assert_eq!(sender.schema(schema()), 0);
    assert_eq!(sender.asked.lock().unwrap().requests, [3]);
    for i in 0..3 {
        assert_eq!(sender.task(Ok(array(i..i + 5, &releases))), 0);
    }
    assert_eq!(sender.asked.lock().unwrap().extracted, 0);
    for i in 0..3 {
        assert_rows(next(&mut reader), i..i + 5);
        assert_eq!(sender.asked.lock().unwrap().extracted, i as usize + 1);
    }
    assert_eq!(sender.asked.lock().unwrap().requests, [3, 1, 1, 1]);
    assert!(is_pending(&mut reader));
    assert_eq!(sender.task(Ok(array(7..9, &releases))), 0);
    assert_eq!(sender.end(), 0);
    assert_rows(next(&mut reader), 7..9);
    assert!(next(&mut reader).is_none() && next(&mut reader).is_none());
    sender.release();
    drop(reader);
    let asked = sender.asked.lock().unwrap();
    // The end followed directly, so the last batch triggered no request, and no cancellation was needed.
    assert_eq!((asked.requests.len(), asked.cancels, asked.too_late), (4, 0, 0));
    assert_eq!(releases.count(), 4 * STRUCTS);
}

#[test]
fn schema_and_metadata_come_first() {
    let (mut reader, mut sender) = reader(1);
    let wakes = Arc::<Wakes>::default();
    let waker = Waker::from(wakes.clone());
    assert!(reader.poll_schema(&mut Context::from_waker(&waker)).is_pending());
    let words = pair("rows", "5");
    sender.bend(|producer| producer.additional_metadata = words.as_ptr().cast());
    assert_eq!((sender.schema(schema()), wakes.count()), (0, 1));
    match reader.poll_schema(&mut Context::from_waker(&waker)) {
        Poll::Ready(Ok(schema)) => assert_eq!(schema, RecordBatch::from(rows(0..1)).schema()),
        other => panic!("{other:?}"),
    }
    assert_eq!(reader.metadata(), BTreeMap::from([("rows".to_string(), "5".to_string())]));
    sender.release();
}

#[test]
fn errors_come_behind_the_batches_with_code_message_and_metadata() {
    let (mut reader, mut sender) = reader(4);
    let (releases, wakes) = (Releases::default(), Arc::<Wakes>::default());
    assert_eq!(sender.schema(schema()), 0);
    assert_eq!(sender.task(Ok(array(0..5, &releases))), 0);
    sender.error(77, Some("disk"), Some(&pair("where", "here")));
    // All later calls are too late.
    sender.error(78, Some("again"), None);
    assert_eq!((sender.task(Ok(array(0..5, &releases))), sender.end()), (0, 0));
    assert_eq!((releases.count(), sender.asked.lock().unwrap().discarded), (STRUCTS, 1));
    sender.release();
    assert_rows(next(&mut reader), 0..5);
    let metadata = BTreeMap::from([("where".to_string(), "here".to_string())]);
    let error = Error::Producer { code: 77, message: "disk".into(), metadata };
    assert_same_end(next(&mut reader), Some(Err(error)));
    assert!(matches!(poll(&mut reader, &wakes), Poll::Ready(None)));
    drop(reader);
    let asked = sender.asked.lock().unwrap();
    assert_eq!((asked.cancels, asked.too_late, releases.count()), (0, 0, 2 * STRUCTS));
}

#[test]
fn an_error_before_the_schema_is_what_waiting_for_it_gives() {
    let (reader, sender) = reader(1);
    sender.error(-3, None, None);
    sender.release();
    let error = reader.wait().err().unwrap();
    assert_eq!(error, Error::Producer { code: -3, message: "no message".into(), metadata: BTreeMap::new() });
}

#[test]
fn a_release_without_an_end_wakes_the_reader_and_is_an_error() {
    for with_schema in [false, true] {
        let (mut reader, mut sender) = reader(1);
        let wakes = Arc::<Wakes>::default();
        if with_schema {
            assert_eq!(sender.schema(schema()), 0);
        }
        assert!(poll(&mut reader, &wakes).is_pending());
        sender.release();
        assert_eq!(wakes.count(), 1);
        let early = out_of_spec("handler.release", "called before the end of the stream");
        assert_same_end(next(&mut reader), early);
        assert!(next(&mut reader).is_none());
    }
}

#[test]
fn a_reader_that_is_dropped_cancels_and_lets_go_of_what_comes() {
    let (reader, mut sender) = reader(4);
    let releases = Releases::default();
    assert_eq!(sender.schema(schema()), 0);
    for _ in 0..2 {
        assert_eq!(sender.task(Ok(array(0..5, &releases))), 0);
    }
    drop(reader);
    {
        let asked = sender.asked.lock().unwrap();
        assert_eq!((asked.cancels, asked.discarded, asked.extracted), (1, 2, 0));
    }
    for _ in 0..2 {
        assert_eq!(sender.task(Ok(array(0..5, &releases))), 0);
    }
    sender.error(5, None, None);
    assert_eq!(sender.end(), 0);
    sender.release();
    let asked = sender.asked.lock().unwrap();
    assert_eq!((asked.cancels, asked.discarded, releases.count()), (1, 4, 4 * STRUCTS));
}

#[test]
fn a_reader_dropped_before_the_schema_refuses_it() {
    let (reader, mut sender) = reader(4);
    drop(reader);
    assert_eq!(sender.schema(schema()), 125);
    sender.release();
    let asked = sender.asked.lock().unwrap();
    assert_eq!((asked.requests.len(), asked.too_late), (0, 0));
}

#[test]
fn a_producer_may_send_from_within_the_request() {
    // The interface forbids this, but the batch that it sends was requested all the same.
    let (mut reader, mut sender) = reader(1);
    unsafe extern "C" fn request(producer: *mut super::foreign_async::RawProducer, n: i64) {
        for _ in 0..n {
            let mut task = RawTask { extract_data: None, private_data: std::ptr::null_mut() };
            // SAFETY: the test has put its handler here.
            unsafe {
                let handler: *mut super::foreign_async::RawHandler = (*producer).private_data.cast();
                (*handler).on_next_task.unwrap()(handler, &mut task, std::ptr::null());
            }
        }
    }
    let handler = sender.handler;
    sender.bend(|producer| {
        producer.request = Some(request);
        producer.private_data = handler.cast();
    });
    assert_eq!(sender.schema(schema()), 0);
    sender.bend(|producer| producer.cancel = None);
    assert_same_end(next(&mut reader), out_of_spec("task.extract_data", "null"));
    sender.release();
}

#[test]
fn what_is_said_of_a_batch_comes_with_it() {
    let map = |key: &str, value: &str| BTreeMap::from([(key.to_string(), value.to_string())]);
    let (mut reader, mut sender) = reader(3);
    let releases = Releases::default();
    let words = pair("stream", "1");
    sender.bend(|producer| producer.additional_metadata = words.as_ptr().cast());
    assert_eq!(sender.schema(schema()), 0);
    assert_eq!(sender.task_with(Ok(array(0..5, &releases)), Some(&pair("file", "ä"))), 0);
    assert_eq!(sender.task(Ok(array(5..6, &releases))), 0);
    assert_eq!(sender.end_with(Some(&pair("total", "6"))), 0);
    let first = next(&mut reader).unwrap().unwrap();
    assert_eq!((first.len(), &**first.metadata()), (5, &map("file", "ä")));
    let second = next(&mut reader).unwrap().unwrap();
    assert_eq!((second.len(), &**second.metadata()), (1, &BTreeMap::new()));
    assert!(next(&mut reader).is_none());
    assert_eq!(reader.metadata(), [map("stream", "1"), map("total", "6")].into_iter().flatten().collect());
    sender.release();

    // Malformed metadata: the batch is dropped, and the stream ends with the error.
    for words in [vec![0xff; 4], [1i32.to_ne_bytes(), (-1i32).to_ne_bytes()].concat()] {
        for of_the_end in [false, true] {
            let (mut reader, mut sender) = self::reader(3);
            let releases = Releases::default();
            assert_eq!(sender.schema(schema()), 0);
            if of_the_end {
                assert_eq!(sender.end_with(Some(&words)), 0);
            } else {
                assert_eq!(sender.task_with(Ok(array(0..5, &releases)), Some(&words)), 0);
                assert_eq!(releases.count(), STRUCTS);
            }
            assert_same_end(next(&mut reader), out_of_spec("handler.on_next_task", "malformed metadata"));
            assert_eq!(sender.asked.lock().unwrap().cancels, 1);
            sender.release();
        }
    }
}

#[test]
fn a_failing_task_is_told_in_the_producers_words_where_it_had_some() {
    let (mut reader, mut sender) = reader(1);
    assert_eq!((sender.schema(schema()), sender.task(Err(5))), (0, 0));
    sender.error(5, Some("no such file"), None);
    let error = Error::Producer { code: 5, message: "no such file".into(), metadata: BTreeMap::new() };
    assert_same_end(next(&mut reader), Some(Err(error)));
    sender.release();
    // A task without a callback.
    let (mut reader, mut sender) = self::reader(1);
    assert_eq!(sender.schema(schema()), 0);
    assert_eq!(sender.raw_task(RawTask { extract_data: None, private_data: std::ptr::null_mut() }), 0);
    assert_same_end(next(&mut reader), out_of_spec("task.extract_data", "null"));
    sender.release();
}

#[test]
fn a_second_release_is_harmless_while_the_reader_is_there() {
    let (mut reader, mut sender) = reader(1);
    assert_eq!((sender.schema(schema()), sender.end()), (0, 0));
    // SAFETY: the handler is part of what the reader keeps.
    let release = unsafe { (*sender.handler).release.unwrap() };
    sender.release();
    // SAFETY: as above.
    unsafe { release(sender.handler) };
    assert!(next(&mut reader).is_none());
}
