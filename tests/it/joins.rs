//! Joins on every device: the plain definition, a loop over all pairs, gives the same rows in the same order.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt32Type;
use arrow_array::{
    Array, ArrayRef, BooleanArray, Int32Array, Int64Array, RecordBatch, StringArray, UInt32Array, UInt64Array,
};
use arrow_row::{RowConverter, SortField};
use arrow_schema::{DataType, Field, Schema};
use arrow_select::take::take;
use bowstring::compute::{JoinKind, JoinOptions, JoinTable, PreparedJoin, Visited, concat, join};
use bowstring::exchange::{from_arrow, to_arrow};
use bowstring::expr::{Expr, nth};
use bowstring::internals::{Hashes, set_hashes};
use bowstring::{DeviceArray, DeviceBatch, Error, Stream};

use crate::support::*;

pub const KINDS: [JoinKind; 10] = [
    JoinKind::Inner,
    JoinKind::Left,
    JoinKind::Right,
    JoinKind::Full,
    JoinKind::LeftSemi,
    JoinKind::RightSemi,
    JoinKind::LeftAnti,
    JoinKind::RightAnti,
    JoinKind::LeftMark,
    JoinKind::RightMark,
];

/// The bytes of each row's keys; `None` where a null equals nothing.
fn keys(columns: &[ArrayRef], nulls_equal: bool) -> Vec<Option<Vec<u8>>> {
    let fields = columns.iter().map(|column| SortField::new(column.data_type().clone())).collect();
    let bytes = RowConverter::new(fields).unwrap().convert_columns(columns).unwrap();
    let is_null = |row: usize| {
        columns.iter().any(|column| column.logical_nulls().is_some_and(|nulls| nulls.is_null(row)))
    };
    (0..bytes.num_rows())
        .map(|row| (nulls_equal || !is_null(row)).then(|| bytes.row(row).as_ref().to_vec()))
        .collect()
}

/// The pairs of a join, in order.
fn matching(
    left: &[ArrayRef],
    right: &[ArrayRef],
    nulls_equal: bool,
    passes: impl Fn(u32, u32) -> bool,
) -> Vec<(u32, u32)> {
    let (left, right) = (keys(left, nulls_equal), keys(right, nulls_equal));
    let mut pairs = vec![];
    for (r, key) in right.iter().enumerate() {
        for (l, other) in left.iter().enumerate() {
            if key.is_some() && key == other && passes(l as u32, r as u32) {
                pairs.push((l as u32, r as u32));
            }
        }
    }
    pairs
}

/// The rows of both sides that a kind of join returns, and the marks.
type Rows = (Option<Vec<Option<u32>>>, Option<Vec<Option<u32>>>, Option<Vec<bool>>);

fn of_kind(kind: JoinKind, pairs: &[(u32, u32)], lefts: u32, rights: u32) -> Rows {
    use JoinKind::*;
    let has_left = |l: u32| pairs.iter().any(|pair| pair.0 == l);
    let has_right = |r: u32| pairs.iter().any(|pair| pair.1 == r);
    let some = |rows: Vec<u32>| Some(rows.into_iter().map(Some).collect());
    match kind {
        LeftSemi => (some((0..lefts).filter(|l| has_left(*l)).collect()), None, None),
        LeftAnti => (some((0..lefts).filter(|l| !has_left(*l)).collect()), None, None),
        LeftMark => (some((0..lefts).collect()), None, Some((0..lefts).map(has_left).collect())),
        RightSemi => (None, some((0..rights).filter(|r| has_right(*r)).collect()), None),
        RightAnti => (None, some((0..rights).filter(|r| !has_right(*r)).collect()), None),
        RightMark => (None, some((0..rights).collect()), Some((0..rights).map(has_right).collect())),
        Inner | Left | Right | Full => {
            let mut rows: Vec<(Option<u32>, Option<u32>)> =
                pairs.iter().map(|(l, r)| (Some(*l), Some(*r))).collect();
            if matches!(kind, Right | Full) {
                rows.extend((0..rights).filter(|r| !has_right(*r)).map(|r| (None, Some(r))));
                rows.sort_by_key(|(_, r)| *r);
            }
            if matches!(kind, Left | Full) {
                rows.extend((0..lefts).filter(|l| !has_left(*l)).map(|l| (Some(l), None)));
            }
            let (left, right) = rows.into_iter().unzip();
            (Some(left), Some(right), None)
        }
    }
}

