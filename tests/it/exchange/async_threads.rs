//! Tests imported asynchronous streams with producers that call at any time, on any thread.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicI64};
use std::task::{Context, Wake, Waker};

use futures_core::Stream;

use super::async_import::{STRUCTS, array, assert_rows, assert_same_end, next, out_of_spec, reader, schema};
use super::foreign::Releases;

#[test]
fn callbacks_from_many_threads_lose_nothing() {
    let (reader, mut sender) = reader(8);
    let releases = Releases::default();
    assert_eq!(sender.schema(schema()), 0);
    let (sender, given, sent) = (&sender, &releases, &AtomicI64::new(0));
    let count = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(move || {
                    for i in 0..50 {
                        // Each thread sends one of the requested batches, and none sends more.
                        while sent
                            .fetch_update(SeqCst, SeqCst, |n| (sender.wanted(n) > 0).then_some(n + 1))
                            .is_err()
                        {
                            std::thread::yield_now();
                        }
                        assert_eq!(sender.task(Ok(array(i..i + 3, given))), 0);
                    }
                })
            })
            .collect();
        let reading = scope.spawn(move || {
            let batches = reader.wait().unwrap();
            batches.inspect(|batch| assert_eq!(batch.as_ref().unwrap().len(), 3)).count()
        });
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(sender.end(), 0);
        sender.release();
        reading.join().unwrap()
    });
    let asked = sender.asked.lock().unwrap();
    assert_eq!((count, asked.extracted, asked.too_late), (200, 200, 0));
    assert_eq!(releases.count(), 200 * STRUCTS);
}

#[test]
fn nobody_asks_a_producer_that_has_released() {
    // Taking batches requests more, and dropping the reader cancels, while the producer releases: the reader
    // must not call it once `release` has returned.
    for round in 0..200 {
        let (mut reader, mut sender) = reader(4);
        let releases = Releases::default();
        assert_eq!(sender.schema(schema()), 0);
        for _ in 0..4 {
            assert_eq!(sender.task(Ok(array(0..3, &releases))), 0);
        }
        let started = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let started = &started;
            scope.spawn(move || {
                started.store(true, SeqCst);
                for _ in 0..round % 5 {
                    assert_rows(next(&mut reader), 0..3);
                }
                drop(reader);
            });
            while !started.load(SeqCst) {
                std::hint::spin_loop();
            }
            sender.release();
        });
        assert_eq!((sender.asked.lock().unwrap().too_late, releases.count()), (0, 4 * STRUCTS));
    }
}

#[test]
fn a_producer_may_release_from_within_a_call() {
    let (mut reader, mut sender) = reader(1);
    unsafe extern "C" fn request(producer: *mut super::foreign_async::RawProducer, _: i64) {
        // SAFETY: the test has put its handler here.
        unsafe {
            let handler: *mut super::foreign_async::RawHandler = (*producer).private_data.cast();
            (*handler).release.unwrap()(handler);
        }
    }
    let handler = sender.handler;
    sender.bend(|producer| {
        producer.request = Some(request);
        producer.private_data = handler.cast();
    });
    assert_eq!(sender.schema(schema()), 0);
    let early = out_of_spec("handler.release", "called before the end of the stream");
    assert_same_end(next(&mut reader), early);
}

/// The waker of a reader may panic: the producer gets a code for that and no panic, and the stream goes on.
#[test]
fn a_waker_that_panics_is_a_code_to_its_producer() {
    struct Panics;
    impl Wake for Panics {
        fn wake(self: Arc<Panics>) {
            panic!("on purpose");
        }
    }
    const EIO: i32 = 5;
    let (mut reader, mut sender) = reader(1);
    let releases = Releases::default();
    let waker = Waker::from(Arc::new(Panics));
    assert_eq!(sender.schema(schema()), 0);
    assert!(Pin::new(&mut reader).poll_next(&mut Context::from_waker(&waker)).is_pending());
    assert_eq!(sender.task(Ok(array(0..5, &releases))), EIO);
    assert_rows(next(&mut reader), 0..5);
    assert_eq!(sender.end(), 0);
    assert!(next(&mut reader).is_none());
    sender.release();
}
