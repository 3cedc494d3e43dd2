//! Tests aggregates: of every type, the order of sums, sums that do not fit, and those of a stream.

use super::*;

/// The expected sum of floats by the definition of its order: 64 rows are summed by halves, these results one
/// after another in each part of the rows, then the parts. Kahan's summation would differ.
fn sum_in_order(values: &[Option<f64>]) -> f64 {
    let tiles = values.len().div_ceil(2048).div_ceil(4096);
    let part = |part: &[Option<f64>]| {
        part.chunks(64).fold(0.0, |sum, rows| {
            let mut rows: Vec<f64> = (0..64).map(|i| rows.get(i).copied().flatten().unwrap_or(0.0)).collect();
            while rows.len() > 1 {
                let half = rows.len() / 2;
                rows = (0..half).map(|i| rows[i] + rows[i + half]).collect();
            }
            sum + rows[0]
        })
    };
    values.chunks(tiles.max(1) * 2048).map(part).fold(0.0, |sum, part| sum + part)
}

#[test]
fn sums_of_floats_have_one_order_on_every_device() {
    for target in devices() {
        for rows in [1, 63, 64, 65, 2048, 2049, 10_000] {
            let mut rng = Random::new(rows as u64);
            let values: Vec<Option<f64>> = (0..rows)
                .map(|_| {
                    rng.percent(90.0)
                        .then(|| (rng.bits() as f64 / 1e19 - 0.9) * 10f64.powi(rng.below(30) as i32))
                })
                .collect();
            let array: ArrayRef = Arc::new(Float64Array::from(values.clone()));
            let rows = batch(&target, &[("x", array)]);
            let made =
                aggregate(&rows, &[sum(col("x")), mean(col("x"))], None, &target.stream).wait().unwrap();
            let made = RecordBatch::try_from(&made).unwrap();
            let there = values.iter().flatten().count();
            let expected = (there > 0).then(|| sum_in_order(&values));
            let ours = |i: usize| made.column(i).as_primitive::<Float64Type>().iter().next().unwrap();
            assert_eq!(
                ours(0).map(f64::to_bits),
                expected.map(f64::to_bits),
                "{} rows on {target:?}",
                values.len()
            );
            assert_eq!(ours(1), expected.map(|sum| sum / there as f64), "{target:?}");
        }
    }
}

