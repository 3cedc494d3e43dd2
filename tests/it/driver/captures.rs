//! Tests calls of ours while another library captures a graph, as PyTorch and JAX do: our calls neither fail
//! nor invalidate the capture, and a captured stream is not used for work.

use std::future::Future;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use arrow_array::{BooleanArray, Int32Array};
use arrow_schema::Field;
use bowstring::compute::filter;
use bowstring::device::testing;
use bowstring::exchange::{export_array, export_dlpack, from_arrow, import_array, to_arrow};
use bowstring::ffi::dlpack::DLManagedTensor;
use bowstring::{DeviceArray, Error, Pending, Stream};

use super::*;

/// The capture mode that restricts calls of every thread.
const GLOBAL: i32 = 0;
/// The error of a call that a capture forbids, and the error at the end of an invalidated capture.
const UNSUPPORTED: i32 = 900;
const INVALIDATED: i32 = 901;

fn begin(native: &Native, stream: usize) {
    // SAFETY: a live stream.
    assert_eq!(native.raw(|raw| unsafe { (raw.begin_capture)(stream, GLOBAL) }), 0, "{native:?}");
}

fn end(native: &Native, stream: usize) -> i32 {
    let mut graph = 0;
    // SAFETY: a live stream that is captured.
    native.raw(|raw| unsafe { (raw.end_capture)(stream, &mut graph) })
}

/// Makes allocations of both kinds, copies in both directions, launches, waits and event queries, and
/// releases everything.
fn works(device: &Device) {
    computes(device);
    device.set_memory_kept(0);
}

fn computes(device: &Device) {
    let stream = device.stream().unwrap();
    let on = |array: ArrayRef| stream.upload(&from_arrow(&array).unwrap()).unwrap();
    let there = on(Arc::new(Int32Array::from_iter_values(0..5000)));
    let mask = on(Arc::new(BooleanArray::from_iter((0..5000).map(|i| Some(i % 5 == 0)))));
    let mut later = filter(&there, &mask, &stream);
    let _either = later.is_ready().unwrap();
    let kept = later.wait().unwrap();
    let other = device.stream().unwrap();
    let back = other.download_later(&kept).unwrap().wait().unwrap();
    let expected: ArrayRef = Arc::new(Int32Array::from_iter_values((0..5000).step_by(5)));
    assert_eq!(&to_arrow(&back).unwrap(), &expected);
    other.synchronise().unwrap();
    drop((there, mask, kept, stream, other));
}

