//! Tests expressions that calculate and compare, which devices run apart from others: around the numbers of
//! rows that a wave takes at once, with every treatment of overflow, on every device as on the CPU and in
//! arrow-rs.

use std::sync::Arc;

use arrow_array::{Array as _, ArrayRef, Int64Array};
use arrow_schema::{DataType, Field, Schema};
use bowstring::compute::Query;
use bowstring::expr::{Expr, Options, Overflow, col, nth};
use bowstring::{DeviceArray, DeviceBatch, Error};

use crate::expressions::{batch, of};
use crate::support::trees::{Tree, column_types, small_column};
use crate::support::*;

/// Rows that fill a wave's lanes, a tile and a few of them, or just do not.
const ROWS: [usize; 12] = [1, 31, 255, 256, 257, 511, 512, 513, 1055, 2047, 2049, 5000];

const OVERFLOWS: [Overflow; 3] = [Overflow::Error, Overflow::Wrap, Overflow::Null];

/// Whether trees calculate with the type.
fn is_calculated(of: &DataType) -> bool {
    of.is_integer() || matches!(of, DataType::Float32 | DataType::Float64)
}

/// A tree of sums, differences, products, quotients of floats, and negations.
fn calculation(of: &DataType, depth: usize, rng: &mut Random) -> Tree {
    let place = column_types().iter().position(|other| other == of).expect("a type of the columns");
    if depth == 0 || rng.percent(10.0) {
        return Tree::Column(2 * place + rng.below(2));
    }
    let inner = |rng: &mut Random| Box::new(calculation(of, depth - 1, rng));
    let ops = if of.is_integer() { 3 } else { 4 };
    match rng.below(8) {
        0 if !of.is_unsigned_integer() => Tree::Negate(inner(rng)),
        1 if *of == DataType::Int64 => {
            Tree::Cast(Box::new(calculation(&DataType::Int32, depth - 1, rng)), of.clone())
        }
        _ => Tree::Arithmetic(rng.below(ops), inner(rng), inner(rng)),
    }
}

/// Comparisons of columns and of what is calculated from them, joined.
fn predicate(depth: usize, rng: &mut Random) -> Tree {
    let types = column_types();
    let inner = |rng: &mut Random| Box::new(predicate(depth - 1, rng));
    if depth > 0 && rng.percent(60.0) {
        return match rng.below(5) {
            0 | 1 => Tree::And(inner(rng), inner(rng)),
            2 => Tree::Or(inner(rng), inner(rng)),
            3 => Tree::Not(inner(rng)),
            _ => Tree::IsTrue(rng.percent(50.0), rng.percent(50.0), inner(rng)),
        };
    }
    let of = types[rng.below(types.len())].clone();
    let place = types.iter().position(|other| *other == of).expect("a type of the columns");
    let value = |rng: &mut Random| {
        let is_calculated = is_calculated(&of) && rng.percent(40.0);
        let column = Tree::Column(2 * place + rng.below(2));
        Box::new(if is_calculated { calculation(&of, 2, rng) } else { column })
    };
    match rng.below(6) {
        0 if of == DataType::Boolean => *value(rng),
        1 => Tree::IsNull(rng.percent(50.0), value(rng)),
        2 => {
            let constant = Tree::Literal(of.clone(), rng.percent(90.0).then(|| rng.below(7) as i128));
            Tree::Compare(rng.below(6), value(rng), Box::new(constant))
        }
        _ => Tree::Compare(rng.below(6), value(rng), value(rng)),
    }
}

/// Runs a query of some expressions. An error is the row that fails, and the part of the expression.
fn calculated(
    target: &Target,
    rows: &DeviceBatch,
    exprs: &[Expr],
    options: &Options,
) -> Result<Vec<ArrayRef>, (usize, String)> {
    run(target, rows, Query::new().select(exprs), options)
}

fn run(
    target: &Target,
    rows: &DeviceBatch,
    query: Query,
    options: &Options,
) -> Result<Vec<ArrayRef>, (usize, String)> {
    let bound = query.bind(rows.schema(), options).unwrap();
    let made = bound.run(rows, &target.stream).wait();
    let export = |array: &DeviceArray| {
        let array = target.stream.download(array)?;
        array.wait()?;
        Ok(target.export(&array))
    };
    match made.and_then(|made| made.columns().iter().map(export).collect()) {
        Ok(arrays) => Ok(arrays),
        Err(Error::Evaluation { row, expression, .. }) => Err((row, expression)),
        Err(error) => panic!("{query:?} on {target:?}: {error}"),
    }
}

/// Two columns of each type in a batch of each device, and what arrow-rs has of them.
fn batches(rows: usize, rng: &mut Random, targets: &[Target]) -> (Vec<DeviceBatch>, Vec<ArrayRef>) {
    let offset = OFFSETS[rng.below(OFFSETS.len())];
    let columns = column_types().into_iter().flat_map(|of| {
        let nulls = Nulls::ALL[rng.below(Nulls::ALL.len())];
        [array(&of, offset + rows, nulls, rng), small_column(&of, offset + rows, rng)]
    });
    let columns: Vec<ArrayRef> = columns.collect();
    let field = |(i, column): (usize, &ArrayRef)| Field::new(i.to_string(), column.data_type().clone(), true);
    let schema = Arc::new(Schema::new(columns.iter().enumerate().map(field).collect::<Vec<_>>()));
    let form = Form::ALL[rng.below(Form::ALL.len())];
    let batch = |target: &Target| {
        let import = |column| target.import_as(form, column, offset, rows);
        DeviceBatch::try_new(schema.clone(), columns.iter().map(import).collect(), rows).unwrap()
    };
    let theirs = columns.iter().map(|column| column.slice(offset, rows)).collect();
    (targets.iter().map(batch).collect(), theirs)
}

