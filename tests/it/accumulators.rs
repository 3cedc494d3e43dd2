//! Aggregates of groups that are more than a sum, a count or a least number: every device gives what a plain
//! evaluator gives, also with filters of their own, and of all rows as one group.

use std::collections::HashSet;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::*;
use arrow_row::{OwnedRow, RowConverter, SortField};
use arrow_schema::{DataType, Schema};
use bowstring::Error;
use bowstring::array::Batches;
use bowstring::compute::Query;
use bowstring::expr::{
    Options, Overflow, bit_and, bit_or, bit_xor, col, count_distinct, first, first_value, last, last_value,
    max, median, min, quantile, stddev, sum, variance,
};

use crate::groups::{assert_aggregates, batch_on, each, grouped, in_pieces, value};
use crate::support::*;

/// Keys of some groups.
fn keys(len: usize, distinct: usize, random: &mut Random) -> ArrayRef {
    let few = array(&DataType::Utf8, distinct, Nulls::Some, random);
    some_of(&few, len, random)
}

/// A row for each group: that of the row of values which `pick` chooses among the group's.
fn picked(values: &ArrayRef, groups: &[Vec<usize>], pick: impl Fn(&[usize]) -> Option<usize>) -> ArrayRef {
    let rows = groups.iter().map(|group| pick(group).map(|row| row as u32));
    arrow_select::take::take(values, &UInt32Array::from_iter(rows), None).unwrap()
}

/// The bytes by which arrow-row orders values.
fn ordered(values: &ArrayRef) -> Vec<OwnedRow> {
    let converter = RowConverter::new(vec![SortField::new(values.data_type().clone())]).unwrap();
    converter.convert_columns(std::slice::from_ref(values)).unwrap().iter().map(|row| row.owned()).collect()
}

#[test]
fn rows_are_picked_of_every_type() {
    let mut random = Random::new(60);
    for data_type in types_to_launch() {
        let len = if matches!(data_type, DataType::Union(..)) { 0 } else { 130 };
        let key = keys(len, 6, &mut random);
        let groups = grouped(std::slice::from_ref(&key));
        let nulls = if has_nulls(&data_type) { Nulls::Some } else { Nulls::None };
        let values = array(&data_type, len, nulls, &mut random);
        let flags: ArrayRef = Arc::new(BooleanArray::from_iter(
            (0..len).map(|_| [None, Some(true), Some(true), Some(false)][random.below(4)]),
        ));
        let valid = values.logical_nulls();
        let valid = |row: &usize| valid.as_ref().is_none_or(|nulls| nulls.is_valid(*row));
        let flagged = |row: &usize| flags.is_valid(*row) && flags.as_boolean().value(*row);
        let of = |keep: &dyn Fn(&usize) -> bool, which: fn(Vec<usize>) -> Option<usize>| {
            picked(&values, &groups, |group| which(group.iter().copied().filter(|row| keep(row)).collect()))
        };
        let first_of: fn(Vec<usize>) -> Option<usize> = |rows| rows.first().copied();
        let last_of: fn(Vec<usize>) -> Option<usize> = |rows| rows.last().copied();
        let both = |row: &usize| valid(row) && flagged(row);
        let expected = vec![
            of(&valid, first_of),
            of(&valid, last_of),
            of(&|_| true, first_of),
            of(&|_| true, last_of),
            of(&both, first_of),
            of(&flagged, last_of),
        ];
        let (x, flag) = (|| col("x"), || col("flag"));
        let aggregates = [
            first(x()),
            last(x()),
            first_value(x()),
            last_value(x()),
            first(x()).filter(flag()),
            last_value(x()).filter(flag()),
        ];
        let query = Query::new().group_by([col("k")]).aggregate(aggregates);
        let columns = [("k", key.clone()), ("x", values.clone()), ("flag", flags.clone())];
        assert_aggregates(&columns, &query, &Options::default(), &expected, true);

        if len == 0 || matches!(data_type, DataType::Map(..)) {
            continue;
        }
        // Groups keep one of several equal values, so those are compared.
        let order = ordered(&values);
        let extreme = |keep: &dyn Fn(&usize) -> bool, greatest: bool| {
            picked(&values, &groups, |group| {
                let rows = group.iter().copied().filter(|row| keep(row));
                if greatest {
                    rows.max_by_key(|row| &order[*row])
                } else {
                    rows.min_by_key(|row| &order[*row])
                }
            })
        };
        let expected = vec![extreme(&valid, false), extreme(&valid, true), extreme(&both, true)];
        let aggregates = [min(x()), max(x()), max(x()).filter(flag())];
        let query = Query::new().group_by([col("k")]).aggregate(aggregates);
        assert_aggregates(&columns, &query, &Options::default(), &expected, true);
    }
}

