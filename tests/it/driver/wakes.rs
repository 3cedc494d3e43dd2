//! Wakers are foreign code and may do anything: they run on a thread of the library's, never inside a
//! callback of the runtime.

use std::future::Future;
use std::pin::Pin;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use arrow_array::{BooleanArray, Int32Array};
use bowstring::compute::filter;
use bowstring::device::testing;
use bowstring::exchange::from_arrow;
use bowstring::{DeviceArray, Pending};

use super::*;

/// The time limit for a wake.
const PATIENCE: Duration = Duration::from_secs(20);

struct Does(Mutex<Option<Box<dyn FnOnce() + Send>>>);

impl Wake for Does {
    fn wake(self: Arc<Self>) {
        let does = self.0.lock().unwrap().take();
        does.into_iter().for_each(|does| does());
    }
}

fn waker(does: impl FnOnce() + Send + 'static) -> Waker {
    Waker::from(Arc::new(Does(Mutex::new(Some(Box::new(does))))))
}

fn poll(pending: &mut Pending<DeviceArray>, waker: &Waker) -> Poll<bowstring::Result<DeviceArray>> {
    Pin::new(pending).poll(&mut Context::from_waker(waker))
}

#[test]
fn a_waker_may_call_the_library_drop_its_task_and_panic() {
    for native in Native::all() {
        let stranger = native.stranger();
        // SAFETY: the stranger's stream lives to the end of the test.
        let stream =
            unsafe { native.device.wrap_stream(std::ptr::without_provenance_mut(stranger)) }.unwrap();
        let on = |array: ArrayRef| stream.upload(&from_arrow(&array).unwrap()).unwrap();
        let there = on(Arc::new(Int32Array::from_iter_values(0..100)));
        let mask = on(Arc::new(BooleanArray::from_iter((0..100).map(|i| Some(i % 4 == 0)))));
        let gate = native.gate(stranger);
        let (mut rude, mut polite) = (filter(&there, &mask, &stream), filter(&there, &mask, &stream));
        let task = Arc::new(Mutex::new(None));
        let (tell, told) = channel();
        let (its_task, its_stream, tells) = (task.clone(), stream.clone(), tell.clone());
        let arrays = (there.clone(), mask.clone());
        let wakes_rude = waker(move || {
            drop(its_task.lock().unwrap().take());
            // The waker works on the same stream that woke it, and waits for that work.
            let again = filter(&arrays.0, &arrays.1, &its_stream).wait().map(|kept| kept.len());
            drop((arrays, its_stream));
            tells.send(again).unwrap();
            panic!("meant: a waker panics");
        });
        assert!(poll(&mut rude, &wakes_rude).is_pending(), "{native:?}");
        *task.lock().unwrap() = Some(rude);
        drop(wakes_rude);
        let tells: Sender<_> = tell.clone();
        let wakes_polite = waker(move || tells.send(Ok(0)).unwrap());
        assert!(poll(&mut polite, &wakes_polite).is_pending(), "{native:?}");
        gate.open();
        assert_eq!(told.recv_timeout(PATIENCE).unwrap(), Ok(25), "{native:?}");
        assert_eq!(told.recv_timeout(PATIENCE).unwrap(), Ok(0), "{native:?}: after the panic");
        let Poll::Ready(kept) = poll(&mut polite, &wakes_polite) else { panic!("it was woken") };
        assert_eq!(kept.unwrap().len(), 25, "{native:?}");
        drop((there, mask, polite, stream));
        testing::drain(&native.device);
        destroy_stream(&native, stranger);
        native.close();
    }
}

#[test]
fn the_stand_in_notices_calls_from_callbacks() {
    const NOT_PERMITTED: i32 = 800;
    for native in Native::standins() {
        let stranger = native.stranger();
        let event = native.recorded(stranger);
        let record = native.raw(|raw| raw.record);
        let (tell, told) = channel();
        // SAFETY: the handles live to the end of the test.
        native.call(stranger, move || tell.send(unsafe { record(event, stranger) }).unwrap());
        assert_eq!((told.recv_timeout(PATIENCE), native.faults()), (Ok(NOT_PERMITTED), 1), "{native:?}");
    }
}

/// A task that asks after a poll whether its operation is ready is woken, although the operation has gone on.
#[test]
fn a_task_that_asks_is_woken_too() {
    for native in Native::all() {
        let stream = native.device.stream().unwrap();
        let there = stream.upload(&from_arrow(&Int32Array::from_iter_values(0..100)).unwrap()).unwrap();
        let mask = BooleanArray::from_iter((0..100).map(|i| Some(i % 4 == 0)));
        let mask = stream.upload(&from_arrow(&mask).unwrap()).unwrap();
        for _ in 0..20 {
            let mut pending = filter(&there, &mask, &stream);
            let (tell, told) = channel();
            let woken = waker(move || tell.send(()).unwrap());
            if poll(&mut pending, &woken).is_ready() {
                continue;
            }
            while !pending.is_ready().unwrap() {}
            told.recv_timeout(PATIENCE).unwrap();
            assert_eq!(pending.wait().unwrap().len(), 25);
        }
        drop((there, mask, stream));
        native.close();
    }
}
