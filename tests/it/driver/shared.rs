//! Tests of memory that a GPU shares with the host: results have the place of the stream's device, wherever
//! parts of them are, and streams deliver them in the memory that they declare.

use std::rc::Rc;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, BooleanArray, Int64Array, UInt32Array};
use arrow_schema::{DataType, Field, Schema, UnionMode};
use bowstring::array::Batches;
use bowstring::compute::{CastOptions, JoinTable, SortOptions, TakeOptions, cast, concat, evaluate, filter};
use bowstring::compute::{group, partition_by_hash, sort_to_indices, take};
use bowstring::device::testing;
use bowstring::exchange::{
    export_batch, export_batches, export_host_batch, export_host_batches, from_arrow, import_batch,
    import_batches, import_host_batch, import_host_batches, to_arrow,
};
use bowstring::expr::col;
use bowstring::ffi::DeviceType;
use bowstring::{DeviceArray, DeviceBatch, Error, Stream};

use super::foreign::{Stranger, close, kinds};
use super::*;
use crate::exchange::foreign::Releases;

fn columns(field: Field, column: DeviceArray) -> DeviceBatch {
    let rows = column.len();
    DeviceBatch::try_new(Arc::new(Schema::new(vec![field])), vec![column], rows).unwrap()
}

fn down(array: &DeviceArray, stream: &Stream) -> Vec<Value> {
    rows(&to_arrow(&stream.download(array).unwrap()).unwrap())
}

/// The types of which results share parts with their inputs.
fn shared_types() -> Vec<DataType> {
    let ends: Arc<Field> = Field::new("run_ends", DataType::Int32, false).into();
    let text: Arc<Field> = Field::new("values", DataType::Utf8, true).into();
    let dictionary = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
    let is_dense = |of: &DataType| matches!(of, DataType::Union(_, UnionMode::Dense));
    let more = [
        dictionary,
        DataType::ListView(text.clone()),
        DataType::RunEndEncoded(ends, text),
        types().into_iter().find(is_dense).unwrap(),
    ];
    kinds_of_buffers().into_iter().chain(more).collect()
}

#[test]
fn results_are_where_the_stream_is() {
    for native in Native::standins().into_iter().map(Rc::new) {
        for (kind, data_type) in
            kinds(&native).into_iter().flat_map(|kind| shared_types().into_iter().map(move |of| (kind, of)))
        {
            let context = format!("{native:?}: {data_type} in {kind}");
            let (theirs, releases) = (sample(&data_type, 90), Releases::default());
            let mut stranger = Stranger::new(&native, &theirs, kind, &releases);
            let ours = stranger.import(&native, &data_type);
            stranger.gate.open();
            let stream = native.device.stream().unwrap();
            let up = |array: ArrayRef| stream.upload(&from_arrow(&array).unwrap()).unwrap();
            let here = native.device.place();
            let same = |made: &DeviceArray, expected: &ArrayRef, what: &str| {
                assert_eq!(made.place(), here, "{context}: {what}");
                assert_same_rows(&down(made, &stream), &rows(expected), &format!("{context}: {what}"));
            };

            let some = BooleanArray::from_iter((0..90).map(|i| Some(i % 3 != 1)));
            let all = BooleanArray::from(vec![true; 90]);
            for mask in [&some, &all] {
                let kept = filter(&ours, &up(Arc::new(mask.clone())), &stream).wait().unwrap();
                same(&kept, &arrow_select::filter::filter(&theirs, mask).unwrap(), "filter");
            }
            let indices = UInt32Array::from_iter_values((0..90).rev());
            let taken = take(&ours, &up(Arc::new(indices.clone())), &TakeOptions::default(), &stream).wait();
            same(&taken.unwrap(), &arrow_select::take::take(&theirs, &indices, None).unwrap(), "take");
            let parts = [ours.slice(3, 20).unwrap(), ours.slice(40, 50).unwrap()];
            let joined = concat(&parts.each_ref(), &stream).wait().unwrap();
            let expected = arrow_select::concat::concat(&[&theirs.slice(3, 20), &theirs.slice(40, 50)]);
            same(&joined, &expected.unwrap(), "concat");

            // Types that devices do not order say so.
            let options = SortOptions::default();
            for made in [
                sort_to_indices(&ours, options, None, &stream).wait().map(drop),
                group(std::slice::from_ref(&ours), &stream).wait().map(drop),
                partition_by_hash(std::slice::from_ref(&ours), 2, &stream).wait().map(drop),
                JoinTable::new(std::slice::from_ref(&ours), false, &stream).wait().map(drop),
            ] {
                assert!(matches!(made, Ok(()) | Err(Error::Unsupported { .. })), "{context}: {made:?}");
            }

            // A stream declares the device's memory; one of its batches is as the producer sent it.
            let field = Field::new("x", data_type.clone(), true);
            let batch = columns(field, ours.clone());
            let batches = vec![Ok(batch.clone()), filter(&batch, &up(Arc::new(all)), &stream).wait()];
            let mut sent = export_batches(Batches::new(batch.schema().clone(), here, batches.into_iter()));
            // SAFETY: the library's own stream.
            for received in unsafe { import_batches(&mut sent, &native.device) }.unwrap() {
                same(&received.unwrap().columns()[0], &theirs, "stream");
            }
            drop((ours, batch, parts, joined));
            drop(stream);
            testing::drain(&native.device);
            assert_eq!(releases.count(), crate::exchange::foreign::structs(&theirs.to_data()), "{context}");
            stranger.end(&native);
        }
        close(native);
    }
}

