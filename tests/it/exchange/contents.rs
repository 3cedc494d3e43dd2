//! Tests the validation of foreign buffers: it gives a verdict on any bytes, on request.

use std::sync::Arc;

use arrow_array::{Int32Array, RecordBatch};
use arrow_schema::{DataType, Field, Fields, Schema};
use bowstring::array::{Batches, Bitmap, Buffer, DeviceArray, DeviceBatch, Parts, Place};
use bowstring::compute::batches::{validate_arrays, validate_batches};
use bowstring::exchange::{
    batch_from_arrow, from_arrow, from_arrow_data, to_arrow, validate, validate_batch, validate_on,
};
use bowstring::{Error, Stream};
use proptest::prelude::*;

use super::foreign::{Releases, import_host, produce, schema};
use super::hostile::sample;
use crate::support;

#[test]
fn a_lie_about_the_null_count_is_seen_by_validation() {
    let releases = Releases::default();
    let rows = sample("struct").to_data();
    for (told, name) in [(2, "array.children[0].null_count"), (0, "array.children[0].null_count")] {
        let mut foreign = produce(&rows, 0, &releases);
        foreign.child(0).null_count = told;
        let ours = import_host(foreign.into_ours(), &schema(rows.data_type())).unwrap().1;
        assert!(matches!(validate(&ours), Err(Error::OutOfSpec { at, .. }) if at == name));
    }
}

fn item(data_type: DataType, nullable: bool) -> Arc<Field> {
    Arc::new(Field::new_list_field(data_type, nullable))
}

/// An array with one child and no memory of its own.
fn over(data_type: DataType, len: usize, child: DeviceArray) -> DeviceArray {
    DeviceArray::try_new(Parts { children: vec![child], ..Parts::new(data_type, len) }).unwrap()
}

fn no_rows(data_type: DataType, len: usize) -> DeviceArray {
    let buffers = if data_type == DataType::Null { vec![] } else { vec![Buffer::empty()] };
    DeviceArray::try_new(Parts { buffers, ..Parts::new(data_type, len) }).unwrap()
}

#[test]
fn rows_without_memory_cost_validation_nothing() {
    const MANY: usize = 1 << 40;
    let nulls = || no_rows(DataType::Null, MANY);
    let nothing = DeviceArray::try_new(Parts::new(DataType::Struct(Fields::empty()), MANY)).unwrap();
    let one_field: Fields = vec![Field::new("n", DataType::Null, true)].into();
    let end = from_arrow(&arrow_array::Int64Array::from(vec![MANY as i64])).unwrap();
    let run = DataType::RunEndEncoded(
        Arc::new(Field::new("run_ends", DataType::Int64, false)),
        Arc::new(Field::new("values", DataType::Null, true)),
    );
    let runs = Parts { children: vec![end, no_rows(DataType::Null, 1)], ..Parts::new(run, MANY) };
    let arrays = [
        nulls(),
        nothing,
        over(DataType::Struct(one_field), MANY, nulls()),
        no_rows(DataType::FixedSizeBinary(0), MANY),
        over(DataType::FixedSizeList(item(DataType::Null, true), 4), MANY / 4, nulls()),
        over(DataType::FixedSizeList(item(DataType::Null, false), 0), MANY, no_rows(DataType::Null, 0)),
        over(
            DataType::FixedSizeList(item(DataType::FixedSizeBinary(0), false), 4),
            MANY / 4,
            no_rows(DataType::FixedSizeBinary(0), MANY),
        ),
        DeviceArray::try_new(runs).unwrap(),
    ];
    let began = std::time::Instant::now();
    for array in &arrays {
        validate(array).unwrap_or_else(|error| panic!("{}: {error}", array.data_type()));
        validate(&array.slice(1 << 39, 1 << 10).unwrap_or_else(|_| array.clone())).unwrap();
    }
    assert!(began.elapsed().as_secs() < 60, "{:?}", began.elapsed());
}

#[test]
fn items_without_memory_need_no_bit_each() {
    // 2^16 rows with a bitmap, and 2^31 - 1 items without one in each: 2^47 bits, if they were written out.
    let (rows, size) = (1 << 16, i32::MAX);
    let items = no_rows(DataType::Null, rows * size as usize);
    let bits = Bitmap { buffer: holding(vec![0x7f; rows / 8]), offset: 0 };
    let parts = Parts {
        children: vec![items],
        validity: Some(bits),
        null_count: Some(rows / 8),
        ..Parts::new(DataType::FixedSizeList(item(DataType::Null, false), size), rows)
    };
    validate(&DeviceArray::try_new(parts).unwrap()).unwrap();
}

