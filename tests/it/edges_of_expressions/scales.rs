//! Random comparisons of decimals of different scales, with each other and with constants, against their
//! definition: both values as whole numbers at the larger scale.

use std::cmp::Ordering;

use bowstring::expr::{Expr, Literal, col};

use super::*;
use crate::support::trees::{column_of, comparison};

/// Two types of one width, and their scales.
fn pairs() -> Vec<[(DataType, i8); 2]> {
    let of = |make: fn(u8, i8) -> DataType, pairs: &[[(u8, i8); 2]]| {
        let typed = pairs.iter().map(|pair| pair.map(|(precision, scale)| (make(precision, scale), scale)));
        typed.collect::<Vec<_>>()
    };
    [
        of(DataType::Decimal32, &[[(5, 2), (6, 0)], [(9, 4), (5, 2)]]),
        of(DataType::Decimal64, &[[(12, 3), (9, 1)], [(10, -1), (12, 4)]]),
        of(DataType::Decimal128, &[[(15, 2), (20, 6)], [(20, 0), (38, 10)], [(10, -2), (12, 1)]]),
    ]
    .concat()
}

/// A few values around zero, many of them whole, so that some are equal at different scales.
fn value(scale: i8, rng: &mut Random) -> Option<i128> {
    let whole = rng.below(7) as i128 * 100 - 300;
    let whole = if rng.percent(50.0) { whole / 100 } else { whole };
    let unit = 10i128.pow(scale.max(0) as u32);
    let part = if rng.percent(60.0) { 0 } else { rng.below(unit as usize) as i128 };
    let value = match scale {
        0.. => whole * unit + part,
        _ => whole / 10i128.pow((-scale) as u32),
    };
    rng.percent(85.0).then_some(value)
}

type Scaled = (Option<i128>, i8);

fn order((a, from): Scaled, (b, other): Scaled) -> Option<Ordering> {
    let scale = from.max(other);
    let at = |value: i128, of: i8| value * 10i128.pow((scale - of) as u32);
    Some(at(a?, from).cmp(&at(b?, other)))
}

fn compared(how: usize, a: Scaled, b: Scaled) -> Option<bool> {
    let order = order(a, b);
    let distinct = order != Some(Ordering::Equal) && !(a.0.is_none() && b.0.is_none());
    match how {
        0 => order.map(Ordering::is_eq),
        1 => order.map(Ordering::is_ne),
        2 => order.map(Ordering::is_lt),
        3 => order.map(Ordering::is_le),
        4 => order.map(Ordering::is_gt),
        5 => order.map(Ordering::is_ge),
        6 => Some(distinct),
        _ => Some(!distinct),
    }
}

fn and(a: Option<bool>, b: Option<bool>) -> Option<bool> {
    match (a, b) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (a, b) => Some(a? & b?),
    }
}

/// Whether one of some comparisons is true.
fn any(found: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    let mut known = true;
    for one in found {
        match one {
            Some(true) => return Some(true),
            Some(false) => {}
            None => known = false,
        }
    }
    known.then_some(false)
}

/// An expression, and its meaning for a row.
type Case<'a> = (Expr, Box<dyn Fn(usize) -> Option<bool> + 'a>);

#[test]
fn decimals_of_different_scales_compare_as_their_values() {
    let mut rng = Random::new(7);
    for pair in pairs() {
        for [(of_x, at_x), (of_y, at_y)] in [pair.clone(), [pair[1].clone(), pair[0].clone()]] {
            let mut column =
                |scale: i8| -> Vec<Option<i128>> { (0..150).map(|_| value(scale, &mut rng)).collect() };
            let (x, y, z) = (column(at_x), column(at_y), column(at_x));
            let constants: Vec<Option<i128>> = (0..4).map(|_| value(at_y, &mut rng)).collect();
            let k = constants[0];
            let literal = |value: Option<i128>| match value {
                Some(value) => Literal::of(of_y.clone(), value),
                None => Literal::null(of_y.clone()),
            };
            let within = |i: usize, low: Scaled, high: Scaled| {
                and(compared(5, (x[i], at_x), low), compared(3, (x[i], at_x), high))
            };
            let mut cases: Vec<Case<'_>> = vec![];
            for how in 0..8 {
                let (x, y) = (&x, &y);
                let row = move |i: usize| ((x[i], at_x), (y[i], at_y));
                cases.push((
                    comparison(how, col("x"), col("y")),
                    Box::new(move |i| compared(how, row(i).0, row(i).1)),
                ));
                cases.push((
                    comparison(how, col("x"), literal(k).into()),
                    Box::new(move |i| compared(how, (x[i], at_x), (k, at_y))),
                ));
                cases.push((
                    comparison(how, literal(k).into(), col("x")),
                    Box::new(move |i| compared(how, (k, at_y), (x[i], at_x))),
                ));
            }
            cases.push((
                col("x").between(col("y"), col("z")),
                Box::new(|i| within(i, (y[i], at_y), (z[i], at_x))),
            ));
            let [low, high] = [constants[1], constants[2]];
            cases.push((
                col("x").between(literal(low), literal(high)),
                Box::new(move |i| within(i, (low, at_y), (high, at_y))),
            ));
            // A list's constants take the type of the column, which has to have them.
            if at_y <= at_x {
                let exactly = |value: &Option<i128>| match value {
                    Some(value) => Literal::exact(*value, at_y),
                    None => Literal::null(of_x.clone()),
                };
                cases.push((
                    col("x").in_list(constants.iter().map(exactly)),
                    Box::new(|i| {
                        any(constants.iter().map(|value| compared(0, (x[i], at_x), (*value, at_y))))
                    }),
                ));
            }
            let columns =
                [("x", column_of(&of_x, &x)), ("y", column_of(&of_y, &y)), ("z", column_of(&of_x, &z))];
            for target in devices() {
                let rows = batch(&target, &columns);
                for (expr, means) in &cases {
                    let made = of(&target, &rows, expr.clone(), &Options::default());
                    let made = made.unwrap_or_else(|error| panic!("{expr} of {of_x}, {of_y}: {error}"));
                    let expected = BooleanArray::from_iter((0..150).map(means));
                    assert_eq!(made.as_boolean(), &expected, "{expr} of {of_x}, {of_y} on {target:?}");
                }
            }
        }
    }
}
