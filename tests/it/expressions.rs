//! Tests expressions: refusals when binding, failing rows, aggregates, programs too large for one launch,
//! TPC-H's sixth query.

mod aggregates;

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::*;
use arrow_schema::{DataType, Field, Schema, UnionFields, UnionMode};
use bowstring::compute::{Query, aggregate, evaluate, filter_where};
use bowstring::expr::*;
use bowstring::{DeviceBatch, Error, Unsupported};

use crate::support::rows as values_of;
use crate::support::trees::{column_types, small_column};
use crate::support::*;

pub fn batch(target: &Target, columns: &[(&str, ArrayRef)]) -> DeviceBatch {
    let fields: Vec<Field> =
        columns.iter().map(|(name, array)| Field::new(*name, array.data_type().clone(), true)).collect();
    let rows = columns[0].1.len();
    let columns: Vec<_> = columns.iter().map(|(_, array)| target.import(array)).collect();
    DeviceBatch::try_new(Arc::new(Schema::new(fields)), columns, rows).unwrap()
}

pub fn ints(values: impl IntoIterator<Item = i32>) -> ArrayRef {
    Arc::new(Int32Array::from_iter_values(values))
}

/// An expression's result on a device, or the first error from binding or evaluating it.
pub fn of(target: &Target, rows: &DeviceBatch, expr: Expr, options: &Options) -> Result<ArrayRef, Error> {
    let made = Query::new().select(&[expr]).bind(rows.schema(), options)?.run(rows, &target.stream).wait()?;
    let made = target.stream.download(&made.columns()[0])?;
    made.wait()?;
    Ok(target.export(&made))
}

#[test]
fn the_first_row_that_fails_is_named_with_what_fails() {
    for target in devices() {
        let a = (0..5000).map(|i| if i == 4100 || i == 4990 { i32::MAX } else { i });
        let b = (0..5000).map(|i| if i == 4200 { 0 } else { 1 });
        let rows = batch(&target, &[("a", ints(a)), ("b", ints(b))]);
        let failed = |expr: Expr| match of(&target, &rows, expr, &Options::default()) {
            Err(Error::Evaluation { row, expression, .. }) => (row, expression),
            other => panic!("{other:?} on {target:?}"),
        };
        assert_eq!(failed(col("a") + 1), (4100, "a + 1".to_owned()));
        assert_eq!(failed(col("a") / col("b")), (4200, "a / b".to_owned()));
        assert_eq!(failed(-(-col("a") - 2)), (4100, "(-a) - 2".to_owned()));
        assert_eq!(failed((col("a") % col("b")).lt(col("a") * 2)), (4100, "a * 2".to_owned()));
        // Rows that a condition excludes raise no error.
        let small = col("a").lt(5000) & col("b").neq(0);
        let total =
            aggregate(&rows, &[sum(col("a") + 1), sum(col("a") / col("b"))], Some(&small), &target.stream);
        assert_eq!(total.wait().unwrap().len(), 1, "{target:?}");
        let failed = aggregate(&rows, &[sum(col("a") + 1)], None, &target.stream).wait();
        assert!(matches!(failed, Err(Error::Evaluation { row: 4100, .. })), "{failed:?} on {target:?}");
        let failed = aggregate(&rows, &[count_all()], Some(&(col("a") + 1).gt(0)), &target.stream).wait();
        assert!(matches!(failed, Err(Error::Evaluation { row: 4100, .. })), "{failed:?} on {target:?}");
        let failed = filter_where(&rows, &(col("a") + 1).gt(0), &target.stream).wait().map(|_| ());
        assert!(matches!(failed, Err(Error::Evaluation { row: 4100, .. })), "{failed:?} on {target:?}");
    }
}

