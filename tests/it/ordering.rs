//! Tests the order of work across library borders: foreign events, foreign memory that is overwritten on
//! release, and consumers that have only our event.

use std::sync::Arc;
use std::time::Duration;

use arrow_array::{Array as _, ArrayRef, BooleanArray, Int64Array};
use arrow_schema::Field;
use bowstring::compute::{CastOptions, Selection, aggregate, cast};
use bowstring::device::testing::{self, EmulatedDevice, EmulatorOptions, ManualEvent};
use bowstring::exchange::{export_array, export_batch, from_arrow, import_array, import_batch, to_arrow};
use bowstring::expr::{col, sum};
use bowstring::ffi::ArrowDeviceArray;
use bowstring::{Device, DeviceArray, DeviceBatch, Error};

use crate::exchange::foreign::{RawDeviceArray, Releases, produce, schema, structs};
use crate::support::*;

fn delayed(seed: u64) -> EmulatedDevice {
    let delay = Duration::from_micros(200);
    EmulatedDevice::new(EmulatorOptions { delay, seed, keep: Some(0), ..Default::default() }).unwrap()
}

/// A foreign array in an emulated device's memory, ready when the event fires.
fn foreign(
    array: &ArrayRef,
    device: &Device,
    event: Option<&ManualEvent>,
    releases: &Releases,
) -> ArrowDeviceArray {
    let raw = RawDeviceArray {
        device_id: device.place().device_id,
        device_type: device.place().device_type as i32,
        sync_event: event.map_or(std::ptr::null_mut(), ManualEvent::pointer),
        ..produce(&array.to_data(), 8, releases).on_cpu()
    };
    raw.into_ours()
}

fn import(mut array: ArrowDeviceArray, data_type: &arrow_schema::DataType, device: &Device) -> DeviceArray {
    // SAFETY: `produce` and the library make valid structs, with events that live until release.
    unsafe { import_array(&mut array, &schema(data_type), device) }.unwrap().1
}

#[test]
fn an_import_waits_for_nothing_and_its_use_waits_on_the_stream() {
    for (seed, data_type) in (0..).zip(types()) {
        let device = delayed(seed);
        let theirs = array(&data_type, 100, Nulls::Some, &mut Random::new(seed));
        let (event, releases) = (ManualEvent::pending(), Releases::default());
        let ours =
            import(foreign(&theirs, device.device(), Some(&event), &releases), &data_type, device.device());
        assert_eq!(device.device().host_synchronisations(), 0);
        let column = Field::new("x", data_type.clone(), true);
        let batch =
            DeviceBatch::try_new(Arc::new(arrow_schema::Schema::new(vec![column])), vec![ours], 100).unwrap();
        let stream = device.device().stream().unwrap();
        let back = stream.download_later(&batch).unwrap();
        // Another thread drops it before the event, so no work has read it yet.
        std::thread::spawn(move || drop(batch)).join().unwrap();
        // A null array has no memory to keep.
        assert!(releases.count() == 0 || data_type == arrow_schema::DataType::Null, "{data_type}");
        event.fire();
        let back = back.wait().unwrap();
        assert_same_rows(&rows(&to_arrow(&back.columns()[0]).unwrap()), &rows(&theirs), &data_type);
        testing::drain(device.device());
        assert_eq!(releases.count(), structs(&theirs.to_data()), "{data_type}");
        assert_eq!(device.faults(), []);
    }
}

#[test]
fn a_mask_is_kept_until_a_filter_has_read_it() {
    let device = delayed(2);
    let (event, of_mask, of_values) = (ManualEvent::pending(), Releases::default(), Releases::default());
    let bits: ArrayRef = Arc::new((0..100).map(|i| Some(i % 3 == 0)).collect::<BooleanArray>());
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..100));
    let mask = import(foreign(&bits, device.device(), None, &of_mask), bits.data_type(), device.device());
    let values = foreign(&numbers, device.device(), Some(&event), &of_values);
    let values = import(values, numbers.data_type(), device.device());
    let selection = Selection::of_mask(&mask, &device.device().stream().unwrap()).wait().unwrap();
    let filtered = selection.filter(&values);
    drop((selection, mask));
    // The next operation drops all that finished work has read.
    let another = device.device().stream().unwrap();
    let ours = another.upload(&from_arrow(&bits).unwrap()).unwrap();
    assert_eq!(Selection::of_mask(&ours, &another).wait().unwrap().len(), 34);
    assert_eq!(of_mask.count(), 0, "no work has read it yet");
    event.fire();
    let filtered = filtered.wait().unwrap();
    let stream = device.device().stream().unwrap();
    let expected: ArrayRef = Arc::new(Int64Array::from_iter_values((0..100).step_by(3)));
    assert_same_rows(
        &rows(&to_arrow(&stream.download(&filtered).unwrap()).unwrap()),
        &rows(&expected),
        &"kept",
    );
    drop((filtered, values));
    testing::drain(device.device());
    assert_eq!(of_mask.count(), structs(&bits.to_data()));
    assert_eq!(device.faults(), []);
}

