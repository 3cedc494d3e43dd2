//! The bytes that rows are taken to have: they decide which rows wait in host memory, and in how many parts.

use std::sync::Arc;

use arrow_array::builder::StringViewBuilder;
use arrow_array::types::{Int8Type, Int32Type};
use arrow_array::*;
use arrow_buffer::OffsetBuffer;
use arrow_schema::{DataType, Field, Schema};
use bowstring::array::Batches;
use bowstring::compute::batches::sort_batches;
use bowstring::compute::{JoinBuild, JoinOptions, JoinProbe, Query, SortOptions, Sorting};
use bowstring::device::testing::{EmulatedDevice, EmulatorOptions};
use bowstring::expr::{Options, col, count_all, first, sum};
use bowstring::{DeviceArray, DeviceBatch, Result};

use crate::beyond_memory::{ended, in_any_order};
use crate::groups::batch_on;
use crate::support::*;

fn cpu() -> Target {
    devices().into_iter().find(|target| target.name == "cpu").unwrap()
}

fn stream_of(batches: Vec<DeviceBatch>, target: &Target) -> Batches {
    let schema = batches[0].schema().clone();
    Batches::new(schema, target.stream.device().place(), batches.into_iter().map(Ok))
}

fn bytes(array: &DeviceArray) -> usize {
    let own: usize = array.buffers().iter().filter_map(|buffer| buffer.bytes()).sum();
    own + array.children().iter().chain(array.dictionary()).map(bytes).sum::<usize>()
}

/// The bytes that wait once batches have been sorted that may take so many.
fn spilled(batches: &[DeviceBatch], memory: usize, target: &Target) -> usize {
    let mut sorting = Sorting::new(&[(0, SortOptions::default())], &target.stream).memory(memory);
    batches.iter().for_each(|batch| ended(sorting.push(batch)).unwrap());
    sorting.spilled_bytes()
}

#[test]
fn one_list_has_all_of_its_bytes() {
    let lists = || -> ArrayRef {
        let field = Arc::new(Field::new_list_field(DataType::Int64, true));
        let items = Arc::new(Int64Array::from_iter_values(0..1000));
        Arc::new(LargeListArray::new(field, OffsetBuffer::from_lengths([1000]), items, None))
    };
    let target = cpu();
    let batch =
        |_| batch_on(&target, &[("n", Arc::new(Int64Array::from(vec![1])) as ArrayRef), ("l", lists())]);
    let batches: Vec<_> = (0..2).map(batch).collect();
    assert!(spilled(&batches, 10_000, &target) > 10_000);
}

/// Slices of an array share its bytes.
#[test]
fn slices_have_their_share_of_lists_and_runs() {
    const ROWS: usize = 1000;
    let field = Arc::new(Field::new_list_field(DataType::Int64, true));
    let items: ArrayRef = Arc::new(Int64Array::from_iter_values(0..100 * ROWS as i64));
    let lists: ArrayRef = Arc::new(FixedSizeListArray::new(field, 100, items, None));
    let ends = Int32Array::from_iter_values(1..=ROWS as i32);
    let texts = StringArray::from_iter_values((0..ROWS).map(|row| format!("{row:0800}")));
    let runs: ArrayRef = Arc::new(RunArray::<Int32Type>::try_new(&ends, &texts).unwrap());
    let target = cpu();
    for column in [lists, runs] {
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..ROWS as i64));
        let whole = batch_on(&target, &[("n", numbers), ("c", column)]);
        let slices: Vec<_> = (0..10).map(|i| whole.slice(i * ROWS / 10, ROWS / 10).unwrap()).collect();
        let all = bytes(&whole.columns()[1]);
        assert_eq!(spilled(&slices, 4 * all, &target), 0, "{:?}", whole.columns()[1].data_type());
        assert!(spilled(&slices, all / 2, &target) > 0);
    }
}

/// Each part has the values of its own keys, and is not divided further because of others.
#[test]
fn parts_of_groups_by_dictionaries_are_few() {
    const KEYS: usize = 5000;
    let texts = StringArray::from_iter_values((0..KEYS).map(|i| format!("{i:0400}")));
    let keys = Int32Array::from_iter_values(0..KEYS as i32);
    let codes: ArrayRef = Arc::new(DictionaryArray::<Int32Type>::try_new(keys, Arc::new(texts)).unwrap());
    let target = cpu();
    let rows = batch_on(&target, &[("d", codes.clone()), ("e", codes)]);
    let query = Query::new().group_by([col("d")]).aggregate([count_all(), first(col("e"))]);
    let bound = query.group_limit(1 << 20).bind(rows.schema(), &Options::default()).unwrap();
    let parts = bound.run_batches(stream_of(vec![rows], &target), &target.stream);
    let parts: Vec<DeviceBatch> = parts.collect::<Result<_>>().unwrap();
    assert_eq!(parts.iter().map(DeviceBatch::len).sum::<usize>(), KEYS);
    assert!((2..=40).contains(&parts.len()), "{} batches", parts.len());
}