#[test]
fn a_query_reads_only_the_columns_that_it_names() {
    for target in devices() {
        let words: ArrayRef = Arc::new(StringArray::from(vec![Some("a"), None, Some("c")]));
        let columns =
            [("unused", words.clone()), ("a", ints([1, 0, 3])), ("t", words), ("b", ints([7, 8, 9]))];
        let rows = batch(&target, &columns);
        let run = |query: Query| {
            let bound = query.bind(rows.schema(), &Options::default()).unwrap();
            let made = bound.run(&rows, &target.stream).wait()?;
            assert_eq!(made.schema(), &bound.schema());
            bowstring::exchange::batch_to_arrow(&target.stream.download(&made)?)
        };
        let kept = Query::new().filter(col("a").gt(0));
        assert_eq!(run(kept.clone()).unwrap().num_columns(), 4, "{target:?}");
        // A row that a filter leaves out does not fail.
        let made = run(kept.clone().select([col("b") / col("a"), col("t"), lit(5)])).unwrap();
        assert_eq!(made.column(0).as_primitive::<Int32Type>().values(), &[7, 3], "{target:?}");
        assert_eq!(made.column(1).as_string::<i32>().iter().collect::<Vec<_>>(), [Some("a"), Some("c")]);
        assert_eq!(made.num_rows(), 2);
        assert!(run(Query::new().select([col("b") / col("a")])).is_err(), "{target:?}");
        // Filters add up, and the last results that are asked for count.
        let made = run(kept.filter(col("b").gt(7)).select([col("t")]).aggregate([count_all()])).unwrap();
        assert_eq!(made.column(0).as_primitive::<Int64Type>().values(), &[1], "{target:?}");
        // Without columns to move, the filter only counts.
        let made = run(Query::new().filter(col("a").gt(0)).select([lit(5)])).unwrap();
        assert_eq!(made.column(0).as_primitive::<Int64Type>().values(), &[5, 5], "{target:?}");
        let none = run(Query::new().select([] as [Expr; 0])).unwrap();
        assert_eq!((none.num_columns(), none.num_rows()), (0, 3), "{target:?}");
    }
}

#[test]
fn a_device_says_before_it_runs_a_query_whether_it_can() {
    let of = UnionFields::from_fields(vec![Field::new("n", DataType::Int32, true)]);
    let unions =
        DataType::List(Arc::new(Field::new_list_field(DataType::Union(of, UnionMode::Sparse), true)));
    let schema =
        Schema::new(vec![Field::new("l", unions.clone(), true), Field::new("n", DataType::Int32, true)]);
    let bound = |query: Query| query.bind(&schema, &Options::default()).unwrap();
    let lists = bound(Query::new().filter(col("l").cast(DataType::Utf8).eq("[]")));
    let numbers =
        bound(Query::new().filter(col("n").cast(DataType::Utf8).eq("1")).aggregate([sum(col("n"))]));
    for target in devices() {
        numbers.check(&target.stream).unwrap();
        let expected = match target.name.starts_with("cpu") {
            true => Ok(()),
            false => Err(Unsupported::Cast { from: unions.clone(), to: DataType::Utf8 }),
        };
        let found = lists.check(&target.stream).map_err(|error| match error {
            Error::Unsupported { what, .. } => what,
            other => panic!("{other}"),
        });
        assert_eq!(found, expected, "{target:?}");
    }
}

