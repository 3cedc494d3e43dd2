//! Tests arrays through the C structs: to ourselves, to and from arrow-rs' own structs, and from a producer
//! that counts its releases and overwrites released memory.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::{Array as _, ArrayRef, RecordBatch, make_array};
use arrow_schema::{DataType, Field, Schema};
use bowstring::array::{Bitmap, Place};
use bowstring::exchange::{
    batch_from_arrow, batch_to_arrow, export_array, export_batch, export_host_array, export_host_batch,
    from_arrow, to_arrow, validate,
};
use bowstring::{DeviceArray, DeviceBatch};
use proptest::prelude::*;

use super::foreign::{
    RawArray, RawDeviceArray, Releases, export_by_arrow_rs, import, import_by_arrow_rs, import_host,
    import_host_rows, import_rows, produce, schema, structs,
};
use super::samples;
use crate::support::{self, assert_same_rows, displaced, rows};

fn field(array: &DeviceArray) -> Field {
    Field::new("f", array.data_type().clone(), true)
}

/// Exports through our structs and imports again.
fn through_ours(array: &DeviceArray) -> DeviceArray {
    let (mut exported, schema) = export_array(array, &field(array)).unwrap();
    let (field, back) = import(&mut exported, &schema).unwrap();
    assert!(exported.is_released());
    assert_eq!((field.name().as_str(), field.data_type()), ("f", array.data_type()));
    validate(&back).unwrap();
    back
}

/// Exports through our structs and imports through arrow-rs' own.
fn into_arrow_rs(array: &DeviceArray) -> ArrayRef {
    let (exported, schema) = export_host_array(array, &field(array)).unwrap();
    import_by_arrow_rs(exported, &schema)
}

/// Exports through arrow-rs' structs and imports through ours.
fn out_of_arrow_rs(array: &ArrayRef) -> DeviceArray {
    import_host(export_by_arrow_rs(array), &schema(array.data_type())).unwrap().1
}

fn check_all_ways(array: &ArrayRef, slices: &[(usize, usize)]) {
    let data_type = array.data_type();
    let ours = from_arrow(array).unwrap();
    for &(start, len) in slices {
        let expected = array.slice(start, len);
        let sliced = ours.slice(start, len).unwrap();
        let at = format!("{data_type} {start}+{len}");
        assert_eq!(&to_arrow(&through_ours(&sliced)).unwrap(), &expected, "{at} through ours");
        assert_eq!(&into_arrow_rs(&sliced), &expected, "{at} into arrow-rs");
        assert_eq!(&to_arrow(&out_of_arrow_rs(&expected)).unwrap(), &expected, "{at} out of arrow-rs");
        let moved = displaced(&sliced, 3, 5);
        assert_eq!(&to_arrow(&through_ours(&moved)).unwrap(), &expected, "{at} displaced");
        // arrow-rs reads offsets in place, so they must be aligned.
        let moved = displaced(&sliced, 8, 5);
        assert_eq!(&into_arrow_rs(&moved), &expected, "{at} displaced, into arrow-rs");
    }
}

#[test]
fn every_type_crosses_in_both_directions() {
    for array in samples::all() {
        check_all_ways(&array, samples::SLICES);
    }
}

proptest! {
    #![proptest_config(support::config(150))]

    #[test]
    fn random_arrays_cross_in_both_directions(sample in support::sample(100)) {
        let array = sample.array();
        let len = array.len();
        let back = to_arrow(&through_ours(&from_arrow(&array).unwrap().slice(len / 3, len / 2).unwrap())).unwrap();
        assert_same_rows(&rows(&back), &rows(&array.slice(len / 3, len / 2)), &sample.data_type);
        check_all_ways(&array, &[(0, len), (len / 3, len / 2)]);
    }
}

