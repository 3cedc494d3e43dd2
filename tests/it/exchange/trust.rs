//! Tests the unchecked conversion to arrow-rs: only arrays that were found valid, or are made of such, skip
//! validation.

use std::sync::Arc;

use arrow_array::{ArrayRef, BinaryArray, BooleanArray, ListArray, UInt8Array};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{DataType, Field};
use bowstring::array::DeviceArray;
use bowstring::compute::{CastOptions, DropOptions, TakeOptions, cast, drop_nulls, filter, take};
use bowstring::exchange::{from_arrow, to_arrow, validate};
use bowstring::{Error, Stream};

/// Rows of bytes declared as text, the second of which is not valid UTF-8.
fn no_text(from: ArrayRef, data_type: DataType) -> DeviceArray {
    let ours = from_arrow(&from).unwrap();
    to_arrow(&ours).unwrap();
    let mut parts = ours.into_parts();
    parts.data_type = data_type;
    DeviceArray::try_new(parts).unwrap()
}

fn samples() -> Vec<DeviceArray> {
    let rows: [Option<&[u8]>; 4] = [Some(b"one"), Some(b"\xff"), None, Some(b"\xc3\xa9")];
    let bytes: ArrayRef = Arc::new(BinaryArray::from_iter(rows));
    let to = |data_type| arrow_cast::cast(&bytes, &data_type).unwrap();
    let item = |data_type| Arc::new(Field::new_list_field(data_type, true));
    let offsets = OffsetBuffer::from_lengths([1, 1, 1, 1]);
    let list = ListArray::new(item(DataType::Binary), offsets, bytes.clone(), None);
    let mut text_list = from_arrow(&list).unwrap().into_parts();
    text_list.data_type = DataType::List(item(DataType::Utf8));
    text_list.children = vec![no_text(bytes.clone(), DataType::Utf8)];
    vec![
        no_text(bytes.clone(), DataType::Utf8),
        no_text(to(DataType::LargeBinary), DataType::LargeUtf8),
        no_text(to(DataType::BinaryView), DataType::Utf8View),
        DeviceArray::try_new(text_list).unwrap(),
    ]
}

fn refused(array: &DeviceArray) {
    for _ in 0..2 {
        assert!(matches!(to_arrow(array), Err(Error::OutOfSpec { .. })), "{}", array.data_type());
    }
    assert!(matches!(validate(array), Err(Error::OutOfSpec { .. })));
}

#[test]
fn bytes_under_another_type_are_looked_at_again() {
    let stream = Stream::cpu();
    let mask = |keep: [bool; 4]| from_arrow(&BooleanArray::from(keep.to_vec())).unwrap();
    let rows = |rows: &[u8]| from_arrow(&UInt8Array::from(rows.to_vec())).unwrap();
    for array in samples() {
        refused(&array);
        refused(&array.slice(1, 2).unwrap());
        refused(&filter(&array, &mask([true, true, false, true]), &stream).wait().unwrap());
        refused(&take(&array, &rows(&[3, 1, 0]), &TakeOptions::default(), &stream).wait().unwrap());
        refused(&cast(&array, array.data_type(), &CastOptions::default(), &stream).wait().unwrap());
        refused(&drop_nulls(&array, &DropOptions::default(), &stream).wait().unwrap());
        let good = filter(&array, &mask([true, false, true, true]), &stream).wait().unwrap();
        assert_eq!(to_arrow(&good).unwrap().len(), 3);
        // `good` was found valid, but the array that it was made from was not.
        assert!(
            to_arrow(&take(&good, &rows(&[2, 0]), &TakeOptions::default(), &stream).wait().unwrap()).is_ok()
        );
        refused(&array);
    }
}
