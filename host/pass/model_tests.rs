//! Models of work on a device: the pool's blocks go from stream to stream, events have one outcome, futures
//! are woken, and inputs live until the work that reads them has passed. The emulator's streams are threads
//! of the model, too.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use shuttle::rand::{Rng, thread_rng};

use super::ordering_tests::{three_streams, three_streams_and};
use super::tests::{checked, count, counted, sample};
use super::*;
use crate::device::faulty::Break;
use crate::device::model_tests::{explore, goes_wrong};
use crate::device::sync::thread;
use crate::device::testing::{EmulatedDevice, EmulatorOptions, drain};

/// A device whose pool keeps at most `keep` unused bytes.
fn device(keep: Option<usize>) -> EmulatedDevice {
    EmulatedDevice::new(EmulatorOptions { keep, width: 64, ..Default::default() }).unwrap()
}

/// Checks that no rule was broken, and that all memory was returned.
fn ends(device: EmulatedDevice) {
    drain(device.device());
    assert_eq!(device.faults(), []);
    assert_eq!(device.close().alive(), Default::default());
}

#[test]
fn blocks_go_from_stream_to_stream_once_their_use_has_passed() {
    explore(|| {
        let device = Arc::new(device(None));
        let work = || {
            let device = device.clone();
            thread::spawn(move || {
                let stream = device.device().stream().unwrap();
                let array = stream.upload(&sample(70).0).unwrap();
                // The memory of the count returns to the pool while the count may still be pending.
                drop(later(&array, &stream));
                drop((array, stream));
                assert_eq!(three_streams(&device, 65), Ok(true));
            })
        };
        for thread in [work(), work()] {
            thread.join().unwrap();
        }
        ends(Arc::into_inner(device).unwrap());
    });
}

#[test]
fn memory_goes_back_to_the_device_after_its_use() {
    explore(|| {
        let device = device(Some(0));
        assert_eq!(three_streams(&device, 65), Ok(true));
        ends(device);
    });
}

#[test]
fn a_skipped_wait_is_noticed() {
    assert!(goes_wrong(|| {
        let options = EmulatorOptions { keep: Some(0), width: 64, ..Default::default() };
        let device = EmulatedDevice::faulty(options, Break::Waits).unwrap();
        assert_eq!(three_streams(&device, 65), Ok(true));
        ends(device);
    }));
}

#[test]
fn an_event_recorded_too_early_is_noticed() {
    assert!(goes_wrong(|| {
        let options = EmulatorOptions { keep: Some(0), width: 64, ..Default::default() };
        let device = EmulatedDevice::faulty(options, Break::Records).unwrap();
        assert_eq!(three_streams(&device, 65), Ok(true));
        ends(device);
    }));
}

#[test]
fn an_input_freed_too_early_is_noticed() {
    assert!(goes_wrong(|| {
        let device = device(Some(0));
        let let_go = || device.device().as_gpu().map_or((), |gpu| gpu.let_go_too_early());
        assert_eq!(three_streams_and(&device, 65, let_go), Ok(true));
        ends(device);
    }));
}

#[test]
fn a_call_that_fails_leaves_nothing_whoever_is_under_way() {
    explore(|| {
        let device = Arc::new(device(None));
        device.fail(None, 1 + thread_rng().gen_range(0..80), 1 + thread_rng().gen_range(0..3));
        let work = || {
            let device = device.clone();
            thread::spawn(move || three_streams(&device, 65))
        };
        for thread in [work(), work()] {
            let result = thread.join().unwrap();
            let expected = matches!(result, Ok(true) | Err(Error::Driver { .. } | Error::OutOfMemory { .. }));
            assert!(expected, "{result:?}");
        }
        device.stop_failing();
        assert_eq!(three_streams(&device, 65), Ok(true));
        ends(Arc::into_inner(device).unwrap());
    });
}

#[test]
fn an_event_has_one_outcome_whoever_asks_first() {
    explore(|| {
        let device = device(None);
        let (stream, other) = (device.device().stream().unwrap(), device.device().stream().unwrap());
        let array = stream.upload(&sample(70).0).unwrap();
        let bad = checked(&array, 3, &stream).unwrap();
        let from_bad = checked(&bad, 3, &other).unwrap();
        drop((array, stream, other));
        let asks = |array: &DeviceArray| {
            let array = array.clone();
            thread::spawn(move || array.ready().unwrap().wait())
        };
        let asked = [asks(&bad), asks(&bad), asks(&from_bad)];
        drop((bad, from_bad));
        let error = Error::IndexOutOfBounds { row: 0, index: 10, len: 3 };
        for asked in asked {
            assert_eq!(asked.join().unwrap(), Err(error.clone()));
        }
        ends(device);
    });
}

/// The number of nulls of an array, once the device has counted them.
fn later(array: &DeviceArray, stream: &Stream) -> Pending<u64> {
    let mut pass = Pass::begin("null_count", stream).unwrap();
    let region = count(&mut pass, array, None).unwrap();
    counted(pass, region)
}

fn poll<T>(pending: &mut Pending<T>) -> Poll<Result<T>> {
    std::pin::Pin::new(pending).poll(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn the_task_that_asked_last_is_woken() {
    explore(|| {
        let device = device(None);
        let stream = device.device().stream().unwrap();
        let (array, nulls) = sample(70);
        let array = stream.upload(&array).unwrap();
        let mut nulls_later = later(&array, &stream);
        let abandoned = later(&array, &stream);
        drop((array, stream));
        if let Poll::Ready(known) = poll(&mut nulls_later) {
            drop(abandoned);
            assert_eq!(known, Ok(nulls));
        } else {
            let another = thread::spawn(move || shuttle::future::block_on(nulls_later));
            drop(abandoned);
            assert_eq!(another.join().unwrap(), Ok(nulls));
        }
        ends(device);
    });
}