#[test]
fn aggregates_of_every_type_are_arrows() {
    use arrow_arith::aggregate as theirs;
    let targets = devices();
    for (i, data_type) in column_types().into_iter().enumerate() {
        for rows in [0, 1, 100, 5000] {
            let mut rng = Random::new((i + rows) as u64);
            let any = array(&data_type, rows, Nulls::ALL[rng.below(5)], &mut rng);
            let small = small_column(&data_type, rows, &mut rng);
            let keep = array(&DataType::Boolean, rows, Nulls::Some, &mut rng);
            let kept = |values: &ArrayRef| arrow_select::filter::filter(values, keep.as_boolean()).unwrap();
            let mut asked = vec![count(col("any")), count_all(), min(col("any")), max(col("any"))];
            let is_bool = data_type == DataType::Boolean;
            if is_bool {
                asked = vec![count(col("any")), count_all(), bool_and(col("any")), bool_or(col("any"))];
            }
            let summed = data_type.is_integer() || data_type.is_floating() || data_type.is_decimal();
            if summed {
                asked.extend([sum(col("small")), mean(col("small"))]);
            }
            for target in &targets {
                let rows =
                    batch(target, &[("any", any.clone()), ("small", small.clone()), ("keep", keep.clone())]);
                for condition in [None, Some(col("keep"))] {
                    let context =
                        format!("{data_type}, {} rows where {condition:?} on {target:?}", rows.len());
                    let of =
                        |values: &ArrayRef| if condition.is_some() { kept(values) } else { values.clone() };
                    let made = aggregate(&rows, &asked, condition.as_ref(), &target.stream).wait();
                    let made =
                        RecordBatch::try_from(&made.unwrap_or_else(|e| panic!("{context}: {e}"))).unwrap();
                    let int = |i: usize| made.column(i).as_primitive::<Int64Type>().value(0);
                    let any = of(&any);
                    assert_eq!(int(0), (any.len() - any.null_count()) as i64, "{context}");
                    assert_eq!(int(1), any.len() as i64, "{context}");
                    if is_bool {
                        let truth = |i: usize| made.column(i).as_boolean().iter().next().unwrap();
                        assert_eq!(truth(2), theirs::bool_and(any.as_boolean()), "{context}");
                        assert_eq!(truth(3), theirs::bool_or(any.as_boolean()), "{context}");
                        continue;
                    }
                    let sorted = arrow_ord::sort::sort(&any, None).unwrap();
                    let valid = sorted.slice(sorted.null_count(), sorted.len() - sorted.null_count());
                    let one = |i: usize| {
                        if valid.is_empty() { new_null_array(&data_type, 1) } else { valid.slice(i, 1) }
                    };
                    assert_same_rows(&values_of(made.column(2)), &values_of(&one(0)), &context);
                    let last = valid.len().saturating_sub(1);
                    assert_same_rows(&values_of(made.column(3)), &values_of(&one(last)), &context);
                    if summed && !data_type.is_floating() {
                        let wide = arrow_cast::cast(&of(&small), &DataType::Decimal128(38, 0));
                        let scale = match data_type {
                            DataType::Decimal32(_, s)
                            | DataType::Decimal64(_, s)
                            | DataType::Decimal128(_, s) => s,
                            _ => 0,
                        };
                        let wide = wide
                            .and_then(|_| arrow_cast::cast(&of(&small), &DataType::Decimal128(38, scale)));
                        let total = theirs::sum(wide.unwrap().as_primitive::<Decimal128Type>());
                        let ours =
                            arrow_cast::cast(made.column(4), &DataType::Decimal128(38, scale)).unwrap();
                        assert_eq!(
                            ours.as_primitive::<Decimal128Type>().iter().next().unwrap(),
                            total,
                            "{context}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn sums_that_do_not_fit_are_errors_wrap_or_are_null() {
    let large: ArrayRef = Arc::new(Int64Array::from(vec![i64::MAX, 1, i64::MAX]));
    let fits: ArrayRef = Arc::new(Int64Array::from(vec![i64::MAX, 1, -1]));
    let decimals = vec![99_999_999_999_999_999_999_999_999_999_999_999_999i128; 3];
    let decimals: ArrayRef =
        Arc::new(Decimal128Array::from(decimals).with_precision_and_scale(38, 0).unwrap());
    for target in devices() {
        let rows =
            batch(&target, &[("large", large.clone()), ("fits", fits.clone()), ("d", decimals.clone())]);
        let run = |of: &str, overflow: Overflow| {
            let options = Options::default().overflow(overflow);
            let bound = Query::new().aggregate(&[sum(col(of))]).bind(rows.schema(), &options).unwrap();
            bound.run(&rows, &target.stream).wait().map(|row| RecordBatch::try_from(&row).unwrap())
        };
        let int = |made: RecordBatch| made.column(0).as_primitive::<Int64Type>().iter().next().unwrap();
        // The path to the sum does not matter, only the sum itself.
        assert_eq!(int(run("fits", Overflow::Error).unwrap()), Some(i64::MAX), "{target:?}");
        assert!(run("large", Overflow::Error).is_err(), "{target:?}");
        assert_eq!(
            int(run("large", Overflow::Wrap).unwrap()),
            Some(i64::MAX.wrapping_add(1).wrapping_add(i64::MAX))
        );
        assert_eq!(int(run("large", Overflow::Null).unwrap()), None);
        assert!(run("d", Overflow::Wrap).is_err(), "decimals are checked: {target:?}");
    }
}

#[test]
fn aggregates_of_a_stream_are_those_of_all_its_rows() {
    use bowstring::array::Batches;
    for target in devices() {
        let mut rng = Random::new(3);
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("a", small_column(&DataType::Int32, 9000, &mut rng)),
            ("d", small_column(&DataType::Decimal128(15, 2), 9000, &mut rng)),
        ];
        // More aggregates than fit in one launch on a device.
        let mut all = vec![count_all(), mean(col("d")), min(col("a")), bool_or(col("a").gt(8))];
        all.extend((0..40).map(|i| sum(col("a") * i)));
        let positive = col("a").gt(0);
        let whole = batch(&target, &columns);
        let bound =
            Query::new().filter(&positive).aggregate(&all).bind(whole.schema(), &Options::default()).unwrap();
        let right = RecordBatch::try_from(&bound.run(&whole, &target.stream).wait().unwrap()).unwrap();
        let parts = [0..0, 0..1, 1..5000, 5000..5000, 5000..9000].map(|rows| {
            let part = columns.iter().map(|(name, column)| (*name, column.slice(rows.start, rows.len())));
            Ok(batch(&target, &part.collect::<Vec<_>>()))
        });
        let place = target.stream.device().place();
        let stream = Batches::new(whole.schema().clone(), place, parts.into_iter());
        let row = bound.run_batches(stream, &target.stream).next().unwrap().unwrap();
        assert_eq!(RecordBatch::try_from(&row).unwrap(), right, "{target:?}");
        // Batches without rows, and a batch that fails.
        let none = Batches::new(whole.schema().clone(), place, std::iter::empty());
        let row = bound.run_batches(none, &target.stream).next().unwrap().unwrap();
        let row = RecordBatch::try_from(&row).unwrap();
        assert_eq!(row.column(0).as_primitive::<Int64Type>().value(0), 0);
        assert!(row.column(1).is_null(0));
        let failed = Err(Error::Invalid { operation: "test", problem: "no more".into() });
        let stream = Batches::new(whole.schema().clone(), place, [Ok(whole.clone()), failed].into_iter());
        let mut rows = bound.run_batches(stream, &target.stream);
        assert!(matches!(rows.next(), Some(Err(Error::Invalid { .. }))));
        assert!(rows.next().is_none());
    }
}
