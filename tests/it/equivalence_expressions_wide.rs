//! Devices compute with values of eight bytes, or of sixteen if a program contains a decimal of 128 bits.
//! Every function and every aggregate of every type gives the same in both, and on the CPU, which has only
//! one way.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use bowstring::compute::Query;
use bowstring::expr::*;
use bowstring::{DeviceBatch, Error};

use crate::support::trees::{column_types, small_column};
use crate::support::*;

/// A decimal of 128 bits that needs no column.
pub fn decimal() -> Expr {
    Literal::decimal(15, 15, 2).into()
}

/// Evaluates expressions by themselves, and beside a decimal of 128 bits.
pub fn both_ways(
    target: &Target,
    rows: &DeviceBatch,
    exprs: &[Expr],
    options: &Options,
) -> [Result<Vec<ArrayRef>, Error>; 2] {
    let beside = [exprs, &[decimal()]].concat();
    [exprs, &beside].map(|all| {
        let made = Query::new().select(all).bind(rows.schema(), options)?.run(rows, &target.stream).wait()?;
        let columns = made.columns()[..exprs.len()].iter().map(|column| {
            let made = target.stream.download(column)?;
            made.wait()?;
            Ok(target.export(&made))
        });
        columns.collect()
    })
}

/// One row of aggregates, computed in four ways: by themselves, beside a sum of decimals, with a condition on
/// a decimal, and with both.
pub fn four_ways(
    target: &Target,
    rows: &DeviceBatch,
    asked: &[Aggregation],
    condition: Option<&Expr>,
    options: &Options,
) -> [Result<Vec<ArrayRef>, Error>; 4] {
    // Each launch of aggregates must contain one of decimals.
    let beside: Vec<Aggregation> =
        asked.chunks(8).flat_map(|some| some.iter().cloned().chain([sum(decimal())])).collect();
    let decided = decimal().eq(Literal::decimal(15, 15, 2));
    let decided = condition.map_or(decided.clone(), |condition| decided & condition.clone());
    let ways = [
        (asked, condition.cloned()),
        (&beside, condition.cloned()),
        (asked, Some(decided.clone())),
        (&beside, Some(decided)),
    ];
    ways.map(|(all, condition)| {
        let bound = condition
            .as_ref()
            .into_iter()
            .fold(Query::new(), Query::filter)
            .aggregate(all)
            .bind(rows.schema(), options)?;
        let row = RecordBatch::try_from(&bound.run(rows, &target.stream).wait()?).unwrap();
        let each = if all.len() == asked.len() { usize::MAX } else { 8 };
        let is_asked = |(i, column): (usize, &ArrayRef)| (i % 9 != each).then(|| column.clone());
        let mut columns: Vec<ArrayRef> = row.columns().iter().enumerate().filter_map(is_asked).collect();
        columns.truncate(asked.len());
        Ok(columns)
    })
}

/// Two columns of each type, `a0` of arbitrary and `s0` of small values, and a column of the rows to keep.
fn columns(rows: usize) -> Vec<(String, ArrayRef)> {
    let mut rng = Random::new(5);
    let mut columns = vec![];
    for (i, of) in column_types().iter().enumerate() {
        columns.push((format!("a{i}"), array(of, rows, Nulls::Some, &mut rng)));
        columns.push((format!("s{i}"), small_column(of, rows, &mut rng)));
    }
    columns.push(("keep".to_owned(), array(&DataType::Boolean, rows, Nulls::Some, &mut rng)));
    columns
}

fn batch(target: &Target, columns: &[(String, ArrayRef)]) -> DeviceBatch {
    let fields = columns.iter().map(|(name, array)| Field::new(name, array.data_type().clone(), true));
    let schema = Schema::new(fields.collect::<Vec<_>>());
    let rows = columns[0].1.len();
    let columns = columns.iter().map(|(_, array)| target.import(array)).collect();
    DeviceBatch::try_new(Arc::new(schema), columns, rows).unwrap()
}

/// The types that need fewer than sixteen bytes by themselves, with their column numbers.
fn narrow_types() -> impl Iterator<Item = (usize, DataType)> {
    let is_narrow = |(_, of): &(usize, DataType)| !matches!(of, DataType::Decimal128(..));
    column_types().into_iter().enumerate().filter(is_narrow)
}