#[test]
fn calculations_are_the_same_everywhere_around_the_rows_of_a_wave() {
    let targets = devices();
    let (cpu, others) = targets.split_first().expect("the CPU");
    let types: Vec<DataType> = column_types();
    let sizes = if interpreted() { &[257, 513][..] } else { &ROWS };
    for (seed, &rows) in (0..).zip(sizes) {
        let mut rng = Random::new(seed);
        let (batches, theirs) = batches(rows, &mut rng, &targets);
        let every = if interpreted() { 3 } else { 1 };
        for of in types.iter().filter(|of| is_calculated(of)).step_by(every) {
            let [one, other] = [1, 3].map(|depth| calculation(of, depth, &mut rng));
            for exprs in [vec![one.expr()], vec![other.expr()], vec![one.expr(), other.expr()]] {
                for overflow in OVERFLOWS {
                    let options = Options::default().overflow(overflow);
                    let expected = calculated(cpu, &batches[0], &exprs, &options);
                    for (target, batch) in others.iter().zip(&batches[1..]) {
                        let ours = calculated(target, batch, &exprs, &options);
                        assert_eq!(ours, expected, "{exprs:?}, {overflow:?}, {rows} rows on {target:?}");
                    }
                }
            }
            let options = Options::default();
            match (calculated(cpu, &batches[0], &[other.expr()], &options), other.arrow(&theirs)) {
                (Ok(ours), Ok(theirs)) => assert_same_rows(
                    &crate::support::rows(&ours[0]),
                    &crate::support::rows(&theirs),
                    &other.expr(),
                ),
                (Err(_), Err(_)) => {}
                (ours, theirs) => panic!("{}: {ours:?} and {theirs:?}", other.expr()),
            }
        }
    }
}

#[test]
fn comparisons_are_the_same_everywhere_around_the_rows_of_a_wave() {
    let targets = devices();
    let (cpu, others) = targets.split_first().expect("the CPU");
    let sizes = if interpreted() { &[257, 2049][..] } else { &ROWS };
    for (seed, &rows) in (100..).zip(sizes) {
        let mut rng = Random::new(seed);
        let (batches, theirs) = batches(rows, &mut rng, &targets);
        for _ in 0..if interpreted() { 3 } else { 20 } {
            let tree = predicate(3, &mut rng);
            let expr = tree.expr();
            for overflow in OVERFLOWS {
                let options = Options::default().overflow(overflow);
                let queries = [
                    Query::new().select(std::slice::from_ref(&expr)),
                    Query::new().select(&[expr.clone(), !nth(0), nth(9) + 1]),
                    Query::new().filter(&expr).select(&[nth(8)]),
                ];
                for query in queries {
                    let expected = run(cpu, &batches[0], query.clone(), &options);
                    for (target, batch) in others.iter().zip(&batches[1..]) {
                        let ours = run(target, batch, query.clone(), &options);
                        assert_eq!(ours, expected, "{expr}, {overflow:?}, {rows} rows on {target:?}");
                    }
                }
            }
            match (
                calculated(cpu, &batches[0], std::slice::from_ref(&expr), &Options::default()),
                tree.arrow(&theirs),
            ) {
                (Ok(ours), Ok(theirs)) => {
                    assert_same_rows(&crate::support::rows(&ours[0]), &crate::support::rows(&theirs), &expr)
                }
                (Err(_), Err(_)) => {}
                (ours, theirs) => panic!("{expr}: {ours:?} and {theirs:?}"),
            }
        }
    }
}

/// So many rows that a wave takes a whole tile, with one that fails near each end and the middle.
#[test]
fn many_rows_are_calculated_by_tiles() {
    // An interpreter gets as many rows as it finishes in seconds, a few for each wave.
    let rows = if interpreted() { 5000 } else { (4 << 20) + 777 };
    for target in &devices() {
        for bad in [rows - 1, rows / 2, 5] {
            let a = (0..rows as i64).map(|i| if i as usize >= bad && i % 7 != 3 { i64::MAX } else { i });
            let a = Int64Array::from_iter(a.map(|x| (x % 5 != 1).then_some(x)));
            let batch = batch(target, &[("a", Arc::new(a.clone()))]);
            let wraps = Options::default().overflow(Overflow::Wrap);
            let made = of(target, &batch, col("a") + col("a") - 1, &wraps).unwrap();
            let expected = a.unary::<_, arrow_array::types::Int64Type>(|x| x.wrapping_add(x).wrapping_sub(1));
            assert_eq!(made.as_ref(), &expected as &dyn arrow_array::Array, "{target:?}");
            let first = (0..rows).find(|i| a.is_valid(*i) && a.value(*i) == i64::MAX);
            match (of(target, &batch, col("a") + 1, &Options::default()), first) {
                (Err(Error::Evaluation { row, .. }), Some(first)) => assert_eq!(row, first, "{target:?}"),
                (made, None) => assert!(made.is_ok(), "{target:?}"),
                (made, first) => panic!("{made:?} and {first:?} on {target:?}"),
            }
        }
    }
}