/// Dictionaries and runs of views keep the text of their own values only.
#[test]
fn few_values_of_many_batches_keep_only_their_own_text() {
    const ROWS: usize = 300;
    let texts = |first: usize| -> ArrayRef {
        let mut texts = StringViewBuilder::new();
        (first..first + ROWS).for_each(|row| texts.append_value(format!("{row:04096}")));
        Arc::new(texts.finish())
    };
    let keys = || Int32Array::from_iter_values(0..ROWS as i32);
    let ends = || Int32Array::from_iter_values(1..=ROWS as i32);
    let codes = |first: usize| -> ArrayRef {
        Arc::new(DictionaryArray::<Int32Type>::try_new(keys(), texts(first)).unwrap())
    };
    let runs = |first: usize| -> ArrayRef {
        Arc::new(RunArray::<Int32Type>::try_new(&ends(), texts(first).as_ref()).unwrap())
    };
    for target in devices() {
        for column in [&codes as &dyn Fn(usize) -> ArrayRef, &runs] {
            let part = |i: usize| {
                let keys: ArrayRef =
                    Arc::new(Int32Array::from_iter_values((0..ROWS as i32).map(|row| row % 2)));
                // Rows with floats are grouped batch by batch on every device.
                let floats: ArrayRef = Arc::new(Float64Array::from(vec![1.0; ROWS]));
                batch_on(&target, &[("k", keys), ("f", floats), ("c", column(i * ROWS))])
            };
            let parts: Vec<_> = (0..4).map(part).collect();
            let query = Query::new().group_by([col("k")]).aggregate([first(col("c")), sum(col("f"))]);
            let query = query.bind(parts[0].schema(), &Options::default()).unwrap();
            let groups = query.run_batches(stream_of(parts, &target), &target.stream);
            let groups: Vec<_> = groups.map(Result::unwrap).collect();
            let made = &groups[0].columns()[1];
            assert!(bytes(made) < 1 << 19, "{target:?}: {} bytes, {:?}", bytes(made), made.data_type());
            let expected = rows(&column(0).slice(0, 2));
            assert_same_rows(&rows(&target.export(made)), &expected, &target.name);
        }
    }
}

/// The text of rows that wait is written once, if they share it.
#[test]
fn views_of_one_text_are_spilled_as_they_are() {
    const ROWS: usize = 3000;
    let views = |len: usize| -> ArrayRef {
        let mut views = StringViewBuilder::new();
        let block = views.append_block("x".repeat(len).as_bytes().into());
        (0..ROWS).for_each(|_| views.try_append_view(block, 0, len as u32).unwrap());
        Arc::new(views.finish())
    };
    // Another batch has text of its own, and becomes long text.
    let own = (0..ROWS).map(|row| format!("{row:0100}"));
    let own: ArrayRef = Arc::new(StringViewArray::from_iter_values(own));
    for target in devices() {
        let batch = |texts: &ArrayRef, at: i32| {
            let numbers: ArrayRef = Arc::new(Int32Array::from_iter_values((at..at + ROWS as i32).rev()));
            batch_on(&target, &[("n", numbers), ("t", texts.clone())])
        };
        let sorted = |batches: Vec<DeviceBatch>, by: usize| {
            let by = [(by, SortOptions::default()), (0, SortOptions::default())];
            let sorted = sort_batches(stream_of(batches, &target), &by, None, Some(100_000), &target.stream);
            let sorted: Vec<DeviceBatch> = sorted.collect::<Result<_>>().unwrap();
            assert_eq!(sorted.iter().map(DeviceBatch::len).sum::<usize>(), 2 * ROWS, "{target:?}");
            assert!(sorted.iter().all(|batch| *batch.columns()[1].data_type() == DataType::Utf8View));
            let last = sorted.last().unwrap();
            rows(&target.export(&last.columns()[1].slice(last.len() - 1, 1).unwrap()))
        };
        let batches = vec![batch(&views(1 << 17), 0), batch(&own, 2000)];
        let waiting = spilled(&batches, 100_000, &target);
        assert!((1..4 << 20).contains(&waiting), "{target:?}: {waiting} bytes");
        assert_same_rows(&sorted(batches, 0), &rows(&own.slice(0, 1)), &target.name);
        // To compare so much text takes an emulator long.
        if target.name == "cpu" {
            let texts = views(1 << 13);
            let last = sorted(vec![batch(&own, 0), batch(&texts, 0)], 1);
            assert_same_rows(&last, &rows(&texts.slice(0, 1)), &target.name);
        }
    }
}

