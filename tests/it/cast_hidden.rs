//! Casts of what rows do not show: the fields of runs, which arrow-cast names itself, and the text and items
//! that belong to null rows, which need no memory.

use std::sync::Arc;

use arrow_array::builder::StringViewBuilder;
use arrow_array::types::{Int16Type, Int32Type};
use arrow_array::*;
use arrow_buffer::{NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, Field, Schema};
use bowstring::array::{Bitmap, Parts};
use bowstring::compute::{CastOptions, cast};
use bowstring::exchange::{from_arrow, to_arrow};
use bowstring::{Device, DeviceArray, DeviceBatch, Error, Result, Stream};

use crate::support::*;

fn named(ends: DataType, of: DataType, nullable: bool) -> DataType {
    DataType::RunEndEncoded(Arc::new(Field::new("e", ends, false)), Arc::new(Field::new("v", of, nullable)))
}

fn plain(of: DataType) -> DataType {
    let ends = Arc::new(Field::new("run_ends", DataType::Int32, false));
    DataType::RunEndEncoded(ends, Arc::new(Field::new("values", of, true)))
}

fn item(of: DataType) -> Arc<Field> {
    Arc::new(Field::new_list_field(of, true))
}

fn structs_of(of: DataType) -> DataType {
    DataType::Struct([Field::new("a", of, true)].into_iter().collect())
}

/// Five rows: three runs, the second of nulls.
fn numbers() -> ArrayRef {
    Arc::new(Int32Array::from(vec![Some(1), Some(1), None, Some(3), Some(3)]))
}

fn lists(items: ArrayRef) -> ArrayRef {
    let (field, offsets) = (item(items.data_type().clone()), OffsetBuffer::from_lengths([2, 3]));
    Arc::new(ListArray::new(field, offsets, items, None))
}

fn structs(column: ArrayRef) -> ArrayRef {
    let DataType::Struct(fields) = structs_of(column.data_type().clone()) else { unreachable!() };
    Arc::new(StructArray::new(fields, vec![column], None))
}

/// Casts, and waits for what a device reports late.
fn casted(values: &DeviceArray, to: &DataType, stream: &Stream) -> Result<DeviceArray> {
    let made = cast(values, to, &CastOptions::default(), stream).wait()?;
    to_arrow(&stream.download(&made)?)?;
    Ok(made)
}

#[test]
fn a_cast_gives_runs_the_fields_that_were_asked_for() {
    let runs = arrow_cast::cast(&numbers(), &plain(DataType::Int32)).unwrap();
    let short = arrow_cast::cast(&numbers(), &named(DataType::Int16, DataType::Int32, true)).unwrap();
    let (large, int16, int64) = (DataType::LargeList, DataType::Int16, DataType::Int64);
    let cases: Vec<(ArrayRef, DataType)> = vec![
        (numbers(), named(DataType::Int32, DataType::Int32, true)),
        (numbers(), named(int16.clone(), DataType::Utf8, true)),
        (numbers().slice(0, 2), named(DataType::Int32, DataType::Int32, false)),
        (numbers().slice(0, 0), named(DataType::Int32, DataType::Int32, false)),
        (runs.clone(), named(DataType::Int32, DataType::Int32, true)),
        (runs.clone(), named(int64, DataType::Utf8View, true)),
        (runs.slice(3, 2), named(DataType::Int32, DataType::Int64, false)),
        (runs.slice(3, 2), named(DataType::Int32, DataType::Int32, false)),
        (short, plain(DataType::Int64)),
        (lists(numbers()), large(item(named(int16.clone(), DataType::Int32, true)))),
        (lists(runs.clone()), large(item(named(DataType::Int32, DataType::Int8, true)))),
        (structs(numbers()), structs_of(named(DataType::Int32, DataType::Int64, true))),
        (structs(runs), structs_of(named(DataType::Int32, DataType::Int32, true))),
    ];
    for target in devices() {
        for (values, to) in &cases {
            let context = format!("{} to {to} on {target:?}", values.data_type());
            let made = match casted(&target.import(values), to, &target.stream) {
                Err(Error::Unsupported { .. }) if target.name != "cpu" => continue,
                made => made.unwrap_or_else(|error| panic!("{context}: {error}")),
            };
            assert_eq!(made.data_type(), to, "{context}");
            let made = target.export(&made);
            let count = |array: &ArrayRef| rows(array).len();
            assert_eq!(count(&made), count(values), "{context}");
            if !values.data_type().is_nested() {
                let back = arrow_cast::cast(&made, &DataType::Int32).unwrap();
                let values = arrow_cast::cast(values, &DataType::Int32).unwrap();
                assert_same_rows(&rows(&back), &rows(&values), &context);
            }
        }
    }
}

#[test]
fn a_batch_is_cast_to_runs_of_other_names() {
    let to = named(DataType::Int32, DataType::Int64, true);
    let schema = |of: &DataType| Arc::new(Schema::new(vec![Field::new("x", of.clone(), true)]));
    for target in devices() {
        let (from, column) = (schema(&DataType::Int32), vec![target.import(&numbers())]);
        let batch = DeviceBatch::try_new(from, column, 5).unwrap();
        let made = cast(&batch, &schema(&to), &CastOptions::default(), &target.stream).wait().unwrap();
        assert_eq!(made.columns()[0].data_type(), &to);
    }
}

/// Only those that rows show.
#[test]
fn a_cast_leaves_no_nulls_in_runs_that_forbid_them() {
    let runs = arrow_cast::cast(&numbers(), &plain(DataType::Int32)).unwrap();
    let to = |of: DataType| named(DataType::Int32, of, false);
    let text: ArrayRef = Arc::new(StringArray::from(vec!["1", "x"]));
    let cases = [
        (numbers(), to(DataType::Int32)),
        (runs.clone(), to(DataType::Int32)),
        (runs.clone(), to(DataType::Int64)),
        (text, to(DataType::Int32)),
        (lists(numbers()), DataType::LargeList(item(to(DataType::Int32)))),
        (structs(runs), structs_of(to(DataType::Int32))),
    ];
    for target in devices() {
        for (values, to) in &cases {
            let made = casted(&target.import(values), to, &target.stream);
            if matches!(made, Err(Error::Unsupported { .. })) && target.name != "cpu" {
                continue;
            }
            let context = format!("{} to {to} on {target:?}: {made:?}", values.data_type());
            let Err(Error::Arrow { operation: "cast", problem }) = made else { panic!("{context}") };
            assert_eq!(problem, "1 nulls in \"v\", which is not nullable", "{context}");
        }
    }
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
