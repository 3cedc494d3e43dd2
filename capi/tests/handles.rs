//! Tests handles to streams that are used by several threads at a time, or by the producer that is being
//! asked. Also tests the fields of results: their nullability and metadata.

use std::collections::HashMap;
use std::ffi::CStr;
use std::ptr::{null, null_mut};
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::time::Duration;

use BowstringStatus::{Invalid, Ok};
use arrow_array::{ArrayRef, BooleanArray, Int64Array, RecordBatch, TimestampSecondArray};
use arrow_schema::{DataType, Field, Schema};
use bowstring::array::{Batches, Place};
use bowstring::exchange;
use bowstring::ffi::{ArrowDeviceArray, ArrowDeviceArrayStream, DeviceType, FFI_ArrowSchema};
use bowstring_c::*;

const DEVICES: [i32; 2] = [DeviceType::Cpu as i32, DeviceType::Emulated as i32];

fn last_error() -> String {
    // SAFETY: never null, and valid until the next failure of this thread.
    unsafe { CStr::from_ptr(bowstring_last_error()) }.to_str().unwrap().to_owned()
}

/// The handles of a device and of a stream of it.
fn open(kind: i32) -> (*mut BowstringDevice, *mut BowstringStream) {
    let (mut device, mut stream) = (null_mut(), null_mut());
    // SAFETY: places for handles.
    unsafe {
        assert_eq!(bowstring_device_open(kind, 0, &mut device), Ok);
        assert_eq!(bowstring_stream_new(device, &mut stream), Ok);
    }
    (device, stream)
}

fn close((device, stream): (*mut BowstringDevice, *mut BowstringStream)) {
    // SAFETY: handles that are not used again.
    unsafe {
        bowstring_stream_free(stream);
        bowstring_device_free(device);
    }
}

/// A batch of one column of numbers.
fn numbers(numbers: Vec<Option<i64>>, nullable: bool) -> RecordBatch {
    let schema = Arc::new(Schema::new(vec![Field::new("n", DataType::Int64, nullable)]));
    RecordBatch::try_new(schema, vec![Arc::new(Int64Array::from(numbers)) as ArrayRef]).unwrap()
}

/// Makes a handle of an iterator's batches.
fn batches(
    device: *const BowstringDevice,
    of: impl Iterator<Item = RecordBatch> + Send + 'static,
) -> *mut BowstringBatches {
    let items = of.map(|batch| exchange::batch_from_arrow(&batch));
    let mut stream =
        exchange::export_batches(Batches::new(numbers(vec![], true).schema(), Place::CPU, items));
    let mut handle = null_mut();
    // SAFETY: a stream that was just exported, and live handles.
    assert_eq!(unsafe { bowstring_batches_import(device, &mut stream, &mut handle) }, Ok);
    handle
}

/// Imports an array with its field, and copies it to the device of the stream.
fn array(
    stream: *const BowstringStream,
    device: *const BowstringDevice,
    array: ArrayRef,
    field: &Field,
) -> *mut BowstringArray {
    let (mut host, mut there) = (null_mut(), null_mut());
    let (mut array, schema) = exchange::export_array(&exchange::from_arrow(&array).unwrap(), field).unwrap();
    // SAFETY: structs that were just exported, and live handles.
    unsafe {
        assert_eq!(bowstring_array_import(device, &mut array, &schema, &mut host), Ok);
        assert_eq!(bowstring_array_to_device(host, stream, &mut there), Ok);
        bowstring_array_free(host);
    }
    there
}

/// Exports the field of a handle, and frees the handle.
fn field_of(handle: *mut BowstringArray) -> Field {
    let mut schema = FFI_ArrowSchema::empty();
    // SAFETY: a live handle that is not used again, and a place for a schema.
    unsafe {
        assert_eq!(bowstring_array_export(handle, null_mut(), &mut schema), Ok);
        bowstring_array_free(handle);
    }
    Field::try_from(&schema).unwrap()
}

