//! Tests that the caller can interrupt operations on the CPU.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, Date32Array, FixedSizeBinaryArray, FixedSizeListArray, Int8Array,
    Int32Array, ListArray, NullArray, StringArray, StructArray,
};
use arrow_buffer::{BooleanBuffer, NullBuffer, OffsetBuffer};
use arrow_schema::{DataType, Field};
use bowstring::compute::{CastOptions, FormatOptions, TakeOptions, cast, filter, is_null, null_count, take};
use bowstring::exchange::{from_arrow, import_async_batches};
use bowstring::{Device, DeviceArray, Error, Result, Stream, interruptible};

use crate::support::work;

/// Operations that read only bitmaps, or know without reading that an array has no nulls.
fn takes_no_time(name: &str) -> bool {
    let nulls = ["null_count", "logical_null_count", "is_null", "is_not_null", "drop_nulls"];
    let of_bits = ["fill_null of Boolean", "cast to Int32 of Boolean"];
    nulls.iter().chain(&of_bits).any(|of| name.starts_with(of))
}

#[test]
fn every_long_operation_is_interrupted() {
    let mut whole = vec![];
    for work in work::all(300_000) {
        let asked = Rc::new(Cell::new(0));
        let count = asked.clone();
        let interrupted = interruptible(
            Duration::ZERO,
            move || {
                count.set(count.get() + 1);
                true
            },
            &work.run,
        );
        match interrupted {
            Err(Error::Interrupted) => assert_eq!(asked.get(), 1, "{} asks again", work.name),
            other => whole.push(format!("{}: {other:?}", work.name)),
        }
    }
    whole.retain(|name| !takes_no_time(name));
    assert!(whole.is_empty(), "not interrupted: {whole:#?}");
}

/// arrow-rs never asks whether it is interrupted, so its long casts run in a thread of their own. A cast is
/// long if any part of the array has many rows.
#[test]
fn long_casts_by_arrow_are_interrupted_on_their_way() {
    let long: ArrayRef = Arc::new(Int32Array::from(vec![7; 1 << 20]));
    let item = Arc::new(Field::new_list_field(DataType::Int32, false));
    let ends = OffsetBuffer::new(vec![0, 1 << 20].into());
    let list: ArrayRef = Arc::new(ListArray::new(item, ends, long.clone(), None));
    let keys = |of| DataType::Dictionary(Box::new(DataType::Int8), Box::new(of));
    for (values, to) in [(&long, keys(DataType::Int32)), (&list, DataType::Utf8)] {
        let values = from_arrow(values).unwrap();
        let (asked, stream) = (Cell::new(0), Stream::cpu());
        let again = move || asked.replace(asked.get() + 1) > 0;
        let work = || cast(&values, &to, &CastOptions::default(), &stream).wait();
        let interrupted = interruptible(Duration::ZERO, again, work);
        assert!(matches!(interrupted, Err(Error::Interrupted)), "{to}: {interrupted:?}");
    }
}

/// A producer may say nothing for ever.
#[test]
fn a_wait_for_an_asynchronous_stream_is_interrupted() {
    let (reader, handler) = import_async_batches(&Device::cpu(), 1);
    let waited = || reader.wait().map(drop);
    let interrupted = interruptible(Duration::from_millis(1), || true, waited);
    assert!(matches!(interrupted, Err(Error::Interrupted)), "{interrupted:?}");
    drop(handler);
}

#[test]
fn what_is_not_interrupted_is_done() {
    let asked = Rc::new(Cell::new(0));
    for work in work::all(300_000) {
        let count = asked.clone();
        let done = interruptible(
            Duration::ZERO,
            move || {
                count.set(count.get() + 1);
                false
            },
            &work.run,
        );
        done.unwrap_or_else(|error| panic!("{}: {error}", work.name));
    }
    assert!(asked.get() > 100, "asked {} times", asked.get());
    // An earlier interruption does not affect later work.
    let nested = interruptible(Duration::ZERO, || true, || interruptible(Duration::ZERO, || false, || 7));
    assert_eq!(nested, 7);
    work::to_arrow_and_back(1000).unwrap();
}

/// Interrupts work when it asks for the so-many-th time. Returns its result, and how often it has asked.
fn interrupted_at<T>(times: usize, work: impl FnOnce() -> Result<T>) -> (Result<T>, usize) {
    let asked = Rc::new(Cell::new(0));
    let count = asked.clone();
    let ask = move || {
        count.set(count.get() + 1);
        count.get() == times
    };
    (interruptible(Duration::ZERO, ask, work), asked.get())
}

type Work = Box<dyn Fn() -> Result<DeviceArray>>;