#[test]
fn bits_are_combined() {
    let mut random = Random::new(61);
    fn of<T: ArrowPrimitiveType>(
        values: &ArrayRef,
        groups: &[Vec<usize>],
        keep: &BooleanArray,
        op: fn(T::Native, T::Native) -> T::Native,
    ) -> ArrayRef {
        let valid = value::<T>(values);
        let kept = |row: usize| valid(row).filter(|_| keep.value(row));
        let values = each(groups, kept, |values| values.into_iter().reduce(op).unwrap());
        Arc::new(PrimitiveArray::<T>::from_iter(values))
    }
    macro_rules! integers {
        ($($t:ident)*) => { $(
            for (len, distinct) in [(70, 4), (5000, 2)] {
                let key = keys(len, distinct, &mut random);
                let groups = grouped(std::slice::from_ref(&key));
                let values = array(&$t::DATA_TYPE, len, Nulls::Some, &mut random);
                let all = BooleanArray::from(vec![true; len]);
                let keep = BooleanArray::from_iter((0..len).map(|_| Some(random.below(3) > 0)));
                let expected = vec![
                    of::<$t>(&values, &groups, &all, |a, b| a & b),
                    of::<$t>(&values, &groups, &all, |a, b| a | b),
                    of::<$t>(&values, &groups, &all, |a, b| a ^ b),
                    of::<$t>(&values, &groups, &keep, |a, b| a & b),
                    of::<$t>(&values, &groups, &keep, |a, b| a ^ b),
                ];
                let x = || col("x");
                let aggregates = [
                    bit_and(x()), bit_or(x()), bit_xor(x()),
                    bit_and(x()).filter(col("f")), bit_xor(x()).filter(col("f")),
                ];
                let query = Query::new().group_by([col("k")]).aggregate(aggregates);
                let columns = [("k", key), ("x", values), ("f", Arc::new(keep) as _)];
                assert_aggregates(&columns, &query, &Options::default(), &expected, true);
            }
        )* };
    }
    integers! { Int8Type UInt16Type Int32Type UInt64Type Int64Type }
}

fn plain(x: f64) -> f64 {
    if x.is_nan() { f64::from_bits(0x7ff8 << 48) } else { x }
}

/// The variance as it is defined, with sums as groups have them.
fn spread(values: &[Option<f64>], ddof: usize) -> Option<f64> {
    let count = values.iter().flatten().count();
    let mean = plain(in_pieces(values, 0.0, |a, b| plain(a + b)) / count as f64);
    let squares: Vec<Option<f64>> =
        values.iter().map(|x| x.map(|x| plain((x - mean) * (x - mean)))).collect();
    let squares = in_pieces(&squares, 0.0, |a, b| plain(a + b));
    (count > ddof).then(|| plain(squares / (count - ddof) as f64))
}

