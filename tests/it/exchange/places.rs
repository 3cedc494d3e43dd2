//! Tests arrays of other devices in the structs: they name the device, and import reads no memory there.

use std::ffi::c_void;
use std::sync::Arc;

use arrow_array::{Array as _, ArrayRef, BooleanArray, RecordBatch, StringArray, UInt8Array};
use arrow_schema::{DataType, Field};
use bowstring::array::{Batches, Buffer, DeviceArray, Parts, Place};
use bowstring::compute::{
    CastOptions, DropOptions, Selection, TakeOptions, cast, drop_nulls, filter, is_not_null, is_null, take,
};
use bowstring::exchange::{
    batch_to_arrow, export_array, export_host_batches, from_arrow, to_arrow, validate,
};
use bowstring::ffi::DeviceType;
use bowstring::{DeviceBatch, Error, Stream};

use super::foreign::{RawArray, RawDeviceArray, Releases, import_on, produce, schema, structs};
use super::foreign_stream::read_host_batches;
use super::samples;
use crate::support::devices;

/// Replaces all addresses by invalid ones.
fn hide(array: &mut RawArray) {
    for i in 0..array.n_buffers as usize {
        let address = array.buffer(i);
        if !address.is_null() {
            *address = std::ptr::without_provenance::<c_void>(0x1000 + 64 * i);
        }
    }
    (0..array.n_children as usize).for_each(|i| hide(array.child(i)));
    if !array.dictionary.is_null() {
        hide(array.dictionary());
    }
}

/// Whether the type contains a view array, whose sizes may be in host memory.
fn has_views(data_type: &DataType) -> bool {
    let below = bowstring::device::testing::children(data_type).into_iter().any(has_views);
    below
        || match data_type {
            DataType::Dictionary(_, values) => has_views(values),
            other => matches!(other, DataType::Utf8View | DataType::BinaryView),
        }
}

fn samples_without_views() -> impl Iterator<Item = ArrayRef> {
    samples::all().into_iter().filter(|array| !has_views(array.data_type()))
}

#[test]
fn no_device_memory_is_read_on_import() {
    for target in devices().iter().filter(|target| target.stream.device().place() != Place::CPU) {
        let device = target.stream.device();
        for array in samples_without_views() {
            let (data, releases) = (array.to_data(), Releases::default());
            let mut foreign = produce(&data, 0, &releases);
            hide(&mut foreign);
            let mut foreign = foreign.on_cpu();
            foreign.device_type = device.place().device_type as i32;
            foreign.device_id = device.place().device_id;
            let (_, ours) = import_on(device, &mut foreign.into_ours(), &schema(array.data_type())).unwrap();
            assert_eq!((ours.place(), ours.len()), (device.place(), samples::ROWS));
            check(&ours, device.place());
            let (exported, _) =
                export_array(&ours, &Field::new("f", array.data_type().clone(), true)).unwrap();
            let raw = RawDeviceArray::of(&exported);
            assert_eq!((raw.device_type, raw.device_id), (foreign.device_type, foreign.device_id));
            assert_eq!(raw.reserved, [0; 3]);
            assert_eq!(raw.array.null_count, foreign.array.null_count);
            drop((exported, ours));
            assert_eq!(releases.count(), structs(&data), "{}", array.data_type());
        }
    }
}

/// Checks that everything is on the device, and that the lengths of strings are unknown.
fn check(array: &DeviceArray, place: Place) {
    assert_eq!(array.place(), place);
    let of_bytes = matches!(
        array.data_type(),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Binary | DataType::LargeBinary
    );
    for (i, buffer) in array.buffers().iter().enumerate() {
        assert_eq!(buffer.bytes().is_none(), of_bytes && i == 1, "{}", array.data_type());
    }
    array.children().iter().chain(array.dictionary()).for_each(|below| check(below, place));
}

