//! Queries that group rows: every device gives what a plain evaluator gives.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::*;
use arrow_buffer::i256;
use arrow_schema::{DataType, Field, Schema};
use bowstring::array::{Batches, Place};
use bowstring::compute::{Query, distinct};
use bowstring::expr::{
    Aggregation, Options, Overflow, bool_and, bool_or, col, count, count_all, max, mean, min, sum,
};
use bowstring::{DeviceArray, DeviceBatch, Error};

use crate::support::*;

/// The keys of some rows, as numbers in the order of first appearance, and the rows of each.
pub fn grouped(keys: &[ArrayRef]) -> Vec<Vec<usize>> {
    let fields = keys.iter().map(|key| arrow_row::SortField::new(key.data_type().clone())).collect();
    let bytes = arrow_row::RowConverter::new(fields).unwrap().convert_columns(keys).unwrap();
    let (mut numbers, mut groups) = (HashMap::new(), vec![]);
    for (row, bytes) in bytes.iter().enumerate() {
        let number = *numbers.entry(bytes.owned()).or_insert_with(|| {
            groups.push(vec![]);
            groups.len() - 1
        });
        groups[number].push(row);
    }
    groups
}

/// The sum of floats as it is defined: pieces of 1,024 rows, one after the other, and then their sums.
pub fn in_pieces<T: Copy>(values: &[Option<T>], zero: T, add: impl Fn(T, T) -> T + Copy) -> T {
    let piece = |piece: &[Option<T>]| piece.iter().flatten().fold(zero, |sum, x| add(sum, *x));
    let sums: Vec<Option<T>> = values.chunks(1024).map(|values| Some(piece(values))).collect();
    if sums.len() == 1 { sums[0].unwrap() } else { in_pieces(&sums, zero, add) }
}

pub fn batch_on(target: &Target, columns: &[(&str, ArrayRef)]) -> DeviceBatch {
    let fields: Vec<Field> =
        columns.iter().map(|(name, column)| Field::new(*name, column.data_type().clone(), true)).collect();
    let there: Vec<DeviceArray> = columns.iter().map(|(_, column)| target.import(column)).collect();
    DeviceBatch::try_new(Arc::new(Schema::new(fields)), there, columns[0].1.len()).unwrap()
}

/// Runs a query on every device, in one batch and in several, and compares its columns after the keys.
pub fn assert_aggregates(
    columns: &[(&str, ArrayRef)],
    query: &Query,
    options: &Options,
    expected: &[ArrayRef],
    split: bool,
) {
    for target in &devices() {
        let batch = batch_on(target, columns);
        let query = query.bind(batch.schema(), options).unwrap();
        query.check(&target.stream).unwrap();
        let run = |result: DeviceBatch, context: &str| {
            let first = result.columns().len() - expected.len();
            let types: Vec<_> =
                query.schema().fields().iter().map(|field| field.data_type().clone()).collect();
            for (i, expected) in expected.iter().enumerate() {
                let column = &result.columns()[first + i];
                assert_eq!(column.data_type(), &types[first + i]);
                let context = format!("{context}, column {i} on {target:?}");
                assert_same_rows(&rows(&target.export(column)), &rows(expected), &context);
            }
        };
        run(query.run(&batch, &target.stream).wait().unwrap(), "one batch");
        if split {
            let mut results = query.run_batches(in_batches(&batch, target), &target.stream);
            run(results.next().unwrap().unwrap(), "several batches");
            assert!(results.next().is_none());
        }
    }
}

pub fn batch_place(target: &Target) -> Place {
    target.import(&(Arc::new(Int32Array::from(vec![1])) as ArrayRef)).place()
}

/// Several batches of the rows of one; the second has none.
pub fn in_batches(batch: &DeviceBatch, target: &Target) -> Batches {
    let len = batch.len();
    let parts = [0, len / 3, len / 3, len / 2, len];
    let parts: Vec<_> = parts.windows(2).map(|at| batch.slice(at[0], at[1] - at[0])).collect();
    Batches::new(batch.schema().clone(), batch_place(target), parts.into_iter())
}

/// Folds the valid values of each group.
pub fn each<T, R>(
    groups: &[Vec<usize>],
    value: impl Fn(usize) -> Option<T>,
    fold: impl Fn(Vec<T>) -> R,
) -> Vec<Option<R>> {
    let fold_group = |group: &Vec<usize>| {
        let values: Vec<T> = group.iter().filter_map(|row| value(*row)).collect();
        if values.is_empty() { None } else { Some(fold(values)) }
    };
    groups.iter().map(fold_group).collect()
}

pub fn value<T: ArrowPrimitiveType>(array: &ArrayRef) -> impl Fn(usize) -> Option<T::Native> + '_ {
    let array = array.as_primitive::<T>();
    move |row| array.is_valid(row).then(|| array.value(row))
}

