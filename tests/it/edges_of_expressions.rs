//! Tests values at the edges of their types, in programs of both widths, and rows beyond the first part of a
//! thread.

mod decimals;
mod quotients;
mod scales;

use std::sync::Arc;

use arrow_arith::numeric;
use arrow_arith::temporal::{DatePart as Part, date_part};
use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::*;
use arrow_schema::{DataType, Field, Schema, TimeUnit};
use bowstring::compute::{Query, aggregate, evaluate, filter_where};
use bowstring::expr::*;
use bowstring::{DeviceBatch, Error};

use crate::equivalence_expressions_wide::{both_ways, four_ways};
use crate::expressions::{batch, ints, of};
use crate::support::*;

fn decimals(values: impl IntoIterator<Item = i128>, precision: u8, scale: i8) -> ArrayRef {
    let array = Decimal128Array::from_iter_values(values);
    Arc::new(array.with_precision_and_scale(precision, scale).unwrap())
}

#[test]
fn unsigned_numbers_from_two_to_the_63_on() {
    let ends =
        [0u64, 1, 2, 1 << 32, (1 << 32) + 1, (1 << 63) - 1, 1 << 63, (1 << 63) + 1, u64::MAX - 1, u64::MAX];
    let pairs = || ends.iter().flat_map(|a| ends.iter().map(|b| (*a, *b)));
    let (a, b): (Vec<u64>, Vec<u64>) = pairs().unzip();
    let exprs = [
        col("a") + col("b"),
        col("a") - col("b"),
        col("a") * col("b"),
        col("a") / col("b"),
        col("a") % col("b"),
    ];
    let null = Options::default().overflow(Overflow::Null).division_by_zero_is_null(true);
    let exact: [fn(u64, u64) -> Option<u64>; 5] =
        [u64::checked_add, u64::checked_sub, u64::checked_mul, u64::checked_div, u64::checked_rem];
    let wrapped: [fn(u64, u64) -> u64; 3] = [u64::wrapping_add, u64::wrapping_sub, u64::wrapping_mul];
    let large: ArrayRef = Arc::new(UInt64Array::from(vec![1 << 63, 5, (1 << 63) - 7, 1]));
    for target in devices() {
        let columns: [(&str, ArrayRef); 2] =
            [("a", Arc::new(UInt64Array::from(a.clone()))), ("b", Arc::new(UInt64Array::from(b.clone())))];
        let rows = batch(&target, &columns);
        for made in both_ways(&target, &rows, &exprs, &null) {
            for (made, exact) in made.unwrap().iter().zip(exact) {
                let expected: UInt64Array = pairs().map(|(a, b)| exact(a, b)).collect();
                assert_eq!(made.as_primitive::<UInt64Type>(), &expected, "{target:?}");
            }
        }
        for made in both_ways(&target, &rows, &exprs[..3], &Options::default().overflow(Overflow::Wrap)) {
            for (made, wrapped) in made.unwrap().iter().zip(wrapped) {
                let expected: UInt64Array = pairs().map(|(a, b)| Some(wrapped(a, b))).collect();
                assert_eq!(made.as_primitive::<UInt64Type>(), &expected, "{target:?}");
            }
        }
        let (fits, more) = (large.slice(0, 3), large.clone());
        let asked = [sum(col("a")), min(col("a")), max(col("a"))];
        for made in four_ways(&target, &batch(&target, &[("a", fits)]), &asked, None, &Options::default()) {
            let made: Vec<u64> =
                made.unwrap().iter().map(|x| x.as_primitive::<UInt64Type>().value(0)).collect();
            assert_eq!(made, [u64::MAX - 1, 5, 1 << 63], "{target:?}");
        }
        let more = batch(&target, &[("a", more)]);
        for made in four_ways(&target, &more, &[sum(col("a") + 1)], None, &Options::default()) {
            assert!(matches!(made, Err(Error::Invalid { .. })), "{made:?} on {target:?}");
        }
    }
}

