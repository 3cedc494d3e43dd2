//! Tests decimals at the edges of their digits and of their halves, and their sums and means.

use super::*;

#[test]
fn decimals_at_the_ends_of_their_halves() {
    let (short, most) = (1i128 << 64, 10i128.pow(38) - 1);
    let values =
        [5, 5 + short, 5 - short, 1 << 63, (1 << 63) + short, -1, -short, -(1 << 63), most, -most, 0];
    let pairs = || values.iter().flat_map(|a| values.iter().map(|b| (*a, *b)));
    let a = decimals(pairs().map(|(a, _)| a), 38, 0);
    let b = decimals(pairs().map(|(_, b)| b), 38, 0);
    let literal = |value: i128| Literal::decimal(value, 38, 0);
    for target in devices() {
        let rows = batch(&target, &[("a", a.clone()), ("b", b.clone())]);
        let truths = |expr: Expr| of(&target, &rows, expr, &Options::default()).unwrap().as_boolean().clone();
        let expected =
            |is: &dyn Fn(i128, i128) -> bool| BooleanArray::from_iter(pairs().map(|(a, b)| Some(is(a, b))));
        assert_eq!(truths(col("a").lt(col("b"))), expected(&|a, b| a < b), "{target:?}");
        assert_eq!(truths(col("a").lt_eq(col("b"))), expected(&|a, b| a <= b), "{target:?}");
        assert_eq!(truths(col("a").eq(col("b"))), expected(&|a, b| a == b), "{target:?}");
        // Long enough that the list does not become ranges.
        let list = [5 + short, -short, (1 << 63) + short, most, 77, 78 + short];
        let found = truths(col("a").in_list(list.map(literal)));
        assert_eq!(found, expected(&|a, _| list.contains(&a)), "{target:?}");
        // The least possible product, and others that overflow.
        let ends = [
            (-short, 1 << 63),
            (short, -(1 << 63)),
            (short, 1 << 63),
            (-short, -(1 << 63)),
            (-short, (1 << 63) + 1),
        ];
        let (x, y) = ends.into_iter().unzip::<i128, i128, Vec<_>, Vec<_>>();
        let (x, y) = (decimals(x, 38, 0), decimals(y, 38, 0));
        let rows = batch(&target, &[("x", x), ("y", y)]);
        let null = Options::default().overflow(Overflow::Null);
        let made = of(&target, &rows, col("x") * col("y"), &null).unwrap();
        let right = [Some(i128::MIN), Some(i128::MIN), None, None, None];
        assert_eq!(made.as_primitive::<Decimal128Type>().iter().collect::<Vec<_>>(), right, "{target:?}");
    }
}

#[test]
fn sums_and_means_of_decimals_have_their_values() {
    let most = 10i128.pow(38) - 1;
    for target in devices() {
        let one = |values: &[i128], asked: Aggregation| {
            let rows = batch(&target, &[("d", decimals(values.iter().copied(), 38, 2))]);
            let made = aggregate(&rows, &[asked], None, &target.stream).wait()?;
            let made = RecordBatch::try_from(&made).unwrap();
            Ok::<_, Error>(made.column(0).as_primitive::<Decimal128Type>().value(0))
        };
        assert_eq!(one(&[most - 1, 1], sum(col("d"))), Ok(most), "{target:?}");
        assert_eq!(one(&[1 - most, -1], sum(col("d"))), Ok(-most), "{target:?}");
        assert!(one(&[most, 1], sum(col("d"))).is_err(), "{target:?}");
        assert!(one(&[-most, -1], sum(col("d"))).is_err(), "{target:?}");
        // The mean has four more digits, truncated.
        assert_eq!(one(&[100, 200, 200], mean(col("d"))), Ok(1_666_666), "{target:?}");
        assert_eq!(one(&[-100, -200, -200], mean(col("d"))), Ok(-1_666_666), "{target:?}");
        for of in [DataType::Decimal32(7, 2), DataType::Decimal64(12, 2)] {
            let asked = [mean(col("d").cast(of.clone())), sum(col("d").cast(of))];
            assert_eq!(one(&[100, 200, 200], asked[0].clone()), Ok(1_666_666), "{target:?}");
            assert_eq!(one(&[100, 200, 200], asked[1].clone()), Ok(500), "{target:?}");
        }
        // The scale cannot exceed the maximum number of digits.
        let scaled = decimals([10, 20, 20], 38, 36);
        let rows = batch(&target, &[("d", scaled)]);
        let made = aggregate(&rows, &[mean(col("d"))], None, &target.stream).wait().unwrap();
        let made = RecordBatch::try_from(&made).unwrap();
        assert_eq!(made.schema().field(0).data_type(), &DataType::Decimal128(38, 38));
        assert_eq!(made.column(0).as_primitive::<Decimal128Type>().value(0), 1666, "{target:?}");
    }
}

