//! Tests streams of arrays and batches in both directions: in order, to the end, and with every way of
//! breaking off.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow_array::{ArrayRef, Int32Array, RecordBatch, RecordBatchIterator, StringArray};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use bowstring::array::{Batches, Place};
use bowstring::exchange::{
    batch_from_arrow, batch_to_arrow, export_batches, export_host_batches, export_host_stream, export_stream,
    from_arrow, import_field, import_schema, to_arrow,
};
use bowstring::ffi::{ArrowArrayStream, ArrowDeviceArrayStream, DeviceType};
use bowstring::{Device, DeviceArray, DeviceBatch, Error, Result};

use super::foreign::{Releases, produce, schema, structs};
use super::foreign_stream::{
    RawStream, Step, read, read_batches, read_by_arrow_rs, read_host_batches, stream_by_arrow_rs,
};
use super::samples;
use crate::support::devices;

fn whole() -> RecordBatch {
    let named = samples::all().into_iter().enumerate().map(|(i, column)| (format!("c{i}"), column));
    RecordBatch::try_from_iter(named).unwrap()
}

fn slices() -> Vec<RecordBatch> {
    samples::SLICES.iter().map(|&(start, len)| whole().slice(start, len)).collect()
}

fn ours(batches: &[RecordBatch]) -> impl Iterator<Item = Result<DeviceBatch>> + Send + use<> {
    batches.iter().map(batch_from_arrow).collect::<Vec<_>>().into_iter()
}

fn numbers(rows: std::ops::Range<i32>) -> ArrayRef {
    Arc::new(Int32Array::from_iter_values(rows))
}

fn number_field() -> Field {
    Field::new("n", DataType::Int32, true)
}

#[test]
fn batches_of_every_type_come_through_in_order() {
    let expected = slices();
    let schema = whole().schema();
    let mut stream = export_batches(Batches::new(schema.clone(), Place::CPU, ours(&expected)));
    assert_eq!(stream.device_type(), 1);
    let reader = read_batches(&mut stream, &Device::cpu()).unwrap();
    assert!(stream.is_released());
    assert_eq!(*reader.schema(), schema);
    let got: Vec<_> = reader.map(|batch| batch_to_arrow(&batch.unwrap()).unwrap()).collect();
    assert_eq!(got, expected);

    let reader =
        read_host_batches(export_host_batches(Batches::new(schema, Place::CPU, ours(&expected)))).unwrap();
    let got: Vec<_> = reader.map(|batch| batch_to_arrow(&batch.unwrap()).unwrap()).collect();
    assert_eq!(got, expected);
}

#[test]
fn arrow_rs_reads_our_streams_and_we_read_its() {
    let expected = slices();
    let schema = whole().schema();
    let reader =
        read_by_arrow_rs(export_host_batches(Batches::new(schema.clone(), Place::CPU, ours(&expected))));
    assert_eq!(reader.map(|batch| batch.unwrap()).collect::<Vec<_>>(), expected);

    let failing = expected.iter().cloned().map(Ok).chain([Err(ArrowError::ComputeError("no more".into()))]);
    let theirs = RecordBatchIterator::new(failing.collect::<Vec<_>>(), schema);
    let mut reader = read_host_batches(stream_by_arrow_rs(Box::new(theirs))).unwrap();
    for batch in &expected {
        assert_eq!(&batch_to_arrow(&reader.next().unwrap().unwrap()).unwrap(), batch);
    }
    match reader.next() {
        Some(Err(Error::Producer { code, message, .. })) => assert!(code != 0 && message.contains("no more")),
        other => panic!("{other:?}"),
    }
    assert!(reader.next().is_none());
}

#[test]
fn arrays_stream_on_every_device() {
    for target in devices() {
        let device = target.stream.device().clone();
        for array in samples::all() {
            let there: Vec<Result<DeviceArray>> =
                samples::SLICES.iter().map(|&(at, len)| Ok(target.import(&array.slice(at, len)))).collect();
            let field = Field::new("f", array.data_type().clone(), true);
            let mut stream = export_stream(field.clone(), device.place().device_type, there.into_iter());
            let reader = match read(&mut stream, &device) {
                Ok(reader) => reader,
                Err(error) => panic!("{target:?}: {error}"),
            };
            assert_eq!(*reader.field(), field);
            for (array_of_stream, &(start, len)) in reader.zip(samples::SLICES) {
                let Some(got) = target.answer(array_of_stream, &array.data_type()) else { continue };
                assert_eq!(got.place(), device.place());
                target.assert_same(&got, &array.slice(start, len), &format_args!("{start}+{len}"));
            }
        }
    }
}

