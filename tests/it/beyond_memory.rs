//! Sorts and joins of more rows than a limit: the same rows, in several batches, within the memory of the
//! device.

use std::pin::pin;
use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, Int64Array, StringArray, UInt32Array};
use arrow_schema::{DataType, Field};
use bowstring::array::Batches;
use bowstring::compute::batches::{join_batches, sort_batches};
use bowstring::compute::{
    JoinBuild, JoinKind, JoinOptions, JoinProbe, SortColumn, SortOptions, concat, join, sort_by,
};
use bowstring::expr::{FloatOrder, Options, nth};
use bowstring::{DeviceBatch, Error, Result};

use crate::groups::batch_on;
use crate::joins::KINDS;
use crate::polled::woken;
use crate::support::*;

/// The result of an asynchronous operation.
pub fn ended<T>(operation: impl Future<Output = T>) -> T {
    let mut operation = pin!(operation);
    woken(|context| operation.as_mut().poll(context)).0
}

fn stream_of(batches: &[DeviceBatch], target: &Target) -> Batches {
    let (schema, place) = (batches[0].schema().clone(), target.stream.device().place());
    let batches = batches.to_vec();
    Batches::new(schema, place, batches.into_iter().map(Ok))
}

/// The columns of all batches, one after the other.
fn columns(batches: &[DeviceBatch], target: &Target) -> Vec<Vec<Value>> {
    let count = batches.first().map_or(0, |batch| batch.columns().len());
    let column = |column: usize| {
        let of = |batch: &DeviceBatch| rows(&target.export(&batch.columns()[column]));
        batches.iter().flat_map(of).collect()
    };
    (0..count).map(column).collect()
}

/// The rows of all batches, in an order of their own.
pub fn in_any_order(batches: &[DeviceBatch], target: &Target) -> Vec<String> {
    let columns = columns(batches, target);
    let row = |row: usize| format!("{:?}", columns.iter().map(|column| &column[row]).collect::<Vec<_>>());
    let mut rows: Vec<String> = (0..columns.first().map_or(0, Vec::len)).map(row).collect();
    rows.sort();
    rows
}

/// Batches with a key of a type, and the number of each row.
fn numbered(of: &DataType, lens: &[usize], target: &Target, random: &mut Random) -> Vec<DeviceBatch> {
    let few = array(of, 40, Nulls::Some, random);
    let mut number = 0;
    let mut batch = |len: &usize| {
        let key = if random.percent(50.0) {
            some_of(&few, *len, random)
        } else {
            array(of, *len, Nulls::Some, random)
        };
        let numbers: ArrayRef = Arc::new(UInt32Array::from_iter_values(number..number + *len as u32));
        number += *len as u32;
        let second: ArrayRef =
            Arc::new(Int64Array::from_iter_values((0..*len).map(|_| random.below(3) as i64)));
        batch_on(target, &[("k", key), ("second", second), ("number", numbers)])
    };
    lens.iter().map(&mut batch).collect()
}

#[test]
fn sorts_beyond_a_limit_return_the_same_rows_in_the_same_order() {
    let dictionary = DataType::Dictionary(Box::new(DataType::Int16), Box::new(DataType::Utf8));
    let types = [
        DataType::Int64,
        DataType::Float32,
        DataType::Utf8View,
        DataType::Utf8,
        DataType::Boolean,
        dictionary,
    ];
    let mut random = Random::new(301);
    for target in &devices() {
        for of in &types {
            let batches = numbered(of, &[300, 0, 1, 170, 400, 33, 290], target, &mut random);
            let whole = concat(&batches.iter().collect::<Vec<_>>(), &target.stream).wait().unwrap();
            for case in 0..6 {
                let options =
                    SortOptions { descending: random.percent(50.0), nulls_first: random.percent(50.0) };
                let by: &[(usize, SortOptions)] = match case % 2 {
                    0 => &[(0, options)],
                    _ => &[(1, options), (0, SortOptions::default())],
                };
                let limit = [None, Some(random.below(1400))][case / 2 % 2];
                let memory = [4000, 900, 1 << 30][case % 3];
                let keys: Vec<_> = by
                    .iter()
                    .map(|(column, options)| SortColumn::new(&whole.columns()[*column], *options))
                    .collect();
                let expected = sort_by(&whole, &keys, limit, &target.stream).wait().unwrap();
                let made = sort_batches(stream_of(&batches, target), by, limit, Some(memory), &target.stream);
                let made: Vec<DeviceBatch> = made.collect::<Result<_>>().unwrap();
                let context = format!("{of} by {by:?}, {limit:?} of {memory} bytes, on {target:?}");
                assert!(
                    limit.is_some() || (made.len() == 1) == (memory == 1 << 30),
                    "{context}: {}",
                    made.len()
                );
                if expected.is_empty() {
                    assert_eq!(made.iter().map(DeviceBatch::len).sum::<usize>(), 0, "{context}");
                    continue;
                }
                assert_eq!(columns(&made, target), columns(&[expected], target), "{context}");
            }
        }
    }
}

