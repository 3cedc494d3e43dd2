//! Tests exported asynchronous streams: with a hand-written consumer, and with our own reader on every
//! device.

mod metadata;

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use arrow_array::{ArrayRef, Int32Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use bowstring::array::{Batches, Place};
use bowstring::exchange::{
    AsyncExport, batch_from_arrow, batch_to_arrow, export_async_batches, export_async_iterator,
    import_async_batches,
};
use bowstring::ffi::{AsyncHandler, DeviceType};
use bowstring::{Device, DeviceBatch, Error, Result};

use super::foreign::{
    RawArray, RawDeviceArray, Releases, import_host_rows, import_rows, produce, schema, structs,
};
use super::foreign_async::{Manner, RawConsumer, Told, discard, extract, settle};

const NO_ERROR: Option<Result<DeviceBatch>> = None;

fn told_schema() -> Told {
    Told::Schema(BTreeMap::new())
}

fn shape() -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new("n", DataType::Int32, true)]))
}

fn rows() -> arrow_array::StructArray {
    let column: ArrayRef = Arc::new(Int32Array::from_iter_values(0..10));
    arrow_array::StructArray::from(vec![(Arc::new(Field::new("n", DataType::Int32, true)), column)])
}

/// The number of structs in each batch of [`counted`].
const STRUCTS: usize = 2;

/// A batch that counts its releases.
fn counted(releases: &Releases) -> DeviceBatch {
    let data = arrow_array::Array::to_data(&rows());
    assert_eq!(structs(&data), STRUCTS);
    let foreign: RawArray = produce(&data, 0, releases);
    import_host_rows(foreign.into_ours(), &schema(data.data_type())).unwrap()
}

/// Batches that share one schema.
fn sent(
    device_type: DeviceType,
    batches: impl Iterator<Item = Result<DeviceBatch>> + Send + 'static,
) -> Batches {
    Batches::new(shape(), Place { device_type, ..Place::CPU }, batches)
}

/// Sends `n` counted batches, then `last`.
fn send(
    n: usize,
    last: Option<Result<DeviceBatch>>,
    releases: &Releases,
    handler: AsyncHandler,
) -> AsyncExport {
    let releases = releases.clone();
    let given = (0..n).map(move |_| Ok(counted(&releases)));
    export_async_iterator(sent(DeviceType::Cpu, given.chain(last)), handler)
}

/// Takes a task and checks its contents.
fn look(consumer: &RawConsumer) {
    let (code, mut array) = extract(&mut consumer.take().expect("a task has come"));
    assert_eq!(code, 0);
    let batch = import_rows(&mut array, &schema(&DataType::Struct(shape().fields().clone()))).unwrap();
    assert_eq!(batch_to_arrow(&batch).unwrap(), RecordBatch::from(rows()));
}

#[test]
fn only_what_was_asked_for_is_made_and_sent() {
    let (consumer, handler) = RawConsumer::new(Manner::default());
    let (releases, made) = (Releases::default(), Arc::new(AtomicUsize::new(0)));
    let (counting, given) = (made.clone(), releases.clone());
    let source = std::iter::repeat_with(move || {
        counting.fetch_add(1, Ordering::SeqCst);
        Ok(counted(&given))
    });
    let mut export = export_async_iterator(sent(DeviceType::Cpu, source.take(5)), handler);
    assert_eq!(consumer.told(), []);
    assert!(settle(&mut export).is_pending());
    assert_eq!(consumer.told(), [told_schema()]);
    consumer.request(2);
    assert!(settle(&mut export).is_pending());
    assert_eq!((consumer.count(&Told::Task), made.load(Ordering::SeqCst)), (2, 2));
    look(&consumer);
    assert_eq!(releases.count(), STRUCTS);
    consumer.request(i64::MAX);
    consumer.request(i64::MAX);
    consumer.request(i64::MAX);
    assert_eq!(settle(&mut export), Poll::Ready(Ok(())));
    let mut expected = vec![told_schema()];
    expected.extend([const { Told::Task }; 5]);
    expected.extend([Told::End, Told::Release]);
    assert_eq!(consumer.told(), expected);
    (0..4).for_each(|_| look(&consumer));
    assert_eq!(releases.count(), 5 * STRUCTS);
    drop(export);
    assert_eq!(consumer.told(), expected);
}