/// The columns that a join returns.
fn expected(left: &[ArrayRef], right: &[ArrayRef], (l, r, marks): Rows) -> Vec<ArrayRef> {
    let mut columns = vec![];
    for (side, rows) in [(left, l), (right, r)] {
        if let Some(rows) = rows {
            let rows = UInt32Array::from(rows);
            columns.extend(side.iter().map(|column| take(column, &rows, None).unwrap()));
        }
    }
    columns.extend(marks.map(|marks| Arc::new(BooleanArray::from(marks)) as ArrayRef));
    columns
}

/// A condition as an expression, and as a function of a left and a right row.
type Condition<'a> = (Expr, &'a dyn Fn(u32, u32) -> bool);

/// Joins with a prepared left side, and the right rows in three batches.
fn in_batches(
    left: &DeviceBatch,
    right: &DeviceBatch,
    by: usize,
    options: &JoinOptions,
    stream: &Stream,
) -> bowstring::Result<DeviceBatch> {
    let join = PreparedJoin::new(left, &left.columns()[..by], options, stream).wait()?;
    let (mut made, mut visited) = (vec![], Visited::default());
    let third = right.len().div_ceil(3);
    for first in [0, third, (2 * third).min(right.len())] {
        let right = right.slice(first, third.min(right.len() - first))?;
        let probed = join.probe(&right, &right.columns()[..by], stream).wait()?;
        made.extend(probed.rows);
        visited = visited.and(&probed.visited, stream).wait()?;
    }
    made.extend(join.rest(&visited, right.schema(), stream).wait()?);
    concat(&made.iter().collect::<Vec<_>>(), stream).wait()
}

/// Joins on every device, in all kinds, by the first `by` columns.
fn assert_joins(left: &[ArrayRef], right: &[ArrayRef], by: usize, filter: Option<Condition<'_>>) {
    for nulls_equal in [false, true] {
        let passes = |l, r| filter.as_ref().is_none_or(|(_, passes)| passes(l, r));
        let pairs = matching(&left[..by], &right[..by], nulls_equal, passes);
        for target in &devices() {
            let side = |columns: &[ArrayRef]| {
                let fields: Vec<Field> =
                    columns.iter().map(|column| Field::new("", column.data_type().clone(), true)).collect();
                let there: Vec<DeviceArray> = columns.iter().map(|column| target.import(column)).collect();
                let rows = columns[0].len();
                DeviceBatch::try_new(Arc::new(Schema::new(fields)), there, rows).unwrap()
            };
            let (here, there) = (side(left), side(right));
            for kind in KINDS {
                let filter = filter.as_ref().map(|(expr, _)| expr.clone());
                let options = JoinOptions { kind, nulls_equal, filter, ..JoinOptions::default() };
                let on = (&here.columns()[..by], &there.columns()[..by]);
                let joined = join(&here, &there, on, &options, &target.stream).wait();
                let in_batches = in_batches(&here, &there, by, &options, &target.stream);
                let context =
                    format!("{kind:?}, nulls equal {nulls_equal}, {:?}, on {target:?}", left[0].data_type());
                let joined = joined.unwrap_or_else(|error| panic!("{context}: {error}"));
                let rows_of = of_kind(kind, &pairs, left[0].len() as u32, right[0].len() as u32);
                let expected = expected(left, right, rows_of);
                assert_eq!(joined.columns().len(), expected.len(), "{context}");
                let in_batches = in_batches.unwrap_or_else(|error| panic!("{context}, in batches: {error}"));
                assert_eq!(in_batches.schema(), joined.schema(), "{context}");
                let columns = joined.columns().iter().zip(in_batches.columns());
                for ((column, in_batches), expected) in columns.zip(&expected) {
                    let expected = rows(expected);
                    assert_same_rows(&rows(&target.export(column)), &expected, &context);
                    assert_same_rows(&rows(&target.export(in_batches)), &expected, &context);
                }
            }
        }
    }
}