/// Columns that an operation passes on and those that it makes leave together.
#[test]
fn batches_of_several_kinds_of_memory_are_exported() {
    for native in Native::standins().into_iter().map(Rc::new) {
        for kind in kinds(&native) {
            let (context, releases) = (format!("{native:?}: {kind}"), Releases::default());
            let theirs: ArrayRef = Arc::new(Int64Array::from_iter_values(0..90));
            let mut stranger = Stranger::new(&native, &theirs, kind, &releases);
            let ours = stranger.import(&native, &DataType::Int64);
            stranger.gate.open();
            let stream = native.device.stream().unwrap();
            let batch = columns(Field::new("a", DataType::Int64, true), ours);
            let made = evaluate(&batch, &[col("a"), col("a") + 1i64], &stream).wait().unwrap();
            let mixed = {
                let columns = vec![batch.columns()[0].clone(), made.columns()[1].clone()];
                DeviceBatch::try_new(made.schema().clone(), columns, 90).unwrap()
            };
            for batch in [&made, &mixed] {
                let (mut array, schema) = export_batch(batch).unwrap();
                // SAFETY: the library's own structs.
                let again = unsafe { import_batch(&mut array, &schema, &native.device) }.unwrap();
                assert!(again.columns().iter().all(|column| column.place() == native.device.place()));
                assert_same_rows(&down(&again.columns()[0], &stream), &rows(&theirs), &context);
            }
            // On the host, too, where the stream is the CPU's.
            if kind.host_accessible() {
                let schema = batch.schema().clone();
                let place = bowstring::array::Place::CPU;
                let mut sent =
                    export_batches(Batches::new(schema, place, vec![Ok(batch.clone())].into_iter()));
                // SAFETY: the library's own stream.
                let received = unsafe { import_batches(&mut sent, &bowstring::Device::cpu()) }.unwrap();
                for received in received {
                    let received = received.unwrap();
                    let back = to_arrow(&received.columns()[0]).unwrap();
                    assert_same_rows(&rows(&back), &rows(&theirs), &context);
                }
            }
            let same = cast(&batch, batch.schema(), &CastOptions::default(), &stream).wait().unwrap();
            export_batch(&same).unwrap();
            drop((batch, made, mixed, same, stream));
            testing::drain(&native.device);
            assert_eq!(releases.count(), 1, "{context}");
            stranger.end(&native);
        }
        close(native);
    }
}

/// Pinned and managed memory do not reach each other, and their device reaches both.
#[test]
fn batches_of_pinned_and_managed_memory_are_exported() {
    let native = Rc::new(Native::standin(DeviceType::Cuda, 0));
    let (theirs, releases): (ArrayRef, _) =
        (Arc::new(Int64Array::from_iter_values(0..9)), Releases::default());
    let kinds = [DeviceType::CudaHost, DeviceType::CudaManaged];
    let mut strangers = kinds.map(|kind| Stranger::new(&native, &theirs, kind, &releases));
    let columns = strangers.each_mut().map(|stranger| stranger.import(&native, &DataType::Int64));
    strangers.iter_mut().for_each(|stranger| stranger.gate.open());
    let stream = native.device.stream().unwrap();
    let fields = ["a", "b"].map(|name| Field::new(name, DataType::Int64, true));
    let batch = DeviceBatch::try_new(Arc::new(Schema::new(fields.to_vec())), columns.to_vec(), 9).unwrap();
    let (mut array, schema) = export_batch(&batch).unwrap();
    // SAFETY: the library's own structs.
    let again = unsafe { import_batch(&mut array, &schema, &native.device) }.unwrap();
    for column in again.columns() {
        assert_eq!(column.place(), native.device.place());
        assert_same_rows(&down(column, &stream), &rows(&theirs), &"exported");
    }
    // The host reads both, too.
    let (on_host, schema) = export_host_batch(&batch).unwrap();
    // SAFETY: the library's own structs.
    let host = unsafe { import_host_batch(on_host, &schema) }.unwrap();
    let sent =
        Batches::new(batch.schema().clone(), native.device.place(), vec![Ok(batch.clone())].into_iter());
    let sent = export_host_batches(sent);
    // SAFETY: the library's own stream.
    let received = unsafe { import_host_batches(sent) }.unwrap();
    for host in received.map(Result::unwrap).chain([host]) {
        for column in host.columns() {
            assert_same_rows(&rows(&to_arrow(column).unwrap()), &rows(&theirs), &"on the host");
        }
    }
    drop((columns, batch, again, array, stream));
    testing::drain(&native.device);
    strangers.into_iter().for_each(|stranger| stranger.end(&native));
    close(native);
}

/// A batch without columns has rows, and is in the memory that its stream declares.
#[test]
fn batches_without_columns_leave_through_streams() {
    let native = Native::standin(DeviceType::Cuda, 0);
    let none = DeviceBatch::try_new(Arc::new(Schema::empty()), vec![], 5).unwrap();
    let place = native.device.place();
    let mut sent =
        export_batches(Batches::new(none.schema().clone(), place, vec![Ok(none.clone())].into_iter()));
    // SAFETY: the library's own stream.
    let received = unsafe { import_batches(&mut sent, &native.device) }.unwrap();
    assert_eq!(received.map(|batch| batch.unwrap().len()).collect::<Vec<_>>(), [5]);
    native.close();
}