#[test]
fn sorts_of_nothing_return_nothing() {
    for target in &devices() {
        let none = numbered(&DataType::Int64, &[0, 0], target, &mut Random::new(1));
        let by = [(0, SortOptions::default())];
        let sorted = sort_batches(stream_of(&none, target), &by, None, Some(0), &target.stream);
        let rows: Result<usize> = sorted.map(|batch| batch.map(|batch| batch.len())).sum();
        assert_eq!(rows.unwrap(), 0, "{target:?}");
        let outside = [(3, SortOptions::default())];
        let mut sorted = sort_batches(stream_of(&none, target), &outside, None, None, &target.stream);
        assert!(matches!(sorted.next(), Some(Err(Error::Invalid { .. }))), "{target:?}");
    }
}

/// Lists of structs, a few of which are equal.
fn lists(len: usize, random: &mut Random) -> ArrayRef {
    let fields = [Field::new("a", DataType::Utf8, true), Field::new("b", DataType::Float32, true)];
    let of = DataType::new_list(DataType::Struct(fields.into_iter().collect()), true);
    some_of(&array(&of, 40, Nulls::Some, &mut Random::new(304)), len, random)
}

/// Sides with a text, a float, a number and a list as keys, and the number of each row.
fn side(lens: &[usize], nulls: f64, target: &Target, random: &mut Random) -> Vec<DeviceBatch> {
    let mut number = 0;
    let mut batch = |len: &usize| {
        let valid = |random: &mut Random| !random.percent(nulls);
        let texts: ArrayRef = Arc::new(StringArray::from_iter(
            (0..*len).map(|_| valid(random).then(|| format!("the key of number {}", random.below(60)))),
        ));
        let texts = if random.percent(50.0) { texts } else { some_of(&texts, *len, random) };
        let zeros = [0.0, -0.0, f64::NAN, -f64::NAN, 1.5];
        let floats: ArrayRef = Arc::new(Float64Array::from_iter(
            (0..*len).map(|_| valid(random).then(|| zeros[random.below(5)])),
        ));
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(number..number + *len as i64));
        number += *len as i64;
        let views = arrow_cast::cast(&texts, &DataType::Utf8View).unwrap();
        batch_on(
            target,
            &[("t", texts), ("f", floats), ("v", views), ("n", numbers), ("l", lists(*len, random))],
        )
    };
    lens.iter().map(&mut batch).collect()
}

fn every_kind() -> Vec<JoinOptions> {
    let mut all = vec![];
    for kind in KINDS {
        for nulls_equal in [false, true] {
            all.push(JoinOptions { kind, nulls_equal, ..JoinOptions::default() });
        }
        let filter = Some((nth(3) + nth(8)).lt(700));
        let evaluation = Options::default().floats(FloatOrder::Sql);
        all.push(JoinOptions { kind, filter, evaluation, ..JoinOptions::default() });
    }
    all
}