#[test]
fn variances_are_those_of_two_passes() {
    let mut random = Random::new(62);
    for (len, distinct) in [(1, 1), (50, 5), (4000, 2), (3000, 2900)] {
        let key = keys(len, distinct, &mut random);
        let groups = grouped(std::slice::from_ref(&key));
        let odd = |random: &mut Random| [f64::NAN, f64::INFINITY, 1e200][random.below(3)];
        let doubles: Vec<Option<f64>> = (0..len)
            .map(|i| match i % 13 {
                0 => None,
                1 if distinct > 100 => Some(odd(&mut random)),
                _ => Some(1e6 + random.below(1 << 30) as f64 / 1e7),
            })
            .collect();
        let whole = array(&DataType::Int16, len, Nulls::Some, &mut random);
        let of = |value: &dyn Fn(usize) -> Option<f64>, ddof, root: bool| -> ArrayRef {
            let group = |group: &Vec<usize>| {
                let values: Vec<Option<f64>> = group.iter().map(|row| value(*row)).collect();
                spread(&values, ddof).map(|spread| if root { plain(spread.sqrt()) } else { spread })
            };
            Arc::new(Float64Array::from_iter(groups.iter().map(group)))
        };
        let (x, n) = (|row: usize| doubles[row], |row: usize| value::<Int16Type>(&whole)(row).map(f64::from));
        let keep = |row: usize| n(row).filter(|n| *n > 0.0);
        let expected =
            vec![of(&x, 0, false), of(&x, 1, true), of(&n, 1, false), of(&n, 0, true), of(&keep, 1, true)];
        let aggregates = [
            variance(col("x"), 0),
            stddev(col("x"), 1),
            variance(col("n"), 1),
            stddev(col("n"), 0),
            stddev(col("n"), 1).filter(col("n").gt(0)),
        ];
        let query = Query::new().group_by([col("k")]).aggregate(aggregates);
        let columns: [(&str, ArrayRef); 3] =
            [("k", key), ("x", Arc::new(Float64Array::from(doubles.clone()))), ("n", whole.clone())];
        assert_aggregates(&columns, &query, &Options::default(), &expected, false);
        // Parts have means of their own, so their sums are rounded in another way.
        for target in &devices() {
            let batch = batch_on(target, &columns);
            let query = query.bind(batch.schema(), &Options::default()).unwrap();
            let parts: Vec<_> =
                (0..len).step_by(700).map(|at| batch.slice(at, 700.min(len - at)).unwrap()).map(Ok).collect();
            let place = target.stream.device().place();
            let parts = Batches::new(batch.schema().clone(), place, parts.into_iter());
            let made = query.run_batches(parts, &target.stream).next().unwrap().unwrap();
            for (i, expected) in expected.iter().enumerate() {
                let ours = target.export(&made.columns()[1 + i]);
                let (ours, expected) =
                    (ours.as_primitive::<Float64Type>(), expected.as_primitive::<Float64Type>());
                for (ours, expected) in ours.iter().zip(expected) {
                    let close = |ours: f64, expected: f64| {
                        (ours - expected).abs() <= 1e-9 * expected.abs()
                            || ours.is_finite() == expected.is_finite() && !ours.is_finite()
                    };
                    let same = match (ours, expected) {
                        (Some(ours), Some(expected)) => close(ours, expected),
                        (ours, expected) => ours == expected,
                    };
                    assert!(same, "{ours:?}, {expected:?} on {target:?}");
                }
            }
        }
    }
}

#[test]
fn distinct_values_are_counted() {
    let mut random = Random::new(63);
    for of in [DataType::Utf8, DataType::Int16, DataType::Float64, DataType::Utf8View, DataType::Boolean] {
        for (len, distinct) in [(1, 1), (200, 9), (2000, 600)] {
            let key = keys(len, distinct, &mut random);
            let groups = grouped(std::slice::from_ref(&key));
            let few = array(&of, 5, Nulls::Some, &mut random);
            let values = some_of(&few, len, &mut random);
            let flags: Vec<bool> = (0..len).map(|_| random.below(2) > 0).collect();
            let order = ordered(&values);
            let counted = |keep: &dyn Fn(usize) -> bool| -> ArrayRef {
                let count = |group: &Vec<usize>| {
                    let rows = group.iter().filter(|row| values.is_valid(**row) && keep(**row));
                    rows.map(|row| &order[*row]).collect::<HashSet<_>>().len() as i64
                };
                Arc::new(Int64Array::from_iter_values(groups.iter().map(count)))
            };
            let expected = vec![counted(&|_| true), counted(&|row| flags[row])];
            let aggregates = [count_distinct(col("x")), count_distinct(col("x")).filter(col("flag"))];
            let query = Query::new().group_by([col("k")]).aggregate(aggregates);
            let columns = [
                ("k", key),
                ("x", values.clone()),
                ("flag", Arc::new(BooleanArray::from(flags.clone())) as _),
            ];
            assert_aggregates(&columns, &query, &Options::default(), &expected, true);
        }
    }
}

/// The number a part of the way from one to the next.
fn between(low: f64, high: f64, part: f64) -> f64 {
    if part == 0.0 || low.total_cmp(&high).is_eq() {
        low
    } else if (high - low).is_finite() {
        plain(low + plain((high - low) * part))
    } else {
        plain(plain(low * (1.0 - part)) + plain(high * part))
    }
}