/// Batches of which each keeps little are merged before they keep much.
#[test]
fn groups_that_wait_are_merged_when_they_hold_much() {
    let text = StringViewArray::from(vec!["x".repeat(900_000)]);
    let device = EmulatedDevice::new(EmulatorOptions::default()).unwrap();
    let stream = device.device().stream().unwrap();
    device.device().set_memory_limit(200 << 20);
    let here = {
        let columns: Vec<(&str, ArrayRef)> =
            vec![("k", Arc::new(Int32Array::from(vec![1]))), ("t", Arc::new(text))];
        batch_on(&cpu(), &columns)
    };
    let query = Query::new().group_by([col("k")]).aggregate([first(col("t")), count_all()]);
    let query = query.bind(here.schema(), &Options::default()).unwrap();
    let mut grouping = query.grouping(&stream).unwrap();
    for _ in 0..300 {
        grouping.push(&stream.upload(&here).unwrap()).unwrap();
    }
    let groups: Vec<DeviceBatch> = grouping.finish().unwrap().collect::<Result<_>>().unwrap();
    assert_eq!(groups[0].len(), 1);
}

/// Right rows that do not fit into one array are joined batch by batch.
#[test]
fn spilled_dictionaries_that_do_not_fit_together_are_joined() {
    let target = cpu();
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(0..20_000));
    let left = batch_on(&target, &[("id", ids)]);
    let right = |i: i64| {
        let texts = StringArray::from_iter_values((0..100).map(|row| (i * 100 + row).to_string()));
        let keys = Int8Array::from_iter_values(0..100);
        let codes: ArrayRef = Arc::new(DictionaryArray::<Int8Type>::try_new(keys, Arc::new(texts)).unwrap());
        let of: ArrayRef = Arc::new(Int64Array::from_iter_values(i * 100..i * 100 + 100));
        batch_on(&target, &[("of", of), ("c", codes)])
    };
    let mut build = JoinBuild::new(&JoinOptions::default(), &target.stream).memory(300_000);
    ended(build.push(&left, left.columns())).unwrap();
    let built = Arc::new(ended(build.finish(1)).unwrap());
    assert!(built.is_spilled());
    let mut probe = JoinProbe::new(&built, right(0).schema(), &target.stream);
    for i in 0..3 {
        let right = right(i);
        ended(probe.push(&right, &right.columns()[..1])).unwrap();
    }
    probe.end().unwrap();
    let mut made = vec![];
    while let Some(rows) = ended(probe.next()).unwrap() {
        made.push(rows);
    }
    assert_eq!(in_any_order(&made, &target).len(), 300);
}

/// Runs of what keeps no text of others are left as they are, and nothing is read to find that out.
#[test]
fn runs_of_plain_values_take_no_more_waits_if_they_are_long() {
    const ROWS: usize = 9000;
    let waits = |len: usize| {
        let texts = StringArray::from_iter_values((0..ROWS).map(|row| format!("{row:0len$}")));
        let ends = Int32Array::from_iter_values(1..=ROWS as i32);
        let runs: ArrayRef = Arc::new(RunArray::<Int32Type>::try_new(&ends, &texts).unwrap());
        let keys: ArrayRef = Arc::new(Int32Array::from_iter_values(0..ROWS as i32));
        let target = Target::emulator(32);
        let rows = batch_on(&target, &[("k", keys), ("r", runs)]);
        let query = Query::new().group_by([col("k")]).aggregate([first(col("r"))]);
        let query = query.bind(rows.schema(), &Options::default()).unwrap();
        let before = target.stream.device().host_synchronisations();
        assert_eq!(query.run(&rows, &target.stream).wait().unwrap().len(), ROWS);
        target.stream.device().host_synchronisations() - before
    };
    assert_eq!(waits(150), waits(50));
}

/// Rows that have waited keep their schema's metadata.
#[test]
fn sorted_rows_that_waited_keep_the_metadata_of_their_schema() {
    let said = std::collections::HashMap::from([("said".to_owned(), "so".to_owned())]);
    let schema = Schema::new_with_metadata(vec![Field::new("n", DataType::Int64, true)], said);
    for target in devices() {
        let batch = |first: i64| {
            let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(first..first + 100));
            let schema = Arc::new(schema.clone());
            DeviceBatch::try_new(schema, vec![target.import(&numbers)], 100).unwrap()
        };
        for memory in [1, usize::MAX] {
            let mut sorting = Sorting::new(&[(0, SortOptions::default())], &target.stream).memory(memory);
            [batch(70), batch(0)].iter().for_each(|batch| ended(sorting.push(batch)).unwrap());
            let mut sorted = ended(sorting.finish()).unwrap();
            while let Some(rows) = ended(sorted.next()).unwrap() {
                assert_eq!(**rows.schema(), schema, "{memory} bytes on {target:?}");
            }
        }
    }
}