#[test]
fn joins_beyond_a_limit_return_the_same_rows() {
    let mut random = Random::new(302);
    for target in &devices() {
        let left = side(&[150, 0, 90, 200], 9.0, target, &mut random);
        let right = side(&[0, 120, 30, 260], 9.0, target, &mut random);
        let stream = &target.stream;
        let all =
            |batches: &[DeviceBatch]| concat(&batches.iter().collect::<Vec<_>>(), stream).wait().unwrap();
        for options in every_kind() {
            // Each key with limits of its own, because small parts take long on emulators.
            for (by, limits) in [(&[0][..], &[2000, 1 << 30][..]), (&[1, 0], &[40_000]), (&[4], &[2000])] {
                let (whole_left, whole_right) = (all(&left), all(&right));
                let keys =
                    |batch: &DeviceBatch| by.iter().map(|i| batch.columns()[*i].clone()).collect::<Vec<_>>();
                let on = (&keys(&whole_left)[..], &keys(&whole_right)[..]);
                let expected = join(&whole_left, &whole_right, on, &options, stream).wait().unwrap();
                let expected_rows = in_any_order(std::slice::from_ref(&expected), target);
                for &memory in limits {
                    let sides = [stream_of(&left, target), stream_of(&right, target)];
                    let made = join_batches(sides, [by, by], &options, Some(memory), stream).unwrap();
                    let names = |schema: &arrow_schema::Schema| {
                        let names = schema
                            .fields()
                            .iter()
                            .map(|field| (field.name().clone(), field.data_type().clone()));
                        names.collect::<Vec<_>>()
                    };
                    let context = format!("{options:?} by {by:?}, {memory} bytes, on {target:?}");
                    assert_eq!(names(made.schema()), names(expected.schema()), "{context}");
                    let made: Vec<DeviceBatch> = made.collect::<Result<_>>().unwrap();
                    assert!(in_any_order(&made, target) == expected_rows, "{context}");
                }
            }
        }
    }
}

/// SQL's `NOT IN`, with and without nulls on either side, and with sides that have no rows.
#[test]
fn not_in_beyond_a_limit_knows_of_nulls_in_other_parts() {
    let mut random = Random::new(303);
    for target in &devices() {
        let stream = &target.stream;
        let all =
            |batches: &[DeviceBatch]| concat(&batches.iter().collect::<Vec<_>>(), stream).wait().unwrap();
        for (left_nulls, right_nulls, right_rows) in
            [(0.0, 0.0, 40), (8.0, 0.0, 40), (0.0, 8.0, 40), (8.0, 8.0, 40), (8.0, 0.0, 0), (1.0, 1.0, 3)]
        {
            let left = side(&[100, 120], left_nulls, target, &mut random);
            let right = side(&[0, right_rows, 2 * right_rows], right_nulls, target, &mut random);
            for kind in [JoinKind::LeftAnti, JoinKind::RightAnti] {
                let options = JoinOptions { kind, null_aware: true, ..JoinOptions::default() };
                for sides in [[&left, &right], [&right, &left]] {
                    let [l, r] = sides.map(|side| all(side));
                    let expected = join(&l, &r, (&l.columns()[..1], &r.columns()[..1]), &options, stream);
                    let expected = in_any_order(&[expected.wait().unwrap()], target);
                    for memory in [500, 1 << 30] {
                        let sides = sides.map(|side| stream_of(side, target));
                        let made = join_batches(sides, [&[0], &[0]], &options, Some(memory), stream).unwrap();
                        let made: Vec<DeviceBatch> = made.collect::<Result<_>>().unwrap();
                        let context =
                            format!("{kind:?}, {left_nulls}, {right_nulls}, {right_rows}, {memory}");
                        assert!(in_any_order(&made, target) == expected, "{context}, on {target:?}");
                    }
                }
            }
        }
    }
}

/// A side without rows may have large buffers. It is not spilled, and then null keys are not in it.
#[test]
fn not_in_no_rows_keeps_nulls() {
    let mut random = Random::new(305);
    for target in &devices() {
        let (left, right) =
            (side(&[100], 0.0, target, &mut random), side(&[40, 0], 30.0, target, &mut random));
        let none = [left[0].slice(0, 0).unwrap()];
        let expected = in_any_order(&right, target);
        for (kind, sides) in
            [(JoinKind::RightAnti, [&none[..], &right]), (JoinKind::LeftAnti, [&right, &none])]
        {
            let options = JoinOptions { kind, null_aware: true, ..JoinOptions::default() };
            for memory in [0, 500, 1 << 30] {
                let sides = sides.map(|side| stream_of(side, target));
                let made = join_batches(sides, [&[0], &[0]], &options, Some(memory), &target.stream).unwrap();
                let made: Vec<DeviceBatch> = made.collect::<Result<_>>().unwrap();
                assert!(in_any_order(&made, target) == expected, "{kind:?}, {memory}, on {target:?}");
            }
        }
    }
}