#[test]
fn integers_and_decimals_fold_exactly() {
    let mut random = Random::new(50);
    for (len, distinct) in [(1, 1), (60, 7), (5000, 3), (4000, 3900)] {
        let few = array(&DataType::Utf8, distinct, Nulls::Some, &mut random);
        let picks = UInt32Array::from_iter_values((0..len).map(|_| random.below(distinct) as u32));
        let key = arrow_select::take::take(&few, &picks, None).unwrap();
        let groups = grouped(std::slice::from_ref(&key));
        let narrow = array(&DataType::Int32, len, Nulls::Some, &mut random);
        let wide: ArrayRef = Arc::new(Int64Array::from_iter_values((0..len as i64).map(|i| (i - 7) << 40)));
        let unsigned = array(&DataType::UInt8, len, Nulls::Some, &mut random);
        let cents = |i: usize| (i as i128 - 20) * 10i128.pow(30);
        let decimals: ArrayRef = Arc::new(
            Decimal128Array::from_iter((0..len).map(|i| (i % 5 != 0).then(|| cents(i))))
                .with_precision_and_scale(38, 2)
                .unwrap(),
        );
        let columns = [("k", key), ("a", narrow), ("b", wide), ("c", unsigned), ("d", decimals)];
        let [_, (_, a), (_, b), (_, c), (_, d)] = &columns;
        let total = |values: Vec<i128>| values.iter().sum::<i128>();
        let decimal = |values: Vec<Option<i128>>, scale| -> ArrayRef {
            Arc::new(Decimal128Array::from(values).with_precision_and_scale(38, scale).unwrap())
        };
        let a32 = value::<Int32Type>(a);
        let expected: Vec<ArrayRef> = vec![
            Arc::new(Int64Array::from(each(
                &groups,
                |row| a32(row).map(i64::from),
                |values| values.iter().sum::<i64>(),
            ))),
            Arc::new(Int32Array::from(each(&groups, &a32, |values| *values.iter().min().unwrap()))),
            Arc::new(Int32Array::from(each(&groups, &a32, |values| *values.iter().max().unwrap()))),
            Arc::new(Int64Array::from(each(&groups, value::<Int64Type>(b), |values| {
                values.iter().sum::<i64>()
            }))),
            Arc::new(UInt64Array::from(each(
                &groups,
                |row| value::<UInt8Type>(c)(row).map(u64::from),
                |values| values.iter().sum::<u64>(),
            ))),
            Arc::new(UInt8Array::from(each(&groups, value::<UInt8Type>(c), |values| {
                *values.iter().max().unwrap()
            }))),
            decimal(each(&groups, value::<Decimal128Type>(d), total), 2),
            decimal(
                each(&groups, value::<Decimal128Type>(d), |values| {
                    let count = values.len() as i128;
                    let sum = i256::from_i128(total(values)).wrapping_mul(i256::from_i128(10_000));
                    sum.wrapping_div(i256::from_i128(count)).to_i128().unwrap()
                }),
                6,
            ),
            decimal(each(&groups, value::<Decimal128Type>(d), |values| *values.iter().min().unwrap()), 2),
            Arc::new(Int64Array::from_iter_values(
                groups.iter().map(|group| group.iter().filter(|row| a.is_valid(**row)).count() as i64),
            )),
            Arc::new(Int64Array::from_iter_values(groups.iter().map(|group| group.len() as i64))),
            Arc::new(Float64Array::from(each(&groups, &a32, |values| {
                let sum = values.iter().map(|x| f64::from(*x)).sum::<f64>();
                sum / values.len() as f64
            }))),
        ];
        let aggregates: Vec<Aggregation> = vec![
            sum(col("a")),
            min(col("a")),
            max(col("a")),
            sum(col("b")),
            sum(col("c")),
            max(col("c")),
            sum(col("d")),
            mean(col("d")),
            min(col("d")),
            count(col("a")),
            count_all(),
            mean(col("a")),
        ];
        let query = Query::new().group_by([col("k")]).aggregate(aggregates);
        assert_aggregates(&columns, &query, &Options::default(), &expected, true);
    }
}