#[test]
fn quantiles_are_numbers_beside_infinite_and_large_ones() {
    const INFINITE: f64 = f64::INFINITY;
    // 0 / 0 has this sign on many processors.
    const ZERO_BY_ZERO: f64 = -f64::NAN;
    let cases: [(&[f64], f64, f64); 11] = [
        (&[1.0, 2.0, INFINITE], 0.5, 2.0),
        (&[1.0, INFINITE], 0.0, 1.0),
        (&[1.0, INFINITE], -0.0, 1.0),
        (&[1.0, INFINITE], 0.5, INFINITE),
        (&[1.0, 2.0, f64::NAN], 0.5, 2.0),
        (&[ZERO_BY_ZERO, 1.0, 2.0], 0.5, 2.0),
        (&[ZERO_BY_ZERO, 1.0, 2.0], 0.0, 1.0),
        (&[-INFINITE, 5.0], 0.5, -INFINITE),
        (&[-INFINITE, 5.0], 1.0, 5.0),
        (&[-1.7e308, 1.7e308], 0.5, 0.0),
        (&[-INFINITE, INFINITE], 0.5, f64::NAN),
    ];
    for (numbers, part, expected) in cases {
        let columns: [(&str, ArrayRef); 2] = [
            ("k", Arc::new(Int8Array::from(vec![1; numbers.len()]))),
            ("x", Arc::new(Float64Array::from(numbers.to_vec()))),
        ];
        let query = Query::new().group_by([col("k")]).aggregate([quantile(col("x"), part)]);
        let expected: [ArrayRef; 1] = [Arc::new(Float64Array::from(vec![expected]))];
        assert_aggregates(&columns, &query, &Options::default(), &expected, true);
    }
}

#[test]
fn sums_of_durations_wrap() {
    let columns: [(&str, ArrayRef); 2] = [
        ("k", Arc::new(Int8Array::from(vec![1, 1, 2]))),
        ("d", Arc::new(DurationNanosecondArray::from(vec![i64::MAX, 1, 7]))),
    ];
    let query = Query::new().group_by([col("k")]).aggregate([sum(col("d"))]);
    let expected: [ArrayRef; 1] = [Arc::new(DurationNanosecondArray::from(vec![i64::MIN, 7]))];
    assert_aggregates(&columns, &query, &Options::default().overflow(Overflow::Wrap), &expected, true);
    for target in &devices() {
        let batch = batch_on(target, &columns);
        let query = query.bind(batch.schema(), &Options::default()).unwrap();
        let made = query.run(&batch, &target.stream).wait().and_then(|made| made.columns()[1].wait());
        assert!(matches!(made, Err(Error::Cast { .. })), "{made:?} on {target:?}");
    }
}

#[test]
fn quantiles_are_interpolated() {
    let mut random = Random::new(64);
    for (len, distinct) in [(1, 1), (90, 7), (3000, 500)] {
        let key = keys(len, distinct, &mut random);
        let groups = grouped(std::slice::from_ref(&key));
        let doubles: Vec<Option<f64>> = (0..len)
            .map(|i| match i % 11 {
                0 => None,
                1 => Some(f64::INFINITY),
                2 => Some(-0.0),
                _ => Some(random.below(2000) as f64 / 8.0 - 100.0),
            })
            .collect();
        let of = |part: f64, keep: &dyn Fn(f64) -> bool| -> ArrayRef {
            let group = |group: &Vec<usize>| {
                let mut values: Vec<f64> =
                    group.iter().filter_map(|row| doubles[*row]).filter(|x| keep(*x)).collect();
                values.sort_by(f64::total_cmp);
                let last = values.len().checked_sub(1)?;
                let place = last as f64 * part;
                let (low, high) = (values[place as usize], values[last.min(place as usize + 1)]);
                Some(between(low, high, place - place.trunc()))
            };
            Arc::new(Float64Array::from_iter(groups.iter().map(group)))
        };
        let all = |_: f64| true;
        let expected =
            vec![of(0.5, &all), of(0.0, &all), of(1.0, &all), of(0.3, &all), of(0.5, &|x| x > 0.0)];
        let x = || col("x");
        let aggregates = [
            median(x()),
            quantile(x(), 0.0),
            quantile(x(), 1.0),
            quantile(x(), 0.3),
            median(x()).filter(x().gt(0.0)),
        ];
        let query = Query::new().group_by([col("k")]).aggregate(aggregates);
        let columns: [(&str, ArrayRef); 2] =
            [("k", key), ("x", Arc::new(Float64Array::from(doubles.clone())))];
        assert_aggregates(&columns, &query, &Options::default(), &expected, true);
    }
    let schema = Schema::new(vec![arrow_schema::Field::new("x", DataType::Int8, true)]);
    for wrong in [quantile(col("x"), 1.5), quantile(col("x"), f64::NAN), quantile(col("x"), -0.1)] {
        let refused = Query::new().aggregate([wrong]).bind(&schema, &Options::default());
        assert!(matches!(refused, Err(Error::Invalid { .. })));
    }
}