#[test]
fn literals_have_the_digits_of_their_type() {
    let schema = Schema::new(vec![
        Field::new("d", DataType::Decimal128(15, 2), true),
        Field::new("e", DataType::Decimal32(9, 0), true),
        Field::new("i", DataType::Int32, true),
    ]);
    let binds = |expr: Expr| Query::new().select(&[expr]).bind(&schema, &Options::default()).is_ok();
    let ten = |digits: u32| 10i128.pow(digits);
    for (sign, literal) in [1, -1].into_iter().flat_map(|sign| [(sign, true), (sign, false)]) {
        let decimal = |value: i128| match literal {
            true => Literal::decimal(sign * value, 15, 2),
            false => Literal::exact(sign * value, 2),
        };
        // A typed literal has at most the digits of its type; an untyped one may have more, and can still be
        // compared.
        assert!(binds(col("d").lt(decimal(ten(15) - 1))) && binds(col("d").lt(decimal(ten(15)))) != literal);
        let small = |value: i128| Literal::of(DataType::Decimal32(9, 0), sign * value);
        assert!(binds(col("e").lt(small(ten(9) - 1))) && !binds(col("e").lt(small(ten(9)))));
        let bare = |value: i128| Literal::from(sign * value);
        assert!(binds(col("d").lt(bare(ten(13) - 1))) && binds(col("d").lt(bare(ten(13)))));
    }
    // Typed nulls keep their type as other values do; untyped ones take any type.
    let null = |of: &DataType| Expr::from(Literal::null(of.clone()));
    let one = |of: &DataType| Expr::from(Literal::of(of.clone(), 1));
    for of in [DataType::Int64, DataType::Int8, DataType::Utf8, DataType::Decimal128(15, 2)] {
        assert!(!binds(col("i").eq(null(&of))), "{of}");
        assert!(!binds(col("i").coalesce(null(&of))), "{of}");
    }
    assert!(!binds(col("i").in_list([Literal::null(DataType::Int64)])));
    assert!(binds(col("i").in_list([Literal::null(DataType::Int32), Literal::null(DataType::Null)])));
    assert!(binds(col("i").eq(null(&DataType::Null))) && binds(col("i").eq(null(&DataType::Int32))));
    let words = DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Int32));
    assert!(binds(col("i").eq(null(&words))));
    let wide = DataType::Decimal128(38, 6);
    for other in [null(&wide), one(&wide)] {
        let bound = Query::new().select(&[col("d") + other]).bind(&schema, &Options::default()).unwrap();
        assert_eq!(bound.schema().field(0).data_type(), &wide);
    }
    // Types without arithmetic cannot be negated either.
    let types = [
        DataType::Date32,
        DataType::Date64,
        DataType::Time32(TimeUnit::Second),
        DataType::Time64(TimeUnit::Nanosecond),
        DataType::Timestamp(TimeUnit::Second, None),
        DataType::Boolean,
        DataType::UInt8,
        DataType::Duration(TimeUnit::Second),
        DataType::Float16,
        DataType::Decimal64(9, 1),
    ];
    for of in types {
        let schema = Schema::new(vec![Field::new("x", of.clone(), true)]);
        let ours = Query::new().select(&[-col("x")]).bind(&schema, &Options::default());
        let theirs = numeric::neg(&new_null_array(&of, 1));
        assert_eq!(ours.is_ok(), theirs.is_ok(), "{of}: {ours:?}, {theirs:?}");
    }
}

#[test]
fn sums_of_singles_are_of_all_parts_of_the_rows() {
    // The sums are exact in any order; the rows exceed one part on a device.
    let singles: ArrayRef = Arc::new(Float32Array::from_iter_values((0..5000).map(|row| (row % 100) as f32)));
    for of in [DataType::Float32, DataType::Float16, DataType::Float64] {
        let column = arrow_cast::cast(&singles, &of).unwrap();
        for target in devices() {
            let rows = batch(&target, &[("x", column.clone())]);
            for made in four_ways(&target, &rows, &[sum(col("x")), mean(col("x"))], None, &Options::default())
            {
                let made = made.unwrap();
                let plain = |i: usize| {
                    let made: &ArrayRef = &made[i];
                    arrow_cast::cast(made, &DataType::Float64).unwrap().as_primitive::<Float64Type>().value(0)
                };
                assert_eq!((plain(0), plain(1)), (247_500.0, 49.5), "{of} on {target:?}");
                let kept = if of == DataType::Float16 { &DataType::Float32 } else { &of };
                assert_eq!(made[0].data_type(), kept, "{of}");
            }
        }
    }
}

