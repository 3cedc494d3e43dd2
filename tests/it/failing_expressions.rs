//! Tests which rows fail: beside nulls, below casts, under conditions that exclude them; and which row is
//! reported first.

use std::sync::Arc;

use arrow_arith::numeric;
use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::*;
use arrow_schema::DataType;
use bowstring::compute::{aggregate, evaluate, filter_where};

use bowstring::exchange::batch_to_arrow;
use bowstring::expr::*;
use bowstring::{DeviceBatch, Error, Failure};

use crate::equivalence_expressions_wide::{both_ways, four_ways};
use crate::expressions::{batch, ints};
use crate::support::trees::column_of;
use crate::support::*;

/// The failing row, and the failing part of the expression.
fn failed<T: std::fmt::Debug>(result: Result<T, Error>) -> (usize, String) {
    match result {
        Err(Error::Evaluation { row, expression, .. }) => (row, expression),
        other => panic!("{other:?}"),
    }
}

#[test]
fn decimals_of_two_scales_are_arrows() {
    use DataType::{Decimal32, Decimal64, Decimal128};
    let most = |digits: u32| 10i128.pow(digits) - 1;
    let pairs = [
        (Decimal128(38, 0), Decimal128(38, 10), most(37)),
        (Decimal128(38, 10), Decimal128(38, 0), most(37)),
        (Decimal128(15, 2), Decimal128(20, 5), most(14)),
        (Decimal128(15, 2), Decimal128(15, 2), most(14)),
        (Decimal64(18, 0), Decimal64(12, 5), most(17)),
        (Decimal32(9, 0), Decimal32(5, 2), most(8)),
        (Decimal32(7, 2), Decimal32(9, -1), most(8)),
    ];
    for (of_a, of_b, large) in pairs {
        // The large value has a partner only in the last row, and there it overflows or not.
        let a = [Some(large), Some(700), None, Some(-701), Some(large), None, Some(3), Some(large)];
        let b = [None, Some(3), Some(large), Some(-7), None, None, Some(-1000), Some(9)];
        let (a, b) = (column_of(&of_a, &a), column_of(&of_b, &b));
        for rows in [7, 8] {
            let (a, b) = (a.slice(0, rows), b.slice(0, rows));
            let theirs = [numeric::add, numeric::sub, numeric::div, numeric::rem, numeric::mul]
                .map(|made| [made(&a, &b), made(&b, &a)]);
            for target in devices() {
                let batch = batch(&target, &[("a", a.clone()), ("b", b.clone())]);
                let of = |x: Expr, y: Expr| {
                    [
                        x.clone() + y.clone(),
                        x.clone() - y.clone(),
                        x.clone() / y.clone(),
                        x.clone() % y.clone(),
                        x * y,
                    ]
                };
                let ours = of(col("a"), col("b")).into_iter().zip(of(col("b"), col("a")));
                for ((one, other), theirs) in ours.zip(&theirs) {
                    for (expr, theirs) in [one, other].into_iter().zip(theirs) {
                        for made in
                            both_ways(&target, &batch, std::slice::from_ref(&expr), &Options::default())
                        {
                            let context = format!("{expr} of {of_a} and {of_b}, {rows} rows on {target:?}");
                            match (made, theirs) {
                                (Ok(made), Ok(theirs)) => assert_eq!(&made[0], theirs, "{context}"),
                                (Err(Error::Evaluation { row, .. }), Err(_)) => {
                                    assert_eq!(row, 7, "{context}")
                                }
                                (ours, theirs) => panic!("{context}: {ours:?} and {theirs:?}"),
                            }
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn long_sums_of_decimals_of_many_scales_are_short_programs() {
    let columns: Vec<(String, ArrayRef)> = (0..8)
        .map(|i| {
            let values: Vec<Option<i128>> =
                (0..50).map(|row| (row % 7 != i).then_some(row * 3 - i)).collect();
            (format!("c{i}"), column_of(&DataType::Decimal128(12 + i as u8, i as i8), &values))
        })
        .collect();
    let named: Vec<(&str, ArrayRef)> = columns.iter().map(|(name, of)| (&**name, of.clone())).collect();
    let leaf = |i: usize| col(format!("c{}", (i * 5) % 8));
    let mut left = leaf(0);
    let (mut right, mut balanced): (Expr, Vec<Expr>) = (leaf(0), (0..32).map(leaf).collect());
    for i in 1..60 {
        left = left + leaf(i);
        right = leaf(i) - right;
    }
    while balanced.len() > 1 {
        balanced = balanced.chunks(2).map(|pair| pair[0].clone() + pair[1].clone()).collect();
    }
    let exprs = [left, right, balanced.remove(0)];
    let mut made = devices().into_iter().map(|target| {
        let made = evaluate(&batch(&target, &named), &exprs, &target.stream).wait().unwrap();
        made.columns().iter().map(|column| target.export(column)).collect::<Vec<_>>()
    });
    let right = made.next().unwrap();
    let mut sum = columns[0].1.clone();
    for i in 1..60 {
        sum = numeric::add(&sum, &columns[(i * 5) % 8].1).unwrap();
    }
    assert_eq!(&right[0], &sum);
    made.for_each(|made| assert_eq!(made, right));
}

/// Rows 0 to 2199 in `place`; doubling `n` fails in every fiftieth row from row 2050 on.
fn numbers(target: &Target) -> DeviceBatch {
    let n: ArrayRef = Arc::new(Int8Array::from_iter_values(
        (0..2200).map(|row| if row >= 2050 && row % 50 == 0 { 100 } else { (row % 50) as i8 }),
    ));
    batch(target, &[("place", ints(0..2200)), ("n", n)])
}

/// Aggregates that fail, with casts of every kind above the failing part.
fn below_casts() -> Vec<(Aggregation, &'static str)> {
    let twice = || col("n") * 2;
    let text = || twice().cast(DataType::Utf8);
    vec![
        (sum(twice()), "n * 2"),
        (mean(twice()), "n * 2"),
        (sum(twice().cast(DataType::Int64)), "n * 2"),
        (sum(twice().cast(DataType::Float64)), "n * 2"),
        (sum(twice().cast(DataType::Float64).cast(DataType::Int16) + 1), "n * 2"),
        (sum((twice() + 1).cast(DataType::Decimal128(20, 2))), "n * 2"),
        (bool_or(twice().cast(DataType::Boolean)), "n * 2"),
        (bool_or((twice().gt(3)).cast(DataType::Int32).cast(DataType::Boolean)), "n * 2"),
        (count(text()), "n * 2"),
        (sum(text().cast(DataType::Int32)), "n * 2"),
        (count(text().contains("1")), "n * 2"),
        (count(text().in_list(["4", "8"])), "n * 2"),
        (count(text().eq(text())), "n * 2"),
    ]
}

#[test]
fn rows_that_a_condition_leaves_out_do_not_fail_below_casts() {
    for target in devices() {
        let rows = numbers(&target);
        for (one, expression) in below_casts() {
            let of = |condition: Option<Expr>| {
                let made = aggregate(&rows, std::slice::from_ref(&one), condition.as_ref(), &target.stream);
                made.wait().map(|row| RecordBatch::try_from(&row).unwrap())
            };
            let context = format!("{one} on {target:?}");
            // Conditions that become terms, and ones that do not.
            for condition in [col("n").lt(50), (col("n").cast(DataType::Int32) * 2 - 1).lt(100)] {
                let made = of(Some(condition)).unwrap_or_else(|error| panic!("{context}: {error}"));
                assert!(made.column(0).is_valid(0), "{context}");
            }
            assert_eq!(failed(of(None)), (2050, expression.to_owned()), "{context}");
            assert_eq!(failed(of(Some(col("place").gt(2060)))), (2100, expression.to_owned()), "{context}");
            // Expressions inside the condition are evaluated for all rows.
            let in_condition = twice_known() & col("place").lt(100);
            assert_eq!(failed(of(Some(in_condition))).0, 2050, "{context}");
        }
    }
}

fn twice_known() -> Expr {
    (col("n") * 2).cast(DataType::Float64).is_not_null()
}

#[test]
fn the_first_row_that_fails_is_the_first_of_all_that_is_computed() {
    for target in devices() {
        let rows = numbers(&target);
        let later = || (col("n") * 2).cast(DataType::Float64);
        let text = || (col("n") * 2).cast(DataType::Utf8);
        let sooner = || col("place") + i32::MAX;
        let first = |exprs: &[Expr]| {
            failed(evaluate(&rows, exprs, &target.stream).wait().and_then(|made| {
                made.columns().iter().try_for_each(|column| target.stream.download(column)?.wait())
            }))
        };
        assert_eq!(first(&[later()]), (2050, "n * 2".to_owned()), "{target:?}");
        assert_eq!(first(&[text()]), (2050, "n * 2".to_owned()), "{target:?}");
        for of in [later(), text()] {
            for exprs in [[of.clone(), sooner()], [sooner(), of]] {
                assert_eq!(first(&exprs), (1, "place + 2147483647".to_owned()), "{target:?}");
            }
        }
        let kept = filter_where(&rows, &later().gt(0.0), &target.stream).wait().map(|_| ());
        assert_eq!(failed(kept), (2050, "n * 2".to_owned()), "{target:?}");
        // No row fails if nothing overflows.
        let fine = evaluate(&rows, &[(col("n") + 1).cast(DataType::Utf8)], &target.stream).wait().unwrap();
        assert_eq!(target.export(&fine.columns()[0]).as_string::<i32>().value(2050), "101", "{target:?}");
    }
}

/// A constant divisor tells why a row fails, however often it was widened, and in any row.
#[test]
fn a_divisor_that_was_widened_twice_is_a_constant() {
    let mut values = vec![1i64; 200];
    values[100] = i64::MIN;
    let values: ArrayRef = Arc::new(Int64Array::from(values));
    let by = |number| lit(Literal::of(DataType::Int8, number)).cast(DataType::Int32).cast(DataType::Int64);
    for target in &devices() {
        let rows = batch(target, &[("x", values.clone())]);
        let made = |by: Expr| {
            let made = evaluate(&rows, &[col("x") / by], &target.stream).wait()?;
            batch_to_arrow(&target.stream.download(&made)?)
        };
        for (by, row, reason) in [(by(-1), 100, Failure::Overflow), (by(0), 0, Failure::DivisionByZero)] {
            match made(by) {
                Err(Error::Evaluation { row: found, failure, .. }) => {
                    assert_eq!((found, failure), (row, reason), "{target:?}");
                }
                other => panic!("{target:?}: {other:?}"),
            }
        }
    }
}

#[test]
fn of_rows_of_one_lane_the_first_is_named() {
    // Rows 32 or 64 apart belong to the same lane, in waves of that many lanes.
    for apart in [32, 64, 96] {
        let value = ints((0..300).map(|row| if row == 10 || row == 10 + apart { i32::MAX } else { row }));
        for target in devices() {
            let rows = batch(&target, &[("a", value.clone())]);
            for made in both_ways(&target, &rows, &[col("a") + 1], &Options::default()) {
                assert_eq!(failed(made), (10, "a + 1".to_owned()), "{apart} apart on {target:?}");
            }
            for made in four_ways(&target, &rows, &[sum(col("a") + 1)], None, &Options::default()) {
                assert_eq!(failed(made).0, 10, "{apart} apart on {target:?}");
            }
        }
    }
}

#[test]
fn conditions_fail_for_rows_that_another_part_has_decided() {
    let value = ints((0..10_000).map(|row| if row == 5000 || row == 9000 { i32::MAX } else { row }));
    for target in devices() {
        let rows = batch(&target, &[("place", ints(0..10_000)), ("a", value.clone())]);
        // The condition is false from the second chunk on, by a term or by another expression.
        for decided in [col("place").lt(100), (col("place") * 2).lt(200)] {
            for both in [decided.clone() & (col("a") + 1).gt(0), (col("a") + 1).gt(0) & decided] {
                let kept = filter_where(&rows, &both, &target.stream).wait().map(|_| ());
                assert_eq!(failed(kept).0, 5000, "{both} on {target:?}");
                let made = aggregate(&rows, &[count_all()], Some(&both), &target.stream).wait();
                assert_eq!(failed(made).0, 5000, "{both} on {target:?}");
            }
        }
    }
}

#[test]
fn what_one_program_does_not_hold_fails_only_where_its_condition_is_true() {
    fn deep(level: usize, leaf: &mut i32) -> Expr {
        if level == 0 {
            *leaf += 1;
            return col("a") * *leaf;
        }
        deep(level - 1, leaf) + deep(level - 1, leaf)
    }
    let value = ints((0..3000).map(|row| if row == 2500 { i32::MAX } else { row % 97 }));
    for target in devices() {
        let rows = batch(&target, &[("place", ints(0..3000)), ("a", value.clone())]);
        let of = |condition: Expr| {
            let made = aggregate(&rows, &[sum(deep(6, &mut 0))], Some(&condition), &target.stream).wait();
            made.map(|row| {
                RecordBatch::try_from(&row).unwrap().column(0).as_primitive::<Int64Type>().value(0)
            })
        };
        let expected: i64 = (0..2000).map(|row| row % 97 * (1..=64).sum::<i64>()).sum();
        assert_eq!(of(col("place").lt(2000)).unwrap(), expected, "{target:?}");
        assert_eq!(of((col("place") + 1).lt_eq(2000)).unwrap(), expected, "{target:?}");
        assert_eq!(failed(of(col("place").gt(2000))).0, 2500, "{target:?}");
    }
}
