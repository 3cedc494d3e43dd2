//! Groups of streams that are more than a limit: the same groups, in several batches, within the memory of
//! the device.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::{Array as _, ArrayRef, Int64Array, StringArray, StructArray};
use arrow_schema::{DataType, Field};
use bowstring::array::Batches;
use bowstring::compute::{BoundQuery, Query};
use bowstring::expr::{Expr, Options, col, count_distinct, first, max, mean, median, sum, variance};
use bowstring::{DeviceBatch, Error, Result};

use crate::beyond_memory::in_any_order;
use crate::groups::batch_on;
use crate::support::*;

/// Some batches of rows with many keys.
fn rows(batches: usize, len: usize, keys: usize) -> Vec<Vec<(&'static str, ArrayRef)>> {
    let mut random = Random::new(95);
    let batch = |_| {
        let numbers: Vec<usize> = (0..len).map(|_| random.below(keys)).collect();
        let key =
            |number: &usize| (!number.is_multiple_of(97)).then(|| format!("the key of number {number}"));
        let keys: ArrayRef = Arc::new(StringArray::from_iter(numbers.iter().map(key)));
        let values: ArrayRef = Arc::new(Int64Array::from_iter(
            (0..len).map(|_| (random.below(9) > 0).then(|| random.below(1000) as i64 - 500)),
        ));
        let texts = array(&DataType::Utf8View, len, Nulls::Some, &mut random);
        vec![("k", keys), ("x", values), ("t", texts)]
    };
    (0..batches).map(batch).collect()
}

/// The results of groups by their keys.
type Groups = BTreeMap<Option<String>, Vec<Value>>;

/// The results by their keys, and the number of batches.
fn by_key(query: &BoundQuery, target: &Target, batches: Vec<DeviceBatch>) -> Result<(Groups, usize)> {
    let schema = batches[0].schema().clone();
    let place = target.stream.device().place();
    let batches = Batches::new(schema, place, batches.into_iter().map(Ok));
    let (mut found, mut count) = (BTreeMap::new(), 0);
    for batch in query.run_batches(batches, &target.stream) {
        let batch = batch?;
        count += 1;
        let columns: Vec<ArrayRef> = batch.columns().iter().map(|column| target.export(column)).collect();
        let keys = columns[0].as_any().downcast_ref::<StringArray>().unwrap();
        let values: Vec<Vec<Value>> =
            columns[1..].iter().map(|column| crate::support::rows(column)).collect();
        for row in 0..keys.len() {
            let key = keys.is_valid(row).then(|| keys.value(row).to_owned());
            let values = values.iter().map(|column| column[row].clone()).collect();
            assert!(found.insert(key, values).is_none(), "a group in two batches, on {target:?}");
        }
    }
    Ok((found, count))
}

#[test]
fn groups_beyond_a_limit_come_in_several_batches() {
    let all = [
        sum(col("x")),
        mean(col("x")),
        max(col("t")),
        first(col("t")),
        median(col("x")),
        count_distinct(col("t")),
    ];
    let query = Query::new().filter(col("x").gt(-450)).group_by([col("k")]).aggregate(all);
    for target in &devices() {
        let batches: Vec<DeviceBatch> =
            rows(24, 100, 1500).iter().map(|columns| batch_on(target, columns)).collect();
        let bind = |query: &Query| query.bind(batches[0].schema(), &Options::default()).unwrap();
        let (expected, one) = by_key(&bind(&query), target, batches.clone()).unwrap();
        assert_eq!(one, 1);
        // The last one is less than a part takes, so parts are divided further.
        for (limit, least) in [(1 << 30, 1), (50_000, 16), (4000, 17)] {
            let limited = bind(&query.clone().group_limit(limit));
            let (found, count) = by_key(&limited, target, batches.clone()).unwrap();
            let context = format!("{limit} bytes, {count} batches, on {target:?}");
            assert!(count >= least && (least == 1) == (count == 1), "{context}");
            assert_eq!(found.len(), expected.len(), "{context}");
            for (key, values) in &found {
                assert_eq!(values, &expected[key], "{key:?}, {context}");
            }
        }
    }
}

