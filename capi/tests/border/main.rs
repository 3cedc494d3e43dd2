//! Calls the C interface like a careless program: options of odd sizes, missing devices, empty handles
//! (`../null.rs` passes NULL). Also moves arrays to the emulated device and back through the same functions.

mod doctor;
mod nulls;
mod prepared_joins;
mod relational;
mod relational_streams;
mod threads;
mod validate;
mod windows;

use std::ffi::CStr;
use std::ptr::{null, null_mut};
use std::sync::Arc;

use BowstringStatus::{IndexOutOfBounds, Invalid, NoDevice, Ok};
use arrow_array::{ArrayRef, BooleanArray, Int32Array, RecordBatch};
use bowstring::array::{Batches, Place};
use bowstring::exchange;
use bowstring::ffi::{ArrowDeviceArray, ArrowDeviceArrayStream, AsyncHandler, DeviceType, FFI_ArrowSchema};
use bowstring_c::*;

const EMULATED: i32 = DeviceType::Emulated as i32;

fn last_error() -> String {
    // SAFETY: never null, and valid until the next failure of this thread.
    unsafe { CStr::from_ptr(bowstring_last_error()) }.to_str().unwrap().to_owned()
}

fn device(kind: i32) -> *mut BowstringDevice {
    let mut device = null_mut();
    // SAFETY: a place for a handle.
    assert_eq!(unsafe { bowstring_device_open(kind, 0, &mut device) }, Ok);
    device
}

fn stream(device: *const BowstringDevice) -> *mut BowstringStream {
    let mut stream = null_mut();
    // SAFETY: a live handle and a place for another.
    assert_eq!(unsafe { bowstring_stream_new(device, &mut stream) }, Ok);
    stream
}

/// Imports a host array of arrow-rs, and returns its handle.
fn import(device: *const BowstringDevice, array: &dyn arrow_array::Array) -> *mut BowstringArray {
    let array = exchange::from_arrow(array).unwrap();
    let field = arrow_schema::Field::new("x", array.data_type().clone(), true);
    let (mut array, schema) = exchange::export_array(&array, &field).unwrap();
    let mut handle = null_mut();
    // SAFETY: structs that were just exported, and live handles.
    assert_eq!(unsafe { bowstring_array_import(device, &mut array, &schema, &mut handle) }, Ok);
    assert!(array.is_released());
    handle
}

/// Exports the array of a handle, which must be in host memory.
fn export(handle: *const BowstringArray) -> arrow_array::ArrayRef {
    let (mut array, mut schema) = (ArrowDeviceArray::empty(), FFI_ArrowSchema::empty());
    // SAFETY: a live handle, released structs, and then what they were exported as.
    let (_, array) = unsafe {
        assert_eq!(bowstring_array_export(handle, &mut array, &mut schema), Ok);
        exchange::import_array(&mut array, &schema, &bowstring::Device::cpu()).unwrap()
    };
    exchange::to_arrow(&array).unwrap()
}

#[test]
fn a_result_that_nobody_wants_is_an_error_and_not_leaked() {
    let device = device(1);
    let stream = stream(device);
    let array = import(device, &Int32Array::from(vec![1, 2]));
    // SAFETY: live handles; the place for the result is what is missing.
    unsafe {
        assert_eq!(bowstring_is_null(array, stream, null_mut()), Invalid);
        assert_eq!(bowstring_array_slice(array, 1, u64::MAX, &mut null_mut()), Invalid);
        bowstring_array_free(array);
        bowstring_stream_free(stream);
        bowstring_device_free(device);
    }
}

#[test]
fn devices_that_are_not_there_are_errors() {
    let mut device = null_mut();
    // SAFETY: a place for a handle.
    let open = |kind, id, device: &mut *mut _| unsafe { bowstring_device_open(kind, id, device) };
    assert_eq!(open(99, 0, &mut device), Invalid);
    assert_eq!(open(2, 1 << 40, &mut device), NoDevice);
    assert_eq!(open(EMULATED, 7, &mut device), NoDevice);
    assert_eq!(open(3, 0, &mut device), NoDevice);
    assert!(last_error().starts_with("no CUDA_HOST device: "));
    assert!(device.is_null());
}

#[test]
fn options_say_how_large_they_are() {
    let device = device(1);
    let stream = stream(device);
    let values = import(device, &Int32Array::from(vec![1, 2]));
    let indices = import(device, &Int32Array::from(vec![5]));
    let mut out = null_mut();
    let mut take = |size: usize, null: i32, later: u64| {
        // The options of a later version have more fields.
        #[repr(C)]
        struct Later(BowstringTakeOptions, u64);
        let options = Later(BowstringTakeOptions { size, out_of_bounds_is_null: null }, later);
        // SAFETY: live handles, options of at least `size` bytes.
        unsafe { bowstring_take(values, indices, (&raw const options).cast(), stream, &mut out) }
    };
    let known = size_of::<BowstringTakeOptions>();
    assert_eq!(take(0, 1, 0), Invalid);
    assert_eq!(take(known - 1, 1, 0), Invalid);
    assert_eq!(take(usize::MAX, 1, 0), Invalid);
    // An earlier version's options lack the field, which is then 0.
    assert_eq!(take(size_of::<usize>(), 1, 1), IndexOutOfBounds);
    assert_eq!(take(known + 8, 1, 1), Invalid);
    assert_eq!(last_error(), "C interface: options that this version does not know");
    assert_eq!(take(known, 0, 0), IndexOutOfBounds);
    assert_eq!(take(known + 8, 1, 0), Ok);
    assert_eq!(export(out).null_count(), 1);
    // SAFETY: handles that are not used again.
    unsafe {
        bowstring_array_free(out);
        bowstring_array_free(indices);
        bowstring_array_free(values);
        bowstring_stream_free(stream);
        bowstring_device_free(device);
    }
}