#[test]
fn floats_are_added_in_pieces() {
    let mut random = Random::new(51);
    for (len, distinct) in [(40, 5), (9000, 2), (3000, 2900)] {
        let key: ArrayRef =
            Arc::new(Int16Array::from_iter_values((0..len).map(|_| random.below(distinct) as i16)));
        let groups = grouped(std::slice::from_ref(&key));
        let odd = |random: &mut Random| [f64::NAN, -0.0, f64::INFINITY, 1e300][random.below(4)];
        let doubles: Vec<Option<f64>> = (0..len)
            .map(|i| match i % 9 {
                0 => None,
                1 if distinct > 2 => Some(odd(&mut random)),
                _ => Some(random.below(1 << 30) as f64 / 1e7 - 20.0),
            })
            .collect();
        let singles: Vec<Option<f32>> = doubles.iter().map(|x| x.map(|x| x as f32)).collect();
        let plain = |x: f64| if x.is_nan() { f64::from_bits(0x7ff8 << 48) } else { x };
        let plain32 = |x: f32| if x.is_nan() { f32::from_bits(0x7fc0_0000) } else { x };
        let sums = groups.iter().map(|group| {
            let values: Vec<Option<f64>> = group.iter().map(|row| doubles[*row]).collect();
            let any = values.iter().flatten().count();
            (any > 0).then(|| in_pieces(&values, 0.0, |a, b| plain(a + b))).zip(Some(any))
        });
        let sums: Vec<Option<(f64, usize)>> = sums.collect();
        let sums32: Vec<Option<f32>> = groups
            .iter()
            .map(|group| {
                let values: Vec<Option<f32>> = group.iter().map(|row| singles[*row]).collect();
                values.iter().any(Option::is_some).then(|| in_pieces(&values, 0.0, |a, b| plain32(a + b)))
            })
            .collect();
        let greatest =
            each(&groups, |row| doubles[row], |values| values.into_iter().max_by(f64::total_cmp).unwrap());
        let least =
            each(&groups, |row| singles[row], |values| values.into_iter().min_by(f32::total_cmp).unwrap());
        let expected: Vec<ArrayRef> = vec![
            Arc::new(Float64Array::from_iter(sums.iter().map(|sum| sum.map(|(sum, _)| sum)))),
            Arc::new(Float64Array::from_iter(
                sums.iter().map(|sum| sum.map(|(sum, count)| plain(sum / count as f64))),
            )),
            Arc::new(Float32Array::from(sums32)),
            Arc::new(Float64Array::from(greatest)),
            Arc::new(Float32Array::from(least)),
        ];
        let columns: [(&str, ArrayRef); 3] = [
            ("k", key),
            ("x", Arc::new(Float64Array::from(doubles))),
            ("y", Arc::new(Float32Array::from(singles))),
        ];
        let aggregates = [sum(col("x")), mean(col("x")), sum(col("y")), max(col("x")), min(col("y"))];
        let query = Query::new().group_by([col("k")]).aggregate(aggregates);
        assert_aggregates(&columns, &query, &Options::default(), &expected, false);
    }
}

#[test]
fn keys_and_arguments_may_be_computed_and_filtered() {
    let n: ArrayRef =
        Arc::new(Int32Array::from(vec![Some(1), Some(2), None, Some(4), Some(5), Some(6), Some(-7)]));
    let t: ArrayRef = Arc::new(BooleanArray::from(vec![
        Some(true),
        None,
        Some(false),
        Some(true),
        None,
        Some(false),
        Some(true),
    ]));
    let columns = [("n", n), ("t", t)];
    let query = Query::new().filter(col("n").gt(1)).group_by([(col("n") % 2).alias("odd")]).aggregate([
        sum(col("n") * 10),
        bool_or(col("t")),
        bool_and(col("t")),
        count(col("t")),
    ]);
    let expected: Vec<ArrayRef> = vec![
        Arc::new(Int32Array::from(vec![0, 1])),
        Arc::new(Int64Array::from(vec![120, 50])),
        Arc::new(BooleanArray::from(vec![Some(true), None])),
        Arc::new(BooleanArray::from(vec![Some(false), None])),
        Arc::new(Int64Array::from(vec![2, 0])),
    ];
    assert_aggregates(&columns, &query, &Options::default(), &expected, true);
    let none =
        Query::new().filter(col("n").gt(100)).group_by([col("t")]).aggregate([sum(col("n")), count_all()]);
    let nothing: Vec<ArrayRef> = vec![
        Arc::new(BooleanArray::from(Vec::<bool>::new())),
        Arc::new(Int64Array::from(Vec::<i64>::new())),
        Arc::new(Int64Array::from(Vec::<i64>::new())),
    ];
    assert_aggregates(&columns, &none, &Options::default(), &nothing, true);
}

#[test]
fn sums_that_do_not_fit_fail_or_become_null_or_wrap() {
    let k: ArrayRef = Arc::new(Int8Array::from(vec![1, 2, 1]));
    let n: ArrayRef = Arc::new(Int64Array::from(vec![i64::MAX, 3, 1]));
    let columns = [("k", k), ("n", n)];
    let query = Query::new().group_by([col("k")]).aggregate([sum(col("n"))]);
    for (overflow, first) in [(Overflow::Null, None), (Overflow::Wrap, Some(i64::MIN))] {
        let mut options = Options::default();
        options.overflow = overflow;
        let expected: ArrayRef = Arc::new(Int64Array::from(vec![first, Some(3)]));
        assert_aggregates(&columns, &query, &options, &[expected], true);
    }
    for target in &devices() {
        let batch = batch_on(target, &columns);
        let query = query.bind(batch.schema(), &Options::default()).unwrap();
        let failed = query.run(&batch, &target.stream).wait();
        let failed = failed.and_then(|batch| batch.columns()[1].wait());
        assert!(matches!(failed, Err(Error::Cast { row: 0, .. })), "{failed:?} on {target:?}");
    }
}