fn is_refused<T>(result: bowstring::Result<T>) {
    match result.err() {
        Some(Error::Invalid { problem, .. }) => assert!(problem.contains("graph"), "{problem}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_capture_goes_on_beside_calls_of_any_thread() {
    for native in Native::all() {
        let stranger = native.stranger();
        begin(&native, stranger);
        works(&native.device);
        std::thread::scope(|scope| scope.spawn(|| works(&native.device)).join().unwrap());
        assert_eq!(end(&native, stranger), 0, "{native:?}: the capture is void");
        testing::drain(&native.device);
        destroy_stream(&native, stranger);
        native.close();
    }
}

#[test]
fn a_stream_that_is_captured_is_refused() {
    for native in Native::all() {
        let stranger = native.stranger();
        let handle = std::ptr::without_provenance_mut(stranger);
        // SAFETY: the stranger's stream lives to the end of the test.
        let wrap = || unsafe { native.device.wrap_stream(handle) };
        let stream: Stream = wrap().unwrap();
        let array: ArrayRef = Arc::new(Int32Array::from_iter_values(0..100));
        let host = from_arrow(&array).unwrap();
        let there = stream.upload(&host).unwrap();
        begin(&native, stranger);
        is_refused(wrap());
        is_refused(stream.upload(&host));
        is_refused(stream.download(&there));
        is_refused(stream.synchronise());
        is_refused(stream.mark());
        assert_eq!(end(&native, stranger), 0, "{native:?}: the capture is void");
        // The stream still works as before.
        assert_eq!(&to_arrow(&stream.download(&there).unwrap()).unwrap(), &array);
        drop((there, stream));
        testing::drain(&native.device);
        destroy_stream(&native, stranger);
        native.close();
    }
}

/// Results that an operation on a stream has begun: each needs a number from the device.
fn begun(rows: &DeviceArray, stream: &Stream) -> Pending<DeviceArray> {
    let all = BooleanArray::from(vec![true; 100]);
    filter(rows, &stream.upload(&from_arrow(&all).unwrap()).unwrap(), stream)
}

/// A capture may begin after an operation has. The operation then neither goes on in the graph nor ends in
/// it, and its memory stays until the work from before has passed.
#[test]
fn a_result_that_was_begun_before_a_capture_stays_out_of_it() {
    for native in Native::all() {
        let stranger = native.stranger();
        // SAFETY: the stranger's stream lives to the end of the test.
        let stream =
            unsafe { native.device.wrap_stream(std::ptr::without_provenance_mut(stranger)) }.unwrap();
        let array: ArrayRef = Arc::new(Int32Array::from_iter_values(0..100));
        let there = stream.upload(&from_arrow(&array).unwrap()).unwrap();
        let (waited_for, mut asked, kept) =
            (begun(&there, &stream), begun(&there, &stream), begun(&there, &stream));
        let mut polled = Box::pin(begun(&there, &stream));
        stream.synchronise().unwrap();
        begin(&native, stranger);
        is_refused(waited_for.wait());
        assert!(asked.is_ready().unwrap(), "{native:?}: with an error");
        is_refused(asked.wait());
        let mut context = Context::from_waker(Waker::noop());
        match polled.as_mut().poll(&mut context) {
            Poll::Ready(result) => is_refused(result),
            Poll::Pending => panic!("{native:?}: its event has passed"),
        }
        assert_eq!(end(&native, stranger), 0, "{native:?}: the capture is void");
        assert_eq!(&to_arrow(&stream.download(&kept.wait().unwrap()).unwrap()).unwrap(), &array);

        // Dropped while the work is still there.
        let gate = native.gate(stranger);
        let dropped = begun(&there, &stream);
        let last = begun(&there, &stream);
        begin(&native, stranger);
        drop(dropped);
        computes(&native.device);
        gate.open();
        drop(last);
        works(&native.device);
        assert_eq!(end(&native, stranger), 0, "{native:?}: the capture is void");
        assert_eq!(&to_arrow(&stream.download(&there).unwrap()).unwrap(), &array, "{native:?}");
        drop((there, stream));
        testing::drain(&native.device);
        destroy_stream(&native, stranger);
        native.close();
    }
}

/// The default stream of the calling thread only waits for our work, and a graph must not.
#[test]
fn the_threads_default_stream_does_not_wait_while_it_is_captured() {
    const PER_THREAD: usize = 2;
    for native in Native::all() {
        // SAFETY: the default stream always lives.
        let stream =
            unsafe { native.device.wrap_stream(std::ptr::without_provenance_mut(PER_THREAD)) }.unwrap();
        let array: ArrayRef = Arc::new(Int32Array::from_iter_values(0..100));
        let there = stream.upload(&from_arrow(&array).unwrap()).unwrap();
        let (waited_for, dropped) = (begun(&there, &stream), begun(&there, &stream));
        begin(&native, PER_THREAD);
        is_refused(waited_for.wait());
        drop(dropped);
        assert_eq!(end(&native, PER_THREAD), 0, "{native:?}: the capture is void");
        assert_eq!(&to_arrow(&stream.download(&there).unwrap()).unwrap(), &array, "{native:?}");
        drop((there, stream));
        testing::drain(&native.device);
        native.close();
    }
}

/// A graph cannot wait for an array that is not ready.
#[test]
fn a_consumer_that_captures_gets_only_what_is_ready() {
    for native in Native::all() {
        let [maker, reader] = [native.stranger(), native.stranger()];
        // SAFETY: the strangers' streams live to the end of the test.
        let wrap = |handle| unsafe { native.device.wrap_stream(std::ptr::without_provenance_mut(handle)) };
        let [making, reading] = [maker, reader].map(|handle| wrap(handle).unwrap());
        let gate = native.gate(maker);
        let host = from_arrow(&Int32Array::from_iter_values(0..100)).unwrap();
        let there = making.upload(&host).unwrap();
        begin(&native, reader);
        is_refused(export_dlpack::<DLManagedTensor>(&there, Some(&reading)).map(drop));
        gate.open();
        there.wait().unwrap();
        drop(export_dlpack::<DLManagedTensor>(&there, Some(&reading)).unwrap());
        assert_eq!(end(&native, reader), 0, "{native:?}: the capture is void");
        drop((there, making, reading));
        testing::drain(&native.device);
        destroy_stream(&native, maker);
        destroy_stream(&native, reader);
        native.close();
    }
}

/// A stream of ours becomes part of a capture when it waits for an event that was recorded in one: because
/// another library knows its handle, or an array came with the event. Then no operation runs on it, and
/// after the capture it works as before.
#[test]
fn a_stream_of_ours_that_was_drawn_into_a_capture_is_refused() {
    for native in Native::all() {
        let (stranger, ours) = (native.stranger(), native.device.stream().unwrap());
        let array: ArrayRef = Arc::new(Int32Array::from_iter_values(0..100));
        let host = from_arrow(&array).unwrap();
        let there = ours.upload(&host).unwrap();
        there.wait().unwrap();
        let event = native.made(|raw, event| {
            // SAFETY: the function writes a handle.
            unsafe { (raw.event)(event, 2) }
        });
        let handle = ours.native_handle().unwrap().addr();
        for by_handle in [true, false] {
            begin(&native, stranger);
            // SAFETY: live handles.
            assert_eq!(native.raw(|raw| unsafe { (raw.record)(event, stranger) }), 0);
            let fresh = native.device.stream().unwrap();
            if by_handle {
                // SAFETY: live handles.
                assert_eq!(native.raw(|raw| unsafe { (raw.wait)(handle, event, 0) }), 0);
                is_refused(ours.upload(&host));
                is_refused(filter_of(&there, &ours));
                is_refused(ours.synchronise());
            } else {
                let field = Field::new("x", DataType::Int32, true);
                let (mut exported, schema) = export_array(&there, &field).unwrap();
                // SAFETY: the field of the event comes after 96 bytes of others.
                unsafe {
                    let place = (&raw mut exported).cast::<u8>().add(96).cast::<*const usize>();
                    place.write(&raw const event);
                }
                // SAFETY: the library's own structs, with another event.
                let (_, imported) = unsafe { import_array(&mut exported, &schema, &native.device) }.unwrap();
                is_refused(filter_of(&imported, &fresh));
                is_refused(fresh.upload(&host));
            }
            // The stream was not joined, which the library that captures is told.
            assert_ne!(end(&native, stranger), 0, "{native:?}");
            for stream in [&ours, &fresh] {
                let kept = filter_of(&there, stream).unwrap();
                assert_eq!(&to_arrow(&stream.download(&kept).unwrap()).unwrap(), &array, "{native:?}");
            }
        }
        drop((there, ours));
        testing::drain(&native.device);
        // SAFETY: the test's own.
        native.raw(|raw| unsafe { (raw.destroy_event)(event) });
        destroy_stream(&native, stranger);
        native.close();
    }
}

/// Keeps all of 100 rows.
fn filter_of(rows: &DeviceArray, stream: &Stream) -> bowstring::Result<DeviceArray> {
    let all = BooleanArray::from(vec![true; 100]);
    let host = from_arrow(&all).unwrap();
    filter(rows, &stream.upload(&host)?, stream).wait()
}

#[test]
fn the_stand_in_voids_a_capture_for_a_call_that_is_not_safe() {
    for native in Native::standins() {
        let stranger = native.stranger();
        begin(&native, stranger);
        let mut address = 0;
        // SAFETY: the function writes an address.
        let made = native.raw(|raw| unsafe { (raw.alloc)(&mut address, 64) });
        // SAFETY: a live stream. It is captured already, and the void capture goes on.
        let again = native.raw(|raw| unsafe { (raw.begin_capture)(stranger, GLOBAL) });
        let codes = (made, again, end(&native, stranger));
        assert_eq!(codes, (UNSUPPORTED, UNSUPPORTED, INVALIDATED), "{native:?}");
        destroy_stream(&native, stranger);
        native.close();
    }
}