/// All functions of two columns of a type.
fn functions(i: usize, of: &DataType, options: &Options, rng: &mut Random) -> Vec<Expr> {
    let (a, s) = (|| col(format!("a{i}")), || col(format!("s{i}")));
    let small = |rng: &mut Random| Literal::of(of.clone(), crate::support::trees::small(of, rng));
    let mut all = vec![
        a().lt(s()),
        a().lt_eq(s()),
        a().gt(small(rng)),
        a().gt_eq(s()),
        a().eq(s()),
        s().neq(small(rng)),
        a().distinct(s()),
        s().not_distinct(small(rng)),
        s().between(small(rng), a()),
        s().in_list([small(rng), small(rng), small(rng)]),
        a().is_null(),
        a().coalesce(s()),
        a().nullif(s()),
        if_else(col("keep"), a(), s()),
        if_else(a().lt(s()), small(rng), s()),
    ];
    if of.is_integer() || of.is_floating() {
        for (x, y) in [(a(), s()), (s(), a())] {
            all.extend([x.clone() + y.clone(), x.clone() - y.clone(), x.clone() * y.clone()]);
            all.extend([x.clone() / y.clone(), x % y]);
        }
    }
    // Decimals and durations fail instead of wrapping.
    let is_checked = of.is_decimal() || matches!(of, DataType::Duration(_));
    let is_null = options.overflow == Overflow::Null;
    if of.is_signed_integer() || of.is_floating() || is_checked && is_null {
        all.extend([-a(), -s()]);
    }
    if of.is_decimal() && is_null {
        all.extend([a() + s(), a() - s(), a() * s(), a() / s(), a() % s(), s() + Literal::of(of.clone(), 7)]);
    }
    let dates = [DatePart::Year, DatePart::Month, DatePart::Day];
    let times = [DatePart::Hour, DatePart::Minute, DatePart::Second];
    if matches!(of, DataType::Date32 | DataType::Date64 | DataType::Timestamp(..)) {
        all.extend(dates.map(|part| a().date_part(part)));
    }
    if matches!(of, DataType::Date64 | DataType::Timestamp(..) | DataType::Time32(_)) {
        all.extend(times.map(|part| a().date_part(part)));
    }
    all
}

#[test]
fn every_function_is_the_same_beside_decimals() {
    let (columns, targets) = (columns(100), devices());
    let mut rng = Random::new(6);
    let null = Options::default().overflow(Overflow::Null).division_by_zero_is_null(true);
    for options in [null, null.overflow(Overflow::Wrap).floats(FloatOrder::Sql)] {
        let of_type = |(i, of)| functions(i, &of, &options, &mut rng);
        let exprs: Vec<Expr> = narrow_types().flat_map(of_type).collect();
        let mut right: Option<Vec<ArrayRef>> = None;
        for target in &targets {
            for made in both_ways(target, &batch(target, &columns), &exprs, &options) {
                let made = made.unwrap_or_else(|error| panic!("{error} on {target:?}"));
                let right = right.get_or_insert_with(|| made.clone());
                for ((expr, made), right) in exprs.iter().zip(&made).zip(right) {
                    let context = format!("{expr} of {}, {options:?}, on {target:?}", right.data_type());
                    assert_eq!(made.data_type(), right.data_type(), "{context}");
                    assert_same_rows(&rows(made), &rows(right), &context);
                }
            }
        }
    }
}

#[test]
fn every_aggregate_is_the_same_beside_decimals() {
    let (columns, targets) = (columns(100), devices());
    let mut asked = vec![count_all()];
    for (i, of) in narrow_types() {
        let (a, s) = (|| col(format!("a{i}")), || col(format!("s{i}")));
        asked.push(count(a()));
        match of {
            DataType::Boolean => asked.extend([bool_and(a()), bool_or(s())]),
            _ => asked.extend([min(a()), max(a()), min(s()), max(s())]),
        }
        if of.is_numeric() {
            asked.extend([sum(s()), mean(s())]);
        }
        if of.is_floating() || of.is_signed_integer() {
            asked.extend([min(-s()), max(-s())]);
        }
    }
    for condition in [None, Some(col("keep"))] {
        let mut right: Option<Vec<ArrayRef>> = None;
        for target in &targets {
            let made =
                four_ways(target, &batch(target, &columns), &asked, condition.as_ref(), &Options::default());
            for (way, made) in made.into_iter().enumerate() {
                let made = made.unwrap_or_else(|error| panic!("{error} on {target:?}"));
                let right = right.get_or_insert_with(|| made.clone());
                assert_eq!(made.len(), right.len());
                for ((one, made), right) in asked.iter().zip(&made).zip(right) {
                    let context = format!("{one} where {condition:?}, way {way}, on {target:?}");
                    assert_same_rows(&rows(made), &rows(right), &context);
                }
            }
        }
    }
}

#[test]
fn extremes_of_negative_floats_beside_decimals_keep_their_bits() {
    let floats: ArrayRef = Arc::new(arrow_array::Float64Array::from(vec![Some(-6.5), None, Some(-7.25)]));
    for of in [DataType::Float16, DataType::Float32, DataType::Float64] {
        let column = arrow_cast::cast(&floats, &of).unwrap();
        for target in &devices() {
            let rows = batch(target, &[("f".to_owned(), column.clone())]);
            let asked = [min(col("f")), max(col("f"))];
            for made in four_ways(target, &rows, &asked, None, &Options::default()) {
                let made = made.unwrap();
                let plain = |i: usize| arrow_cast::cast(&made[i], &DataType::Float64).unwrap();
                let right =
                    |value: f64| -> ArrayRef { Arc::new(arrow_array::Float64Array::from(vec![value])) };
                assert_eq!((&plain(0), &plain(1)), (&right(-7.25), &right(-6.5)), "{of} on {target:?}");
            }
        }
    }
}