#[test]
fn the_emulated_device_does_the_same() {
    let (device, mut there) = (device(EMULATED), null_mut());
    let stream = stream(device);
    let values = import(device, &Int32Array::from(vec![Some(1), None, Some(3), Some(4)]));
    let mask = import(device, &BooleanArray::from(vec![true, true, false, true]));
    let [mut mask_there, mut kept, mut back] = [null_mut(); 3];
    // SAFETY: live handles, places for more.
    unsafe {
        assert_eq!(bowstring_array_to_device(values, stream, &mut there), Ok);
        assert_eq!(bowstring_filter(there, mask, stream, &mut kept), Invalid);
        assert_eq!(bowstring_array_to_device(mask, stream, &mut mask_there), Ok);
        assert_eq!(bowstring_filter(there, mask_there, stream, &mut kept), Ok);
        let mut exported = ArrowDeviceArray::empty();
        assert_eq!(bowstring_array_export(kept, &mut exported, null_mut()), Ok);
        assert_eq!(exported.device_type(), EMULATED);
        assert_eq!(bowstring_array_to_host(kept, stream, &mut back), Ok);
        assert_eq!(export(back).as_ref(), &Int32Array::from(vec![Some(1), None, Some(4)]));
        assert_eq!(bowstring_stream_synchronise(stream), Ok);
        for array in [values, mask, there, mask_there, kept, back] {
            bowstring_array_free(array);
        }
        bowstring_stream_free(stream);
        bowstring_device_free(device);
    }
}

#[test]
fn streams_go_to_the_device_and_back_and_handles_are_given_away_once() {
    let device = device(EMULATED);
    let stream = stream(device);
    let numbers = |rows: std::ops::Range<i32>| {
        let keep: BooleanArray = rows.clone().map(|i| Some(i % 2 == 1)).collect();
        let columns: [ArrayRef; 2] = [Arc::new(Int32Array::from_iter_values(rows)), Arc::new(keep)];
        RecordBatch::try_from_iter(["n", "keep"].into_iter().zip(columns)).unwrap()
    };
    let batches = [numbers(0..5), numbers(5..6), numbers(6..6), numbers(6..40), numbers(40..41)];
    let ours: Vec<_> = batches.iter().map(exchange::batch_from_arrow).collect();
    let mut source =
        exchange::export_batches(Batches::new(batches[0].schema(), Place::CPU, ours.into_iter()));
    let (mut host, mut there, mut kept, mut back) = (null_mut(), null_mut(), null_mut(), null_mut());
    let mut result = ArrowDeviceArrayStream::empty();
    // SAFETY: live handles, places for more.
    let reader = unsafe {
        assert_eq!(bowstring_batches_import(device, &mut source, &mut host), Ok);
        assert_eq!(bowstring_batches_to_device(host, stream, &mut there), Ok);
        assert_eq!(bowstring_batches_to_device(host, stream, &mut there), Invalid);
        assert_eq!(last_error(), "C interface: the stream was given away already");
        assert_eq!(bowstring_batches_filter_by(there, 2, stream, &mut kept), Invalid);
        assert_eq!(bowstring_batches_filter_by(there, 1, stream, &mut kept), Ok);
        assert_eq!(bowstring_batches_to_host(kept, stream, &mut back), Ok);
        assert_eq!(bowstring_batches_export(back, &mut result), Ok);
        assert_eq!(bowstring_batches_export(back, &mut result), Invalid);
        for handle in [host, there, kept, back] {
            bowstring_batches_free(handle);
        }
        exchange::import_batches(&mut result, &bowstring::Device::cpu()).unwrap()
    };
    let got: Vec<i32> = reader
        .map(|batch| exchange::batch_to_arrow(&batch.unwrap()).unwrap())
        .flat_map(|batch| batch.column(0).as_any().downcast_ref::<Int32Array>().unwrap().values().to_vec())
        .collect();
    assert_eq!(got, (1..41).step_by(2).collect::<Vec<_>>());
    // SAFETY: handles that are not used again.
    unsafe {
        bowstring_stream_free(stream);
        bowstring_device_free(device);
    }
}