#[test]
fn nothing_is_pulled_before_it_is_asked_for_and_results_outlive_the_stream() {
    let releases = Releases::default();
    let asked = Arc::new(AtomicUsize::new(0));
    let (counting, data) = (asked.clone(), numbers(0..10));
    let made = releases.clone();
    let endless = std::iter::repeat_with(move || {
        counting.fetch_add(1, Ordering::SeqCst);
        let foreign = produce(&arrow_array::Array::to_data(&data), 0, &made).into_ours();
        let schema = super::foreign::schema(&DataType::Int32);
        super::foreign::import_host(foreign, &schema).map(|(_, array)| array)
    });
    let mut stream = export_stream(number_field(), DeviceType::Cpu, endless);
    let mut reader = read(&mut stream, &Device::cpu()).unwrap();
    assert_eq!(asked.load(Ordering::SeqCst), 0);
    let kept: Vec<DeviceArray> = (0..3).map(|_| reader.next().unwrap().unwrap()).collect();
    assert_eq!(asked.load(Ordering::SeqCst), 3);
    drop(reader);
    assert_eq!(releases.count(), 0);
    assert_eq!(&to_arrow(&kept[2]).unwrap(), &numbers(0..10));
    drop(kept);
    assert_eq!(releases.count(), 3);
}

/// Calls a stream of ours that yields one array, then the outcome of `then`, then another array.
fn broken_off(
    then: impl FnOnce() -> Option<Result<DeviceArray>> + Send + 'static,
) -> (RawStream, i32, String) {
    let array = from_arrow(&numbers(0..3)).unwrap();
    let (mut then, mut before) = (Some(then), Some(array.clone()));
    let steps = std::iter::from_fn(move || match (before.take(), then.take()) {
        (Some(array), kept) => {
            then = kept;
            Some(Ok(array))
        }
        (None, Some(then)) => then(),
        (None, None) => Some(Ok(array.clone())),
    });
    let mut stream = RawStream::of(export_stream(number_field(), DeviceType::Cpu, steps));
    assert_eq!((stream.call_next().0, stream.call_last_error()), (0, None));
    let (code, array) = stream.call_next();
    assert!(array.is_released());
    let message = stream.call_last_error().unwrap();
    (stream, code, message)
}

#[test]
fn errors_are_told_by_number_and_in_words_and_do_not_end_the_stream() {
    let out_of_memory = || Some(Err(Error::OutOfMemory { bytes: 5, device: DeviceType::Cpu }));
    let (mut stream, code, message) = broken_off(out_of_memory);
    assert_eq!((code, message.as_str()), (12, "out of memory: 5 bytes on CPU"));
    let (code, array) = stream.call_next();
    assert!(code == 0 && !array.is_released());
    assert_eq!(stream.call_last_error(), None);
    stream.call_release();
    assert!(stream.release.is_none() && stream.call_last_error().is_none());
    assert_eq!(stream.call_next().0, 22);

    let nul =
        || Some(Err(Error::Producer { code: 77, message: "a\0b".into(), metadata: Default::default() }));
    let (mut stream, code, message) = broken_off(nul);
    assert!(code == 77 && message.ends_with("a\u{fffd}b"));
    stream.call_release();

    let (mut stream, code, message) = broken_off(|| Some(from_arrow(&StringArray::from(vec!["text"]))));
    assert!(code == 22 && message.contains("Utf8"), "{message}");
    stream.call_release();
}

#[test]
fn a_panic_is_an_error_and_the_end() {
    let (mut stream, code, message) = broken_off(|| panic!("of {}", "some kind"));
    assert_eq!((code, message.as_str()), (5, "panicked: of some kind"));
    let (code, array) = stream.call_next();
    assert!(code == 0 && array.is_released());
    stream.call_release();
}

#[test]
fn all_batches_have_the_streams_schema_and_memory() {
    let schema: SchemaRef = Arc::new(Schema::new(vec![number_field()]));
    let other = RecordBatch::try_from_iter([("other", numbers(0..3))]).unwrap();
    let mut stream = export_batches(Batches::new(schema, Place::CPU, ours(&[other])));
    let mut reader = read_batches(&mut stream, &Device::cpu()).unwrap();
    assert!(matches!(reader.next(), Some(Err(Error::Producer { code: 22, .. }))));

    let array = from_arrow(&numbers(0..3)).unwrap();
    let mut stream = export_stream(number_field(), DeviceType::CudaHost, [Ok(array)].into_iter());
    assert!(matches!(read(&mut stream, &Device::cpu()), Err(Error::Unsupported { .. })));
    assert!(!stream.is_released());
    let mut stream = RawStream::of(stream);
    assert_eq!(stream.call_next().0, 22);
    stream.call_release();
}