fn numbers(len: usize) -> ArrayRef {
    Arc::new(Int32Array::from_iter_values(0..len as i32))
}

#[test]
fn keys_of_every_type_join() {
    let mut random = Random::new(40);
    for data_type in types_to_launch() {
        let nulls = if has_nulls(&data_type) { Nulls::Some } else { Nulls::None };
        let few = array(&data_type, 9, nulls, &mut random);
        let (left, right) = (some_of(&few, 13, &mut random), some_of(&few, 40, &mut random));
        assert_joins(&[left, numbers(13)], &[right, numbers(40)], 1, None);
    }
}

#[test]
fn several_keys_join_whatever_their_hashes_are() {
    let mut random = Random::new(41);
    let few = array(&DataType::Utf8, 6, Nulls::Some, &mut random);
    for (weak_rounds, lens) in
        [(0, (0, 5)), (0, (5, 0)), (0, (1, 1)), (0, (700, 300)), (2, (40, 60)), (1, (3, 90))]
    {
        set_hashes(Hashes { seed: Some(3), weak_rounds });
        let mut side = |len: usize| -> Vec<ArrayRef> {
            let wide = Int64Array::from_iter(
                (0..len).map(|_| (random.below(9) > 0).then(|| random.below(6) as i64 * (1 << 40))),
            );
            vec![some_of(&few, len, &mut random), Arc::new(wide), numbers(len)]
        };
        let (left, right) = (side(lens.0), side(lens.1));
        assert_joins(&left, &right, 2, None);
    }
    set_hashes(Hashes::default());
}

#[test]
fn unique_keys_and_a_hot_one_join() {
    let unique: ArrayRef = Arc::new(Int64Array::from_iter_values((0..200).map(|i| i * 7 % 1000)));
    let mut random = Random::new(42);
    let any: ArrayRef = Arc::new(Int64Array::from_iter_values((0..900).map(|_| random.below(1200) as i64)));
    assert_joins(&[unique, numbers(200)], &[any, numbers(900)], 1, None);
    let hot: ArrayRef =
        Arc::new(Int64Array::from_iter_values((0..60).map(|i| if i % 4 == 0 { i } else { -1 })));
    assert_joins(&[hot.clone(), numbers(60)], &[hot, numbers(60)], 1, None);
}

#[test]
fn keys_in_a_narrow_range_join_as_others_do() {
    // At both ends of the types, around zero, with nulls, and as far apart as a table of 32 slots allows.
    // Interpreters of images take minutes for all of these.
    let distances: &[i64] = if interpreted() { &[30, 31] } else { &[3, 29, 30, 31, 32, 33] };
    for distance in distances.iter().copied() {
        let ends = [i64::MIN, -2, i64::from(i32::MIN), i64::MAX - distance];
        for least in ends.into_iter().take(if interpreted() { 2 } else { 4 }) {
            let wide = |rows: &[i64]| -> Vec<Option<i64>> {
                let value = |row: &i64| (*row >= 0).then(|| least.wrapping_add(*row));
                rows.iter().map(value).collect()
            };
            // Minus one stands for null.
            let left = wide(&[distance, 0, 2, -1, 1, 2, -1, distance, 3, 0, 1]);
            let right = wide(&[0, 1, -1, distance, distance + 1, 4, 0, -1, 2, -2]);
            let narrow = |rows: &[Option<i64>]| -> ArrayRef {
                Arc::new(rows.iter().map(|row| row.map(|row| row as i32)).collect::<Int32Array>())
            };
            let unsigned = |rows: &[Option<i64>]| -> ArrayRef {
                Arc::new(rows.iter().map(|row| row.map(|row| row as u64)).collect::<UInt64Array>())
            };
            for key in [&narrow as &dyn Fn(&[Option<i64>]) -> ArrayRef, &unsigned] {
                assert_joins(&[key(&left), numbers(11)], &[key(&right), numbers(10)], 1, None);
                let unique: Vec<_> = wide(&[1, distance, 0, 2]);
                assert_joins(&[key(&unique), numbers(4)], &[key(&right), numbers(10)], 1, None);
            }
        }
    }
}