#[test]
fn batches_and_streams_end_with_what_is_wrong() {
    let field = |nullable| Arc::new(Schema::new(vec![Field::new("n", DataType::Int32, nullable)]));
    let numbers = from_arrow(&Int32Array::from(vec![Some(1), None])).unwrap();
    let stream = Stream::cpu();
    let may_not = DeviceBatch::try_new(field(false), vec![numbers.clone()], 2).unwrap();
    let problem = validate_batch(&may_not, &stream).unwrap_err().to_string();
    assert_eq!(problem, "malformed array at array.children[0].null_count: 1 rows of n, which may have none");
    let unknown = Parts { null_count: None, ..numbers.clone().into_parts() };
    let unknown =
        DeviceBatch::try_new(field(false), vec![DeviceArray::try_new(unknown).unwrap()], 2).unwrap();
    assert_eq!(validate_batch(&unknown, &stream).unwrap_err().to_string(), problem);
    let may = DeviceBatch::try_new(field(true), vec![numbers.clone()], 2).unwrap();
    validate_batch(&may, &stream).unwrap();

    let mut batches = validate_batches(
        Batches::new(field(true), Place::CPU, [may.clone(), may_not, may].map(Ok).into_iter()),
        &stream,
    );
    assert!(batches.next().unwrap().is_ok() && batches.next().unwrap().is_err() && batches.next().is_none());
    let lying = Parts { null_count: Some(0), ..numbers.clone().into_parts() };
    let arrays = [numbers.clone(), DeviceArray::try_new(lying).unwrap(), numbers];
    let mut arrays = validate_arrays(arrays.map(Ok).into_iter(), &stream);
    assert!(arrays.next().unwrap().is_ok() && arrays.next().unwrap().is_err() && arrays.next().is_none());
    let none = batch_from_arrow(&RecordBatch::new_empty(Arc::new(Schema::empty()))).unwrap();
    assert!(none.is_empty());
    validate_batch(&none, &stream).unwrap();
}

#[test]
fn what_is_on_a_device_is_downloaded_for_it() {
    for target in support::devices() {
        let releases = Releases::default();
        let rows = sample("struct").to_data();
        let mut foreign = produce(&rows, 0, &releases);
        foreign.child(0).null_count = 2;
        let lying = import_host(foreign.into_ours(), &schema(rows.data_type())).unwrap().1;
        let honest = from_arrow(&sample("struct")).unwrap();
        let there = |array: &DeviceArray| target.stream.upload(array).unwrap();
        validate_on(&there(&honest), &target.stream).unwrap();
        let error = validate_on(&there(&lying), &target.stream).unwrap_err();
        assert!(matches!(error, Error::OutOfSpec { at, .. } if at == "array.children[0].null_count"));
        let elsewhere = validate(&there(&honest));
        let on_the_host = target.stream.device().place().device_type.host_accessible();
        assert_eq!(elsewhere.is_ok(), on_the_host);
        assert!(on_the_host || matches!(elsewhere, Err(Error::Unsupported { operation: "validate", .. })));
    }
}

proptest! {
    #![proptest_config(support::config(400))]

    /// Any bytes get a verdict without a panic, and arrow-rs accepts whatever was found valid.
    #[test]
    fn contents_of_any_kind_are_judged(sample in support::sample(60), seed in any::<u64>()) {
        let mut random = support::Random::new(seed);
        let ours = from_arrow(&sample.array()).unwrap();
        let spoilt = spoil(&ours, &mut random);
        match validate(&spoilt) {
            Ok(()) => drop(to_arrow(&spoilt).unwrap()),
            Err(Error::OutOfSpec { .. }) => {}
            Err(other) => panic!("{other}"),
        }
    }
}

/// The same array with a few bytes of some buffers changed.
fn spoil(array: &bowstring::DeviceArray, random: &mut support::Random) -> bowstring::DeviceArray {
    let mut parts: Parts = array.clone().into_parts();
    for buffer in &mut parts.buffers {
        let owner: &arrow_buffer::Buffer = buffer.owner().downcast_ref().unwrap();
        let mut bytes = owner.to_vec();
        if !bytes.is_empty() && random.percent(50.0) {
            for _ in 0..random.below(3) + 1 {
                let at = random.below(bytes.len());
                bytes[at] = *random.pick(&[&0u8, &1, &0x7f, &0x80, &0xff]);
            }
        }
        *buffer = holding(bytes);
    }
    parts.children = parts.children.iter().map(|child| spoil(child, random)).collect();
    parts.dictionary = parts.dictionary.map(|values| spoil(&values, random));
    bowstring::DeviceArray::try_new(parts).unwrap()
}

fn holding(bytes: Vec<u8>) -> Buffer {
    let data = arrow_data::ArrayData::builder(DataType::UInt8).len(bytes.len()).add_buffer(bytes.into());
    from_arrow_data(&data.build().unwrap()).unwrap().buffers()[0].clone()
}