#[test]
fn decimals_of_two_scales_are_distinct_from_nulls() {
    let most = 10i128.pow(38) - 1;
    let column = |values: &[Option<i128>], precision: u8, scale: i8| -> ArrayRef {
        let array = Decimal128Array::from_iter(values.iter().copied());
        Arc::new(array.with_precision_and_scale(precision, scale).unwrap())
    };
    // The last pair does not fit one scale; nor does the one before, which has no partner.
    let a = [Some(5), None, Some(1), Some(2), None, Some(most), Some(most)];
    let b = [None, None, Some(100), Some(201), Some(200), None, Some(100)];
    let distinct = [true, false, false, true, true, true, true];
    for rows in [6, 7] {
        let (a, b) = (column(&a[..rows], 38, 0), column(&b[..rows], 12, 2));
        for target in devices() {
            let batch = batch(&target, &[("a", a.clone()), ("b", b.clone())]);
            for (x, y) in [("a", "b"), ("b", "a")] {
                for overflow in [Overflow::Null, Overflow::Error] {
                    let truths =
                        |expr: Expr| of(&target, &batch, expr, &Options::default().overflow(overflow));
                    let made = [truths(col(x).distinct(col(y))), truths(col(x).not_distinct(col(y)))];
                    if rows == 7 && overflow == Overflow::Error {
                        let is_of_row = |made: &Result<ArrayRef, Error>| {
                            matches!(made, Err(Error::Evaluation { row: 6, .. }))
                        };
                        assert!(made.iter().all(is_of_row), "{made:?} on {target:?}");
                        continue;
                    }
                    let [yes, no] = made.map(|made| made.unwrap());
                    let expected = BooleanArray::from(distinct[..rows].to_vec());
                    assert_eq!(yes.as_boolean(), &expected, "{x}, {y}, {overflow:?} on {target:?}");
                    let expected = arrow_arith::boolean::not(&expected).unwrap();
                    assert_eq!(no.as_boolean(), &expected, "{x}, {y}, {overflow:?} on {target:?}");
                }
            }
        }
    }
}

#[test]
fn a_constant_takes_the_scale_of_the_decimals_beside_it() {
    let column = |values: &[Option<i128>]| -> ArrayRef {
        let array = Decimal128Array::from_iter(values.iter().copied());
        Arc::new(array.with_precision_and_scale(20, 5).unwrap())
    };
    let values = column(&[Some(5), None, Some(-700_000), Some(99_999), Some(10i128.pow(20) - 1)]);
    let most = 10i128.pow(38) - 1;
    for constant in [1, 0, -3, 10i128.pow(30), most] {
        let scalar = Decimal128Array::from(vec![constant]).with_precision_and_scale(38, 0).unwrap();
        let scalar = Scalar::new(scalar);
        let ops = [numeric::sub, numeric::add, numeric::mul, numeric::div, numeric::rem];
        for target in devices() {
            let rows = batch(&target, &[("x", values.clone())]);
            let k = || Expr::from(Literal::decimal(constant, 38, 0));
            let ours = [
                [k() - col("x"), col("x") - k()],
                [k() + col("x"), col("x") + k()],
                [k() * col("x"), col("x") * k()],
                [k() / col("x"), col("x") / k()],
                [k() % col("x"), col("x") % k()],
            ];
            for (exprs, op) in ours.into_iter().zip(ops) {
                let theirs = [op(&scalar, &values), op(&values, &scalar)];
                for (expr, theirs) in exprs.into_iter().zip(theirs) {
                    let ours = of(&target, &rows, expr.clone(), &Options::default());
                    match (ours, theirs) {
                        (Ok(ours), Ok(theirs)) => assert_eq!(&ours, &theirs, "{expr} on {target:?}"),
                        (Err(Error::Evaluation { .. }), Err(_)) => {}
                        (ours, theirs) => panic!("{expr} on {target:?}: {ours:?} and {theirs:?}"),
                    }
                }
            }
        }
    }
}