/// Structs are spilled by hashes of their fields.
#[test]
fn nested_keys_are_spilled() {
    let aggregates = [sum(col("x")), count_distinct(col("t"))];
    let query = |key: Expr| Query::new().group_by([key]).aggregate(aggregates.clone());
    for target in &devices() {
        let with_nested = |columns: &Vec<(&'static str, ArrayRef)>| {
            let fields = [Field::new("a", DataType::Utf8, true), Field::new("b", DataType::Utf8View, true)];
            let (inside, nulls) = (vec![columns[0].1.clone(), columns[2].1.clone()], columns[2].1.nulls());
            let nested: ArrayRef =
                Arc::new(StructArray::new(fields.into_iter().collect(), inside, nulls.cloned()));
            batch_on(target, &[columns.clone(), vec![("nested", nested)]].concat())
        };
        let batches: Vec<DeviceBatch> = rows(12, 100, 300).iter().map(with_nested).collect();
        let schema = batches[0].schema().clone();
        let groups = |limit: usize| {
            let query = query(col("nested")).group_limit(limit).bind(&schema, &Options::default()).unwrap();
            let place = target.stream.device().place();
            let batches = Batches::new(schema.clone(), place, batches.clone().into_iter().map(Ok));
            let groups: Vec<DeviceBatch> =
                query.run_batches(batches, &target.stream).collect::<Result<_>>().unwrap();
            (in_any_order(&groups, target), groups.len())
        };
        let (expected, one) = groups(1 << 30);
        let (found, count) = groups(20_000);
        assert!(one == 1 && count > 4, "{count} batches on {target:?}");
        assert!(found == expected, "{target:?}");
    }
}

/// Without rows, and with keys that are all equal.
#[test]
fn few_groups_have_no_limit() {
    for target in &devices() {
        let batches: Vec<DeviceBatch> =
            rows(24, 50, 1).iter().map(|columns| batch_on(target, columns)).collect();
        let query = Query::new().group_by([col("k")]).aggregate([median(col("x")), variance(col("x"), 1)]);
        let bound = query.clone().bind(batches[0].schema(), &Options::default()).unwrap();
        let expected = by_key(&bound, target, batches.clone()).unwrap();
        let bound = query.clone().group_limit(1).bind(batches[0].schema(), &Options::default()).unwrap();
        let found = by_key(&bound, target, batches.clone()).unwrap();
        assert_eq!(found.0.len(), 1, "{target:?}");
        assert_eq!(found.0.keys().next(), expected.0.keys().next());
        let none = batches[0].slice(0, 0).unwrap();
        assert_eq!(by_key(&bound, target, vec![none]).unwrap(), (BTreeMap::new(), 1), "{target:?}");
    }
}

/// A device with a tenth of the memory that the groups take.
#[test]
fn groups_of_ten_times_the_memory_fit() {
    let query = Query::new().group_by([col("k")]).aggregate([sum(col("x")), first(col("t"))]);
    let rows = rows(200, 500, 1 << 30);
    for target in devices().iter().filter(|target| target.name.starts_with("emulator")) {
        let cpu = devices().into_iter().find(|target| target.name == "cpu").unwrap();
        let here: Vec<DeviceBatch> = rows.iter().map(|columns| batch_on(&cpu, columns)).collect();
        let bind = |query: &Query| query.bind(here[0].schema(), &Options::default()).unwrap();
        let (expected, _) = by_key(&bind(&query), &cpu, here.clone()).unwrap();
        target.stream.device().set_memory_limit(1 << 20);
        let run = |query: &Query| {
            let stream = target.stream.clone();
            let schema = here[0].schema().clone();
            // Each batch is uploaded when it is wanted.
            let there = here.clone().into_iter().map(move |batch| stream.upload(&batch));
            let batches = Batches::new(schema, target.stream.device().place(), there);
            let made = bind(query).run_batches(batches, &target.stream);
            made.map(|batch| batch.and_then(|batch| target.stream.download(&batch)))
                .collect::<Result<Vec<_>>>()
        };
        let refused = run(&query);
        assert!(matches!(refused, Err(Error::OutOfMemory { .. })), "{target:?}: {:?}", refused.map(|_| ()));
        let made = run(&query.clone().group_limit(100_000)).unwrap();
        let groups: usize = made.iter().map(DeviceBatch::len).sum();
        assert_eq!(groups, expected.len(), "{target:?}");
    }
}

/// Without the rows of a batch that failed, the groups would be wrong.
#[test]
fn an_error_stays() {
    let query = Query::new().group_by([col("x").cast_strict(DataType::Int8)]).aggregate([sum(col("x"))]);
    let columns =
        |x: i64| -> Vec<(&str, ArrayRef)> { vec![("x", Arc::new(Int64Array::from(vec![x, x + 1])))] };
    for target in &devices() {
        let [good, bad] = [1, 1000].map(|x| batch_on(target, &columns(x)));
        let bound = query.bind(good.schema(), &Options::default()).unwrap();
        let mut grouping = bound.grouping(&target.stream).unwrap();
        grouping.push(&good).unwrap();
        let first = grouping.push(&bad).and_then(|()| grouping.push(&good));
        let error = match first {
            // Rows of several batches are grouped together here.
            Ok(()) => grouping.finish().err(),
            Err(error) => {
                assert_eq!(grouping.push(&good).unwrap_err().to_string(), error.to_string(), "{target:?}");
                grouping.finish().err()
            }
        };
        assert!(error.is_some(), "{target:?}");
    }
}
