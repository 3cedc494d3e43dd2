//! Quotients of decimals against arrow-arith's, also where the dividend no longer fits once it has the digits
//! of the result.

use arrow_schema::ArrowError;
use bowstring::Failure;

use super::*;
use crate::support::trees::column_of;

fn pairs() -> [(DataType, DataType); 8] {
    use DataType::{Decimal32, Decimal64, Decimal128};
    [
        (Decimal128(38, 0), Decimal128(38, 0)),
        (Decimal128(38, 10), Decimal128(38, 2)),
        (Decimal128(38, 2), Decimal128(38, 20)),
        (Decimal128(5, 5), Decimal128(10, -2)),
        (Decimal64(18, 2), Decimal64(18, 2)),
        (Decimal64(18, 0), Decimal64(18, 14)),
        (Decimal32(9, 2), Decimal32(9, 2)),
        (Decimal32(9, 4), Decimal32(9, 0)),
    ]
}

fn digits(of: &DataType) -> u32 {
    match of {
        DataType::Decimal32(digits, _) | DataType::Decimal64(digits, _) | DataType::Decimal128(digits, _) => {
            u32::from(*digits)
        }
        other => unreachable!("{other} is no decimal"),
    }
}

/// A number of any number of digits.
fn value(of: &DataType, random: &mut Random) -> Option<i128> {
    let most = 10i128.pow(random.below(digits(of) as usize + 1) as u32);
    let half = |random: &mut Random| u128::from(random.bits());
    let any = (half(random) << 64 | half(random)) as i128;
    random.percent(95.0).then_some(if random.percent(5.0) { most - 1 } else { any % most })
}

#[test]
fn quotients_of_decimals_are_arrows() {
    let mut random = Random::new(91);
    for (of_a, of_b) in pairs() {
        let (mut a, mut b, mut wrong) = (vec![], vec![], vec![]);
        for _ in 0..600 {
            let (x, y) = (value(&of_a, &mut random), value(&of_b, &mut random));
            match numeric::div(&column_of(&of_a, &[x]), &column_of(&of_b, &[y])) {
                Ok(_) => {
                    a.push(x);
                    b.push(y);
                }
                Err(error) => wrong.push((x, y, matches!(error, ArrowError::DivideByZero))),
            }
        }
        assert!(a.len() > 100 && wrong.len() >= 5, "{of_a} {of_b}: {} and {}", a.len(), wrong.len());
        let (x, y) = (column_of(&of_a, &a), column_of(&of_b, &b));
        let expected = numeric::div(&x, &y).unwrap();
        for target in devices() {
            let context = format!("{of_a} / {of_b} on {target:?}");
            let rows = batch(&target, &[("a", x.clone()), ("b", y.clone())]);
            let computed = || col("b").coalesce(col("b"));
            for quotient in [col("a") / col("b"), col("a") / computed()] {
                let made = of(&target, &rows, quotient.clone(), &Options::default()).unwrap();
                assert_eq!(&made, &expected, "{quotient} of {context}");
            }
            // Constants on either side.
            for row in 0..8 {
                let (Some(x), Some(y)) = (a[row], b[row]) else { continue };
                let [x, y] = [(&of_a, x), (&of_b, y)].map(|(of, raw)| Literal::of(of.clone(), raw));
                let of_row = rows.slice(row, 1).unwrap();
                let constants: [Expr; 2] = [col("a") / y, Expr::from(x) / col("b")];
                for quotient in constants {
                    let made = of(&target, &of_row, quotient.clone(), &Options::default()).unwrap();
                    assert_eq!(&made, &expected.slice(row, 1), "{quotient} of {context}");
                }
            }
            for (x, y, is_zero) in wrong.iter().take(40) {
                let columns = [("a", column_of(&of_a, &[*x])), ("b", column_of(&of_b, &[*y]))];
                let rows = batch(&target, &columns);
                let expected = if *is_zero { Failure::DivisionByZero } else { Failure::Overflow };
                let made = of(&target, &rows, col("a") / col("b"), &Options::default());
                let Err(Error::Evaluation { row: 0, failure, .. }) = made else {
                    panic!("{x:?} and {y:?} of {context}: {made:?}")
                };
                assert_eq!(failure, expected, "{x:?} and {y:?} of {context}");
                let null = Options::default().division_by_zero_is_null(true);
                let made = of(&target, &rows, col("a") / col("b"), &null).unwrap();
                assert!(made.is_null(0), "{x:?} and {y:?} of {context}");
            }
        }
    }
}

/// Integers wrap if the options say so; decimals, times and durations fail, as in arrow-arith.
#[test]
fn only_integers_wrap() {
    let most = || Arc::new(TimestampNanosecondArray::from(vec![i64::MAX])) as ArrayRef;
    let durations = |raw: i64| Arc::new(DurationNanosecondArray::from(vec![raw])) as ArrayRef;
    for target in devices() {
        let columns = [
            ("t", most()),
            ("one", durations(1)),
            ("d", durations(i64::MIN)),
            ("n", decimals([i128::MIN], 38, 0)),
        ];
        let rows = batch(&target, &columns);
        let wraps = Options::default().overflow(Overflow::Wrap);
        let null = Options::default().overflow(Overflow::Null);
        for expr in [col("t") + col("one"), col("d") - col("one"), -col("d"), -col("n"), col("n").abs()] {
            let made = of(&target, &rows, expr.clone(), &wraps);
            assert!(matches!(made, Err(Error::Evaluation { .. })), "{expr}: {made:?} on {target:?}");
            assert!(of(&target, &rows, expr.clone(), &null).unwrap().is_null(0), "{expr} on {target:?}");
        }
        assert!(numeric::add_wrapping(&most(), &durations(1)).is_err());
        assert!(numeric::neg_wrapping(&durations(i64::MIN)).is_err());
    }
}

#[test]
fn products_of_decimals_have_a_scale() {
    let values: ArrayRef = decimals([3], 5, -100);
    assert!(numeric::mul(&values, &values).is_err());
    for target in devices() {
        let made =
            of(&target, &batch(&target, &[("a", values.clone())]), col("a") * col("a"), &Options::default());
        assert!(matches!(made, Err(Error::Invalid { .. })), "{made:?} on {target:?}");
    }
}
