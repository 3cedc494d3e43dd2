//! Tests handles that were destroyed while the library still has them: an error names the call and the
//! device, and work goes on. Also tests memory from an engine's allocator, on every driver.

use std::collections::HashMap;
use std::ffi::c_void;
use std::ptr::without_provenance_mut;
use std::rc::Rc;
use std::sync::{Arc, Mutex};

use bowstring::compute::{CastOptions, TakeOptions, cast, filter, null_count, take};
use bowstring::device::Allocator;
use bowstring::device::testing;
use bowstring::exchange::{from_arrow, to_arrow};
use bowstring::ffi::DeviceType;
use bowstring::{DeviceArray, Error};

use super::foreign::Stranger;
use super::*;
use crate::exchange::foreign::{Releases, structs};

fn numbers() -> ArrayRef {
    sample(&DataType::Int64, 500)
}

/// The runtimes' error code for an invalid handle.
const INVALID_HANDLE: i64 = 400;

fn is_stale<T: std::fmt::Debug>(result: Result<T, Error>, native: &Native) {
    let prefix = if native.is_rocm() { "hip" } else { "cu" };
    let kind = native.device.place().device_type;
    let named = matches!(&result, Err(Error::Driver { call, code: INVALID_HANDLE, device }) if *device == kind && call.starts_with(prefix));
    assert!(named, "{native:?}: {result:?}");
}

/// Uploads an array, works on it and downloads it.
fn works(native: &Native) {
    let stream = native.device.stream().unwrap();
    let there = stream.upload(&from_arrow(&numbers()).unwrap()).unwrap();
    assert_eq!(null_count(&there, &stream).wait().unwrap(), numbers().null_count());
    let back = to_arrow(&stream.download(&there).unwrap()).unwrap();
    assert_same_rows(&rows(&back), &rows(&numbers()), &native.name);
}

#[test]
fn an_event_that_its_producer_has_destroyed_is_an_error() {
    // On a real runtime the use of a destroyed handle is undefined, so this test uses only the stand-ins.
    for native in Native::standins().into_iter().map(Rc::new) {
        let kind = native.device.place().device_type;
        let (theirs, releases) = (numbers(), Releases::default());
        let mut stranger = Stranger::new(&native, &theirs, kind, &releases);
        let ours = stranger.import(&native, &DataType::Int64);
        stranger.destroy_event(&native);
        let stream = native.device.stream().unwrap();
        is_stale(ours.ready().unwrap().is_ready(), &native);
        is_stale(ours.wait(), &native);
        is_stale(null_count(&uncounted(ours.clone()), &stream).wait(), &native);
        is_stale(stream.download(&ours).map(|_| ()), &native);
        assert_eq!(releases.count(), 0);
        drop((ours, stream));
        testing::drain(&native.device);
        assert_eq!(releases.count(), structs(&theirs.to_data()), "{native:?}");
        works(&native);
        stranger.gate.open();
        stranger.end(&native);
        Rc::into_inner(native).expect("nothing of the stranger is left").close();
    }
}

#[test]
fn a_stream_that_its_owner_has_destroyed_is_an_error() {
    for native in Native::standins() {
        let handle = native.stranger();
        // SAFETY: the promise is broken below, on a stand-in, which can tell.
        let stream = unsafe { native.device.wrap_stream(without_provenance_mut(handle)) }.unwrap();
        let there = stream.upload(&from_arrow(&numbers()).unwrap()).unwrap();
        there.wait().unwrap();
        // SAFETY: the stranger's own.
        assert_eq!(native.raw(|raw| unsafe { (raw.destroy_stream)(handle) }), 0);
        is_stale(stream.upload(&from_arrow(&numbers()).unwrap()).map(|_| ()), &native);
        is_stale(
            cast(&there, &DataType::Int32, &CastOptions::default(), &stream).wait().map(|_| ()),
            &native,
        );
        is_stale(null_count(&uncounted(there.clone()), &stream).wait().map(|_| ()), &native);
        is_stale(stream.synchronise(), &native);
        // Its earlier results remain valid on other streams.
        let other = native.device.stream().unwrap();
        let back = to_arrow(&other.download(&there).unwrap()).unwrap();
        assert_same_rows(&rows(&back), &rows(&numbers()), &native.name);
        works(&native);
        drop((there, back, other, stream));
        testing::drain(&native.device);
        native.close();
    }
}

/// An engine's memory, allocated by the runtime's plain functions. It leaves no device current on the calling
/// thread.
struct Arena {
    native: Native,
    alive: Mutex<HashMap<usize, usize>>,
}

// SAFETY: every block comes from the runtime, and has no other user until it is freed.
unsafe impl Allocator for Arena {
    fn alloc(&self, bytes: usize, _: *mut c_void) -> bowstring::Result<usize> {
        // SAFETY: the function writes an address.
        let address = self.native.made(|raw, to| unsafe { (raw.alloc)(to, bytes) });
        assert_eq!(self.alive.lock().unwrap().insert(address, bytes), None);
        Ok(address)
    }

    unsafe fn free(&self, address: usize, bytes: usize, stream: *mut c_void) {
        assert_eq!(
            self.alive.lock().unwrap().remove(&address),
            Some(bytes),
            "freed once, as it was allocated"
        );
        // SAFETY: the stream is the library's, and the memory has no user after its work.
        self.native.raw(|raw| unsafe {
            assert_eq!((raw.synchronise)(stream.addr()), 0);
            assert_eq!((raw.free)(address), 0);
        });
    }
}

#[test]
fn memory_comes_from_an_engines_allocator() {
    for native in Native::all() {
        let name = native.name.clone();
        let arena = Arc::new(Arena { native, alive: Mutex::default() });
        let device = arena.native.device.with_allocator(arena.clone()).unwrap();
        let stream = device.stream().unwrap();
        let up = |array: &ArrayRef| stream.upload(&from_arrow(array).unwrap()).unwrap();
        let (host, there) = (numbers(), up(&numbers()));
        assert!(arena.alive.lock().unwrap().contains_key(&there.buffers()[0].address()), "{name}");
        let mask = arrow_array::BooleanArray::from_iter((0..500).map(|i| Some(i % 3 == 0)));
        let indices: ArrayRef = Arc::new(arrow_array::Int32Array::from_iter_values((0..500).rev()));
        let kept = filter(&there, &up(&(Arc::new(mask.clone()) as ArrayRef)), &stream).wait().unwrap();
        let taken = take(&there, &up(&indices), &TakeOptions::default(), &stream).wait().unwrap();
        let casted = cast(&there, &DataType::Utf8, &CastOptions::default(), &stream).wait();
        assert!(casted.is_err() || casted.is_ok_and(|casted| casted.len() == 500));
        let down = |array: &DeviceArray| rows(&to_arrow(&stream.download(array).unwrap()).unwrap());
        assert_same_rows(&down(&kept), &rows(&arrow_select::filter::filter(&host, &mask).unwrap()), &name);
        let theirs = arrow_select::take::take(&host, &indices, None).unwrap();
        assert_same_rows(&down(&taken), &rows(&theirs), &name);
        drop((there, kept, taken, stream));
        testing::drain(&device);
        drop(device);
        assert_eq!(*arena.alive.lock().unwrap(), HashMap::new(), "{name}");
        Arc::into_inner(arena).expect("nobody else has it").native.close();
    }
}

#[test]
fn a_device_that_is_too_old_is_none() {
    let Err(Error::NoDevice { device: DeviceType::Cuda, reason }) = Native::oldest() else {
        panic!("it has a device")
    };
    assert_eq!(reason, "compute capability 6.1 is below 7.5");
}
