//! Asynchronous streams from our exports to our own readers, on every device, with operations in between.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int32Array, Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use bowstring::array::Batches;
use bowstring::compute::{CastOptions, TakeOptions, batches};
use bowstring::exchange::{
    batch_from_arrow, batch_to_arrow, export_async_iterator, from_arrow, import_async_batches,
};
use bowstring::{DeviceBatch, Result, Stream};

use super::samples;
use crate::support::devices;

#[test]
fn every_type_goes_to_our_own_reader_on_every_device() {
    for target in devices() {
        let device = target.stream.device().clone();
        for array in samples::all() {
            let batch = |&(at, len): &(usize, usize)| {
                let column = target.import(&array.slice(at, len));
                let field = Field::new("f", array.data_type().clone(), true);
                DeviceBatch::try_new(Arc::new(Schema::new(vec![field])), vec![column], len)
            };
            let there: Vec<DeviceBatch> = samples::SLICES.iter().map(|slice| batch(slice).unwrap()).collect();
            let (shape, given) = (there[0].schema().clone(), there.into_iter().map(Ok));
            let (reader, handler) = import_async_batches(&device, 2);
            let export = export_async_iterator(Batches::new(shape.clone(), device.place(), given), handler);
            let sender = std::thread::spawn(move || export.run());
            let got = reader.wait().unwrap();
            assert_eq!((got.schema(), got.place()), (&shape, device.place()));
            let mut count = 0;
            for (batch, &(start, len)) in got.zip(samples::SLICES) {
                count += 1;
                let column = batch.map(|batch| batch.columns()[0].clone());
                let Some(got) = target.answer(column, &array.data_type()) else { break };
                assert_eq!(got.place(), device.place());
                target.assert_same(&got, &array.slice(start, len), &format_args!("{start}+{len}"));
            }
            let sent = sender.join().unwrap();
            assert!(count > 0 && (count < samples::SLICES.len() || sent.is_ok()), "{sent:?}");
        }
    }
}

#[test]
fn operations_stand_between_two_asynchronous_streams() {
    let numbers = |range: std::ops::Range<i32>| {
        let mask = arrow_array::BooleanArray::from_iter(range.clone().map(|n| Some(n % 2 == 1)));
        let columns: [(&str, ArrayRef); 2] =
            [("n", Arc::new(Int32Array::from_iter_values(range))), ("odd", Arc::new(mask))];
        RecordBatch::try_from_iter(columns).unwrap()
    };
    for target in devices() {
        let device = target.stream.device().clone();
        let said = |i: i32| BTreeMap::from([("batch".to_string(), i.to_string())]);
        let there = |i: i32| {
            let here = batch_from_arrow(&numbers(i * 10..i * 10 + 10))?.with_metadata(said(i).into());
            target.stream.upload(&here)
        };
        let given: Vec<Result<DeviceBatch>> = (0..6).map(there).collect();
        let shape = numbers(0..1).schema();
        let to = Arc::new(Schema::new(vec![
            Field::new("n", DataType::Int64, true),
            Field::new("odd", DataType::Boolean, true),
        ]));
        let (first, to_first) = import_async_batches(&device, 3);
        let (second, to_second) = import_async_batches(&device, 1);
        let sent = export_async_iterator(Batches::new(shape, device.place(), given.into_iter()), to_first);
        let stream: Stream = target.stream.clone();
        let senders = [
            std::thread::spawn(move || sent.run()),
            std::thread::spawn(move || {
                let kept = batches::filter_batches(first.wait()?, batches::column(1), &stream);
                let backwards = stream.upload(&from_arrow(&Int32Array::from_iter_values((0..5).rev()))?);
                let taken =
                    batches::take_batches(kept, move |_| backwards.clone(), &TakeOptions::default(), &stream);
                let wide = batches::cast_batches(taken, to, &CastOptions::default(), &stream);
                export_async_iterator(wide, to_second).run()
            }),
        ];
        let batches = second.wait().unwrap();
        let mut count = 0;
        for (i, batch) in (0..).zip(batches) {
            let batch = target.stream.download(&batch.unwrap()).unwrap();
            assert_eq!(**batch.metadata(), said(i), "{target:?}");
            let numbers =
                Int64Array::from_iter_values((0..5).rev().map(|odd| i64::from(i * 10 + 2 * odd + 1)));
            assert_eq!(batch_to_arrow(&batch).unwrap().column(0).as_ref(), &numbers, "{target:?}");
            count += 1;
        }
        assert_eq!(count, 6, "{target:?}");
        for sender in senders {
            sender.join().unwrap().unwrap();
        }
    }
}
