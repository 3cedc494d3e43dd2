//! Tests that a failing call becomes an error that names the call, the code and the device, and that the
//! library goes on.

use std::ffi::{CStr, c_void};
use std::ptr::without_provenance_mut;

use bowstring::compute::null_count;
use bowstring::device::testing;
use bowstring::exchange::{from_arrow, to_arrow};
use bowstring::ffi::DeviceType;
use bowstring::{Error, Stream};

use super::*;

/// The functions by which versions of the runtimes allocate a device's memory.
const ALLOCATIONS: [&CStr; 4] =
    [c"cuMemAllocFromPoolAsync", c"cuMemAlloc_v2", c"hipMallocAsync", c"hipMalloc"];

fn numbers() -> bowstring::DeviceArray {
    from_arrow(&sample(&DataType::Int64, 1000)).unwrap()
}

#[test]
fn memory_that_runs_out_is_out_of_memory_and_comes_back() {
    with_devices(|name, device| {
        let stream = device.stream().unwrap();
        device.set_memory_limit(20_000);
        let first = stream.upload(&numbers()).unwrap();
        let second = stream.upload(&numbers()).unwrap();
        let kind = device.place().device_type;
        stream.synchronise().unwrap();
        let waits = device.host_synchronisations();
        let full = stream.upload(&numbers());
        // It waits for memory on its way back before it gives up.
        assert!(device.host_synchronisations() > waits, "{name}");
        assert!(matches!(full, Err(Error::OutOfMemory { device, .. }) if device == kind), "{name}: {full:?}");
        drop((first, second));
        device.set_memory_limit(usize::MAX);
        let there = stream.upload(&numbers()).unwrap();
        assert_eq!(null_count(&there, &stream).wait().unwrap(), sample(&DataType::Int64, 1000).null_count());
    });
    for native in Native::standins() {
        let (standin, stream) = (native.standin.unwrap(), native.device.stream().unwrap());
        // SAFETY: text that ends with a zero.
        let made = |call: &CStr| unsafe { (standin.calls)(call.as_ptr()) };
        let before = ALLOCATIONS.map(made);
        let first = stream.upload(&numbers()).unwrap();
        let mut calls = ALLOCATIONS.into_iter().zip(before);
        let (alloc, _) = calls.find(|(call, before)| made(call) > *before).unwrap();
        // However often the library retries, the memory has run out.
        // SAFETY: text that ends with a zero.
        unsafe { (standin.fail)(alloc.as_ptr(), 1, 100, 2) };
        let kind = native.device.place().device_type;
        assert!(
            matches!(stream.upload(&numbers()), Err(Error::OutOfMemory { device, .. }) if device == kind)
        );
        assert!(standin.stop());
        stream.upload(&numbers()).unwrap();
        drop((first, stream));
        native.close();
    }
}

#[test]
fn every_call_may_fail_and_the_next_one_works() {
    for make in [0, 1, 2] {
        for nth in 1.. {
            let native = Native::standins().swap_remove(make);
            let standin = native.standin.unwrap();
            let go = || -> bowstring::Result<()> {
                let stream = native.device.stream()?;
                let there = stream.upload(&numbers())?;
                let nulls = null_count(&there, &stream).wait()?;
                let back = to_arrow(&stream.download(&there)?)?;
                assert_eq!(nulls, back.null_count());
                assert_same_rows(&rows(&back), &rows(&sample(&DataType::Int64, 1000)), &nth);
                Ok(())
            };
            standin.fail_call(None, nth, 999);
            let result = go();
            let failed = standin.stop();
            let kind = native.device.place().device_type;
            match result {
                Ok(()) => {}
                Err(Error::Driver { call, code: 999, device }) => {
                    let prefix = if native.is_rocm() { "hip" } else { "cu" };
                    assert!(device == kind && call.starts_with(prefix), "{call} on {device}");
                }
                other => panic!("{native:?}, call {nth}: {other:?}"),
            }
            go().unwrap();
            testing::drain(&native.device);
            native.close();
            if !failed {
                assert!(nth > 10, "the way has more calls than {nth}");
                break;
            }
        }
    }
}

#[test]
fn a_device_that_cannot_be_made_current_is_an_error() {
    for (native, call) in
        Native::standins().into_iter().zip(["cuCtxSetCurrent", "hipSetDevice", "hipSetDevice"])
    {
        let (standin, stream) = (native.standin.unwrap(), native.device.stream().unwrap());
        let device = native.device.place().device_type;
        standin.fail_call(Some(call), 1, 201);
        assert_eq!(stream.upload(&numbers()).unwrap_err(), Error::Driver { call, code: 201, device });
        assert!(standin.stop());
        stream.upload(&numbers()).unwrap();
    }
}

/// HIP keeps the code of a thread's last failed call. Other libraries would take one of ours for theirs.
#[test]
fn no_error_of_ours_stays_with_the_thread() {
    for native in Native::standins() {
        let Some(last_error) = native.raw.last_error else { continue };
        let (standin, stream) = (native.standin.unwrap(), native.device.stream().unwrap());
        // SAFETY: the function takes nothing.
        let last = || unsafe { last_error() };
        last();
        assert_eq!(native.device.place_of(0x1234).unwrap(), None);
        assert_eq!(last(), 0, "{native:?}: an address that is unknown");
        stream.upload(&numbers()).unwrap();
        assert_eq!(last(), 0, "{native:?}");
        standin.fail_call(Some("hipMalloc"), 1, 2);
        native.device.set_memory_kept(0);
        let large = sample(&DataType::Int64, 100_000);
        let there = stream.upload(&from_arrow(&large).unwrap()).map(drop);
        assert!(standin.stop());
        assert_eq!(last(), 0, "{native:?}: {there:?}");
        drop(stream);
        native.close();
    }
}