#[test]
fn a_foreign_stream_is_released_once_wherever_it_breaks_off() {
    let data = arrow_array::Array::to_data(&numbers(0..5));
    let arrays = Releases::default();
    let give = || Step::Give(produce(&data, 1, &arrays).on_cpu());
    let elsewhere = |device_type| {
        let mut array = produce(&data, 1, &arrays).on_cpu();
        array.device_type = device_type;
        Step::Give(array)
    };
    let malformed = || {
        let mut array = produce(&data, 1, &arrays).on_cpu();
        array.array.n_buffers = 7;
        Step::Give(array)
    };
    let cases: Vec<(Vec<Step>, usize, Option<&str>)> = vec![
        (vec![give(), give(), Step::End], 2, None),
        (vec![Step::End], 0, None),
        (vec![give(), Step::Fail(5, Some(c"disk")), give()], 1, Some("code 5: disk")),
        (vec![Step::Fail(-3, None), give()], 0, Some("code -3: no message")),
        (vec![give(), malformed(), give()], 1, Some("array.n_buffers")),
        (vec![give(), elsewhere(2), give()], 1, Some("array.device_type")),
    ];
    for (i, (steps, good, error)) in cases.into_iter().enumerate() {
        let before = arrays.count();
        let made = steps.iter().filter(|step| matches!(step, Step::Give(_))).count();
        let releases = Releases::default();
        let mut stream = RawStream::new(DataType::Int32, steps, &releases).into_ours();
        let mut reader = read(&mut stream, &Device::cpu()).unwrap();
        for _ in 0..good {
            assert_eq!(&to_arrow(&reader.next().unwrap().unwrap()).unwrap(), &numbers(0..5), "{i}");
        }
        match (reader.next(), error) {
            (None, None) => {}
            (Some(Err(got)), Some(named)) => assert!(got.to_string().contains(named), "{i}: {got}"),
            (other, _) => panic!("{i}: {other:?}"),
        }
        assert!(reader.next().is_none(), "{i}");
        assert_eq!(releases.count(), 1, "{i}: with its last word");
        drop(reader);
        assert_eq!((releases.count(), arrays.count() - before), (1, made * structs(&data)), "{i}");
    }
}

#[test]
fn types_that_are_not_arrows_are_refused_before_any_array_comes() {
    let field = |name, data_type| Arc::new(Field::new(name, data_type, true));
    let wrong = [
        DataType::FixedSizeBinary(-1),
        DataType::Decimal128(5, 9),
        DataType::Dictionary(Box::new(DataType::Utf8), Box::new(DataType::Utf8)),
        DataType::RunEndEncoded(field("run_ends", DataType::Utf8), field("values", DataType::Int32)),
        DataType::Map(field("entries", DataType::Int32), false),
    ];
    for wrong in wrong {
        let nested = [
            wrong.clone(),
            DataType::List(field("item", wrong.clone())),
            DataType::Dictionary(Box::new(DataType::Int8), Box::new(wrong)),
        ];
        for data_type in nested {
            let rows = DataType::Struct([field("a", data_type.clone())].into_iter().collect());
            let releases = Releases::default();
            let stream = || RawStream::new(rows.clone(), vec![Step::End], &releases).into_ours();
            let refused = |error| matches!(error, Some(Error::OutOfSpec { at, .. }) if at == "schema");
            assert!(refused(read(&mut stream(), &Device::cpu()).err()), "{data_type}");
            assert!(refused(read_batches(&mut stream(), &Device::cpu()).err()), "{data_type}");
            assert_eq!(releases.count(), 2);
            // SAFETY: valid structs.
            let (types, one) = unsafe { (import_schema(&schema(&rows)), import_field(&schema(&data_type))) };
            assert!(refused(types.err()) && refused(one.err()), "{data_type}");
        }
    }
}

