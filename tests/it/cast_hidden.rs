//! Casts of what rows do not show: the text and items that belong to null rows, which need no memory.

use std::sync::Arc;

use arrow_array::builder::StringViewBuilder;
use arrow_array::types::{Int16Type, Int32Type};
use arrow_array::*;
use arrow_buffer::{NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, Field};
use bowstring::array::{Bitmap, Parts};
use bowstring::compute::{CastOptions, cast};
use bowstring::exchange::{from_arrow, to_arrow};
use bowstring::{Device, DeviceArray, Stream};

use crate::support::*;

fn item(of: DataType) -> Arc<Field> {
    Arc::new(Field::new_list_field(of, true))
}

const LONG: usize = 1 << 20;
const ROWS: usize = 4096;

/// Only the first row is valid.
fn first_only() -> NullBuffer {
    (0..ROWS).map(|row| row == 0).collect()
}

/// Each row is a view of one long text, and the first alone is valid.
fn hidden_views() -> DeviceArray {
    let mut views = StringViewBuilder::new();
    let block = views.append_block("x".repeat(LONG).into_bytes().into());
    (0..ROWS).for_each(|_| views.try_append_view(block, 0, LONG as u32).unwrap());
    let valid = from_arrow(&BooleanArray::from(first_only().into_inner())).unwrap();
    let validity = Some(Bitmap { buffer: valid.buffers()[0].clone(), offset: valid.offset() });
    let parts = from_arrow(&views.finish()).unwrap().into_parts();
    DeviceArray::try_new(Parts { validity, null_count: Some(ROWS - 1), ..parts }).unwrap()
}

/// Texts of which the first is one letter and the second a null of many bytes.
fn with_a_long_null() -> StringArray {
    let offsets = OffsetBuffer::from_lengths([1, LONG]);
    StringArray::new(offsets, "x".repeat(LONG + 1).into_bytes().into(), Some(vec![true, false].into()))
}

/// The text and items of null rows take no memory where a cast writes those of valid ones.
#[test]
fn a_cast_needs_no_memory_for_what_null_rows_hide() {
    const NAME: &str = "cast_hidden::a_cast_needs_no_memory_for_what_null_rows_hide";
    if children::case().is_none() {
        return children::run(NAME, "hidden", None, 120, &[]);
    }
    let (device, stream) = (Device::cpu(), Stream::cpu());
    let pool = device.host_pool();
    let long: ArrayRef = Arc::new(StringArray::from(vec!["x".repeat(LONG)]));
    let keys = Int32Array::new(vec![0; ROWS].into(), Some(first_only()));
    let null_keys = DictionaryArray::<Int32Type>::try_new(keys, long).unwrap();
    let keys = Int32Array::from_iter_values((0..ROWS).map(|row| (row > 0).into()));
    let null_values = DictionaryArray::<Int32Type>::try_new(keys, Arc::new(with_a_long_null())).unwrap();
    let ends = Int16Array::from(vec![1, ROWS as i16]);
    let runs = RunArray::<Int16Type>::try_new(&ends, &with_a_long_null()).unwrap();
    let items: ArrayRef = Arc::new(Int8Array::from(vec![0; LONG / 2]));
    let sizes = (0..ROWS).map(|row| if row == 0 { 3 } else { LONG as i32 / 2 });
    let (offsets, sizes) = (ScalarBuffer::from(vec![0; ROWS]), sizes.collect());
    let views = ListViewArray::new(item(DataType::Int8), offsets, sizes, items, Some(first_only()));
    let text = [DataType::Utf8, DataType::LargeUtf8, DataType::Binary];
    let lists = [DataType::List(item(DataType::Int8)), DataType::LargeList(item(DataType::Int16))];
    let cases = [
        ("views", hidden_views(), &text[..], LONG),
        ("null keys", from_arrow(&null_keys).unwrap(), &text[..2], LONG),
        ("null values", from_arrow(&null_values).unwrap(), &text[..2], 1),
        ("runs", from_arrow(&runs).unwrap(), &text[..2], 1),
        ("views of lists", from_arrow(&views).unwrap(), &lists[..], 3),
    ];
    let mut wrong = vec![];
    for (name, values, types, elements) in &cases {
        for to in *types {
            pool.set_limit(pool.usage().in_use + (64 << 20));
            let made = cast(values, to, &CastOptions::default(), &stream).wait();
            pool.set_limit(usize::MAX);
            match made {
                Err(error) => wrong.push(format!("{name} to {to}: {error}")),
                Ok(made) => {
                    let made = to_arrow(&made).unwrap();
                    assert_eq!((made.len(), made.null_count()), (ROWS, ROWS - 1), "{name} to {to}");
                    assert_eq!(all_elements(&made), *elements, "{name} to {to}");
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The bytes of all texts, or the items of all lists.
fn all_elements(array: &ArrayRef) -> usize {
    let data = array.to_data();
    match array.data_type() {
        DataType::List(_) | DataType::LargeList(_) => data.child_data()[0].len(),
        _ => data.buffers()[1].len(),
    }
}