#[test]
fn a_producer_that_asks_the_handle_that_asks_it_is_told_so() {
    let (device, stream) = open(1);
    let (handle, tried) = (Arc::new(AtomicPtr::<BowstringBatches>::default()), Arc::new(AtomicUsize::new(0)));
    let (reached, count) = (handle.clone(), tried.clone());
    let source = batches(
        device,
        std::iter::repeat_with(move || {
            let batches = reached.load(Ordering::SeqCst);
            let (mut schema, mut out) = (FFI_ArrowSchema::empty(), ArrowDeviceArrayStream::empty());
            // SAFETY: the handle lives as long as the test asks it, and places for results.
            let answers = unsafe {
                [
                    bowstring_batches_next(batches, &mut null_mut()),
                    bowstring_batches_schema(batches, &mut schema),
                    bowstring_batches_export(batches, &mut out),
                ]
            };
            assert_eq!(answers, [Invalid; 3]);
            assert_eq!(last_error(), "stream: it is being read: its producer may not ask for it");
            count.fetch_add(1, Ordering::SeqCst);
            numbers(vec![Some(1)], true)
        }),
    );
    handle.store(source, Ordering::SeqCst);
    // SAFETY: live handles, and places for more.
    unsafe {
        for _ in 0..2 {
            let mut batch = null_mut();
            assert_eq!(bowstring_batches_next(source, &mut batch), Ok);
            bowstring_batch_free(batch);
        }
        bowstring_batches_free(source);
    }
    assert_eq!(tried.load(Ordering::SeqCst), 2);
    close((device, stream));
}