#[test]
fn inputs_are_let_go_of_at_shutdown() {
    let device = delayed(1);
    let theirs = array(&types()[4], 100, Nulls::Some, &mut Random::new(1));
    let releases = Releases::default();
    for _ in 0..10 {
        let ours =
            import(foreign(&theirs, device.device(), None, &releases), theirs.data_type(), device.device());
        drop(device.device().stream().unwrap().download(&ours));
    }
    assert_eq!(device.close().alive(), Default::default());
    assert_eq!(releases.count(), 10);
}

/// Another library on the same runtime, which has only the C struct: it waits on its own stream, reads, then
/// releases.
fn consume(mut array: ArrowDeviceArray, data_type: &arrow_schema::DataType, device: &Device) -> Vec<Value> {
    // SAFETY: the library's own struct.
    let (_, ours) = unsafe { import_array(&mut array, &schema(data_type), device) }.unwrap();
    let stream = device.stream().unwrap();
    let back = stream.download(&ours).unwrap();
    drop(ours);
    rows(&to_arrow(&back).unwrap())
}

#[test]
fn exports_carry_an_event_that_is_enough() {
    for (seed, data_type) in (0..).zip(types()) {
        let device = delayed(seed);
        let theirs = array(&data_type, 100, Nulls::Some, &mut Random::new(seed));
        let stream = device.device().stream().unwrap();
        let there = stream.upload(&from_arrow(&theirs).unwrap()).unwrap();
        let waited = device.device().host_synchronisations();
        let (exported, _) = export_array(&there, &Field::new("f", data_type.clone(), true)).unwrap();
        assert_eq!(device.device().host_synchronisations(), waited, "exports do not wait");
        drop((there, stream));
        let consumed = std::thread::scope(|scope| {
            scope.spawn(|| consume(exported, &data_type, device.device())).join().unwrap()
        });
        assert_same_rows(&consumed, &rows(&theirs), &data_type);
        assert_eq!(device.faults(), []);
        assert_eq!(device.close().alive(), Default::default(), "{data_type}");
    }
}

#[test]
fn batches_round_trip() {
    let device = delayed(5);
    let columns: Vec<ArrayRef> =
        types().iter().map(|of| array(of, 40, Nulls::Some, &mut Random::new(9))).collect();
    let named = columns.iter().enumerate().map(|(i, column)| (format!("{i}"), column.clone(), true));
    let batch = arrow_array::RecordBatch::try_from_iter_with_nullable(named).unwrap();
    let stream = device.device().stream().unwrap();
    let there = stream.upload(&bowstring::exchange::batch_from_arrow(&batch).unwrap()).unwrap();
    let (mut exported, schema) = export_batch(&there).unwrap();
    drop((there, stream));
    // SAFETY: the library's own structs.
    let again = unsafe { import_batch(&mut exported, &schema, device.device()) }.unwrap();
    let back = device.device().stream().unwrap().download(&again).unwrap();
    drop(again);
    for (ours, theirs) in back.columns().iter().zip(&columns) {
        assert_same_rows(&rows(&to_arrow(ours).unwrap()), &rows(theirs), &theirs.data_type());
    }
}

#[test]
fn what_an_operation_reports_is_not_looked_at_by_one_that_could_not_wait_for_it() {
    let device = delayed(3);
    let theirs: ArrayRef = std::sync::Arc::new(arrow_array::Int64Array::from_iter_values(0..100));
    let (event, releases) = (ManualEvent::pending(), Releases::default());
    let theirs = foreign(&theirs, device.device(), Some(&event), &releases);
    let values = import(theirs, &arrow_schema::DataType::Int64, device.device());
    let (one, two) = (device.device().stream().unwrap(), device.device().stream().unwrap());
    let strict = CastOptions { safe: false, ..Default::default() };
    let narrow = cast(&values, &arrow_schema::DataType::Int8, &strict, &one).wait().unwrap();
    device.fail(Some("wait"), 1, 1);
    let failed = two.download(&narrow);
    assert_eq!((failed.is_err(), device.stop_failing()), (true, 1));
    // This stream should have waited for the cast, and passed before it.
    two.synchronise().unwrap();
    testing::retire(device.device());
    event.fire();
    narrow.wait().unwrap();
    let right: ArrayRef = std::sync::Arc::new(arrow_array::Int8Array::from_iter_values(0..100));
    assert_eq!(&to_arrow(&two.download(&narrow).unwrap()).unwrap(), &right);
}