#[test]
fn who_asks_wakes_the_sender_and_the_queue_is_asked_for_after_the_release() {
    let (consumer, handler) = RawConsumer::new(Manner { asks: Some(10), ..Manner::default() });
    let releases = Releases::default();
    let export = send(3, NO_ERROR, &releases, handler);
    std::thread::spawn(move || export.run()).join().unwrap().unwrap();
    assert_eq!(consumer.count(&Told::Release), 1);
    // Like known consumers, it requests one more batch for each one taken, even after the end.
    for i in 0..3 {
        consumer.request(1);
        let mut task = consumer.take().unwrap();
        consumer.request(1);
        let (code, array) = extract(&mut task);
        assert_eq!(code, 0);
        consumer.request(1);
        consumer.cancel();
        drop(array);
        assert_eq!(releases.count(), (i + 1) * STRUCTS);
    }

    let (consumer, handler) = RawConsumer::new(Manner::default());
    let export = send(100, NO_ERROR, &releases, handler);
    let sender = std::thread::spawn(move || export.run());
    while consumer.count(&Told::Release) == 0 {
        match consumer.take() {
            Some(mut task) => assert_eq!(discard(&mut task), 0),
            None => consumer.request_unless_over(1),
        }
        std::thread::yield_now();
    }
    sender.join().unwrap().unwrap();
    while let Some(mut task) = consumer.take() {
        discard(&mut task);
    }
    assert_eq!((consumer.count(&Told::Task), releases.count()), (100, 103 * STRUCTS));
}

#[test]
fn an_error_is_the_last_word_but_the_release() {
    let metadata = BTreeMap::from([("where".to_string(), "disk".to_string()), ("n".into(), "".into())]);
    let own = Error::Producer { code: 77, message: "a\0b".into(), metadata: metadata.clone() };
    let out_of_memory = Error::OutOfMemory { bytes: 5, device: DeviceType::Cpu };
    let cases = [
        (own, Told::Error(77, "a\u{fffd}b".into(), metadata)),
        (out_of_memory, Told::Error(12, "out of memory: 5 bytes on CPU".into(), BTreeMap::new())),
    ];
    for (error, expected) in cases {
        let (consumer, handler) = RawConsumer::new(Manner { asks: Some(9), ..Manner::default() });
        let releases = Releases::default();
        let mut export = send(1, Some(Err(error.clone())), &releases, handler);
        assert_eq!(settle(&mut export), Poll::Ready(Err(error)));
        assert_eq!(consumer.told(), [told_schema(), Told::Task, expected, Told::Release]);
        look(&consumer);
        assert_eq!(releases.count(), STRUCTS);
    }
}

#[test]
fn batches_that_do_not_fit_the_stream_are_errors() {
    let other = RecordBatch::try_from_iter([("m", Arc::new(Int32Array::from(vec![1])) as ArrayRef)]).unwrap();
    let cases = [
        (DeviceType::Cpu, batch_from_arrow(&other)),
        (DeviceType::CudaHost, Ok(counted(&Releases::default()))),
    ];
    for (device_type, batch) in cases {
        let (consumer, handler) = RawConsumer::new(Manner { asks: Some(9), ..Manner::default() });
        let mut export = export_async_iterator(sent(device_type, [batch].into_iter()), handler);
        assert!(matches!(settle(&mut export), Poll::Ready(Err(Error::Invalid { .. }))));
        assert!(matches!(&consumer.told()[1..], [Told::Error(22, ..), Told::Release]));
    }
}

#[test]
fn a_panic_of_the_source_is_an_error() {
    let (consumer, handler) = RawConsumer::new(Manner { asks: Some(9), ..Manner::default() });
    let source = std::iter::from_fn(|| panic!("of {}", "some kind"));
    let mut export = export_async_iterator(sent(DeviceType::Cpu, source), handler);
    assert!(matches!(settle(&mut export), Poll::Ready(Err(Error::Producer { code: 5, .. }))));
    let panicked = Told::Error(5, "panicked: of some kind".into(), BTreeMap::new());
    assert_eq!(consumer.told(), [told_schema(), panicked, Told::Release]);
}