#[test]
fn asynchronous_streams_go_from_one_handle_to_another() {
    let device = device(EMULATED);
    let stream = stream(device);
    let batch =
        RecordBatch::try_from_iter([("n", Arc::new(Int32Array::from(vec![1, 2])) as ArrayRef)]).unwrap();
    let ours = vec![exchange::batch_from_arrow(&batch); 5];
    let said = std::collections::BTreeMap::from([("rows".to_string(), "10".to_string())]);
    let source =
        || exchange::export_batches(Batches::new(batch.schema(), Place::CPU, ours.clone().into_iter()));
    // SAFETY: live handles, places for more.
    unsafe {
        for taken in [0, 2, 5] {
            let [mut host, mut there, mut waited] = [null_mut(); 3];
            let (mut handler, mut sent) = (null_mut(), null_mut());
            assert_eq!(bowstring_batches_import(device, &mut source(), &mut host), Ok);
            assert_eq!(bowstring_batches_to_device(host, stream, &mut there), Ok);
            assert_eq!(bowstring_batches_export_async(there, null(), null_mut()), Invalid);
            assert_eq!(bowstring_async_batches_new(device, 2, &mut handler, &mut sent), Ok);
            let malformed = (-1i32).to_ne_bytes();
            let refused = bowstring_batches_export_async(there, malformed.as_ptr().cast(), handler);
            assert_eq!(
                (refused, last_error().as_str()),
                (Invalid, "C interface: metadata with a negative number")
            );
            let words = bowstring::ffi::metadata::encode(&said).unwrap().unwrap();
            assert_eq!(bowstring_batches_export_async(there, words.as_ptr().cast(), handler), Ok);
            let mut stream_said = null();
            assert_eq!(bowstring_async_batches_metadata(sent, &mut stream_said), Ok);
            assert_eq!(bowstring::ffi::metadata::decode(stream_said), Some(said.clone()));
            assert_eq!(bowstring_batches_export_async(there, null(), handler), Invalid);
            assert_eq!(bowstring_async_batches_wait(sent, &mut waited), Ok);
            assert_eq!(bowstring_async_batches_wait(sent, &mut waited), Invalid);
            assert_eq!(last_error(), "C interface: the stream was given away already");
            for _ in 0..taken {
                let mut got = null_mut();
                let mut exported = ArrowDeviceArray::empty();
                assert_eq!(bowstring_batches_next(waited, &mut got), Ok);
                assert_eq!(bowstring_batch_export(got, &mut exported, null_mut()), Ok);
                assert_eq!(exported.device_type(), EMULATED);
                bowstring_batch_free(got);
            }
            for handle in [host, there, waited] {
                bowstring_batches_free(handle);
            }
            bowstring_async_batches_free(sent);
        }
        // A handler that is never given to a producer, and a failure before the schema.
        let (mut handler, mut sent, mut waited) = (null_mut(), null_mut(), null_mut());
        assert_eq!(bowstring_async_batches_new(device, 2, &mut handler, &mut sent), Ok);
        drop(AsyncHandler::from_raw(std::ptr::NonNull::new(handler).unwrap()));
        assert_eq!(bowstring_async_batches_wait(sent, &mut waited), BowstringStatus::OutOfSpec);
        bowstring_async_batches_free(sent);
        bowstring_stream_free(stream);
        bowstring_device_free(device);
    }
}

#[test]
fn arrays_say_where_they_are_and_go_out_and_in_as_tensors() {
    let numbers: ArrayRef = Arc::new(Int32Array::from(vec![1, 2, 3]));
    let booleans: ArrayRef = Arc::new(BooleanArray::from(vec![true, false, true]));
    for (kind, id) in [(1, -1), (EMULATED, 0)] {
        let device = device(kind);
        let stream = stream(device);
        for array in [&numbers, &booleans] {
            let host = import(device, array);
            let [mut there, mut first, mut second, mut back] = [null_mut(); 4];
            let (mut legacy, mut versioned) = (null_mut(), null_mut());
            let (mut device_type, mut device_id) = (0, 0);
            // SAFETY: live handles, places for more; each tensor is used once.
            unsafe {
                assert_eq!(bowstring_array_to_device(host, stream, &mut there), Ok);
                assert_eq!(bowstring_array_device(there, null_mut(), &mut device_id), Invalid);
                assert_eq!(bowstring_array_device(there, &mut device_type, &mut device_id), Ok);
                assert_eq!((device_type, device_id), (kind, id));
                assert_eq!(bowstring_array_export_dlpack(there, stream, &mut legacy), Ok);
                assert_eq!(bowstring_array_import_dlpack(legacy, stream, &mut first), Ok);
                assert_eq!(bowstring_array_export_dlpack_versioned(first, stream, &mut versioned), Ok);
                assert_eq!(bowstring_array_import_dlpack_versioned(versioned, stream, &mut second), Ok);
                assert_eq!(bowstring_array_to_host(second, stream, &mut back), Ok);
                assert_eq!(&export(back), array);
                for handle in [host, there, first, second, back] {
                    bowstring_array_free(handle);
                }
            }
        }
        // SAFETY: handles that are not used again.
        unsafe {
            bowstring_stream_free(stream);
            bowstring_device_free(device);
        }
    }
}
