//! Tests conversion to arrow-rs and back: every type, sliced, nested, misaligned; also the arrays that
//! arrow-rs must never get.

use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{
    Array as _, ArrayRef, BooleanArray, DictionaryArray, Int32Array, RecordBatch, StringArray, StructArray,
    make_array,
};
use arrow_buffer::Buffer;
use arrow_schema::DataType;
use bowstring::array::Parts;
use bowstring::compute::filter;
use bowstring::exchange::{batch_from_arrow, batch_to_arrow, from_arrow, from_arrow_data, to_arrow};
use bowstring::{DeviceArray, Error, Stream};

use super::samples;

#[test]
fn every_type_round_trips_sliced_on_either_side() {
    for array in samples::all() {
        let ours = from_arrow(&array).unwrap();
        assert_eq!((ours.data_type(), ours.len()), (array.data_type(), array.len()));
        for &(start, len) in samples::SLICES {
            let expected = array.slice(start, len);
            let back = to_arrow(&ours.slice(start, len).unwrap()).unwrap();
            assert_eq!(&back, &expected, "{} sliced by us", array.data_type());
            let back = to_arrow(&from_arrow(&expected).unwrap()).unwrap();
            assert_eq!(&back, &expected, "{} sliced by arrow-rs", array.data_type());
        }
    }
}

#[test]
fn no_buffer_is_copied() {
    fn addresses(data: &arrow_data::ArrayData, into: &mut Vec<usize>) {
        into.extend(data.buffers().iter().filter(|b| !b.is_empty()).map(|b| b.as_ptr() as usize));
        into.extend(data.nulls().map(|nulls| nulls.buffer().as_ptr() as usize));
        data.child_data().iter().for_each(|child| addresses(child, into));
    }
    for array in samples::all() {
        let (mut before, mut after) = (vec![], vec![]);
        addresses(&array.to_data(), &mut before);
        addresses(&to_arrow(&from_arrow(&array).unwrap()).unwrap().to_data(), &mut after);
        assert_eq!(before, after, "{}", array.data_type());
    }
}

/// The same array with every buffer one byte past an aligned address.
fn misaligned(data: &arrow_data::ArrayData) -> DeviceArray {
    fn shift(parts: &mut Parts) {
        for buffer in &mut parts.buffers {
            let owner: &Buffer = buffer.owner().downcast_ref().unwrap();
            let mut bytes = vec![0u8; owner.len() + 1];
            bytes[1..].copy_from_slice(owner);
            let moved = Buffer::from_vec(bytes).slice(1);
            let holder = arrow_data::ArrayData::builder(DataType::UInt8).len(moved.len()).add_buffer(moved);
            *buffer = from_arrow_data(&holder.build().unwrap()).unwrap().buffers()[0].clone();
        }
        for child in parts.children.iter_mut().chain(&mut parts.dictionary) {
            let mut inner = child.clone().into_parts();
            shift(&mut inner);
            *child = DeviceArray::try_new(inner).unwrap();
        }
    }
    let mut parts = from_arrow_data(data).unwrap().into_parts();
    shift(&mut parts);
    DeviceArray::try_new(parts).unwrap()
}

#[test]
fn misaligned_buffers_are_realigned() {
    for array in samples::all() {
        let ours = misaligned(&array.to_data());
        assert_eq!(&to_arrow(&ours).unwrap(), &array, "{}", array.data_type());
        let sliced = ours.slice(9, 31).unwrap();
        assert_eq!(&to_arrow(&sliced).unwrap(), &array.slice(9, 31), "{}", array.data_type());
    }
}

#[test]
fn contents_that_are_not_arrow_are_refused() {
    let data = |data_type: DataType, buffers: Vec<Buffer>| {
        let mut parts = Parts::new(data_type, 2);
        for buffer in buffers {
            let holder = arrow_data::ArrayData::builder(DataType::UInt8).len(buffer.len()).add_buffer(buffer);
            parts.buffers.extend_from_slice(from_arrow_data(&holder.build().unwrap()).unwrap().buffers());
        }
        DeviceArray::try_new(parts).unwrap()
    };
    let offsets = |offsets: [i32; 3]| Buffer::from_slice_ref(offsets);
    let wrong = [
        data(DataType::Utf8, vec![offsets([0, 9, 4]), Buffer::from(b"abcd")]),
        data(DataType::Utf8, vec![offsets([-1, 0, 4]), Buffer::from(b"abcd")]),
        data(DataType::Utf8, vec![offsets([0, 2, 5]), Buffer::from(b"abcd")]),
        data(DataType::Utf8, vec![offsets([0, 1, 4]), Buffer::from(b"a\xff\xffd")]),
        data(DataType::BinaryView, vec![Buffer::from_slice_ref([u128::MAX, 0])]),
    ];
    for array in wrong {
        assert!(matches!(to_arrow(&array), Err(Error::OutOfSpec { .. })), "{array:?}");
    }
}

#[test]
fn batches_round_trip_even_without_columns() {
    let columns: Vec<ArrayRef> = samples::all();
    let named = columns.iter().enumerate().map(|(i, column)| (format!("c{i}"), column.clone()));
    let batch = RecordBatch::try_from_iter(named).unwrap();
    assert_eq!(batch_to_arrow(&batch_from_arrow(&batch).unwrap()).unwrap(), batch);

    let empty = RecordBatch::from(StructArray::new_empty_fields(5, None));
    let ours = batch_from_arrow(&empty).unwrap();
    assert_eq!((ours.len(), ours.columns().len()), (5, 0));
    assert_eq!(batch_to_arrow(&ours).unwrap(), empty);
}

#[test]
fn memory_lives_as_long_as_anyone_shares_it() {
    let array: ArrayRef = Arc::new(arrow_array::Int64Array::from_iter_values(0..1000));
    let data = array.to_data();
    let ours = from_arrow(&array).unwrap();
    drop(array);
    let back = to_arrow(&ours.slice(500, 500).unwrap()).unwrap();
    drop(ours);
    assert_eq!(&back, &make_array(data).slice(500, 500));
}

#[test]
fn a_false_null_count_makes_no_array_known_to_be_valid() {
    // The key under the null refers to no row of the dictionary.
    let keys = Int32Array::new(vec![0, 99, 1].into(), Some(vec![true, false, true].into()));
    // SAFETY: the key outside is null.
    let keys = unsafe {
        DictionaryArray::<Int32Type>::new_unchecked(keys, Arc::new(StringArray::from(vec!["a", "b"])))
    };
    let mut parts = from_arrow(&keys).unwrap().into_parts();
    parts.null_count = Some(0);
    let lies = DeviceArray::try_new(parts).unwrap();
    assert_eq!(to_arrow(&lies).unwrap().null_count(), 1, "arrow-rs counts");
    let mask = from_arrow(&BooleanArray::from(vec![true, true, false])).unwrap();
    let kept = filter(&lies, &mask, &Stream::cpu()).wait().unwrap();
    // Our filter trusted the count, so the row is present now, and its contents must be checked.
    assert!(matches!(to_arrow(&kept), Err(Error::OutOfSpec { .. })), "{kept:?}");
}