#[test]
fn streams_of_other_devices_and_none_are_refused() {
    for of in [(DeviceType::Cuda, "cuStreamGetCtx"), (DeviceType::Rocm, "hipStreamGetDevice")] {
        let (one, other) = (Native::standin(of.0, 0), Native::standin(of.0, 0));
        let theirs = other.stranger();
        let wrap = |handle: usize| {
            let handle: *mut c_void = without_provenance_mut(handle);
            // SAFETY: a live stream of another device, or no stream: the stand-in can tell.
            unsafe { one.device.wrap_stream(handle) }
        };
        let (call, device) = (of.1, of.0);
        assert_eq!(wrap(theirs).unwrap_err(), Error::Driver { call, code: 201, device });
        // SAFETY: the stranger's own.
        other.raw(|raw| unsafe { (raw.destroy_stream)(theirs) });
        assert_eq!(wrap(theirs).unwrap_err(), Error::Driver { call, code: 400, device }, "a destroyed one");
        for native in [one, other] {
            native.close();
        }
    }
}

#[test]
fn arrays_and_streams_of_different_devices_do_not_mix() {
    for of in [DeviceType::Cuda, DeviceType::Rocm] {
        let (one, other) = (Native::standin(of, 0), Native::standin(of, 0));
        let (here, there) = (one.device.stream().unwrap(), other.device.stream().unwrap());
        let array = here.upload(&numbers()).unwrap();
        for wrong in [
            null_count(&array, &there).wait().err(),
            there.download(&array).err(),
            there.upload(&array).err(),
        ] {
            assert!(matches!(wrong, Some(Error::Invalid { .. })), "{wrong:?}");
        }
        assert!(matches!(Stream::cpu().download(&array), Err(Error::Invalid { .. })));
        drop((array, here, there));
        for native in [one, other] {
            native.close();
        }
    }
}

/// An array at an address without memory, and a mask for it.
fn stray(stream: &Stream) -> (bowstring::DeviceArray, bowstring::DeviceArray) {
    let mut parts = stream.upload(&numbers()).unwrap().into_parts();
    let address = parts.buffers[0].address() + (1 << 40);
    // SAFETY: only the stand-in reads the address, and it knows that no memory is there.
    parts.buffers[0] = unsafe { bowstring::array::Buffer::new(address, Some(8000), std::sync::Arc::new(())) };
    let mask = arrow_array::BooleanArray::from_iter((0..1000).map(|i| Some(i % 2 == 0)));
    let mask = from_arrow(&(std::sync::Arc::new(mask) as ArrayRef)).unwrap();
    (bowstring::DeviceArray::try_new(parts).unwrap(), stream.upload(&mask).unwrap())
}

#[test]
fn a_device_whose_work_has_strayed_is_lost_and_no_other() {
    // The HIP stand-in would really read the invalid address and crash; the driver is the same code.
    let of = DeviceType::Cuda;
    // Not closed like the others, because the test is about its faults.
    let (lost, other) = (Native::standin(of, 0), Native::standin(of, 0));
    let stream = lost.device.stream().unwrap();
    let before = stream.upload(&numbers()).unwrap();
    before.wait().unwrap();
    let (array, mask) = stray(&stream);
    let kept = bowstring::compute::filter(&array, &mask, &stream).wait();
    let ready = kept.and_then(|kept| kept.ready().unwrap().wait());
    let is_lost = |error: &Error| matches!(error, Error::Driver { call, code: 700, device } if *device == of && call.starts_with("cu"));
    assert!(ready.as_ref().is_err_and(is_lost), "{ready:?}");
    // From then on every call fails in the same way, and at once.
    let every: Vec<(&str, bowstring::Result<()>)> = vec![
        ("upload", stream.upload(&numbers()).map(drop)),
        ("download", stream.download(&before).and_then(|back| back.wait())),
        ("filter", bowstring::compute::filter(&before, &mask, &stream).wait().map(drop)),
        ("stream", lost.device.stream().map(drop)),
        ("synchronise", stream.synchronise()),
    ];
    for (what, result) in every {
        assert!(result.as_ref().is_err_and(is_lost), "{what}: {result:?}");
    }
    // Another device of the same runtime still works.
    let elsewhere = other.device.stream().unwrap();
    let there = elsewhere.upload(&numbers()).unwrap();
    let back = to_arrow(&elsewhere.download(&there).unwrap()).unwrap();
    assert_same_rows(&rows(&back), &rows(&sample(&DataType::Int64, 1000)), &"the other device");
    drop((there, back, elsewhere));
    other.close();
    // Shutting down does not hang, and frees each resource once: freeing it twice would be a fault.
    drop((before, array, mask, stream));
    let Native { device, standin, .. } = lost;
    let (place, standin) = (device.place(), standin.unwrap());
    testing::drain(&device);
    drop(device);
    let patience = std::time::Instant::now();
    while standin.alive(place) != [0; 3] && patience.elapsed().as_secs() < 60 {
        std::thread::yield_now();
    }
    assert_eq!((standin.alive(place), standin.faults(place)), ([0; 3], 1), "the stray access alone");
}
