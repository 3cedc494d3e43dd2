//! Makes expressions and aggregates over one column of any type from an input. Most of them bind; every
//! device refuses the others alike.

use arrow_schema::DataType;
use bowstring::expr::{
    Aggregation, Expr, Literal, bool_and, bool_or, count, count_all, if_else, max, mean, min, nth, sum,
};

use super::input::Input;
use super::types::{akin, data_type};

/// Deeper expressions show nothing more.
const DEPTH: usize = 4;

const WORDS: [&str; 8] = ["", "a", "ab", "%a_", "1", "-12.5", "2024-02-29", "\u{e4}\u{20ac}\u{10348}"];

/// An expression over a column of this type.
pub fn value(input: &mut Input<'_>, of: &DataType) -> Expr {
    tree(input, of, DEPTH)
}

/// An expression that is usually a truth value.
pub fn condition(input: &mut Input<'_>, of: &DataType) -> Expr {
    if input.one_in(8) { tree(input, of, DEPTH) } else { truth(input, of, DEPTH) }
}

/// One to four aggregates.
pub fn aggregates(input: &mut Input<'_>, of: &DataType) -> Vec<Aggregation> {
    (0..=input.below(4)).map(|i| aggregate(input, of).alias(format!("a{i}"))).collect()
}

fn aggregate(input: &mut Input<'_>, of: &DataType) -> Aggregation {
    let how = input.byte() % 9;
    if how == 8 {
        return count_all();
    }
    let column = if input.one_in(4) { tree(input, of, DEPTH - 1) } else { nth(0) };
    match how {
        0 => sum(column),
        1 => min(column),
        2 => max(column),
        3 => mean(column),
        4 => count(column),
        5 => bool_and(truth(input, of, 2)),
        6 => bool_or(truth(input, of, 2)),
        // A decimal together with any other type makes the machine wide.
        _ => sum(Literal::decimal(input.number().into(), 38, 2)),
    }
}

fn literal(input: &mut Input<'_>, of: &DataType) -> Literal {
    match input.byte() % 8 {
        0 | 1 => input.number().into(),
        2 => (input.number() as f64 / 8.0).into(),
        3 => input.one_in(2).into(),
        4 => Literal::null(of.clone()),
        5 => Literal::decimal(input.number().into(), 20, 3),
        6 => Literal::date(input.number() as i32),
        _ => (*input.pick(&WORDS)).into(),
    }
}

fn leaf(input: &mut Input<'_>, of: &DataType) -> Expr {
    if input.one_in(3) { literal(input, of).into() } else { nth(0) }
}

fn tree(input: &mut Input<'_>, of: &DataType, depth: usize) -> Expr {
    if depth == 0 || input.one_in(4) {
        return leaf(input, of);
    }
    let how = input.byte() % 14;
    if how == 12 {
        return truth(input, of, depth);
    }
    let x = tree(input, of, depth - 1);
    match how {
        5 => return -x,
        6 => return x.abs(),
        13 => {
            let length = input.one_in(2).then(|| u64::from(input.byte()));
            return x.substring(i64::from(input.byte() as i8), length);
        }
        7 | 8 => {
            let to = if input.one_in(2) { akin(input, of) } else { data_type(input) };
            return if input.one_in(3) { x.cast_strict(to) } else { x.cast(to) };
        }
        _ => {}
    }
    let y = tree(input, of, depth - 1);
    match how {
        0 => x + y,
        1 => x - y,
        2 => x * y,
        3 => x / y,
        4 => x % y,
        9 => if_else(truth(input, of, depth - 1), x, y),
        10 => x.coalesce(y),
        _ => x.nullif(y),
    }
}

fn truth(input: &mut Input<'_>, of: &DataType, depth: usize) -> Expr {
    if depth == 0 {
        return nth(0).is_not_null();
    }
    let how = input.byte() % 16;
    match how {
        0 => return truth(input, of, depth - 1) & truth(input, of, depth - 1),
        1 => return truth(input, of, depth - 1) | truth(input, of, depth - 1),
        2 => return !truth(input, of, depth - 1),
        3 => return truth(input, of, depth - 1).is_not_true(),
        _ => {}
    }
    let x = tree(input, of, depth - 1);
    match how {
        4 => return x.is_null(),
        5 => {
            let list: Vec<Literal> = (0..input.below(7)).map(|_| literal(input, of)).collect();
            return x.in_list(list);
        }
        6 => return x.between(leaf(input, of), leaf(input, of)),
        _ => {}
    }
    let y = leaf(input, of);
    match how {
        7 => x.eq(y),
        8 => x.neq(y),
        9 => x.lt(y),
        10 => x.gt_eq(y),
        11 => x.not_distinct(y),
        12 => x.contains(y),
        13 => x.starts_with(y),
        14 => x.ilike(y),
        _ => x.like(y),
    }
}