#[test]
fn a_foreign_array_is_released_once_when_its_last_part_is_gone() {
    for array in samples::all() {
        for (start, len) in [(0, samples::ROWS), (9, 31), (20, 0)] {
            let expected = array.slice(start, len);
            let data = array.to_data().slice(start, len);
            let releases = Releases::default();
            let mut foreign = produce(&data, 1, &releases).on_cpu().into_ours();
            let schema = schema(array.data_type());
            let (_, ours) = import(&mut foreign, &schema).unwrap();
            drop(foreign);
            drop(schema);
            validate(&ours).unwrap();
            assert_eq!(
                ours.known_null_count(),
                Some(if data.nulls().is_some() { data.null_count() } else { 0 })
            );
            assert_eq!(&to_arrow(&ours).unwrap(), &expected, "{}", array.data_type());

            let part = ours.slice(len / 2, len - len / 2).unwrap();
            let (mut exported, schema) = export_array(&part, &field(&part)).unwrap();
            let holds_memory = has_buffers(&ours);
            drop((ours, part));
            // An array without memory is released at once.
            assert_eq!(
                releases.count(),
                if holds_memory { 0 } else { structs(&data) },
                "{}",
                array.data_type()
            );
            let again = to_arrow(&import(&mut exported, &schema).unwrap().1).unwrap();
            assert_eq!(&again, &expected.slice(len / 2, len - len / 2), "{}", array.data_type());
            drop(again);
            assert_eq!(releases.count(), structs(&data), "{}", array.data_type());
        }
    }
}

fn has_buffers(array: &DeviceArray) -> bool {
    let below = array.children().iter().chain(array.dictionary()).any(has_buffers);
    below || array.validity().is_some() || !array.buffers().is_empty()
}

#[test]
fn an_unknown_null_count_is_taken_and_given_exactly() {
    for array in samples::all() {
        let releases = Releases::default();
        let mut foreign = produce(&array.to_data(), 0, &releases);
        foreign.null_count = -1;
        let (_, ours) = import_host(foreign.into_ours(), &schema(array.data_type())).unwrap();
        let nulls = array.nulls().map_or(0, |nulls| nulls.null_count());
        assert!(ours.known_null_count().is_none_or(|known| known == nulls));
        let (exported, _) = export_array(&ours, &field(&ours)).unwrap();
        let expected = if *array.data_type() == DataType::Null { array.len() } else { nulls };
        assert_eq!(RawDeviceArray::of(&exported).array.null_count, expected as i64, "{}", array.data_type());
    }
}

#[test]
fn exported_structs_say_what_the_interface_asks_for() {
    for array in samples::all() {
        let ours = from_arrow(&array).unwrap();
        let (exported, _) = export_array(&ours, &field(&ours)).unwrap();
        let raw = RawDeviceArray::of(&exported);
        assert_eq!((raw.device_type, raw.device_id, raw.reserved), (1, -1, [0; 3]));
        assert!(raw.sync_event.is_null());
        assert_eq!(raw.array.length, samples::ROWS as i64);
    }
}

#[test]
fn children_can_be_moved_away_and_released_in_any_order() {
    let all = samples::all();
    let nested = all.iter().find(|a| matches!(a.data_type(), DataType::Struct(f) if f.len() > 40)).unwrap();
    let DataType::Struct(fields) = nested.data_type() else { unreachable!() };
    let releases = Releases::default();
    let data = nested.to_data();
    let foreign = produce(&data, 0, &releases).into_ours();
    let (_, ours) = import_host(foreign, &schema(nested.data_type())).unwrap();
    let (exported, _) = export_host_array(&ours, &field(&ours)).unwrap();
    drop(ours);
    let mut exported = RawArray::from(exported);

    let mut moved = vec![];
    for (i, field) in fields.iter().enumerate().step_by(3) {
        let child = exported.child(i);
        let (taken, schema) = (*child, schema(field.data_type()));
        child.release = None;
        moved.push((i, import_host(taken.into_ours(), &schema).unwrap().1));
    }
    exported.release();
    assert!(exported.release.is_none() && releases.count() == 0);
    while let Some((i, child)) = moved.pop() {
        assert_eq!(releases.count(), 0);
        assert_eq!(&to_arrow(&child).unwrap(), &make_array(data.child_data()[i].clone()), "{}", fields[i]);
    }
    assert_eq!(releases.count(), structs(&data));
}

