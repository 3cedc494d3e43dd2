//! Groups of rows that come in small batches, which the CPU gathers before it groups them.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::*;
use bowstring::array::{Batches, Place};
use bowstring::compute::Query;
use bowstring::expr::{Options, col, count, min, sum};
use bowstring::{DeviceArray, DeviceBatch};

use crate::groups::{batch_on, batch_place};
use crate::support::*;

/// The rows of a batch in batches of so many.
fn parts(batch: &DeviceBatch, each: usize, place: Place) -> Batches {
    let part = |first: usize| batch.slice(first, each.min(batch.len() - first));
    let parts: Vec<_> = (0..batch.len()).step_by(each).map(part).collect();
    Batches::new(batch.schema().clone(), place, parts.into_iter())
}

fn one(mut groups: Batches) -> Vec<DeviceArray> {
    let first = groups.next().unwrap().unwrap();
    assert!(groups.next().is_none());
    first.columns().to_vec()
}

/// Enough rows to be grouped twice: after a million, and at the end.
#[test]
fn groups_of_many_small_batches_are_those_of_all_rows() {
    let targets = devices();
    let target = &targets[0];
    assert_eq!(target.name, "cpu");
    for distinct in [7, 90_000] {
        let (len, mut random) = ((1 << 20) + 40_000, Random::new(distinct as u64));
        let keys: Vec<Option<i64>> = (0..len)
            .map(|_| Some(random.below(distinct) as i64 * 1_000_003).filter(|key| *key != 2_000_006))
            .collect();
        let values: Vec<Option<i32>> = (0..len).map(|i| (i % 11 != 0).then_some(i ^ 0x5555)).collect();
        let (mut numbers, mut expected) =
            (HashMap::new(), Vec::<(Option<i64>, i64, i64, Option<i32>)>::new());
        for (key, value) in keys.iter().zip(&values) {
            let number = *numbers.entry(*key).or_insert(expected.len());
            if number == expected.len() {
                expected.push((*key, 0, 0, None));
            }
            let (_, sum, count, least) = &mut expected[number];
            if let Some(value) = value {
                (*sum, *count) = (*sum + i64::from(*value), *count + 1);
                *least = Some(least.map_or(*value, |least| least.min(*value)));
            }
        }
        let columns: [(&str, ArrayRef); 2] =
            [("k", Arc::new(Int64Array::from(keys))), ("x", Arc::new(Int32Array::from(values)))];
        let batch = batch_on(target, &columns);
        let query =
            Query::new().group_by([col("k")]).aggregate([sum(col("x")), count(col("x")), min(col("x"))]);
        let query = query.bind(batch.schema(), &Options::default()).unwrap();
        let made = one(query.run_batches(parts(&batch, 30_001, Place::CPU), &target.stream));
        let made: Vec<ArrayRef> = made.iter().map(|column| target.export(column)).collect();
        let (key, least) = (made[0].as_primitive::<Int64Type>(), made[3].as_primitive::<Int32Type>());
        let (sums, counts) = (made[1].as_primitive::<Int64Type>(), made[2].as_primitive::<Int64Type>());
        let rows = (0..key.len()).map(|i| {
            let least = least.is_valid(i).then(|| least.value(i));
            (key.is_valid(i).then(|| key.value(i)), sums.value(i), counts.value(i), least)
        });
        assert!(rows.eq(expected), "{distinct} keys");
    }
}

/// A sum of floats depends on how rows are divided among batches, so all devices have to group the same rows
/// together.
#[test]
fn sums_of_floats_in_batches_are_the_same_on_every_device() {
    let mut random = Random::new(61);
    let len = 9_000;
    let keys: ArrayRef = Arc::new(Int32Array::from_iter_values((0..len).map(|_| random.below(3) as i32)));
    let float = |random: &mut Random| random.below(1 << 30) as f64 * 1e-7 - 3.3;
    let values: ArrayRef = Arc::new(Float64Array::from_iter_values((0..len).map(|_| float(&mut random))));
    let targets = devices();
    let made = targets.iter().map(|target| {
        let batch = batch_on(target, &[("k", keys.clone()), ("x", values.clone())]);
        let query = Query::new().group_by([col("k")]).aggregate([sum(col("x"))]);
        let query = query.bind(batch.schema(), &Options::default()).unwrap();
        let sums = one(query.run_batches(parts(&batch, 700, batch_place(target)), &target.stream));
        let sums = target.export(&sums[1]);
        sums.as_primitive::<Float64Type>().values().iter().map(|sum| sum.to_bits()).collect::<Vec<_>>()
    });
    let made: Vec<_> = made.collect();
    assert!(made.iter().all(|sums| *sums == made[0]), "{made:x?}");
}