#[test]
fn options_say_what_becomes_of_what_does_not_fit() {
    for target in devices() {
        let rows = batch(&target, &[("a", ints([i32::MAX, 7, i32::MIN])), ("b", ints([1, 0, -1]))]);
        let wrap = Options::default().overflow(Overflow::Wrap);
        let null = Options::default().overflow(Overflow::Null).division_by_zero_is_null(true);
        let ints = |expr: Expr, options: &Options| {
            of(&target, &rows, expr, options).unwrap().as_primitive::<Int32Type>().iter().collect::<Vec<_>>()
        };
        assert_eq!(ints(col("a") + col("b"), &wrap), [Some(i32::MIN), Some(7), Some(i32::MAX)], "{target:?}");
        assert_eq!(ints(-col("a"), &wrap), [Some(-i32::MAX), Some(-7), Some(i32::MIN)], "{target:?}");
        assert_eq!(ints(col("a") + col("b"), &null), [None, Some(7), None], "{target:?}");
        assert_eq!(ints(col("a") / col("b"), &null), [Some(i32::MAX), None, None], "{target:?}");
        assert_eq!(ints(col("a") % col("b"), &null), [Some(0), None, Some(0)], "{target:?}");
        let floats: ArrayRef = Arc::new(Float64Array::from(vec![-0.0, f64::NAN, -f64::NAN, 1.0]));
        let zeros: ArrayRef = Arc::new(Float64Array::from(vec![0.0, -f64::NAN, f64::INFINITY, 1.0]));
        let rows = batch(&target, &[("x", floats), ("y", zeros)]);
        let truths = |expr: Expr, floats: FloatOrder| {
            let made = of(&target, &rows, expr, &Options::default().floats(floats)).unwrap();
            made.as_boolean().values().iter().collect::<Vec<_>>()
        };
        let eq = || col("x").eq(col("y"));
        assert_eq!(truths(eq(), FloatOrder::Total), [false, false, false, true], "{target:?}");
        assert_eq!(truths(eq(), FloatOrder::Sql), [true, true, false, true], "{target:?}");
        assert_eq!(truths(col("x").gt(col("y")), FloatOrder::Sql), [false, false, true, false], "{target:?}");
    }
}

#[test]
fn what_does_not_fit_together_is_known_when_it_is_bound() {
    let schema = Schema::new(vec![
        Field::new("a", DataType::Int32, true),
        Field::new("u", DataType::UInt8, true),
        Field::new("s", DataType::Utf8, true),
        Field::new("d", DataType::Decimal128(15, 2), true),
        Field::new("e", DataType::Decimal128(20, 30), true),
    ]);
    let problem = |expr: Expr| match Query::new().select(&[expr]).bind(&schema, &Options::default()) {
        Err(Error::Invalid { problem, .. }) => problem,
        Err(error @ Error::NoColumn { .. }) => error.to_string(),
        other => panic!("{other:?}"),
    };
    assert_eq!(problem(col("b") + 1), "no column b; there are a, u, s, d, e");
    assert_eq!(problem(nth(7)), "no column #7; there are a, u, s, d, e");
    assert_eq!(problem(col("a").is_nan()), "is_nan(a): no value of Int32 is NaN");
    assert_eq!(problem(col("s").pow(0)), "s ** 0: expressions do not compute with Utf8");
    assert_eq!(problem(col("a").lt(col("u"))), "a < u: Int32 and UInt8; cast one");
    assert_eq!(problem(!(col("a") & col("a").lt(1))), "a (at operand.left): Int32, not Boolean");
    assert_eq!(problem(col("a").eq(0.5)), "a = 0.5: 0.5 is no value of Int32");
    assert_eq!(problem(col("u").eq(-1)), "u = -1: -1 is no value of UInt8");
    assert_eq!(problem(-col("u")), "-u: UInt8 has no negative values");
    assert_eq!(problem(col("s").eq(1)), "s = 1: 1 is no value of Utf8");
    assert_eq!(
        problem(col("d").coalesce(0.125)),
        "coalesce(d, 0.125): Decimal128(15, 2) and Decimal128(3, 3); cast one"
    );
    assert_eq!(
        problem(col("e") * col("e")),
        "e * e: Decimal128(20, 30) and Decimal128(20, 30): the scale would be more than 38"
    );
    assert_eq!(problem(col("a").date_part(DatePart::Year)), "year(a): no parts of Int32");
    let refused = Query::new().filter(col("a")).bind(&schema, &Options::default());
    assert_eq!(refused.unwrap_err().to_string(), "expression: a: Int32, not Boolean");
    // A type that cannot be computed with may still be selected, as it is or after a cast.
    let fine = [col("s"), col("s").is_null(), col("s").cast(DataType::Int32) + 1, col("d").lt(0.05)];
    assert_eq!(
        Query::new().select(&fine).bind(&schema, &Options::default()).unwrap().schema().fields().len(),
        4
    );
}