#[test]
fn remainders_of_subnormal_numbers() {
    let doubles = [f64::MIN_POSITIVE, 5e-324, 1.5e-323, 3e-310, -7e-320, 1.0, -2.5, 1e300, 4.4e-308];
    let singles = [f32::MIN_POSITIVE, 1e-45, 4e-45, 3e-40, -7e-42, 1.0, -2.5, 1e30, 2.4e-38];
    let pairs = || (0..9).flat_map(|i| (0..9).map(move |k| (i, k)));
    let columns: [(&str, ArrayRef); 4] = [
        ("a", Arc::new(Float64Array::from_iter_values(pairs().map(|(i, _)| doubles[i])))),
        ("b", Arc::new(Float64Array::from_iter_values(pairs().map(|(_, k)| doubles[k])))),
        ("c", Arc::new(Float32Array::from_iter_values(pairs().map(|(i, _)| singles[i])))),
        ("d", Arc::new(Float32Array::from_iter_values(pairs().map(|(_, k)| singles[k])))),
    ];
    let theirs = [0, 2].map(|i| numeric::rem(&columns[i].1, &columns[i + 1].1).unwrap());
    for target in devices() {
        let rows = batch(&target, &columns);
        let exprs = [col("a") % col("b"), col("c") % col("d")];
        for made in both_ways(&target, &rows, &exprs, &Options::default()) {
            for (made, theirs) in made.unwrap().iter().zip(&theirs) {
                assert_same_rows(
                    &crate::support::rows(made),
                    &crate::support::rows(theirs),
                    &format!("{target:?}"),
                );
            }
        }
    }
}

const PARTS: [(DatePart, Part); 6] = [
    (DatePart::Year, Part::Year),
    (DatePart::Month, Part::Month),
    (DatePart::Day, Part::Day),
    (DatePart::Hour, Part::Hour),
    (DatePart::Minute, Part::Minute),
    (DatePart::Second, Part::Second),
];