#[test]
fn a_block_that_a_copy_is_on_its_way_to_is_not_given_away_where_the_next_copy_fails() {
    // The words of so many rows are on the device: the sum and the failing row are copied, one after the
    // other.
    let rows = 140_000;
    sums_of_two_streams(rows, |device, late| {
        device.fail(Some("copy_out"), 2, 1);
        assert!(late().wait().is_err());
        assert_eq!(device.stop_failing(), 1);
    });
}

#[test]
fn a_block_that_a_kernel_is_going_to_write_is_not_given_away_where_its_result_is_dropped() {
    sums_of_two_streams(100, |_, late| drop(late()));
}

/// Gives up a sum of rows that are not there yet, and tests that the next sum, on another stream, is right
/// although the first one's work comes after its own.
fn sums_of_two_streams(
    rows: i64,
    give_up: impl FnOnce(&EmulatedDevice, &dyn Fn() -> bowstring::Pending<DeviceBatch>),
) {
    let device = delayed(3);
    let ints = |from: i64| -> ArrayRef {
        std::sync::Arc::new(arrow_array::Int64Array::from_iter_values(from..from + rows))
    };
    let (event, releases) = (ManualEvent::pending(), Releases::default());
    let theirs = foreign(&ints(0), device.device(), Some(&event), &releases);
    let late = import(theirs, &arrow_schema::DataType::Int64, device.device());
    let (one, two) = (device.device().stream().unwrap(), device.device().stream().unwrap());
    let soon = two.upload(&from_arrow(&ints(1000)).unwrap()).unwrap();
    let total = |values: &bowstring::DeviceArray, stream| {
        let fields = vec![Field::new("a", arrow_schema::DataType::Int64, true)];
        let schema = Arc::new(arrow_schema::Schema::new(fields));
        let batch = DeviceBatch::try_new(schema, vec![values.clone()], rows as usize).unwrap();
        aggregate(&batch, &[sum(col("a") + 1)], None, stream)
    };
    give_up(&device, &|| total(&late, &one));
    let pending = total(&soon, &two);
    two.synchronise().unwrap();
    event.fire();
    one.synchronise().unwrap();
    let row = pending.wait().unwrap();
    let right = (1001..1001 + rows).sum::<i64>();
    let right: ArrayRef = std::sync::Arc::new(arrow_array::Int64Array::from(vec![right]));
    assert_eq!(&to_arrow(&row.columns()[0]).unwrap(), &right);
}

#[test]
fn another_devices_array_is_left_alone() {
    let (one, two) = (delayed(1), delayed(2));
    let theirs = array(&types()[4], 10, Nulls::Some, &mut Random::new(1));
    let releases = Releases::default();
    let mut array = foreign(&theirs, one.device(), None, &releases);
    // SAFETY: a valid struct, of another device.
    let result = unsafe { import_array(&mut array, &schema(theirs.data_type()), two.device()) };
    assert!(matches!(result, Err(Error::Invalid { .. })), "{result:?}");
    assert!(!array.is_released());
    drop(import(array, theirs.data_type(), one.device()));
    assert_eq!(releases.count(), 1);
}

#[test]
fn every_call_may_fail_and_release_comes_once() {
    let theirs = array(&arrow_schema::DataType::Utf8, 100, Nulls::Some, &mut Random::new(3));
    for n in 1.. {
        let device = EmulatedDevice::new(EmulatorOptions::default()).unwrap();
        let releases = Releases::default();
        let go = || -> bowstring::Result<()> {
            let mut array = foreign(&theirs, device.device(), None, &releases);
            // SAFETY: a valid struct.
            let imported = unsafe { import_array(&mut array, &schema(theirs.data_type()), device.device()) };
            let stream = device.device().stream()?;
            let back = stream.download(&imported?.1)?;
            assert_same_rows(&rows(&to_arrow(&back)?), &rows(&theirs), &n);
            let there = stream.upload(&back)?;
            drop(export_array(&there, &Field::new("f", theirs.data_type().clone(), true))?);
            Ok(())
        };
        device.fail(None, n, 1);
        let result = go();
        let failed = device.stop_failing();
        assert!(
            matches!(result, Ok(()) | Err(Error::Driver { .. } | Error::OutOfMemory { .. })),
            "{n}: {result:?}"
        );
        go().unwrap();
        testing::drain(device.device());
        assert_eq!(releases.count(), 2, "call {n}");
        assert_eq!(device.close().alive(), Default::default(), "call {n}");
        if failed == 0 {
            assert!(n > 10);
            return;
        }
    }
}
