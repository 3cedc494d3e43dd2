//! Validates malformed contents through the C interface: on request, during import, and batch by batch in a
//! stream.

use std::ptr::null_mut;
use std::sync::Arc;

use BowstringStatus::{Ok, OutOfSpec};
use arrow_array::BinaryArray;
use arrow_schema::{DataType, Field, Schema};
use bowstring::array::{Batches, Place};
use bowstring::ffi::{ArrowDeviceArray, ArrowDeviceArrayStream, DeviceType, FFI_ArrowSchema};
use bowstring::{DeviceArray, DeviceBatch, exchange};
use bowstring_c::*;

use super::{EMULATED, device, last_error, stream};

/// An array of text, whose bytes are valid UTF-8 or not.
fn text(good: bool) -> DeviceArray {
    let rows: [&[u8]; 2] = [b"one", if good { b"two" } else { b"\xff" }];
    let mut parts = exchange::from_arrow(&BinaryArray::from_iter_values(rows)).unwrap().into_parts();
    parts.data_type = DataType::Utf8;
    DeviceArray::try_new(parts).unwrap()
}

fn schema() -> Schema {
    Schema::new(vec![Field::new("t", DataType::Utf8, true)])
}

fn batch(good: bool) -> DeviceBatch {
    DeviceBatch::try_new(Arc::new(schema()), vec![text(good)], 2).unwrap()
}

fn array_structs(good: bool) -> (ArrowDeviceArray, FFI_ArrowSchema) {
    exchange::export_array(&text(good), schema().field(0)).unwrap()
}

#[test]
fn contents_are_looked_at_when_asked_for() {
    for kind in [1, EMULATED] {
        let device = device(kind);
        let stream = stream(device);
        for good in [true, false] {
            let expected = if good { Ok } else { OutOfSpec };
            let [mut believed, mut there, mut looked_at] = [null_mut(); 3];
            let [mut batch_believed, mut batch_there, mut batch_looked_at] = [null_mut(); 3];
            // SAFETY: live handles, places for more, structs that were just exported.
            unsafe {
                let (mut array, array_schema) = array_structs(good);
                assert_eq!(bowstring_array_import(device, &mut array, &array_schema, &mut believed), Ok);
                assert_eq!(bowstring_array_to_device(believed, stream, &mut there), Ok);
                assert_eq!(bowstring_array_validate(there, stream), expected);

                let (mut array, array_schema) = array_structs(good);
                let imported = bowstring_array_import_validated(
                    device,
                    &mut array,
                    &array_schema,
                    stream,
                    &mut looked_at,
                );
                assert_eq!((imported, looked_at.is_null(), array.is_released()), (expected, !good, true));

                let (mut rows, row_schema) = exchange::export_batch(&batch(good)).unwrap();
                assert_eq!(bowstring_batch_import(device, &mut rows, &row_schema, &mut batch_believed), Ok);
                assert_eq!(bowstring_batch_to_device(batch_believed, stream, &mut batch_there), Ok);
                assert_eq!(bowstring_batch_validate(batch_there, stream), expected);
                if !good {
                    assert!(
                        last_error().starts_with("malformed array at array.children[0]"),
                        "{}",
                        last_error()
                    );
                }

                let (mut rows, row_schema) = exchange::export_batch(&batch(good)).unwrap();
                let imported = bowstring_batch_import_validated(
                    device,
                    &mut rows,
                    &row_schema,
                    stream,
                    &mut batch_looked_at,
                );
                assert_eq!(
                    (imported, batch_looked_at.is_null(), rows.is_released()),
                    (expected, !good, true)
                );

                [believed, there, looked_at].into_iter().for_each(|array| bowstring_array_free(array));
                let batches = [batch_believed, batch_there, batch_looked_at];
                batches.into_iter().for_each(|batch| bowstring_batch_free(batch));
            }
        }
        // SAFETY: handles that are not used again.
        unsafe {
            bowstring_stream_free(stream);
            bowstring_device_free(device);
        }
    }
}

#[test]
fn a_stream_is_looked_at_as_it_comes_and_ends_with_what_is_wrong() {
    let device = device(EMULATED);
    let stream = stream(device);
    let kinds = [true, true, false, true];
    let batches: Vec<_> = kinds.iter().map(|good| bowstring::Result::Ok(batch(*good))).collect();
    let arrays: Vec<_> = kinds.iter().map(|good| bowstring::Result::Ok(text(*good))).collect();
    let mut source =
        exchange::export_batches(Batches::new(Arc::new(schema()), Place::CPU, batches.into_iter()));
    let mut masks: ArrowDeviceArrayStream =
        exchange::export_stream(schema().field(0).clone(), DeviceType::Cpu, arrays.into_iter());
    let [mut given, mut there, mut valid] = [null_mut(); 3];
    let [mut given_arrays, mut valid_arrays] = [null_mut(); 2];
    // SAFETY: live handles, places for more.
    unsafe {
        assert_eq!(bowstring_batches_import(device, &mut source, &mut given), Ok);
        assert_eq!(bowstring_batches_to_device(given, stream, &mut there), Ok);
        assert_eq!(bowstring_batches_validate(there, stream, &mut valid), Ok);
        assert_eq!(bowstring_arrays_import(device, &mut masks, &mut given_arrays), Ok);
        assert_eq!(bowstring_arrays_validate(given_arrays, stream, &mut valid_arrays), Ok);
        for expected in [Ok, Ok, OutOfSpec, Ok] {
            let (mut batch, mut array) = (null_mut(), null_mut());
            assert_eq!(bowstring_batches_next(valid, &mut batch), expected);
            assert_eq!(bowstring_arrays_next(valid_arrays, &mut array), expected);
            bowstring_batch_free(batch);
            bowstring_array_free(array);
        }
        let (mut batch, mut array) = (null_mut(), null_mut());
        assert_eq!(bowstring_batches_next(valid, &mut batch), Ok);
        assert_eq!(bowstring_arrays_next(valid_arrays, &mut array), Ok);
        assert!(batch.is_null() && array.is_null(), "there is nothing behind what was wrong");
        [given, there, valid].into_iter().for_each(|handle| bowstring_batches_free(handle));
        [given_arrays, valid_arrays].into_iter().for_each(|handle| bowstring_arrays_free(handle));
        bowstring_stream_free(stream);
        bowstring_device_free(device);
    }
}
