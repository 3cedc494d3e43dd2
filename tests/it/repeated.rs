//! Values that many rows share, through dictionaries, runs and views. No operation writes them once for each
//! row: together they would be more than an array holds, or than memory.

use std::sync::Arc;

use arrow_array::builder::StringViewBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::{Int8Type, Int32Type, Int64Type, UInt32Type};
use arrow_array::*;
use arrow_schema::{DataType, Field, Fields, Schema};
use bowstring::array::Batches;
use bowstring::compute::batches::sort_batches;
use bowstring::compute::{JoinTable, Query, SortOptions, group, partition_by_hash, sort_to_indices};
use bowstring::device::testing::{EmulatedDevice, EmulatorOptions};
use bowstring::exchange::{from_arrow, to_arrow};
use bowstring::expr::{Options, col, count_distinct};
use bowstring::{DeviceBatch, Error};

use crate::support::*;

fn batch(target: &Target, columns: &[(&str, ArrayRef)]) -> DeviceBatch {
    let fields = columns.iter().map(|(name, column)| Field::new(*name, column.data_type().clone(), true));
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let columns: Vec<_> = columns.iter().map(|(_, column)| target.import(column)).collect();
    let rows = columns[0].len();
    DeviceBatch::try_new(schema, columns, rows).unwrap()
}

fn dictionary(rows: i32, values: ArrayRef) -> ArrayRef {
    let keys = Int32Array::from_iter_values((0..rows).map(|row| row % values.len() as i32));
    Arc::new(DictionaryArray::<Int32Type>::try_new(keys, values).unwrap())
}

fn text(len: usize) -> String {
    "x".repeat(len)
}

/// The first rows of an order are kept without the contents of others, unless these are what they share.
#[test]
fn first_rows_that_share_a_long_text_are_kept_as_they_are() {
    const ROWS: i32 = 3000;
    const LEN: usize = 3 << 19;
    let long = text(LEN);
    let codes = dictionary(ROWS, Arc::new(StringArray::from(vec![long.clone()])));
    let mut views = StringViewBuilder::new();
    let block = views.append_block(long.as_bytes().into());
    (0..ROWS).for_each(|_| views.try_append_view(block, 0, LEN as u32).unwrap());
    let views: ArrayRef = Arc::new(views.finish());
    let structs = |values: Vec<String>| -> ArrayRef {
        let field = Field::new("t", DataType::Utf8, true);
        Arc::new(StructArray::new(Fields::from(vec![field]), vec![Arc::new(StringArray::from(values))], None))
    };
    let keys = Int8Array::from_iter_values((0..ROWS).map(|row| (row % 2) as i8));
    let of_structs = DictionaryArray::<Int8Type>::try_new(keys, structs(vec![long.clone(), long])).unwrap();
    let numbers: ArrayRef = Arc::new(Int32Array::from_iter_values((0..ROWS).rev()));
    for target in devices() {
        for column in [&codes, &views, &(Arc::new(of_structs.clone()) as ArrayRef)] {
            let rows = batch(&target, &[("n", numbers.clone()), ("c", column.clone())]);
            let (schema, place) = (rows.schema().clone(), target.stream.device().place());
            let batches = Batches::new(schema, place, [Ok(rows)].into_iter());
            let by = [(0, SortOptions::default())];
            let first = sort_batches(batches, &by, Some(2000), None, &target.stream).next().unwrap();
            let first = match first {
                Err(Error::Unsupported { .. }) => continue,
                first => first.unwrap(),
            };
            assert_eq!((first.len(), first.columns()[1].data_type()), (2000, column.data_type()));
        }
    }
}

/// A dictionary loses the values that no row has, and keeps its rows.
#[test]
fn first_rows_keep_the_values_of_a_dictionary_that_they_have() {
    let values = StringArray::from_iter_values((0..40_000).map(|i| format!("{i:0100}")));
    let keys = Int32Array::from_iter((0..40_000).map(|row| (row % 3 != 1).then_some(row / 7 * 3)));
    let codes = DictionaryArray::<Int32Type>::try_new(keys, Arc::new(values)).unwrap();
    let numbers: ArrayRef = Arc::new(Int32Array::from_iter_values(0..40_000));
    for target in devices().iter().filter(|target| target.name == "cpu") {
        let rows_ = batch(target, &[("n", numbers.clone()), ("c", Arc::new(codes.clone()))]);
        let (schema, place) = (rows_.schema().clone(), target.stream.device().place());
        let batches = Batches::new(schema, place, [Ok(rows_)].into_iter());
        let by = [(0, SortOptions::default())];
        let first = sort_batches(batches, &by, Some(50), None, &target.stream).next().unwrap().unwrap();
        let made = &first.columns()[1];
        let expected: ArrayRef = Arc::new(codes.slice(0, 50));
        assert_same_rows(&rows(&target.export(made)), &rows(&expected), &target.name);
        assert!(made.dictionary().unwrap().len() <= 50, "{}", made.dictionary().unwrap().len());
    }
}

