//! Reads any array into plain values, on which definitions and comparisons are based.

use std::fmt::Display;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int16Type, Int32Type, Int64Type};
use arrow_array::{Array, StructArray, make_array};
use arrow_schema::DataType;

/// The value of a row in any encoding: dictionaries and runs are resolved, and contents under a null are
/// ignored.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Null,
    /// The bytes of a boolean, number or string, so that a NaN equals itself and -0 differs from 0.
    Bytes(Vec<u8>),
    /// A list's items, or a map's entries.
    List(Vec<Value>),
    /// The values of a struct's fields.
    Fields(Vec<Value>),
    /// A union's member, by type id.
    Member(i8, Box<Value>),
}

/// Reads the array, row by row.
pub fn rows(array: &dyn Array) -> Vec<Value> {
    use DataType::*;
    let all = 0..array.len();
    let bytes = |bytes: &[u8]| Value::Bytes(bytes.to_vec());
    let mut values: Vec<Value> = match array.data_type() {
        Null => all.map(|_| Value::Null).collect(),
        Boolean => all.map(|i| bytes(&[u8::from(array.as_boolean().value(i))])).collect(),
        Utf8 => all.map(|i| bytes(array.as_string::<i32>().value(i).as_bytes())).collect(),
        LargeUtf8 => all.map(|i| bytes(array.as_string::<i64>().value(i).as_bytes())).collect(),
        Utf8View => all.map(|i| bytes(array.as_string_view().value(i).as_bytes())).collect(),
        Binary => all.map(|i| bytes(array.as_binary::<i32>().value(i))).collect(),
        LargeBinary => all.map(|i| bytes(array.as_binary::<i64>().value(i))).collect(),
        BinaryView => all.map(|i| bytes(array.as_binary_view().value(i))).collect(),
        FixedSizeBinary(_) => all.map(|i| bytes(array.as_fixed_size_binary().value(i))).collect(),
        List(_) => {
            let list = array.as_list::<i32>();
            let offsets = list.value_offsets().windows(2);
            parts(list.values(), offsets.map(|pair| pair[0] as usize..pair[1] as usize))
        }
        LargeList(_) => {
            let list = array.as_list::<i64>();
            let offsets = list.value_offsets().windows(2);
            parts(list.values(), offsets.map(|pair| pair[0] as usize..pair[1] as usize))
        }
        ListView(_) => {
            let list = array.as_list_view::<i32>();
            let extents = list.value_offsets().iter().zip(list.value_sizes());
            parts(list.values(), extents.map(|(start, size)| *start as usize..(start + size) as usize))
        }
        LargeListView(_) => {
            let list = array.as_list_view::<i64>();
            let extents = list.value_offsets().iter().zip(list.value_sizes());
            parts(list.values(), extents.map(|(start, size)| *start as usize..(start + size) as usize))
        }
        FixedSizeList(_, size) => {
            let (list, size) = (array.as_fixed_size_list(), *size as usize);
            // `values` is not sliced with the array; `value_offset_at` gives the start of a row in it.
            parts(list.values(), all.map(|i| list.value_offset_at(i)).map(|start| start..start + size))
        }
        Map(..) => {
            let map = array.as_map();
            let offsets = map.value_offsets().windows(2);
            parts(map.entries(), offsets.map(|pair| pair[0] as usize..pair[1] as usize))
        }
        Struct(_) => fields(array.as_struct()),
        Union(members, _) => {
            let union = array.as_union();
            let children: Vec<_> = members.iter().map(|(id, _)| (id, rows(union.child(id)))).collect();
            let member = |i: usize| {
                let id = union.type_id(i);
                let (_, child) = children.iter().find(|(child, _)| *child == id).expect("a known type id");
                Value::Member(id, Box::new(child[union.value_offset(i)].clone()))
            };
            all.map(member).collect()
        }
        Dictionary(..) => {
            let keys = array.as_any_dictionary();
            let of = rows(keys.values());
            let key = |value: &Value| match value {
                Value::Bytes(bytes) => of[little_endian(bytes)].clone(),
                _ => Value::Null,
            };
            rows(keys.keys()).iter().map(key).collect()
        }
        RunEndEncoded(ends, _) => match ends.data_type() {
            Int16 => runs(array, |i| array.as_run::<Int16Type>().get_physical_index(i)),
            Int32 => runs(array, |i| array.as_run::<Int32Type>().get_physical_index(i)),
            _ => runs(array, |i| array.as_run::<Int64Type>().get_physical_index(i)),
        },
        fixed => {
            let data = array.to_data();
            let width = fixed.primitive_width().expect("every other type has a width");
            let from = data.offset() * width..(data.offset() + data.len()) * width;
            data.buffers()[0].as_slice()[from].chunks(width).map(bytes).collect()
        }
    };
    for (i, value) in values.iter_mut().enumerate() {
        if array.is_null(i) {
            *value = Value::Null;
        }
    }
    values
}

fn little_endian(bytes: &[u8]) -> usize {
    bytes.iter().rev().fold(0, |high, byte| high << 8 | usize::from(*byte))
}

fn parts(values: &dyn Array, extents: impl Iterator<Item = std::ops::Range<usize>>) -> Vec<Value> {
    let values = rows(values);
    extents.map(|extent| Value::List(values[extent].to_vec())).collect()
}

fn fields(array: &StructArray) -> Vec<Value> {
    let columns: Vec<_> = array.columns().iter().map(|column| rows(column)).collect();
    (0..array.len())
        .map(|i| Value::Fields(columns.iter().map(|column| column[i].clone()).collect()))
        .collect()
}

fn runs(array: &dyn Array, physical: impl Fn(usize) -> usize) -> Vec<Value> {
    let values = rows(&make_array(array.to_data().child_data()[1].clone()));
    (0..array.len()).map(|i| values[physical(i)].clone()).collect()
}

/// Fails at the first row that differs.
pub fn assert_same_rows(ours: &[Value], theirs: &[Value], context: &dyn Display) {
    for (i, (ours, theirs)) in ours.iter().zip(theirs).enumerate() {
        assert_eq!(ours, theirs, "row {i}: {context}");
    }
    assert_eq!(ours.len(), theirs.len(), "lengths: {context}");
}
