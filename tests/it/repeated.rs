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
use bowstring::compute::{
    JoinTable, Query, Scalar, SortOptions, concat, fill_null, group, interleave, partition_by_hash,
    sort_to_indices, zip,
};
use bowstring::device::testing::{EmulatedDevice, EmulatorOptions};
use bowstring::exchange::{from_arrow, to_arrow};
use bowstring::expr::{Options, col, count_all, count_distinct, first};
use bowstring::{DeviceArray, DeviceBatch, Error, Result};

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

/// The rows that runs with ends of 16 bits may have, and a part of which two are more.
const MOST: i32 = i16::MAX as i32;
const PART: i32 = 20_000;

/// Numbers in runs with ends of 16 bits; a tenth of the runs are null.
fn numbers(rows: i32, first: i32) -> ArrayRef {
    let number = |row: i32| (row / 2 % 10 != 3).then_some(first + row / 2);
    Arc::new(Int32Array::from_iter((0..rows).map(number)))
}

fn short_runs(numbers: &ArrayRef) -> ArrayRef {
    let (ends, of) = (Field::new("ends", DataType::Int16, false), Field::new("n", DataType::Int32, true));
    let of = DataType::RunEndEncoded(Arc::new(ends), Arc::new(of));
    let runs = arrow_cast::cast(numbers, &of).unwrap();
    // arrow-cast gives the fields names of its own.
    make_array(runs.to_data().into_builder().data_type(of).build().unwrap())
}

fn as_lists(items: &ArrayRef, len: usize) -> ArrayRef {
    let field = Arc::new(Field::new_list_field(items.data_type().clone(), true));
    let offsets = arrow_buffer::OffsetBuffer::from_repeated_length(len, items.len() / len);
    Arc::new(ListArray::new(field, offsets, items.clone(), None))
}

fn as_structs(column: &ArrayRef) -> ArrayRef {
    let fields = Fields::from(vec![Field::new("r", column.data_type().clone(), true)]);
    Arc::new(StructArray::new(fields, vec![column.clone()], None))
}

/// Compares what a device made with plain numbers, unless it has not made that.
fn assert_numbers(made: Result<DeviceArray>, of: &DataType, expected: &ArrayRef, target: &Target) {
    if matches!(made, Err(Error::Unsupported { .. })) && target.name != "cpu" {
        return;
    }
    let made = made.unwrap_or_else(|error| panic!("{of} on {target:?}: {error}"));
    assert_eq!(made.data_type(), of, "{target:?}");
    let plain = arrow_cast::cast(&target.export(&made), expected.data_type()).unwrap();
    assert_same_rows(&rows(&plain), &rows(expected), &target.name);
}

#[test]
fn runs_that_are_too_many_together_are_zipped() {
    let forms: [&dyn Fn(&ArrayRef) -> ArrayRef; 3] =
        [&|column| column.clone(), &as_structs, &|items| as_lists(items, 2500)];
    let (truthy, falsy) = (numbers(PART, 0), numbers(PART, 50_000));
    for form in forms {
        let (runs, others) = (form(&short_runs(&truthy)), form(&short_runs(&falsy)));
        let mask = (0..runs.len()).map(|row| (row % 7 > 0).then_some(row / 5 % 3 > 0));
        let mask = BooleanArray::from_iter(mask);
        let expected = arrow_select::zip::zip(&mask, &form(&truthy), &form(&falsy)).unwrap();
        for target in devices() {
            let [yes, no] = [&runs, &others].map(|column| target.import(column));
            let mask = target.import(&(Arc::new(mask.clone()) as ArrayRef));
            let made = zip(&mask, &yes, &no, &target.stream).wait();
            assert_numbers(made, yes.data_type(), &expected, &target);
            let named = |column: &ArrayRef| batch(&target, &[("r", column.clone()), ("m", column.clone())]);
            if let Ok(made) = zip(&mask, &named(&runs), &named(&others), &target.stream).wait() {
                assert_eq!(made.schema(), named(&runs).schema());
                assert_numbers(Ok(made.columns()[1].clone()), yes.data_type(), &expected, &target);
            }
        }
    }
}