#[test]
fn keys_in_a_narrow_range_group_as_others_do() {
    let values: ArrayRef = Arc::new(Int64Array::from_iter_values(0..3000));
    for (least, width) in [(-7, 10), (i64::MIN, 1), (i64::MAX - 4095, 4096), (-1, 4094), (5, 9000)] {
        let mut random = Random::new(width);
        let mut offset = || least.wrapping_add(random.below(width as usize) as i64);
        let wide: Int64Array = (0..3000).map(|_| Some(offset())).collect();
        let narrow: Int32Array = (0..3000).map(|i| (i % 5 > 0).then(|| offset() as i32)).collect();
        for keys in [Arc::new(wide.slice(3, 2990)) as ArrayRef, Arc::new(narrow.slice(3, 2990))] {
            let columns = [("k", keys.clone()), ("v", values.slice(3, 2990))];
            let sums = grouped(&[keys])
                .iter()
                .map(|rows| rows.iter().map(|row| *row as i64 + 3).sum())
                .collect::<Vec<i64>>();
            let query = Query::new().group_by([col("k")]).aggregate([sum(col("v"))]);
            let expected = [Arc::new(Int64Array::from(sums)) as ArrayRef];
            assert_aggregates(&columns, &query, &Options::default(), &expected, true);
        }
    }
}

#[test]
fn distinct_rows_come_in_their_order() {
    let mut random = Random::new(52);
    let few = array(&DataType::LargeUtf8, 5, Nulls::Some, &mut random);
    let picks = UInt32Array::from_iter_values((0..90).map(|_| random.below(5) as u32));
    let key = arrow_select::take::take(&few, &picks, None).unwrap();
    let firsts = grouped(std::slice::from_ref(&key)).iter().map(|group| group[0] as u32).collect::<Vec<_>>();
    let expected = arrow_select::take::take(&key, &UInt32Array::from(firsts), None).unwrap();
    for target in &devices() {
        let found = distinct(&target.import(&key), &target.stream).wait().unwrap();
        assert_same_rows(&rows(&target.export(&found)), &rows(&expected), &format_args!("{target:?}"));
        let batch = batch_on(target, &[("k", key.clone())]);
        let query = Query::new().group_by([col("k")]).bind(batch.schema(), &Options::default()).unwrap();
        let found = query.run(&batch, &target.stream).wait().unwrap();
        assert_same_rows(
            &rows(&target.export(&found.columns()[0])),
            &rows(&expected),
            &format_args!("{target:?}"),
        );
    }
}

/// Texts of up to seven bytes are keys as they are: each byte counts, and so does the length.
#[test]
fn short_texts_are_told_apart_by_every_byte_and_their_length() {
    let texts = [None, Some(""), Some("\0"), Some("\0\0"), Some("a"), Some("a\0"), Some("\0a"), Some("ab")];
    let long = [
        Some("sevens!"),
        Some("seven!!"),
        Some("eight..."),
        Some("\u{7f}\u{7f}\u{7f}\u{7f}\u{7f}\u{7f}\u{7f}"),
    ];
    let mut random = Random::new(64);
    for (few, types) in [
        (&texts[..], [DataType::Utf8, DataType::Utf8View]),
        (&long[..], [DataType::LargeUtf8, DataType::Utf8]),
    ] {
        let [k, l] = types.map(|of| {
            let picked: StringArray = (0..700).map(|_| few[random.below(few.len())]).collect();
            arrow_cast::cast(&picked, &of).unwrap()
        });
        let small: ArrayRef =
            Arc::new(BooleanArray::from_iter((0..700).map(|i| (i % 3 > 0).then_some(i % 5 > 2))));
        for keys in [vec![k.clone()], vec![k.clone(), l.clone()], vec![l, small, k]] {
            let groups = grouped(&keys);
            let counts: ArrayRef =
                Arc::new(Int64Array::from_iter_values(groups.iter().map(|group| group.len() as i64)));
            let columns: Vec<(&str, ArrayRef)> = ["k", "l", "m"].into_iter().zip(keys).collect();
            let query =
                Query::new().group_by(columns.iter().map(|(name, _)| col(*name))).aggregate([count_all()]);
            assert_aggregates(&columns, &query, &Options::default(), &[counts], true);
        }
    }
}
