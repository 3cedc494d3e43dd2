//! Tests values in expressions, and the size limits of expressions.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::*;
use arrow_schema::{DataType, Field, Schema};
use bowstring::compute::{Query, Scalar};
use bowstring::expr::*;

use crate::expressions::{batch, ints, of};
use crate::support::trees::{column_types, small_column};
use crate::support::*;

#[test]
fn decimals_without_a_type_take_that_of_what_they_meet() {
    let target = &devices()[0];
    let prices: ArrayRef =
        Arc::new(Decimal128Array::from(vec![105, -250]).with_precision_and_scale(15, 2).unwrap());
    let halves: ArrayRef = Arc::new(Float32Array::from(vec![0.5, 0.05]));
    let rows = batch(target, &[("p", prices), ("i", ints([1, 250])), ("f", halves)]);
    let exactly = |expr: Expr, literal: Literal| {
        let made = of(target, &rows, expr.eq(literal), &Options::default());
        made.map(|made| made.as_boolean().iter().map(Option::unwrap).collect::<Vec<_>>())
    };
    assert_eq!(exactly(col("p"), Literal::exact(-25, 1)), Ok(vec![false, true]));
    assert_eq!(exactly(col("p"), Literal::exact(105_000, 5)), Ok(vec![true, false]));
    assert_eq!(exactly(col("i"), Literal::exact(25, -1)), Ok(vec![false, true]));
    assert_eq!(exactly(col("f"), Literal::exact(5, 2)), Ok(vec![false, true]));
    // Otherwise the literal keeps its own type, and the compared column is cast to more decimal places.
    assert_eq!(exactly(col("p"), Literal::exact(1055, 3)), Ok(vec![false, false]));
    let sum = of(target, &rows, col("p") + Literal::exact(5, 3), &Options::default()).unwrap();
    assert_eq!(sum.as_primitive::<Decimal128Type>().values(), &[1055, -2495]);
    assert_eq!(exactly(col("p"), Literal::exact(1, -128)), Ok(vec![false, false]));
    for (unscaled, scale) in [(i128::MAX, 0), (i128::MIN, 0), (1, 39), (10i128.pow(38), 0), (1, 127)] {
        assert!(exactly(col("p"), Literal::exact(unscaled, scale)).is_err(), "{unscaled} {scale}");
        assert!(exactly(lit(Literal::exact(unscaled, scale)), 1.into()).is_err(), "{unscaled} {scale}");
    }
    for (literal, text) in [((-5, 2), "-0.05"), ((12345, 2), "123.45"), ((7, 0), "7"), ((-7, -3), "-7000")] {
        assert_eq!(Literal::exact(literal.0, literal.1).to_string(), text);
    }
}

type Grow = fn(Expr) -> Expr;

#[test]
fn what_grows_without_end_is_refused() {
    let schema =
        Schema::new(vec![Field::new("a", DataType::Int32, true), Field::new("t", DataType::Boolean, true)]);
    let grown: [(&str, Grow); 4] = [
        ("a", |x| x + 1),
        ("a", |x| x.clone() * x),
        ("t", |x| x.clone().between(x.clone(), x)),
        ("t", |x| !x),
    ];
    for (column, grow) in grown {
        let mut expr = col(column);
        while expr.check().is_ok() {
            Query::new().select(&[expr.clone()]).bind(&schema, &Options::default()).unwrap();
            expr = grow(expr);
        }
        let refused = Query::new().select(&[expr]).bind(&schema, &Options::default()).unwrap_err();
        assert!(refused.to_string().contains("more than"), "{refused}");
    }
}