/// A source that never has a batch, and records when it is dropped.
struct Idle(Arc<AtomicUsize>);

impl futures_core::Stream for Idle {
    type Item = Result<DeviceBatch>;

    fn poll_next(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<DeviceBatch>>> {
        Poll::Pending
    }
}

impl Drop for Idle {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn cancelling_interrupts_and_is_no_error_however_often() {
    for asks in [None, Some(3)] {
        let (consumer, handler) = RawConsumer::new(Manner { asks, ..Manner::default() });
        let dropped = Arc::new(AtomicUsize::new(0));
        let export = export_async_batches(shape(), DeviceType::Cpu, Idle(dropped.clone()), handler);
        let sender = std::thread::spawn(move || export.run());
        while consumer.told().is_empty() {
            std::thread::yield_now();
        }
        // The producer lives until it sends its release, which cannot happen while this thread holds the lock
        // on the notes.
        let notes = consumer.notes.lock().unwrap();
        let producer =
            std::ptr::with_exposed_provenance_mut::<super::foreign_async::RawProducer>(notes.producer);
        let producer = Mutex::new(Shared(producer));
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let Shared(producer) = *producer.lock().unwrap();
                    for _ in 0..100 {
                        // SAFETY: see above.
                        unsafe { (*producer).cancel.unwrap()(producer) };
                        // SAFETY: see above.
                        unsafe { (*producer).request.unwrap()(producer, -1) };
                    }
                });
            }
        });
        drop(notes);
        assert_eq!(sender.join().unwrap(), Ok(()));
        assert_eq!(
            (consumer.told(), dropped.load(Ordering::SeqCst)),
            (vec![told_schema(), Told::Release], 1)
        );
    }
}

#[derive(Clone, Copy)]
struct Shared(*mut super::foreign_async::RawProducer);

// SAFETY: the producer may be asked from any thread.
unsafe impl Send for Shared {}

#[test]
fn asking_for_nothing_or_less_is_an_error() {
    for n in [0, -1, i64::MIN] {
        let (consumer, handler) = RawConsumer::new(Manner { asks: Some(1), ..Manner::default() });
        let releases = Releases::default();
        let mut export = send(5, NO_ERROR, &releases, handler);
        assert!(settle(&mut export).is_pending());
        consumer.request(n);
        assert!(matches!(settle(&mut export), Poll::Ready(Err(Error::Invalid { .. }))));
        let message = format!("export: the consumer requested {n} batches");
        let complained = Told::Error(22, message, BTreeMap::new());
        assert_eq!(consumer.told(), [told_schema(), Told::Task, complained, Told::Release]);
        look(&consumer);
        assert_eq!(releases.count(), STRUCTS);
    }
}

#[test]
fn a_consumer_that_refuses_hears_only_its_release() {
    let refused = |code| {
        Err(Error::Invalid { operation: "export", problem: format!("the consumer refused with code {code}") })
    };
    let releases = Releases::default();
    let (consumer, handler) =
        RawConsumer::new(Manner { asks: Some(1), refuses_schema: 7, ..Manner::default() });
    assert_eq!(settle(&mut send(5, NO_ERROR, &releases, handler)), Poll::Ready(refused(7)));
    assert_eq!((consumer.told(), releases.count()), (vec![told_schema(), Told::Release], 0));

    for extracts_first in [false, true] {
        let releases = Releases::default();
        let manner = Manner { asks: Some(9), refuses_tasks: 5, extracts_first, ..Manner::default() };
        let (consumer, handler) = RawConsumer::new(manner);
        assert_eq!(settle(&mut send(5, NO_ERROR, &releases, handler)), Poll::Ready(refused(5)));
        assert_eq!(consumer.told(), [told_schema(), Told::Task, Told::Release]);
        assert_eq!(releases.count(), STRUCTS);
    }
}