#[test]
fn runs_of_as_many_rows_as_their_ends_number_are_filled() {
    let plain = numbers(MOST, 7);
    let filled: ArrayRef = Arc::new(Int32Array::from_iter_values(
        plain.as_primitive::<Int32Type>().iter().map(|n| n.unwrap_or(5)),
    ));
    let five = short_runs(&(Arc::new(Int32Array::from(vec![5])) as ArrayRef));
    let five = Scalar::from_arrow(&arrow_array::Scalar::new(five)).unwrap();
    for target in devices() {
        let runs = target.import(&short_runs(&plain));
        let made = fill_null(&runs, &five, &target.stream).wait();
        assert_numbers(made, runs.data_type(), &filled, &target);
    }
}

#[test]
fn a_few_rows_of_many_runs_are_interleaved() {
    let (left, right) = (numbers(PART, 0), numbers(PART, 50_000));
    let last = PART as usize - 1;
    let places = [(1, last), (0, 0), (0, last), (1, 0), (1, 1), (0, 7), (1, last), (0, 6)];
    let expected = arrow_select::interleave::interleave(&[&left, &right], &places).unwrap();
    for target in devices() {
        let [left, right] = [&left, &right].map(|part| target.import(&short_runs(part)));
        let made = interleave(&[&left, &right], &places, &target.stream).wait();
        assert_numbers(made, left.data_type(), &expected, &target);
    }
}

#[test]
fn batches_with_too_many_runs_together_are_grouped() {
    let all = [count_all(), first(col("r")), count_distinct(col("n"))];
    let query = Query::new().group_by([col("r")]).aggregate(all);
    let keys =
        |first: i32| short_runs(&(Arc::new(Int32Array::from_iter_values(first..first + PART)) as ArrayRef));
    for target in devices() {
        let of = |columns: [ArrayRef; 2]| {
            let mut number = 0;
            let parts = columns.map(|column| {
                number += PART;
                let numbers = Int32Array::from_iter_values(number..number + PART);
                batch(&target, &[("r", column), ("n", Arc::new(numbers) as ArrayRef)])
            });
            let query = query.clone().bind(parts[0].schema(), &Options::default()).unwrap();
            let (schema, place) = (parts[0].schema().clone(), target.stream.device().place());
            let parts = Batches::new(schema, place, parts.into_iter().map(Ok));
            query.run_batches(parts, &target.stream).collect::<Result<Vec<_>>>()
        };
        let made = of([keys(0), keys(0)]).unwrap();
        let [made] = &made[..] else { panic!("{} batches", made.len()) };
        let plain: ArrayRef = Arc::new(Int32Array::from_iter_values(0..PART));
        let twos: ArrayRef = Arc::new(Int64Array::from(vec![2; PART as usize]));
        for i in [0, 2] {
            assert_numbers(Ok(made.columns()[i].clone()), keys(0).data_type(), &plain, &target);
        }
        for i in [1, 3] {
            assert_same_rows(&rows(&target.export(&made.columns()[i])), &rows(&twos), &target.name);
        }
        // These are more groups than the type of their keys has rows.
        let error = of([keys(0), keys(PART)]).map(|_| ()).unwrap_err();
        assert!(matches!(error, Error::Arrow { .. }), "{error:?} on {target:?}");
    }
}

#[test]
fn runs_that_are_too_many_together_are_not_concatenated() {
    for target in devices() {
        let runs = target.import(&short_runs(&numbers(PART, 0)));
        let made = concat(&[&runs, &runs], &target.stream).wait();
        assert!(matches!(made, Err(Error::Arrow { operation: "concat", .. })), "{made:?} on {target:?}");
    }
}