#[test]
fn what_is_too_much_for_one_program_is_several() {
    // A balanced tree needs one more value for each level, and one truth.
    fn deep(level: usize, leaf: &mut i64) -> Expr {
        if level == 0 {
            *leaf += 1;
            return col("a") * lit(*leaf);
        }
        deep(level - 1, leaf) + deep(level - 1, leaf)
    }
    fn wide(level: usize, leaf: &mut i64) -> Expr {
        if level == 0 {
            *leaf += 1;
            return col("a").gt(*leaf * 37 % 97);
        }
        let (a, b) = (wide(level - 1, leaf), wide(level - 1, leaf));
        if level.is_multiple_of(2) { a & b } else { a | b }
    }
    fn is_wide(level: usize, leaf: &mut i64, a: i64) -> bool {
        if level == 0 {
            *leaf += 1;
            return a > *leaf * 37 % 97;
        }
        let (x, y) = (is_wide(level - 1, leaf, a), is_wide(level - 1, leaf, a));
        if level.is_multiple_of(2) { x & y } else { x | y }
    }
    let a: ArrayRef = Arc::new(Int64Array::from_iter_values((0..3000).map(|i| i % 97)));
    for target in devices() {
        let rows = batch(&target, &[("a", a.clone())]);
        let made = evaluate(&rows, &[deep(7, &mut 0), wide(9, &mut 0)], &target.stream).wait().unwrap();
        let sums = target.export(&made.columns()[0]);
        let factor: i64 = (1..=128).sum();
        let expected = Int64Array::from_iter_values((0..3000).map(|i| i % 97 * factor));
        assert_eq!(sums.as_primitive::<Int64Type>(), &expected, "{target:?}");
        let truths = target.export(&made.columns()[1]);
        let expected = BooleanArray::from_iter((0..3000).map(|i| Some(is_wide(9, &mut 0, i % 97))));
        assert!((1..3000).contains(&expected.true_count()));
        assert_eq!(truths.as_boolean(), &expected, "{target:?}");
        let aggregates: Vec<Aggregation> =
            (0..70).map(|i| sum(col("a") + lit(i)).alias(format!("s{i}"))).collect();
        let made = aggregate(&rows, &aggregates, None, &target.stream).wait().unwrap();
        let made = RecordBatch::try_from(&made).unwrap();
        let total: i64 = (0..3000).map(|i| i % 97).sum();
        for i in 0..70 {
            let ours = made.column(i).as_primitive::<Int64Type>().value(0);
            assert_eq!(ours, total + 3000 * i as i64, "{i} on {target:?}");
        }
    }
}

#[test]
fn long_lists_are_searched_whole() {
    let a: ArrayRef =
        Arc::new(Int32Array::from(vec![Some(0), Some(1), None, Some(99_998), Some(99_999), Some(-2)]));
    for target in devices() {
        let rows = batch(&target, &[("a", a.clone())]);
        let even = col("a").in_list((0..50_000).map(|i| 2 * i));
        let found = of(&target, &rows, even, &Options::default()).unwrap();
        let expected = [Some(true), Some(false), None, Some(true), Some(false), Some(false)];
        assert_eq!(found.as_boolean(), &BooleanArray::from(expected.to_vec()), "{target:?}");
        let none = of(&target, &rows, col("a").in_list(Vec::<i32>::new()), &Options::default()).unwrap();
        assert_eq!((none.as_boolean().true_count(), none.null_count()), (0, 1), "{target:?}");
    }
}