#[test]
fn a_handler_with_callbacks_missing_is_told_what_can_be_and_released() {
    for missing in ["on_schema", "on_next_task", "on_error", "release"] {
        let (consumer, handler) =
            RawConsumer::bent(Manner { asks: Some(9), ..Manner::default() }, |handler| match missing {
                "on_schema" => handler.on_schema = None,
                "on_next_task" => handler.on_next_task = None,
                "on_error" => handler.on_error = None,
                _ => handler.release = None,
            });
        let outcome = settle(&mut send(1, NO_ERROR, &Releases::default(), handler));
        if missing == "release" {
            assert_eq!(outcome, Poll::Ready(Ok(())));
            assert_eq!(consumer.told(), [told_schema(), Told::Task, Told::End]);
            look(&consumer);
            continue;
        }
        let at = format!("handler.{missing}");
        let message = format!("malformed array at {at}: null");
        assert_eq!(outcome, Poll::Ready(Err(Error::OutOfSpec { at, problem: "null".into() })));
        match missing {
            "on_error" => assert_eq!(consumer.told(), [Told::Release]),
            _ => assert_eq!(consumer.told(), [Told::Error(22, message, BTreeMap::new()), Told::Release]),
        }
    }
}

#[test]
fn an_export_that_is_dropped_says_so_and_releases() {
    let given_up = Told::Error(125, "the export was dropped".into(), BTreeMap::new());
    let releases = Releases::default();
    let (consumer, handler) = RawConsumer::new(Manner { asks: Some(1), ..Manner::default() });
    drop(send(5, NO_ERROR, &releases, handler));
    assert_eq!(consumer.told(), [given_up.clone(), Told::Release]);

    let (consumer, handler) = RawConsumer::new(Manner { asks: Some(1), ..Manner::default() });
    let mut export = send(5, NO_ERROR, &releases, handler);
    assert!(settle(&mut export).is_pending());
    drop(export);
    assert_eq!(consumer.told(), [told_schema(), Told::Task, given_up, Told::Release]);
    look(&consumer);
    assert_eq!(releases.count(), STRUCTS);

    let (consumer, handler) = RawConsumer::new(Manner::default());
    drop(handler);
    assert_eq!(consumer.told(), [Told::Release]);
}

#[test]
fn a_task_gives_its_array_once() {
    let (consumer, handler) = RawConsumer::new(Manner { asks: Some(2), ..Manner::default() });
    let releases = Releases::default();
    let mut export = send(2, NO_ERROR, &releases, handler);
    assert!(settle(&mut export).is_pending());
    let mut task = consumer.take().unwrap();
    let (code, array) = extract(&mut task);
    assert!(code == 0 && RawDeviceArray::of(&array).reserved == [0; 3]);
    let (code, nothing) = extract(&mut task);
    assert!(code == 22 && nothing.is_released());
    assert_eq!((discard(&mut task), releases.count()), (22, 0));
    drop(array);
    assert_eq!(releases.count(), STRUCTS);
    let mut task = consumer.take().unwrap();
    assert_eq!((discard(&mut task), releases.count()), (0, 2 * STRUCTS));
    assert_eq!(extract(&mut task).0, 22);
}

#[test]
fn a_waker_may_ask_while_it_is_cloned() {
    let (consumer, handler) = RawConsumer::new(Manner { asks: Some(1), ..Manner::default() });
    let mut export = send(3, NO_ERROR, &Releases::default(), handler);
    /// A waker that requests more batches whenever it is woken, inside the call that wakes it.
    struct Greedy(Arc<RawConsumer>, AtomicUsize);
    impl std::task::Wake for Greedy {
        fn wake(self: Arc<Self>) {
            if self.1.fetch_add(1, Ordering::SeqCst) < 20 && self.0.count(&Told::Release) == 0 {
                self.0.request(1);
            }
        }
    }
    let waker = Waker::from(Arc::new(Greedy(consumer.clone(), AtomicUsize::new(0))));
    let mut polls = 0;
    while Pin::new(&mut export).poll(&mut Context::from_waker(&waker)).is_pending() {
        polls += 1;
        assert!(polls < 10);
    }
    assert_eq!(consumer.count(&Told::Task), 3);
    (0..3).for_each(|_| look(&consumer));
}