/// Several right streams share a left side: each left row is returned once, by one of them.
#[test]
fn probes_share_a_spilled_left_side() {
    let mut random = Random::new(304);
    for target in &devices() {
        let left = side(&[150, 90], 9.0, target, &mut random);
        let rights: Vec<Vec<DeviceBatch>> =
            (0..3).map(|stream| side(&[100 * stream, 50], 9.0, target, &mut random)).collect();
        let stream = &target.stream;
        for options in every_kind() {
            let with = |memory: usize| {
                let mut build = JoinBuild::new(&options, stream).memory(memory);
                for batch in &left {
                    ended(build.push(batch, &batch.columns()[..1])).unwrap();
                }
                assert_eq!(build.spilled_bytes() > 0, memory < 1 << 20);
                let built = Arc::new(ended(build.finish(rights.len())).unwrap());
                assert_eq!((built.rows(), built.is_spilled()), (240, memory < 1 << 20));
                let schema = rights[0][0].schema();
                let mut probes: Vec<JoinProbe> =
                    rights.iter().map(|_| JoinProbe::new(&built, schema, stream)).collect();
                let mut made = vec![];
                for (probe, right) in probes.iter_mut().zip(&rights) {
                    for batch in right {
                        ended(probe.push(batch, &batch.columns()[..1])).unwrap();
                        made.extend(std::iter::from_fn(|| ended(probe.next()).unwrap()));
                    }
                }
                // They end in turns.
                probes.iter_mut().for_each(|probe| probe.end().unwrap());
                while !probes.is_empty() {
                    probes.retain_mut(|probe| {
                        let next = ended(probe.next()).unwrap();
                        made.extend(next.clone());
                        next.is_some()
                    });
                }
                in_any_order(&made, target)
            };
            assert!(with(1500) == with(1 << 30), "{options:?}, on {target:?}");
        }
    }
}

/// A device with a tenth of the memory that the rows take.
#[test]
fn sorts_and_joins_of_ten_times_the_memory_fit() {
    let mut random = Random::new(305);
    for target in devices().iter().filter(|target| target.name.starts_with("emulator")) {
        let cpu = devices().into_iter().find(|target| target.name == "cpu").unwrap();
        let rows = side(&[2000; 40], 5.0, &cpu, &mut random);
        target.stream.device().set_memory_limit(1 << 20);
        // Each batch is uploaded when it is wanted.
        let there = || {
            let (stream, rows, schema) = (target.stream.clone(), rows.clone(), rows[0].schema().clone());
            let there = rows.into_iter().map(move |batch| stream.upload(&batch));
            Batches::new(schema, target.stream.device().place(), there)
        };
        let by = [(2, SortOptions::default()), (3, SortOptions { descending: true, nulls_first: false })];
        let sorted = |memory| {
            let made = sort_batches(there(), &by, None, memory, &target.stream);
            made.map(|batch| target.stream.download(&batch?)).collect::<Result<Vec<_>>>()
        };
        let joined = |memory| {
            let options = JoinOptions { kind: JoinKind::LeftSemi, ..JoinOptions::default() };
            let made = join_batches([there(), there()], [&[3], &[3]], &options, memory, &target.stream)?;
            made.map(|batch| target.stream.download(&batch?)).collect::<Result<Vec<_>>>()
        };
        for run in [&sorted as &dyn Fn(Option<usize>) -> Result<Vec<DeviceBatch>>, &joined] {
            assert!(matches!(run(None), Err(Error::OutOfMemory { .. })), "{target:?}");
            let made = run(Some(100_000)).unwrap();
            assert_eq!(made.iter().map(DeviceBatch::len).sum::<usize>(), 80_000, "{target:?}");
        }
    }
}

/// The pairs of one batch of right rows have more text than offsets of 32 bits can count.
#[test]
fn pairs_of_too_much_text_come_in_parts() {
    let target = Target::emulator(32);
    let text: ArrayRef = Arc::new(StringArray::from(vec!["x".repeat(1 << 16)]));
    let key: ArrayRef = Arc::new(Int64Array::from(vec![7]));
    let keys: ArrayRef = Arc::new(Int64Array::from(vec![7; 40_000]));
    let (left, right) = (batch_on(&target, &[("k", key), ("t", text)]), batch_on(&target, &[("k", keys)]));
    let mut build = JoinBuild::new(&JoinOptions::default(), &target.stream);
    ended(build.push(&left, &left.columns()[..1])).unwrap();
    let built = Arc::new(ended(build.finish(1)).unwrap());
    let mut probe = JoinProbe::new(&built, right.schema(), &target.stream);
    ended(probe.push(&right, right.columns())).unwrap();
    probe.end().unwrap();
    let lens = std::iter::from_fn(|| ended(probe.next()).unwrap().map(|rows| rows.len()));
    assert_eq!(lens.collect::<Vec<_>>(), [20_000, 20_000]);
}