#[test]
fn keys_in_a_wide_range_join_as_others_do() {
    // On the CPU, a bit for each number says whether it has a place; 32 share a word.
    let mut random = Random::new(46);
    let (lefts, rights) = (60, 90);
    let apart: &[i64] = if interpreted() { &[300] } else { &[5, 32, 250, 260, 300, 1 << 40] };
    for apart in apart.iter().copied() {
        let last = apart * lefts as i64;
        for least in [i64::MIN, -7, i64::MAX - last] {
            let side = |len: usize, random: &mut Random| -> ArrayRef {
                let ends = [0, 1, 31, 32, last - 1, last, last + 1, last + 2, -1, i64::MIN, i64::MAX];
                // The left side has only the first six, so its range ends where it should.
                let ends = &ends[..if len == lefts { 6 } else { 11 }];
                let mut key = |row: usize| match random.below(4) {
                    0 => None,
                    1 => Some(least.wrapping_add(ends[random.below(ends.len())])),
                    _ => Some(least.wrapping_add(row as i64 % lefts as i64 * apart)),
                };
                Arc::new(Int64Array::from_iter((0..len).map(&mut key)))
            };
            let (left, right) = (side(lefts, &mut random), side(rights, &mut random));
            assert_joins(&[left, numbers(lefts)], &[right, numbers(rights)], 1, None);
        }
    }
}

#[test]
fn many_keys_in_a_wide_range_find_all_their_partners() {
    let (stream, mut random) = (Stream::cpu(), Random::new(47));
    for keys in [40_000, 400_000] {
        let key = |random: &mut Random| 3 + 19 * random.below(keys) as i64;
        let left: Vec<i64> = (0..200_000).map(|_| key(&mut random)).collect();
        let right: Vec<i64> = (0..150_000).map(|_| key(&mut random) + random.below(2) as i64).collect();
        let mut rows_of = std::collections::HashMap::<i64, Vec<u32>>::new();
        (0..).zip(&left).for_each(|(row, key)| rows_of.entry(*key).or_default().push(row));
        let expected = (0u32..)
            .zip(&right)
            .flat_map(|(row, key)| rows_of.get(key).into_iter().flatten().map(move |left| (*left, row)));
        let (lefts, rights): (Vec<u32>, Vec<u32>) = expected.unzip();
        let import = |keys: Vec<i64>| from_arrow(&Int64Array::from(keys)).unwrap();
        let table = JoinTable::new(&[import(left)], false, &stream).wait().unwrap();
        let pairs = table.find(&[import(right)], &stream).wait().unwrap().pairs(&stream).wait().unwrap();
        let rows =
            |array: &DeviceArray| to_arrow(array).unwrap().as_primitive::<UInt32Type>().values().to_vec();
        assert!(rows(&pairs.left) == lefts && rows(&pairs.right) == rights, "{keys} keys");
    }
}

#[test]
fn a_condition_decides_which_pairs_count() {
    let mut random = Random::new(43);
    let key = |random: &mut Random, len| -> ArrayRef {
        Arc::new(StringArray::from_iter(
            (0..len).map(|_| (random.below(8) > 0).then(|| format!("key {}", random.below(7)))),
        ))
    };
    let (left, right) = (key(&mut random, 30), key(&mut random, 50));
    let filter = nth(1).lt(nth(3));
    assert_joins(&[left, numbers(30)], &[right, numbers(50)], 1, Some((filter, &|l, r| l < r)));
}