#[test]
fn parts_of_dates_and_times_are_arrows() {
    use arrow_arith::temporal::{DatePart as Part, date_part};
    let parts = [
        (DatePart::Year, Part::Year),
        (DatePart::Month, Part::Month),
        (DatePart::Day, Part::Day),
        (DatePart::Hour, Part::Hour),
        (DatePart::Minute, Part::Minute),
        (DatePart::Second, Part::Second),
    ];
    let days: ArrayRef = Arc::new(Date32Array::from_iter_values((-800_000..800_000).step_by(397)));
    let rows = days.len();
    let seconds = |i: i64| (i - 2000) * 9_876_543 - 1;
    let columns: Vec<ArrayRef> = vec![
        Arc::new(TimestampSecondArray::from_iter_values((0..rows as i64).map(seconds))),
        Arc::new(TimestampMillisecondArray::from_iter_values(
            (0..rows as i64).map(|i| seconds(i) * 1000 + 7),
        )),
        Arc::new(TimestampNanosecondArray::from_iter_values(
            (0..rows as i64).map(|i| (seconds(i) % 9_000_000_000) * 1_000_000_000 - 1),
        )),
        Arc::new(Time32SecondArray::from_iter_values((0..rows as i32).map(|i| i % 86_400 / 3 * 3))),
        Arc::new(Time64NanosecondArray::from_iter_values(
            (0..rows as i64).map(|i| i * 21_000_000_123 % 86_400_000_000_000),
        )),
        days,
    ];
    for target in devices() {
        for column in &columns {
            let rows = batch(&target, &[("t", column.clone())]);
            for (ours, theirs) in parts {
                let expr = col("t").date_part(ours);
                let Ok(theirs) = date_part(column, theirs) else {
                    assert!(of(&target, &rows, expr, &Options::default()).is_err());
                    continue;
                };
                let ours = match of(&target, &rows, expr, &Options::default()) {
                    Ok(ours) => ours,
                    // For a time without a year arrow-rs returns null.
                    Err(_) if theirs.null_count() == theirs.len() => continue,
                    Err(error) => panic!("{error}"),
                };
                assert_eq!(&ours, &theirs, "{ours:?} of {} on {target:?}", column.data_type());
            }
        }
    }
}

/// TPC-H's sixth query, with exact decimals.
#[test]
fn the_sixth_query_of_tpch() {
    let rows = 20_000;
    let mut rng = Random::new(6);
    let mut decimals = |limit: usize| -> (Vec<i128>, ArrayRef) {
        let values: Vec<i128> = (0..rows).map(|_| rng.below(limit) as i128).collect();
        let array = Decimal128Array::from(values.clone()).with_precision_and_scale(15, 2).unwrap();
        (values, Arc::new(array))
    };
    let ((quantity, q), (price, p), (discount, d)) = (decimals(5000), decimals(10_000_000), decimals(11));
    let days: Vec<i32> = (0..rows).map(|i| 8000 + (i as i32 * 7919) % 2500).collect();
    let shipped: ArrayRef = Arc::new(Date32Array::from(days.clone()));
    // The conditions: 1994, discounts of 5 to 7 hundredths, fewer than 24 pieces.
    let decimal = |unscaled| Literal::decimal(unscaled, 15, 2);
    let year = col("l_shipdate").gt_eq(Literal::date(8766)) & col("l_shipdate").lt(Literal::date(9131));
    let condition = year & col("l_discount").between(decimal(5), 0.07) & col("l_quantity").lt(24);
    let revenue = sum(col("l_extendedprice") * col("l_discount")).alias("revenue");
    let expected: i128 = (0..rows)
        .filter(|i| {
            (8766..9131).contains(&days[*i]) && (5..=7).contains(&discount[*i]) && quantity[*i] < 2400
        })
        .map(|i| price[i] * discount[i])
        .sum();
    for target in devices() {
        let columns = [
            ("l_quantity", q.clone()),
            ("l_extendedprice", p.clone()),
            ("l_discount", d.clone()),
            ("l_shipdate", shipped.clone()),
        ];
        let rows = batch(&target, &columns);
        let made = aggregate(&rows, std::slice::from_ref(&revenue), Some(&condition), &target.stream)
            .wait()
            .unwrap();
        let made = RecordBatch::try_from(&made).unwrap();
        assert_eq!(made.schema().field(0).data_type(), &DataType::Decimal128(38, 4));
        assert_eq!(made.column(0).as_primitive::<Decimal128Type>().value(0), expected, "{target:?}");
    }
}