#[test]
fn literals_are_values_of_arrays() {
    let target = &devices()[0];
    let mut rng = Random::new(7);
    let mut columns: Vec<ArrayRef> = column_types().iter().map(|t| small_column(t, 40, &mut rng)).collect();
    columns.push(Arc::new(Int8Array::from(vec![i8::MIN; 40])));
    columns.push(Arc::new(UInt64Array::from(vec![u64::MAX; 40])));
    for column in columns {
        let rows = batch(target, &[("x", column.clone())]);
        for row in [0, 9, 33] {
            let literal = Literal::try_from(&Scalar::from_arrow(&column.slice(row, 1)).unwrap()).unwrap();
            let same = of(target, &rows, col("x").not_distinct(literal), &Options::default()).unwrap();
            assert!(same.as_boolean().value(row), "{} of row {row}", column.data_type());
        }
    }
    let text = Scalar::from_arrow(&StringArray::from(vec!["it's"])).unwrap();
    assert_eq!(Literal::try_from(&text).unwrap().to_string(), "'it''s'");
    let bytes = Scalar::from_arrow(&BinaryViewArray::from(vec![&b"more than twelve bytes\xff"[..]])).unwrap();
    let literal = Literal::try_from(&bytes).unwrap();
    assert_eq!(literal, Literal::text(DataType::BinaryView, b"more than twelve bytes\xff"));
    let list = ListArray::from_iter_primitive::<types::Int32Type, _, _>([Some([Some(1)])]);
    assert!(Literal::try_from(&Scalar::from_arrow(&list).unwrap()).is_err());
}

/// Text that has a type is no value of another, whether or not the bytes are the same.
#[test]
fn text_with_a_type_keeps_it() {
    let target = &devices()[0];
    let texts: ArrayRef = Arc::new(StringArray::from(vec!["a", "b"]));
    let rows = batch(target, &[("t", texts)]);
    let found = |data_type| {
        let found = of(target, &rows, col("t").in_list([Literal::text(data_type, "b")]), &Options::default());
        found.map(|found| found.as_boolean().iter().map(Option::unwrap).collect::<Vec<_>>())
    };
    assert_eq!(found(DataType::Utf8), Ok(vec![false, true]));
    for other in [DataType::LargeUtf8, DataType::Utf8View, DataType::Binary] {
        let refused = found(other);
        assert!(refused.is_err(), "{refused:?}");
    }
}

/// A literal takes the type of the other operand only if that type can represent all of it.
#[test]
fn literals_are_not_cut_to_fit() {
    use arrow_schema::TimeUnit::*;
    let schema = |of: &DataType| Schema::new(vec![Field::new("x", of.clone(), true)]);
    let bound = |of: DataType, literal: Literal| {
        Query::new().select(&[col("x").lt(literal)]).bind(&schema(&of), &Options::default()).is_ok()
    };
    let zoned = |unit| DataType::Timestamp(unit, Some("+02:00".into()));
    for (of, text, fits) in [
        (DataType::Date32, "2020-01-01", true),
        (DataType::Date32, "2020-01-01 00:00:00", true),
        (DataType::Date32, "2020-01-01 12:00:00", false),
        (DataType::Date64, "2020-01-01", true),
        (DataType::Date32, "-0001-01-01", true),
        (DataType::Timestamp(Second, None), "2020-01-01", true),
        (DataType::Timestamp(Second, None), "2020-01-01T00:00:01", true),
        (DataType::Timestamp(Second, None), "2020-01-01T00:00:00.5", false),
        (DataType::Timestamp(Millisecond, None), "2020-01-01T00:00:00.5", true),
        (DataType::Timestamp(Microsecond, None), "9999-01-01T00:00:00.5", true),
        (DataType::Timestamp(Second, None), "9999-01-01T00:00:00.5", false),
        (zoned(Second), "2020-01-01T00:00:00+01:00", true),
        (zoned(Second), "2020-01-01T00:00:00.1", false),
        (DataType::Time32(Second), "12:00:00", true),
        (DataType::Time32(Second), "12:00:00.5", false),
        (DataType::Time64(Nanosecond), "12:00:00.000000001", true),
        (DataType::Time32(Second), "12", false),
        (DataType::Time64(Microsecond), "12", false),
    ] {
        assert_eq!(bound(of.clone(), text.into()), fits, "{text} beside {of}");
    }
    for (of, number, fits) in [
        (DataType::Float32, 1 << 24, true),
        (DataType::Float32, (1 << 24) + 1, false),
        (DataType::Float16, 2048, true),
        (DataType::Float16, 2049, false),
        (DataType::Float64, (1i64 << 53) + 1, false),
    ] {
        assert_eq!(bound(of.clone(), number.into()), fits, "{number} beside {of}");
    }
    assert!(bound(DataType::Float32, 0.1.into()), "a fraction is rounded");
}