#[test]
fn pairs_come_in_parts_and_errors_are_told() {
    for target in &devices() {
        let on = &target.stream;
        let import = |values: Vec<i64>| target.import(&(Arc::new(Int64Array::from(values)) as ArrayRef));
        let table = JoinTable::new(&[import(vec![1, 1, 2])], false, on).wait().unwrap();
        let matches = table.find(&[import(vec![2, 1, 9, 1])], on).wait().unwrap();
        let pairs = matches.pairs_of(1..4, true, on).wait().unwrap();
        let (left, right) = (target.export(&pairs.left), target.export(&pairs.right));
        assert_eq!(left.as_ref(), &UInt32Array::from(vec![Some(0), Some(1), None, Some(0), Some(1)]));
        assert_eq!(right.as_primitive::<UInt32Type>().values(), &[1, 1, 2, 3, 3]);
        let narrow = target.import(&(Arc::new(Int32Array::from(vec![1])) as ArrayRef));
        assert!(matches!(table.find(&[narrow], on).wait(), Err(Error::Invalid { .. })));
        assert!(matches!(JoinTable::new(&[], false, on).wait(), Err(Error::Invalid { .. })));
        assert!(matches!(matches.pairs_of(2..9, false, on).wait(), Err(Error::Invalid { .. })));
    }
    let batch = RecordBatch::try_from_iter([("n", numbers(3))]).unwrap();
    let batch = DeviceBatch::try_from(&batch).unwrap();
    let short = [batch.columns()[0].slice(0, 2).unwrap()];
    let refused = join(&batch, &batch, (&short, batch.columns()), &JoinOptions::default(), &Stream::cpu());
    assert!(matches!(refused.wait(), Err(Error::Invalid { .. })));
}

#[test]
fn what_is_not_in_a_side_differs_from_all_of_its_keys() {
    let some: ArrayRef = Arc::new(Int32Array::from(vec![Some(1), None, Some(2), Some(3)]));
    let empty: ArrayRef = Arc::new(Int32Array::from(Vec::<i32>::new()));
    let nulls: ArrayRef = Arc::new(Int32Array::from(vec![None, None]));
    let (valid, null): (ArrayRef, ArrayRef) =
        (Arc::new(Int32Array::from(vec![Some(2), Some(9)])), Arc::new(Int32Array::from(vec![Some(2), None])));
    for target in &devices() {
        let batch = |keys: &ArrayRef| {
            let fields = vec![Field::new("k", DataType::Int32, true)];
            DeviceBatch::try_new(Arc::new(Schema::new(fields)), vec![target.import(keys)], keys.len())
                .unwrap()
        };
        for (others, expected) in [
            (&empty, some.clone()),
            (&valid, Arc::new(Int32Array::from(vec![1, 3])) as ArrayRef),
            (&null, empty.clone()),
        ] {
            let (own, others) = (batch(&some), batch(others));
            for kind in [JoinKind::LeftAnti, JoinKind::RightAnti] {
                let (left, right) =
                    if kind == JoinKind::LeftAnti { (&own, &others) } else { (&others, &own) };
                let options = JoinOptions { kind, null_aware: true, ..JoinOptions::default() };
                let on = (left.columns(), right.columns());
                let found = join(left, right, on, &options, &target.stream).wait().unwrap();
                let in_batches = in_batches(left, right, 1, &options, &target.stream).unwrap();
                for found in [found, in_batches] {
                    let found = target.export(&found.columns()[0]);
                    let context = format_args!("{kind:?} on {target:?}");
                    assert_same_rows(&rows(&found), &rows(&expected), &context);
                }
            }
        }
        for (keys, equal, expected) in [(&empty, true, false), (&null, false, true), (&nulls, false, false)] {
            let (left, options) = (batch(keys), JoinOptions { nulls_equal: equal, ..JoinOptions::default() });
            let join = PreparedJoin::new(&left, left.columns(), &options, &target.stream).wait().unwrap();
            assert_eq!(join.has_keys(), expected, "{keys:?} on {target:?}");
        }
        let options = JoinOptions { null_aware: true, ..JoinOptions::default() };
        let (own, on) = (batch(&some), &target.stream);
        let refused = join(&own, &own, (own.columns(), own.columns()), &options, on).wait();
        assert!(matches!(refused, Err(Error::Invalid { .. })));
    }
}