#[test]
fn threads_that_share_a_handle_take_turns() {
    let (device, stream) = open(1);
    let slow = (0..16).map(|i| {
        std::thread::sleep(Duration::from_millis(1));
        numbers(vec![Some(i)], true)
    });
    let shared = AtomicPtr::new(batches(device, slow));
    let mut got: Vec<u64> = std::thread::scope(|scope| {
        let threads = [(); 4].map(|()| {
            scope.spawn(|| {
                let mut rows = 0;
                loop {
                    let (mut batch, mut length) = (null_mut(), 0);
                    // SAFETY: a live handle, and places for results.
                    unsafe {
                        assert_eq!(bowstring_batches_next(shared.load(Ordering::SeqCst), &mut batch), Ok);
                        if batch.is_null() {
                            break rows;
                        }
                        assert_eq!(bowstring_batch_length(batch, &mut length), Ok);
                        bowstring_batch_free(batch);
                    }
                    rows += length;
                }
            })
        });
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    got.sort_unstable();
    assert_eq!(got.iter().sum::<u64>(), 16, "{got:?}");
    // SAFETY: a handle that is not used again.
    unsafe { bowstring_batches_free(shared.into_inner()) };
    close((device, stream));
}

#[test]
fn nulls_are_not_under_fields_that_have_none() {
    for kind in DEVICES {
        let (device, stream) = open(kind);
        let never = FFI_ArrowSchema::try_from(numbers(vec![], false).schema().as_ref()).unwrap();
        let ours = exchange::batch_from_arrow(&numbers(vec![Some(1), None], true)).unwrap();
        let (mut exported, schema) = exchange::export_batch(&ours).unwrap();
        let mut host = null_mut();
        let [mut there, mut casted] = [null_mut(); 2];
        // SAFETY: structs that were just exported, live handles, and places for more.
        unsafe {
            assert_eq!(bowstring_batch_import(device, &mut exported, &schema, &mut host), Ok);
            assert_eq!(bowstring_batch_to_device(host, stream, &mut there), Ok);
            let status = match bowstring_cast_batch(there, &never, null(), stream, &mut casted) {
                Ok => bowstring_batch_wait(casted),
                other => other,
            };
            assert_eq!(status, Invalid);
            assert_eq!(last_error(), "cast: 1 nulls in \"n\", which is not nullable");
            for handle in [host, there, casted] {
                bowstring_batch_free(handle);
            }
        }

        // Rows that are taken may be null; the schema of a stream says so before any batch is read.
        let once = numbers(vec![Some(1)], false);
        let items = [exchange::batch_from_arrow(&once)].into_iter();
        let mut source = exchange::export_batches(Batches::new(once.schema(), Place::CPU, items));
        let at = exchange::from_arrow(&Int64Array::from(vec![None, Some(0)])).unwrap();
        let field = Field::new("at", DataType::Int64, true);
        let mut indices = exchange::export_stream(field, DeviceType::Cpu, [Result::Ok(at)].into_iter());
        let [mut host, mut taken] = [null_mut(); 2];
        let mut at = null_mut();
        let (cpu, on_cpu) = open(1);
        // SAFETY: as above.
        unsafe {
            assert_eq!(bowstring_batches_import(cpu, &mut source, &mut host), Ok);
            assert_eq!(bowstring_arrays_import(cpu, &mut indices, &mut at), Ok);
            assert_eq!(bowstring_batches_take(host, at, null(), on_cpu, &mut taken), Ok);
            let (mut schema, mut batch) = (FFI_ArrowSchema::empty(), null_mut());
            assert_eq!(bowstring_batches_schema(taken, &mut schema), Ok);
            let schema = Schema::try_from(&schema).unwrap();
            assert!(schema.field(0).is_nullable());
            assert_eq!(bowstring_batches_next(taken, &mut batch), Ok);
            let (mut exported, mut of_batch) = (ArrowDeviceArray::empty(), FFI_ArrowSchema::empty());
            assert_eq!(bowstring_batch_export(batch, &mut exported, &mut of_batch), Ok);
            assert_eq!(Schema::try_from(&of_batch).unwrap(), schema);
            bowstring_batch_free(batch);
            bowstring_arrays_free(at);
            bowstring_batches_free(host);
            bowstring_batches_free(taken);
        }
        close((cpu, on_cpu));
        close((device, stream));
    }
}

#[test]
fn metadata_goes_with_what_it_is_said_of() {
    let said = |name: &str, means: &str| {
        let metadata = HashMap::from([("ARROW:extension:name".to_owned(), means.to_owned())]);
        Field::new(name, DataType::Boolean, true).with_metadata(metadata)
    };
    for kind in DEVICES {
        let (device, stream) = open(kind);
        let values =
            array(stream, device, Arc::new(BooleanArray::from(vec![Some(true), None])), &said("x", "flag"));
        let to = FFI_ArrowSchema::try_from(&said("y", "lamp")).unwrap();
        let storage = FFI_ArrowSchema::try_from(&Field::new("y", DataType::Boolean, true)).unwrap();
        let [mut null_rows, mut kept, mut lamp, mut plain] = [null_mut(); 4];
        // SAFETY: live handles, and places for more.
        unsafe {
            assert_eq!(bowstring_is_null(values, stream, &mut null_rows), Ok);
            assert_eq!(bowstring_drop_nulls(values, stream, &mut kept), Ok);
            assert_eq!(bowstring_cast(values, &to, null(), stream, &mut lamp), Ok);
            assert_eq!(bowstring_cast(values, &storage, null(), stream, &mut plain), Ok);
        }
        assert_eq!(field_of(kept), said("x", "flag"));
        assert_eq!(field_of(lamp), said("x", "lamp"));
        assert_eq!(field_of(null_rows), Field::new("x", DataType::Boolean, true));
        assert_eq!(field_of(plain), Field::new("x", DataType::Boolean, true));
        let (mut counts, mut column) = (null_mut(), null_mut());
        // SAFETY: live handles, places for more, and handles that are not used again.
        unsafe {
            assert_eq!(bowstring_value_counts(values, stream, &mut counts), Ok);
            assert_eq!(bowstring_batch_column(counts, 0, &mut column), Ok);
            bowstring_batch_free(counts);
            bowstring_array_free(values);
        }
        assert_eq!(field_of(column), said("values", "flag"));
        close((device, stream));
    }
}

#[test]
fn zones_are_known_by_their_names() {
    let (device, stream) = open(1);
    let text = FFI_ArrowSchema::try_from(&Field::new("", DataType::Utf8, true)).unwrap();
    for (zone, known) in [("UTC", true), ("Europe/Paris", true), ("Mars/Olympus", false)] {
        let times: ArrayRef = Arc::new(TimestampSecondArray::from(vec![0]).with_timezone(zone));
        let times = array(stream, device, times.clone(), &Field::new("t", times.data_type().clone(), true));
        let mut casted = null_mut();
        // SAFETY: live handles, a place for another.
        unsafe {
            let status = bowstring_cast(times, &text, null(), stream, &mut casted);
            assert_eq!(status == Ok, known, "{zone}: {}", last_error());
            bowstring_array_free(times);
            bowstring_array_free(casted);
        }
    }
    close((device, stream));
}

#[test]
fn kernels_are_prepared_by_their_names() {
    for kind in DEVICES {
        let (device, stream) = open(kind);
        let mut loaded = -1;
        // SAFETY: live handles, text, and a place for a number or none.
        unsafe {
            assert_eq!(bowstring_device_prepare(device, null(), &mut loaded), Ok);
            assert_eq!(loaded, 0, "neither the CPU nor the emulator has images");
            assert_eq!(bowstring_device_prepare(device, c"sort".as_ptr(), null_mut()), Ok);
            assert_eq!(bowstring_device_prepare(device, c"sorts".as_ptr(), &mut loaded), Invalid);
            assert!(last_error().contains("sort, group, join"), "{}", last_error());
            assert_eq!(bowstring_device_set_memory_kept(device, 1 << 30), Ok);
        }
        close((device, stream));
    }
}