#[test]
fn parts_of_leap_days_and_of_times_that_nobody_lives_in() {
    use TimeUnit::*;
    // Dates around 29 February and 1 March of years divisible by 400, by 100, by 4, and by none of them;
    // dates around the limits of arrow-rs' years; and the ends of the types.
    let years = [2000i64, 1600, 2400, 0, -400, -800, 1900, 2100, -100, 1996, 2004, 1999, -1, 1970];
    // The day number of 1 March.
    let leap = years
        .map(|year| 365 * year + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) - 719_468);
    let far = [-96_465_292i64, 95_026_236, 0];
    let near = leap.into_iter().chain(far).flat_map(|day| (-3..=3).map(move |by| day + by));
    let days: Vec<i64> = near.chain([i32::MIN.into(), i32::MAX.into()]).collect();
    let scaled = |each: i64| {
        let each_day = move |day: &i64| day.checked_mul(86_400 * each);
        let days = days.iter().filter_map(each_day).flat_map(|at| [at - 1, at, at + 1, at + 7 * each + 3]);
        Int64Array::from_iter(days.map(Some).chain([Some(i64::MIN), Some(i64::MAX), None]))
    };
    let numbers = |of: &DataType, values: &dyn Array| arrow_cast::cast(values, of).unwrap();
    let day_numbers = Int32Array::from_iter_values(days.iter().map(|day| *day as i32));
    let mut columns =
        vec![numbers(&DataType::Date32, &day_numbers), numbers(&DataType::Date64, &scaled(1000))];
    for (unit, each) in
        [(Second, 1), (Millisecond, 1000), (Microsecond, 1_000_000), (Nanosecond, 1_000_000_000)]
    {
        columns.push(numbers(&DataType::Timestamp(unit, None), &scaled(each)));
    }
    let day = 86_400i64;
    for (of, each) in [(Second, 1), (Millisecond, 1000)] {
        let ends = [0, 1, day * each - 1, day * each, -1, i32::MAX.into(), i32::MIN.into()].map(|x| x as i32);
        columns.push(numbers(&DataType::Time32(of), &Int32Array::from(ends.to_vec())));
    }
    for (of, each) in [(Microsecond, 1_000_000), (Nanosecond, 1_000_000_000)] {
        let ends = vec![0, 1, day * each - 1, day * each, -1, i64::MAX, i64::MIN];
        columns.push(numbers(&DataType::Time64(of), &Int64Array::from(ends)));
    }
    for target in devices() {
        for column in &columns {
            let rows = batch(&target, &[("t", column.clone())]);
            let mut exprs = vec![];
            let mut expected: Vec<ArrayRef> = vec![];
            for (ours, theirs) in PARTS {
                if let Ok(theirs) = date_part(column, theirs) {
                    let expr = col("t").date_part(ours);
                    // Further computation sees the same numbers.
                    let three: ArrayRef = Arc::new(Int32Array::new_scalar(3).into_inner());
                    let product = numeric::mul(&theirs, &Scalar::new(three)).unwrap();
                    exprs.extend([expr.clone(), expr * 3]);
                    expected.extend([theirs, product]);
                }
            }
            for made in both_ways(&target, &rows, &exprs, &Options::default()) {
                for ((expr, made), theirs) in exprs.iter().zip(&made.unwrap()).zip(&expected) {
                    assert_eq!(made, theirs, "{expr} of {} on {target:?}", column.data_type());
                }
            }
        }
        let rows = batch(&target, &[("t", columns[2].clone())]);
        let year = || col("t").date_part(DatePart::Year);
        for made in four_ways(&target, &rows, &[min(year()), max(year())], None, &Options::default()) {
            let made: Vec<i32> =
                made.unwrap().iter().map(|x| x.as_primitive::<Int32Type>().value(0)).collect();
            assert_eq!(made, [-262_143, 262_142], "{target:?}");
        }
    }
}

#[test]
fn rows_past_the_first_part_that_a_thread_takes() {
    // The CPU works in parts of 65,536 rows; each part has different values.
    let (rows, target) = (150_001, &devices()[0]);
    let value = |row: i64| row * 7 % 100_003;
    let columns: [(&str, ArrayRef); 2] = [
        ("a", Arc::new(Int64Array::from_iter_values((0..rows).map(value)))),
        ("d", decimals((0..rows).map(|row| value(row).into()), 15, 2)),
    ];
    let batch = batch(target, &columns);
    let few = col("a").lt(50_000);
    let kept: Vec<i64> = (0..rows).map(value).filter(|a| *a < 50_000).collect();
    let made = filter_where(&batch, &few, &target.stream).wait().unwrap();
    assert_eq!(target.export(&made.columns()[0]).as_primitive::<Int64Type>().values(), &kept[..]);
    let made = evaluate(&batch, &[col("a") * 2 + 1], &target.stream).wait().unwrap();
    let twice: Vec<i64> = (0..rows).map(|row| value(row) * 2 + 1).collect();
    assert_eq!(target.export(&made.columns()[0]).as_primitive::<Int64Type>().values(), &twice[..]);
    let asked = [sum(col("a")), sum(col("d")), max(col("a")), count(col("d"))];
    let made = aggregate(&batch, &asked, Some(&few), &target.stream).wait().unwrap();
    let made = RecordBatch::try_from(&made).unwrap();
    let total: i64 = kept.iter().sum();
    assert_eq!(made.column(0).as_primitive::<Int64Type>().value(0), total);
    assert_eq!(made.column(1).as_primitive::<Decimal128Type>().value(0), i128::from(total));
    assert_eq!(made.column(2).as_primitive::<Int64Type>().value(0), *kept.iter().max().unwrap());
    assert_eq!(made.column(3).as_primitive::<Int64Type>().value(0), kept.len() as i64);
}