#[test]
fn a_null_takes_the_type_of_a_literal() {
    let target = &devices()[0];
    let rows = batch(target, &[("x", ints([1, -1]))]);
    let null = || Literal::null(DataType::Null);
    let of = |expr: Expr| of(target, &rows, expr, &Options::default()).unwrap();
    let chosen = of(if_else(col("x").gt(0), lit(1).alias("one"), null()));
    assert_eq!(chosen.as_primitive::<Int64Type>().iter().collect::<Vec<_>>(), [Some(1), None]);
    assert_eq!(of(lit(null()).coalesce("a")).data_type(), &DataType::Utf8);
    let sum = sum(lit(1).alias("one")).filter(col("x").gt(0));
    let made = Query::new().aggregate([sum]).bind(rows.schema(), &Options::default()).unwrap();
    let made = made.run(&rows, &target.stream).wait().unwrap();
    assert_eq!(target.export(&made.columns()[0]).as_primitive::<Int64Type>().value(0), 1);
}

/// arrow-rs panics if an offset leads out of the calendar.
#[test]
fn times_at_the_ends_of_the_calendar_are_printed() {
    use arrow_schema::TimeUnit::*;
    for (seconds, zone) in [(8_210_266_876_799i128, "+14:00"), (-8_334_601_228_800, "-01:00")] {
        for (unit, times) in [(Second, 1), (Millisecond, 1000), (Microsecond, 1_000_000)] {
            let of = DataType::Timestamp(unit, Some(zone.into()));
            assert!(!lit(Literal::of(of, seconds * times)).to_string().is_empty());
        }
    }
}

/// A literal becomes the nearest number of a float's type, and no integer becomes another one.
#[test]
fn literals_are_rounded_once() {
    for target in &devices() {
        let f: ArrayRef = Arc::new(Float32Array::from(vec![1.0, 1.000_000_1]));
        let d: ArrayRef = Arc::new(Float64Array::from(vec![2f64.powi(127), 1.0]));
        let rows = batch(target, &[("f", f), ("d", d)]);
        // Just above the middle of two numbers, which it is itself in 64 bits.
        let above = col("f").eq(Literal::exact(1_000_000_059_604_644_775_390_625_000_001, 30));
        let made = of(target, &rows, above, &Options::default()).unwrap();
        assert_eq!(made.as_boolean(), &BooleanArray::from(vec![false, true]), "{target:?}");
        // Just above and below the middle of two halves, which they are themselves in 32 and 64 bits.
        let halves = [f32::from_bits(0x3f80_2000), -1.0, f32::from_bits(0x3380_0000), 65504.0];
        let h: ArrayRef = Arc::new(Float16Array::from_iter_values(halves.map(half::f16::from_f32)));
        let few = batch(target, &[("h", h)]);
        for (row, (unscaled, scale)) in [
            (10_004_882_812_500_000_000_000_001, 25),
            (-10_004_882_812_499_999_999_999_999, 25),
            (29_802_322_387_695_312_500_000_001, 33),
            (65_519_999_999_999_999_999_999_999_999, 24),
        ]
        .into_iter()
        .enumerate()
        {
            let made = of(target, &few, col("h").eq(Literal::exact(unscaled, scale)), &Options::default());
            let expected = BooleanArray::from_iter((0..4).map(|of| Some(of == row)));
            assert_eq!(made.unwrap().as_boolean(), &expected, "{target:?}: {unscaled}");
        }
        // Beyond the greatest number, none is near.
        for (rows, name, scale) in [(&rows, "f", -39), (&rows, "f", -128), (&few, "h", -5), (&few, "h", -128)]
        {
            let refused = of(target, rows, col(name).eq(Literal::exact(1, scale)), &Options::default());
            assert!(refused.is_err(), "{target:?}: {name} {scale}");
        }
        assert!(of(target, &rows, col("d").eq(i128::MAX), &Options::default()).is_err());
        assert!(of(target, &rows, col("d").eq(1i128 << 126), &Options::default()).is_ok());
    }
}