#[test]
fn streams_that_cannot_be_read_are_refused() {
    let releases = Releases::default();
    let stream = || RawStream::new(DataType::Int32, vec![Step::End], &releases);
    let device = Device::cpu();
    let mut no_schema = stream();
    no_schema.get_schema = None;
    let error = read(&mut no_schema.into_ours(), &device).unwrap_err();
    assert!(matches!(error, Error::OutOfSpec { at, .. } if at == "stream.get_schema"));
    let mut no_next = stream();
    no_next.get_next = None;
    let error = read(&mut no_next.into_ours(), &device).unwrap().next().unwrap().unwrap_err();
    assert!(matches!(error, Error::OutOfSpec { at, .. } if at == "stream.get_next"));
    // Numbers are not batches.
    let error = read_batches(&mut stream().into_ours(), &device).unwrap_err();
    assert!(matches!(error, Error::OutOfSpec { at, .. } if at == "schema"));
    assert_eq!(releases.count(), 3);

    let error = read(&mut ArrowDeviceArrayStream::empty(), &device).unwrap_err();
    assert_eq!(error, Error::OutOfSpec { at: "stream".into(), problem: "released".into() });
    let error = read_host_batches(ArrowArrayStream::empty()).unwrap_err();
    assert_eq!(error, Error::OutOfSpec { at: "stream".into(), problem: "released".into() });
    let mut elsewhere = stream();
    elsewhere.device_type = 99;
    let mut elsewhere = elsewhere.into_ours();
    assert!(matches!(read(&mut elsewhere, &device), Err(Error::Unsupported { .. })));
    assert!(!elsewhere.is_released());
}

#[test]
fn plain_streams_of_arrays_have_a_field() {
    let field = number_field();
    let stream = export_host_stream(field.clone(), [from_arrow(&numbers(0..3))].into_iter());
    let reader = super::foreign_stream::read_host(stream).unwrap();
    assert_eq!(*reader.field(), field);
    assert_eq!(reader.map(|array| to_arrow(&array.unwrap()).unwrap()).collect::<Vec<_>>(), [numbers(0..3)]);
}

/// Gives a stream's own iterator access to the stream.
struct Reached(*mut RawStream);

// SAFETY: used on one thread.
unsafe impl Send for Reached {}

impl Reached {
    /// The pointer to the stream.
    fn stream(&self) -> *mut RawStream {
        self.0
    }
}

#[test]
fn an_iterator_that_reads_the_stream_made_of_it_is_told_so() {
    let stream = Box::into_raw(Box::new(RawStream::of(ArrowDeviceArrayStream::empty())));
    let (reached, array) = (Reached(stream), from_arrow(&numbers(0..3)).unwrap());
    let tried = Arc::new(AtomicUsize::new(0));
    let count = tried.clone();
    let arrays = std::iter::repeat_with(move || {
        let stream = reached.stream();
        // SAFETY: the stream is alive, and code inside its callbacks holds no reference to the struct.
        let (code, error) = unsafe { ((*stream).call_next().0, (*stream).call_last_error()) };
        assert_eq!(
            (code, error.as_deref()),
            (22, Some("the stream is being read: its producer may not ask for it"))
        );
        count.fetch_add(1, Ordering::SeqCst);
        Ok(array.clone())
    });
    // SAFETY: it was made above, and no other code uses it now.
    unsafe { *stream = RawStream::of(export_stream(number_field(), DeviceType::Cpu, arrays)) };
    for _ in 0..2 {
        // SAFETY: as the iterator does.
        let (code, array) = unsafe { (*stream).call_next() };
        assert!(code == 0 && !array.is_released());
    }
    assert_eq!(tried.load(Ordering::SeqCst), 2);
    // SAFETY: no code uses it any more.
    unsafe {
        (*stream).call_release();
        drop(Box::from_raw(stream));
    }
}

#[test]
fn a_stream_that_its_own_iterator_releases_gives_what_it_was_asked_for() {
    let stream = Box::into_raw(Box::new(RawStream::of(ArrowDeviceArrayStream::empty())));
    let (reached, kept) = (Reached(stream), Arc::new(from_arrow(&numbers(0..3)).unwrap()));
    let array = kept.clone();
    let arrays = std::iter::from_fn(move || {
        // SAFETY: as above.
        unsafe { (*reached.stream()).call_release() };
        Some(Ok(DeviceArray::clone(&array)))
    });
    // SAFETY: as above.
    unsafe {
        *stream = RawStream::of(export_stream(number_field(), DeviceType::Cpu, arrays));
        let (code, array) = (*stream).call_next();
        assert!(code == 0 && !array.is_released());
        assert!((*stream).release.is_none());
        drop(Box::from_raw(stream));
    }
    // The iterator is dropped once the call that it was in has ended.
    assert_eq!(Arc::strong_count(&kept), 1);
}