#[test]
fn casts_that_do_not_widen_are_looked_at() {
    let values: ArrayRef = Arc::new(UInt32Array::from(vec![0, (1 << 31) - 1, 1 << 31, u32::MAX]));
    for target in devices() {
        let rows = batch(&target, &[("u", values.clone())]);
        let made = of(&target, &rows, col("u").cast(DataType::Int32), &Options::default()).unwrap();
        let fits = [Some(0), Some(i32::MAX), None, None];
        assert_eq!(made.as_primitive::<Int32Type>(), &Int32Array::from(fits.to_vec()), "{target:?}");
        let strict = of(&target, &rows, col("u").cast_strict(DataType::Int32), &Options::default());
        assert!(matches!(strict, Err(Error::Cast { row: 2, .. })), "{strict:?} on {target:?}");
        let wide = of(&target, &rows, col("u").cast(DataType::Int64), &Options::default()).unwrap();
        assert_eq!(wide.as_primitive::<Int64Type>().values(), &[0, (1 << 31) - 1, 1 << 31, u32::MAX.into()]);
    }
}

#[test]
fn data_may_have_nulls_where_a_field_says_that_there_are_none() {
    let values: ArrayRef = Arc::new(Int32Array::from(vec![Some(1), None, Some(3)]));
    let schema = Arc::new(Schema::new(vec![Field::new("a", DataType::Int32, false)]));
    for target in devices() {
        let Ok(rows) = DeviceBatch::try_new(schema.clone(), vec![target.import(&values)], 3) else {
            continue;
        };
        let made = evaluate(&rows, &[col("a") + 1, col("a")], &target.stream).wait().unwrap();
        for (field, column) in made.schema().fields().iter().zip(made.columns()) {
            assert!(field.is_nullable(), "{field:?} on {target:?}");
            assert_eq!(target.export(column).null_count(), 1, "{target:?}");
        }
    }
}

#[test]
fn patterns_and_needles_at_the_edges_of_characters() {
    let texts = [
        "aab",
        "€€b",
        "€b",
        "b",
        "x€€€b",
        "ab€b",
        "€€",
        "\0",
        "a\0",
        "a\0b",
        "a",
        "longer than twelve\0",
        "longer than twelve",
    ];
    let plain: ArrayRef = Arc::new(StringArray::from_iter_values(texts));
    for of_type in [DataType::Utf8, DataType::Utf8View, DataType::LargeUtf8] {
        let column = arrow_cast::cast(&plain, &of_type).unwrap();
        for target in devices() {
            let rows = batch(&target, &[("t", column.clone())]);
            let truths = |expr: Expr| -> Vec<bool> {
                let made = of(&target, &rows, expr, &Options::default()).unwrap();
                made.as_boolean().values().iter().collect()
            };
            let like = truths(col("t").like("%__b"));
            let expected = texts.map(|text| text.ends_with('b') && text.chars().count() > 2);
            assert_eq!(like, expected, "{of_type} on {target:?}");
            for needle in ["a\0", "\0", "longer than twelve\0", "a"] {
                let found = truths(col("t").starts_with(needle));
                let expected = texts.map(|text| text.starts_with(needle));
                assert_eq!(found, expected, "{needle:?} of {of_type} on {target:?}");
            }
        }
    }
}

#[test]
fn numbers_of_one_type_are_not_numbers_of_another() {
    let target = &devices()[0];
    let rows = batch(target, &[("i", ints([1, 2]))]);
    let one = of(target, &rows, col("i").eq(Literal::of(DataType::Int64, 1)), &Options::default());
    let null = of(target, &rows, col("i").eq(Literal::null(DataType::Int64)), &Options::default());
    assert_eq!(one.unwrap_err().to_string().replace("1::", "null::"), null.unwrap_err().to_string());
}
