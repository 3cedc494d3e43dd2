//! Fuzzes asynchronous streams. Our reader gets a producer that calls in any order and passes arrays with
//! lies in them. Our export gets a consumer that asks, extracts, refuses and cancels at any time.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use arrow_array::{ArrayRef, Int32Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field};
use bowstring::array::{Batches, Place};
use bowstring::exchange::{
    AsyncBatchReader, batch_from_arrow, export_async_iterator, import_async_batches, validate_batch,
};
use bowstring::ffi::FFI_ArrowSchema;
use bowstring::{Device, DeviceBatch, Error, Stream};

use super::input::Input;
use super::metadata::{self, Words};
use super::stranger::Strangers;
use super::types::data_type;
use super::world::{outcome, reached};
use crate::exchange::foreign::schema;
use crate::exchange::foreign_async::{Manner, RawConsumer, Told, discard, extract, settle};
use crate::exchange::foreign_sender::RawSender;

/// The target for readers.
pub fn readers(bytes: &[u8]) {
    let input = &mut Input::new(bytes);
    let mut strangers = Strangers::default();
    let mut words = Words::default();
    let of = DataType::Struct(vec![Field::new("a", data_type(input), true)].into());
    let (reader, handler) = import_async_batches(&Device::cpu(), input.below(4));
    let mut sender = RawSender::new(handler);
    let mut reader = Some(reader);
    for _ in 0..32 {
        if input.is_over() {
            break;
        }
        match input.byte() % 16 {
            0 | 1 => {
                reached(("schema", sender.schema(schema(&of))));
            }
            2 => {
                let others = [Some(FFI_ArrowSchema::empty()), None, Some(schema(&DataType::Int8))];
                let other = others.into_iter().nth(input.below(3)).expect("one of three");
                reached(("other schema", sender.raw_schema(other, !input.one_in(2))));
            }
            3..=7 => {
                let array = strangers.array(input, &of, Place::CPU);
                let said = input.one_in(8).then(|| metadata(input, &mut words));
                reached(("task", sender.task_with(Ok(array), said)));
            }
            8 => {
                reached(("failing task", sender.task(Err(input.number() as i32 | 1))));
            }
            9 => {
                let said = input.one_in(4).then(|| metadata(input, &mut words));
                reached(("end", sender.end_with(said)));
            }
            10 => {
                let said = input.one_in(4).then(|| metadata(input, &mut words));
                sender.error(input.number() as i32, input.one_in(2).then_some("no more"), said);
            }
            11 if input.one_in(4) => drop(reader.take()),
            _ => {
                if let Some(reader) = &mut reader {
                    poll(reader);
                }
            }
        }
    }
    if input.one_in(2) {
        drop(reader.take());
    }
    sender.release();
    for _ in 0..40 {
        if reader.as_mut().is_none_or(|reader| !poll(reader)) {
            break;
        }
    }
    drop(reader);
    assert_eq!(sender.asked.lock().unwrap().too_late, 0, "asked after the release");
    strangers.assert_released();
}

/// Metadata in memory that ends after its last byte.
fn metadata<'a>(input: &mut Input<'_>, words: &'a mut Words) -> &'a [u8] {
    let (bytes, _) = metadata::stranger(input);
    let at = words.keep(&bytes);
    // SAFETY: so many bytes were kept there, for as long as the words live.
    unsafe { std::slice::from_raw_parts(at.cast(), bytes.len()) }
}

/// Polls a reader once; returns whether it gave a batch or an error.
fn poll(reader: &mut AsyncBatchReader) -> bool {
    use futures_core::Stream as _;
    match Pin::new(reader).poll_next(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(Some(batch)) => {
            if let Some(batch) = outcome("batch", batch) {
                outcome("validated", validate_batch(&batch, &Stream::cpu()));
            }
            true
        }
        Poll::Ready(None) => false,
        Poll::Pending => {
            reached("pending");
            false
        }
    }
}

/// The target for exports.
pub fn exports(bytes: &[u8]) {
    let input = &mut Input::new(bytes);
    let manner = Manner {
        asks: input.one_in(2).then(|| input.number()),
        refuses_schema: if input.one_in(16) { 5 } else { 0 },
        refuses_tasks: if input.one_in(16) { 5 } else { 0 },
        extracts_first: input.one_in(2),
    };
    let (consumer, handler) = RawConsumer::new(manner);
    let (fails, many) = (input.below(12), input.below(8));
    let batches = (0..many).map(move |i| match i + 1 == fails {
        true => Err(Error::Producer { code: 7, message: "asked".into(), metadata: BTreeMap::new() }),
        false => Ok(batch(i)),
    });
    let batches = Batches::new(batch(0).schema().clone(), Place::CPU, batches);
    let mut export = Some(export_async_iterator(batches, handler));
    let over = |told: &Told| !matches!(told, Told::Schema(_) | Told::Task);
    let mut tasks = vec![];
    for _ in 0..48 {
        if input.is_over() {
            break;
        }
        match input.byte() % 8 {
            0 => consumer.request_unless_over(input.number()),
            1 => consumer.request_unless_over(input.below(3) as i64),
            2 if input.one_in(4) && consumer.producer().is_aligned() && !consumer.producer().is_null() => {
                if !consumer.told().iter().any(over) {
                    consumer.cancel();
                }
            }
            3 => tasks.extend(consumer.take()),
            4 if !tasks.is_empty() => {
                let (code, array) = extract(&mut tasks.remove(input.below(tasks.len())));
                reached(("extract", code, array.is_released()));
            }
            5 if !tasks.is_empty() => {
                reached(("discard", discard(&mut tasks.remove(input.below(tasks.len())))));
            }
            6 if input.one_in(8) => drop(export.take()),
            _ => {
                if let Some(Poll::Ready(result)) = export.as_mut().map(settle) {
                    outcome("export", result);
                    export = None;
                }
            }
        }
    }
    drop(export);
    tasks.extend(std::iter::from_fn(|| consumer.take()));
    for task in &mut tasks {
        discard(task);
    }
    let told = consumer.told();
    assert_eq!(told.iter().filter(|told| **told == Told::Release).count(), 1, "{told:?}");
    assert_eq!(told.last(), Some(&Told::Release), "{told:?}");
    for told in told {
        reached(std::mem::discriminant(&told));
    }
    assert_eq!(Arc::strong_count(&consumer), 1, "let go of");
}

/// A small valid batch of `i` rows.
fn batch(i: usize) -> DeviceBatch {
    let numbers: ArrayRef =
        Arc::new(Int32Array::from_iter((0..i as i32).map(|row| (row != 1).then_some(row))));
    let words: ArrayRef = Arc::new(StringArray::from_iter_values((0..i).map(|row| row.to_string())));
    let batch = RecordBatch::try_from_iter_with_nullable([("n", numbers, true), ("w", words, true)]);
    batch_from_arrow(&batch.expect("columns of one length")).expect("arrow-rs batches are valid")
}