/// Powers are of numbers, also the first one; times differ whatever their zones.
#[test]
fn first_powers_and_differences_have_the_types_of_others() {
    let zone = |zone: Option<&str>| -> ArrayRef {
        Arc::new(TimestampSecondArray::from(vec![100, 200]).with_timezone_opt(zone))
    };
    for target in &devices() {
        let text: ArrayRef = Arc::new(StringArray::from(vec!["a", "b"]));
        let days: ArrayRef = Arc::new(Date32Array::from(vec![1, 2]));
        let columns =
            [("s", text), ("t", days), ("i", ints([3, 4])), ("a", zone(None)), ("b", zone(Some("UTC")))];
        let rows = batch(target, &columns);
        for name in ["s", "t", "a"] {
            assert!(of(target, &rows, col(name).pow(1), &Options::default()).is_err(), "{name}");
        }
        assert!(of(target, &rows, col("i").pow(1), &Options::default()).is_ok());
        let made = of(target, &rows, col("b") - col("a"), &Options::default()).unwrap();
        assert_eq!(made.as_ref(), &DurationSecondArray::from(vec![0, 0]), "{target:?}");
    }
}

/// A division that overflows before it begins is one that overflows.
#[test]
fn operands_of_divisions_that_overflow_are_null_if_asked() {
    let decimal = |value: i128, scale: i8| -> ArrayRef {
        Arc::new(Decimal128Array::from(vec![value]).with_precision_and_scale(38, scale).unwrap())
    };
    let large = 10i128.pow(37);
    for target in &devices() {
        let columns = [
            ("a", decimal(1, 0)),
            ("b", decimal(large, -10)),
            ("c", decimal(large, 0)),
            ("d", decimal(1, 10)),
        ];
        let rows = batch(target, &columns);
        for expr in [col("a") / col("b"), col("c") % col("d")] {
            let made = of(target, &rows, expr.clone(), &Options::default().division_by_zero_is_null(true));
            assert_eq!(made.unwrap().null_count(), 1, "{target:?}: {expr}");
            assert!(of(target, &rows, expr, &Options::default()).is_err());
        }
    }
}

/// Expressions that are bound together have so many steps at most, on each device.
#[test]
fn many_large_expressions_together_are_refused() {
    let sum = |first: i64| {
        let mut terms: Vec<Expr> = (0..400).map(|i| col("i") + (first + i)).collect();
        while terms.len() > 1 {
            terms = terms
                .chunks(2)
                .map(|two| two.iter().skip(1).fold(two[0].clone(), |a, b| a + b.clone()))
                .collect();
        }
        terms.remove(0)
    };
    for target in &devices() {
        let rows = batch(target, &[("i", ints([1, 2]))]);
        let exprs = |outputs: i64| (0..outputs).map(|i| sum(i * 1000)).collect::<Vec<_>>();
        let made = bowstring::compute::evaluate(&rows, &exprs(60), &target.stream).wait();
        assert!(matches!(made, Err(bowstring::Error::Invalid { .. })), "{target:?}");
        if target.name == "cpu" {
            let made = bowstring::compute::evaluate(&rows, &exprs(30), &target.stream).wait().unwrap();
            assert_eq!(made.columns().len(), 30);
        }
    }
}