#[test]
fn distinct_values_of_runs_are_counted() {
    let ends = Int32Array::from(vec![30_000, 60_000]);
    let runs =
        RunArray::<Int32Type>::try_new(&ends, &StringArray::from(vec![text(40_000), text(7)])).unwrap();
    let runs: ArrayRef = Arc::new(runs);
    for target in devices().iter().filter(|target| target.name == "cpu") {
        let rows_ = batch(target, &[("r", runs.clone())]);
        let query = Query::new().aggregate([count_distinct(col("r"))]);
        let query = query.bind(rows_.schema(), &Options::default()).unwrap();
        let made = query.run(&rows_, &target.stream).wait().unwrap();
        let distinct = target.export(&made.columns()[0]);
        assert_eq!(distinct.as_primitive::<Int64Type>().values(), &[2], "{target:?}");
    }
}

#[test]
fn runs_of_a_long_text_are_joined_and_partitioned() {
    let runs = |ends: [i32; 2]| -> ArrayRef {
        let texts = StringArray::from(vec![text(80_000), text(7)]);
        Arc::new(RunArray::<Int32Type>::try_new(&Int32Array::from(ends.to_vec()), &texts).unwrap())
    };
    for target in devices().iter().filter(|target| target.name == "cpu") {
        let left = target.import(&runs([30_000, 30_001]));
        let parts = partition_by_hash(std::slice::from_ref(&left), 3, &target.stream).wait().unwrap();
        assert_eq!(parts.starts().last(), Some(&30_001));
        let table = JoinTable::new(&[left], false, &target.stream).wait().unwrap();
        let found = table.find(&[target.import(&runs([1, 3]))], &target.stream).wait().unwrap();
        assert_eq!(found.pairs(&target.stream).wait().unwrap().left.len(), 30_002, "{target:?}");
    }
}

#[test]
fn joins_by_dictionaries_of_lists_do_not_write_these() {
    let items = Int64Array::from_iter_values(0..100_000);
    let offsets = arrow_buffer::OffsetBuffer::from_lengths([100_000]);
    let field = Arc::new(Field::new_list_field(DataType::Int64, true));
    let lists: ArrayRef = Arc::new(ListArray::new(field, offsets, Arc::new(items), None));
    for target in devices().iter().filter(|target| target.name == "cpu") {
        let (left, right) = (dictionary(30_000, lists.clone()), dictionary(2, lists.clone()));
        let table = JoinTable::new(&[target.import(&left)], false, &target.stream).wait().unwrap();
        let found = table.find(&[target.import(&right)], &target.stream).wait().unwrap();
        assert_eq!(found.pairs(&target.stream).wait().unwrap().left.len(), 60_000, "{target:?}");
    }
}

/// Written for each row, the text would take twice as much memory as the device may give.
#[test]
fn dictionaries_and_runs_of_a_long_text_are_grouped_sorted_and_counted() {
    let texts = || StringArray::from(vec![text(2000), text(7)]);
    let ends = Int32Array::from(vec![1500, 3000]);
    let runs: ArrayRef = Arc::new(RunArray::<Int32Type>::try_new(&ends, &texts()).unwrap());
    let long = || LargeStringArray::from(vec![text(2000), text(7)]);
    let long_runs: ArrayRef = Arc::new(RunArray::<Int32Type>::try_new(&ends, &long()).unwrap());
    for width in [32, 64] {
        let device = EmulatedDevice::new(EmulatorOptions { width, ..Default::default() }).unwrap();
        device.device().set_memory_limit(3 << 19);
        let stream = device.device().stream().unwrap();
        let codes: [ArrayRef; 2] = [Arc::new(texts()), Arc::new(long())];
        for column in
            codes.map(|values| dictionary(3000, values)).into_iter().chain([runs.clone(), long_runs.clone()])
        {
            let column = stream.upload(&from_arrow(&column).unwrap()).unwrap();
            let groups = group(std::slice::from_ref(&column), &stream).wait().unwrap();
            assert_eq!(groups.len(), 2);
            let order = sort_to_indices(&column, SortOptions::default(), Some(1), &stream).wait().unwrap();
            let first = to_arrow(&stream.download(&order).unwrap()).unwrap();
            assert_ne!(first.as_primitive::<UInt32Type>().value(0), 0);
            let parts = partition_by_hash(std::slice::from_ref(&column), 3, &stream).wait().unwrap();
            assert_eq!(parts.starts().last(), Some(&3000));
            let field = Field::new("c", column.data_type().clone(), true);
            let rows = DeviceBatch::try_new(Arc::new(Schema::new(vec![field])), vec![column], 3000).unwrap();
            let query = Query::new().aggregate([count_distinct(col("c"))]);
            let query = query.bind(rows.schema(), &Options::default()).unwrap();
            let made = query.run(&rows, &stream).wait().unwrap();
            let made = to_arrow(&stream.download(&made.columns()[0]).unwrap()).unwrap();
            assert_eq!(made.as_primitive::<Int64Type>().values(), &[2]);
        }
    }
}