#[test]
fn another_devices_array_is_left_alone() {
    for target in devices().iter().filter(|target| target.stream.device().place() != Place::CPU) {
        let device = target.stream.device();
        let releases = Releases::default();
        let mut foreign = produce(&samples::all()[0].to_data(), 0, &releases).on_cpu();
        foreign.device_type = device.place().device_type as i32;
        foreign.device_id = device.place().device_id + 1000;
        let mut foreign = foreign.into_ours();
        let error = import_on(device, &mut foreign, &schema(samples::all()[0].data_type())).unwrap_err();
        assert!(matches!(error, Error::Invalid { .. }), "{error}");
        assert!(!foreign.is_released() && releases.count() == 0);
    }
}

#[test]
fn host_arrays_go_with_every_device() {
    for target in devices() {
        let releases = Releases::default();
        let array = &samples::all()[0];
        let mut foreign = produce(&array.to_data(), 0, &releases).on_cpu().into_ours();
        let (_, ours) = import_on(target.stream.device(), &mut foreign, &schema(array.data_type())).unwrap();
        assert_eq!(ours.place(), Place::CPU);
    }
}

/// Text in memory that the host can access; only its last offset tells its end.
fn pinned_text() -> DeviceArray {
    let text = from_arrow(&StringArray::from(vec![Some("a"), None, Some("bc")])).unwrap();
    let mut parts = text.into_parts();
    let bytes = &parts.buffers[1];
    // SAFETY: the buffer's own memory, kept by its owner; the array's offsets give its extent.
    parts.buffers[1] = unsafe { Buffer::new(bytes.address(), None, bytes.owner().clone()) };
    parts.place = Place { device_type: DeviceType::CudaHost, device_id: 0 };
    DeviceArray::try_new(parts).unwrap()
}

#[test]
fn unknown_extents_are_looked_at_on_the_host() {
    let text = pinned_text();
    let mut parts = Parts::new(DataType::Struct(vec![Field::new("a", DataType::Utf8, true)].into()), 3);
    (parts.children, parts.place) = (vec![text.clone()], text.place());
    let nested = DeviceArray::try_new(parts).unwrap();
    let mask = from_arrow(&BooleanArray::from(vec![true, false, true])).unwrap();
    let rows = from_arrow(&UInt8Array::from(vec![2, 0])).unwrap();
    let stream = Stream::cpu();
    for array in [&text, &nested] {
        let right = |result: Result<DeviceArray, Error>, rows: usize| {
            assert_eq!(to_arrow(&result.unwrap()).unwrap().len(), rows);
        };
        right(filter(array, &mask, &stream).wait(), 2);
        right(
            Selection::of_mask(&mask, &stream).wait().and_then(|selection| selection.filter(array).wait()),
            2,
        );
        right(take(array, &rows, &TakeOptions::default(), &stream).wait(), 2);
        right(cast(array, array.data_type(), &CastOptions::default(), &stream).wait(), 3);
        right(is_null(array, &stream).wait(), 3);
        right(is_not_null(array, &stream).wait(), 3);
        right(
            drop_nulls(&array.slice(0, 2).unwrap(), &DropOptions::default(), &stream).wait(),
            if array.children().is_empty() { 1 } else { 2 },
        );
        validate(array).unwrap();
    }
}

#[test]
fn plain_streams_take_all_memory_that_the_host_reads() {
    let numbers: ArrayRef = Arc::new(UInt8Array::from(vec![1, 2, 3]));
    let batch = RecordBatch::try_from_iter([("n", numbers.clone())]).unwrap();
    for device_type in DeviceType::ALL {
        let mut parts = from_arrow(&numbers).unwrap().into_parts();
        parts.place = Place { device_type, device_id: 0 };
        let place = parts.place;
        let column = DeviceArray::try_new(parts).unwrap();
        let there = DeviceBatch::try_new(batch.schema(), vec![column], 3).unwrap();
        let stream = export_host_batches(Batches::new(batch.schema(), place, [Ok(there)].into_iter()));
        match read_host_batches(stream).unwrap().next().unwrap() {
            Ok(here) => {
                assert!(device_type.host_accessible() && here.columns()[0].place() == Place::CPU);
                assert_eq!(batch_to_arrow(&here).unwrap(), batch);
            }
            Err(Error::Producer { code: 22, .. }) => assert!(!device_type.host_accessible()),
            Err(other) => panic!("{device_type}: {other}"),
        }
    }
}
