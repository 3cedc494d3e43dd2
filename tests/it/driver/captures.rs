//! Tests calls of ours while another library captures a graph, as PyTorch and JAX do: our calls neither fail
//! nor invalidate the capture, and a captured stream is not used for work.

use std::sync::Arc;

use arrow_array::{BooleanArray, Int32Array};
use bowstring::compute::filter;
use bowstring::device::testing;
use bowstring::exchange::{from_arrow, to_arrow};
use bowstring::{Error, Stream};

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
    device.set_memory_kept(0);
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
        assert_eq!(end(&native, stranger), 0, "{native:?}: the capture is void");
        // The stream still works as before.
        assert_eq!(&to_arrow(&stream.download(&there).unwrap()).unwrap(), &array);
        drop((there, stream));
        testing::drain(&native.device);
        destroy_stream(&native, stranger);
        native.close();
    }
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