/// Operations on few rows of so many bytes, or on so many rows that take no memory.
fn moving(wide: usize, rows: usize) -> Vec<(String, Work)> {
    let ours = |array: &dyn arrow_array::Array| from_arrow(array).unwrap();
    let fixed =
        |rows| FixedSizeBinaryArray::try_new(wide as i32, vec![7u8; wide * rows].into(), None).unwrap();
    let bytes = vec![7u8; wide];
    let text = |rows| BinaryArray::from_iter_values((0..rows).map(|_| &bytes));
    let item = Arc::new(Field::new("item", DataType::Int8, true));
    let items: ArrayRef = Arc::new(Int8Array::from(vec![1; wide]));
    let list = ours(&FixedSizeListArray::new(item, wide as i32, items, None));
    let mask = ours(&BooleanArray::from_iter((0..40).map(|row| Some(row % 8 != 3))));
    let again = ours(&Int32Array::from(vec![0; 40]));
    let nulls = ours(&NullArray::new(rows));
    let mut works: Vec<(String, Work)> = vec![];
    for (one, forty) in [(ours(&fixed(1)), ours(&fixed(40))), (ours(&text(1)), ours(&text(40)))] {
        let (name, again, mask) = (one.data_type().to_string(), again.clone(), mask.clone());
        let taking = move || take(&one, &again, &TakeOptions::default(), &Stream::cpu()).wait();
        works.push((format!("take of {name}"), Box::new(taking)));
        let filtering = move || filter(&forty, &mask, &Stream::cpu()).wait();
        works.push((format!("filter of {name}"), Box::new(filtering)));
    }
    let few = again.slice(0, 4).unwrap();
    let lists = move || take(&list, &few, &TakeOptions::default(), &Stream::cpu()).wait();
    works.push(("take of lists".into(), Box::new(lists)));
    let of_nulls = nulls.clone();
    let bits = move || is_null(&of_nulls, &Stream::cpu()).wait();
    works.push(("is_null".into(), Box::new(bits)));
    let part = nulls.slice(0, rows / 8).unwrap();
    let zeros = move || cast(&part, &DataType::Int8, &CastOptions::default(), &Stream::cpu()).wait();
    works.push(("cast of nulls".into(), Box::new(zeros)));
    works
}

/// Few rows may have many bytes. Copying, filling and gathering these asks in the middle; small work does not
/// ask.
#[test]
fn many_bytes_of_few_rows_are_asked_about_in_the_middle() {
    for ((name, large), (_, small)) in moving(1 << 20, 400 << 20).into_iter().zip(moving(3, 4000)) {
        let asked = |work: &Work| {
            let (done, asked) = interrupted_at(usize::MAX, work);
            done.unwrap_or_else(|error| panic!("{name}: {error}"));
            asked
        };
        let (most, least) = (asked(&large), asked(&small));
        assert!(most > least, "{name} asks {most} times, and {least} times where there is little to do");
        let (done, asked) = interrupted_at(least + 1, &large);
        assert!(matches!(done, Err(Error::Interrupted)), "{name} at {least} + 1 of {most}: {done:?}");
        assert_eq!(asked, least + 1, "{name} asks again");
    }
}

/// An interrupted count is an error, not a number.
#[test]
fn bits_are_counted_or_the_count_is_interrupted() {
    let rows = 32 << 20;
    let valid = BooleanBuffer::new(vec![0x55u8; rows / 8].into(), 0, rows);
    let some = StructArray::new_empty_fields(rows, Some(NullBuffer::new(valid)));
    let sliced = from_arrow(&some).unwrap().slice(3, rows - 5).unwrap();
    assert_eq!(sliced.known_null_count(), None);
    let count = || null_count(&sliced, &Stream::cpu()).wait();
    assert_eq!(interrupted_at(usize::MAX, count).0, Ok(rows / 2 - 2));
    let (done, asked) = interrupted_at(1, count);
    assert!(matches!(done, Err(Error::Interrupted)) && asked == 1, "{done:?} after {asked}");
}

/// Formats are copied for the thread that arrow-cast works in, so that the caller need not wait for it.
#[test]
fn casts_with_formats_of_their_own_are_interrupted() {
    let days = Date32Array::from_iter((0..1 << 20).map(|day| (day % 4 == 0).then_some(day)));
    let days = from_arrow(&days).unwrap();
    let format = String::from("%d.%m.%Y");
    let format_options = FormatOptions::new().with_date_format(Some(&format)).with_null("none");
    let options = CastOptions { safe: true, format_options };
    let written = |days: &DeviceArray| cast(days, &DataType::Utf8, &options, &Stream::cpu()).wait();
    let (done, asked) = interrupted_at(3, || written(&days));
    assert!(matches!(done, Err(Error::Interrupted)) && asked == 3, "{:?} after {asked}", done.err());
    let said = bowstring::exchange::to_arrow(&written(&days.slice(40, 2).unwrap()).unwrap()).unwrap();
    assert_eq!(said.as_ref(), &StringArray::from(vec![Some("10.02.1970"), None]));
}

#[test]
fn who_is_asked_may_call_operations() {
    let ones = from_arrow(&Int32Array::from(vec![1; 70_000])).unwrap();
    let asked = Rc::new(Cell::new(0));
    let (count, values) = (asked.clone(), ones.clone());
    let ask = move || {
        count.set(count.get() + 1);
        cast(&values, &DataType::Int64, &CastOptions::default(), &Stream::cpu()).wait().unwrap();
        count.get() == 2
    };
    let work = || {
        let mask = from_arrow(&BooleanArray::from(vec![false; 70_000]))?;
        (0..5).try_for_each(|_| filter(&ones, &mask, &Stream::cpu()).wait().map(drop))
    };
    assert!(matches!(interruptible(Duration::ZERO, ask, work), Err(Error::Interrupted)));
    assert_eq!(asked.get(), 2);
}