#[test]
fn a_bitmap_out_of_step_is_brought_into_step() {
    let all: ArrayRef =
        Arc::new(arrow_array::Int16Array::from_iter((0..70).map(|i| (i % 3 != 1).then_some(i))));
    let bools = arrow_cast::cast(&all, &DataType::Boolean).unwrap();
    for array in [all, bools] {
        for rows in [0, 1, 7, 8, 9, 16, 23] {
            for bits in [0, 1, 7, 8, 9, 16, 23] {
                let mut parts = from_arrow(&array).unwrap().slice(rows, 40).unwrap().into_parts();
                let old = parts.validity.unwrap();
                let moved = displaced(&from_arrow(&array).unwrap().slice(rows, 40).unwrap(), 0, bits);
                let Bitmap { buffer, offset } = moved.validity().unwrap();
                assert_ne!((buffer.address(), *offset), (old.buffer.address(), old.offset));
                parts.validity = Some(Bitmap { buffer: buffer.clone(), offset: *offset });
                let ours = DeviceArray::try_new(parts).unwrap();
                assert_eq!(&into_arrow_rs(&ours), &array.slice(rows, 40), "{rows} rows, {bits} bits");
            }
        }
    }
}

#[test]
fn batches_cross_with_schema_and_metadata_and_no_offset() {
    let columns = samples::all();
    let metadata = |value: &str| HashMap::from([("key".to_string(), value.to_string())]);
    let fields: Vec<Field> = columns
        .iter()
        .enumerate()
        .map(|(i, column)| {
            Field::new(format!("c{i}"), column.data_type().clone(), i % 2 == 0 || column.is_nullable())
                .with_metadata(metadata("field"))
        })
        .collect();
    let schema = Arc::new(Schema::new(fields).with_metadata(metadata("schema")));
    let batch = RecordBatch::try_new(schema, columns).unwrap().slice(9, 31);
    let ours = batch_from_arrow(&batch).unwrap();

    let (mut exported, schema) = export_batch(&ours).unwrap();
    let raw = RawDeviceArray::of(&exported);
    assert_eq!((raw.array.offset, raw.array.null_count, raw.array.length), (0, 0, 31));
    let back = import_rows(&mut exported, &schema).unwrap();
    assert_eq!(batch_to_arrow(&back).unwrap(), batch);

    let (exported, schema) = export_host_batch(&ours).unwrap();
    let back = import_host_rows(exported, &schema).unwrap();
    assert_eq!(batch_to_arrow(&back).unwrap(), batch);
}

#[test]
fn batches_without_columns_keep_their_length() {
    let empty = DeviceBatch::try_new(Arc::new(Schema::empty()), vec![], 7).unwrap();
    let (mut exported, schema) = export_batch(&empty).unwrap();
    let back = import_rows(&mut exported, &schema).unwrap();
    assert_eq!((back.len(), back.columns().len()), (7, 0));
}

#[test]
fn a_batch_may_start_behind_its_structs_first_row() {
    let releases = Releases::default();
    let column: ArrayRef = Arc::new(arrow_array::Int32Array::from_iter_values(0..10));
    let rows =
        arrow_array::StructArray::from(vec![(Arc::new(Field::new("a", DataType::Int32, true)), column)]);
    let mut foreign = produce(&rows.to_data(), 0, &releases);
    (foreign.offset, foreign.length) = (3, 6);
    let batch = import_host_rows(foreign.into_ours(), &schema(rows.data_type())).unwrap();
    assert_eq!(batch.columns()[0].place(), Place::CPU);
    let expected = arrow_array::Int32Array::from_iter_values(3..9);
    assert_eq!(&to_arrow(&batch.columns()[0]).unwrap(), &(Arc::new(expected) as ArrayRef));
    drop(batch);
    assert_eq!(releases.count(), 2);
}
