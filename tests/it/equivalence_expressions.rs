//! Random expressions: every device gives their result by definition, which equals that of a sequence of
//! arrow-rs' kernels, or an error if those fail.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal128Type, Int64Type};
use arrow_array::{Array as _, ArrayRef, Decimal128Array, Int32Array, RecordBatch};
use arrow_schema::{ArrowError, DataType, Field, Schema};
use bowstring::compute::{Query, aggregate};
use bowstring::expr::{Expr, Options, count_all, nth, sum};
use bowstring::{DeviceArray, DeviceBatch};

use crate::equivalence_expressions_wide::decimal;
use crate::support::meaning::meaning;
use crate::support::trees::{Tree, column_types, one_row, small_column};
use crate::support::*;

/// Two columns of each type: one of arbitrary values, one of small values.
fn columns(rows: usize, offset: usize, rng: &mut Random) -> Vec<ArrayRef> {
    let each = column_types().into_iter().flat_map(|data_type| {
        let nulls = Nulls::ALL[rng.below(Nulls::ALL.len())];
        let any = array(&data_type, offset + rows, nulls, rng);
        [any, small_column(&data_type, offset + rows, rng)]
    });
    each.collect()
}

fn schema() -> Schema {
    let fields = column_types()
        .into_iter()
        .flat_map(|of| [Field::new("any", of.clone(), true), Field::new("small", of, true)]);
    Schema::new(fields.collect::<Vec<_>>())
}

struct Case {
    rows: usize,
    offset: usize,
    form: Form,
    columns: Vec<ArrayRef>,
}

impl Case {
    fn new(seed: u64) -> (Case, Random) {
        let mut rng = Random::new(seed);
        let rows = [0, 1, 31, 64, 100, 1000, 4097, 5000][rng.below(8)];
        let offset = OFFSETS[rng.below(OFFSETS.len())];
        let form = Form::ALL[rng.below(Form::ALL.len())];
        let columns = columns(rows, offset, &mut rng);
        (Case { rows, offset, form, columns }, rng)
    }

    fn batch(&self, target: &Target) -> DeviceBatch {
        let column = |column: &ArrayRef| target.import_as(self.form, column, self.offset, self.rows);
        let columns: Vec<DeviceArray> = self.columns.iter().map(column).collect();
        DeviceBatch::try_new(Arc::new(schema()), columns, self.rows).unwrap()
    }

    fn theirs(&self) -> Vec<ArrayRef> {
        self.columns.iter().map(|column| column.slice(self.offset, self.rows)).collect()
    }
}

/// Describes why a tree is wrong on a device, by itself or beside a decimal if the width of values depends on
/// it; `None` if it is right.
fn wrong(tree: &Tree, case: &Case, target: &Target) -> Option<String> {
    let (batch, theirs) = (case.batch(target), tree.arrow(&case.theirs()));
    let alone = [tree.expr()];
    let beside = [tree.expr(), decimal()];
    let ways: &[&[Expr]] = if target.name == "cpu" { &[&alone] } else { &[&alone, &beside] };
    ways.iter().find_map(|exprs| {
        let problem = wrong_way(&Query::new().select(exprs.iter()), &batch, &theirs, target)?;
        Some(format!("{problem}, {} at once", exprs.len()))
    })
}

/// Checks the first of a query's columns in the same way.
fn wrong_way(
    query: &Query,
    batch: &DeviceBatch,
    theirs: &Result<ArrayRef, ArrowError>,
    target: &Target,
) -> Option<String> {
    let bound = match query.bind(&schema(), &Options::default()) {
        Ok(bound) => bound,
        Err(error) => return Some(format!("does not bind: {error}")),
    };
    let ours = bound.run(batch, &target.stream).wait();
    let ours = ours.and_then(|batch| {
        let array = target.stream.download(&batch.columns()[0])?;
        array.wait().map(|()| array)
    });
    match (ours, theirs) {
        (Err(bowstring::Error::Evaluation { .. }), Err(_)) => None,
        (Err(error), Ok(_)) => Some(format!("an error where there is none: {error}")),
        (Err(error), Err(theirs)) => Some(format!("another error: {error}, arrow-rs: {theirs}")),
        (Ok(_), Err(error)) => Some(format!("no error: {error}")),
        (Ok(ours), Ok(theirs)) => {
            let ours = target.export(&ours);
            if ours.data_type() != theirs.data_type() {
                return Some(format!("{} instead of {}", ours.data_type(), theirs.data_type()));
            }
            let (ours, theirs) = (rows(&ours), rows(theirs));
            let row = ours.iter().zip(&theirs).position(|(ours, theirs)| ours != theirs);
            match row {
                Some(row) => Some(format!("row {row}: {:?} instead of {:?}", ours[row], theirs[row])),
                None if ours.len() != theirs.len() => Some(format!("{} rows", ours.len())),
                None => None,
            }
        }
    }
}

/// The smallest part of a tree that is also wrong.
fn smallest<'a>(tree: &'a Tree, case: &Case, target: &Target) -> &'a Tree {
    let part = tree.parts().into_iter().find(|part| wrong(part, case, target).is_some());
    part.map_or(tree, |part| smallest(part, case, target))
}

#[test]
fn random_expressions() {
    let targets = devices();
    let types = column_types();
    for seed in 0..cases(150) {
        let (case, mut rng) = Case::new(seed);
        for _ in 0..3 {
            let of =
                if rng.percent(50.0) { DataType::Boolean } else { types[rng.below(types.len())].clone() };
            let depth = 1 + rng.below(4);
            let tree = Tree::random(&of, depth, &mut rng);
            // The definition must agree with arrow-rs first.
            match (meaning(&tree, &case.theirs()), tree.arrow(&case.theirs())) {
                (Ok(defined), Ok(theirs)) => {
                    let context = format!("seed {seed}: {}", tree.expr());
                    assert_same_rows(&rows(&theirs), &defined, &context);
                }
                (Err(_), Err(_)) => {}
                (defined, theirs) => panic!("seed {seed}: {}: {defined:?}, {theirs:?}", tree.expr()),
            }
            for target in &targets {
                if let Some(problem) = wrong(&tree, &case, target) {
                    let small = smallest(&tree, &case, target);
                    let why = wrong(small, &case, target).unwrap_or(problem);
                    panic!(
                        "seed {seed} on {target:?}, {} rows: {why}\n{}\n{small:?}",
                        case.rows,
                        small.expr()
                    );
                }
            }
        }
    }
}

#[test]
fn random_predicates_keep_the_rows_that_they_are_true_for() {
    let targets = devices();
    for seed in 0..cases(60) {
        let (case, mut rng) = Case::new(!seed);
        let tree = Tree::random(&DataType::Boolean, 1 + rng.below(4), &mut rng);
        let theirs = tree.arrow(&case.theirs());
        let predicate = Query::new().filter(tree.expr()).bind(&schema(), &Options::default()).unwrap();
        for target in &targets {
            let ours = predicate.run(&case.batch(target), &target.stream).wait();
            let context = format!("seed {seed}: {}", tree.expr());
            let Ok(mask) = &theirs else {
                assert!(ours.is_err(), "{context} on {target:?}");
                continue;
            };
            let ours = ours.unwrap_or_else(|error| panic!("{context} on {target:?}: {error}"));
            let mask = mask.as_any().downcast_ref().expect("booleans");
            for (ours, theirs) in ours.columns().iter().zip(case.theirs()) {
                let theirs = arrow_select::filter::filter(&theirs, mask).unwrap();
                target.assert_same(ours, &theirs, &context);
            }
        }
    }
}

#[test]
fn random_queries_compute_columns_of_the_rows_that_they_keep() {
    let targets = devices();
    let types = column_types();
    for seed in 0..cases(60) {
        let (case, mut rng) = Case::new(seed ^ 0x5eed);
        let keep = Tree::random(&DataType::Boolean, 1 + rng.below(3), &mut rng);
        let tree = Tree::random(&types[rng.below(types.len())], 1 + rng.below(3), &mut rng);
        let theirs = keep.arrow(&case.theirs()).and_then(|mask| {
            let mask = mask.as_any().downcast_ref().expect("booleans");
            let kept = case.theirs().into_iter().map(|column| arrow_select::filter::filter(&column, mask));
            tree.arrow(&kept.collect::<Result<Vec<_>, _>>()?)
        });
        let query = Query::new().filter(keep.expr()).select([tree.expr()]);
        for target in &targets {
            let problem = wrong_way(&query, &case.batch(target), &theirs, target);
            assert_eq!(problem, None, "seed {seed} on {target:?}: {query:?}");
        }
    }
}

/// All trees on the CPU, for whose loops they are made; only a few on devices that may be interpreted.
fn some<'a>(trees: &'a [Tree], target: &Target) -> impl Iterator<Item = &'a Tree> {
    trees.iter().step_by(if target.name == "cpu" { 1 } else { 71 })
}

/// The limits of a type's values, and those of a narrower type, as bits.
fn ends(of: &DataType) -> Vec<i128> {
    let bits = 8 * of.primitive_width().expect("numbers") as u32;
    let half = 1u128 << (bits - 1);
    let mut ends = vec![0, 1, half - 1, half, half.wrapping_add(1), half.wrapping_mul(2).wrapping_sub(1)];
    if let DataType::Decimal128(..) = of {
        let (short, longest) = (1u128 << 63, 10u128.pow(38) - 1);
        ends.extend([short - 1, short, short + 1, longest]);
    }
    ends.extend(ends.clone().iter().map(|end| end.wrapping_neg()));
    let signed = !of.is_unsigned_integer() && !of.is_floating();
    let above = 128 - bits;
    let end =
        |end: u128| if signed { (end << above) as i128 >> above } else { (end << above >> above) as i128 };
    ends.into_iter().map(end).collect()
}

#[test]
fn constants_at_the_ends_of_types() {
    let targets = devices();
    let types = column_types().into_iter().filter(|of| of.is_numeric() || *of == DataType::Date32);
    for of in types {
        let ends = ends(&of);
        let mut rows: Vec<ArrayRef> = ends.iter().map(|end| one_row(&of, Some(*end))).collect();
        rows.push(one_row(&of, None));
        let rows: Vec<&dyn arrow_array::Array> = rows.iter().map(|row| row.as_ref()).collect();
        let column = arrow_select::concat::concat(&rows).unwrap();
        let most = match of {
            DataType::Decimal32(p, _) | DataType::Decimal64(p, _) | DataType::Decimal128(p, _) => {
                10i128.pow(p.into()) - 1
            }
            _ => i128::MAX,
        };
        let constants = ends.iter().filter(|end| end.unsigned_abs() <= most.unsigned_abs());
        let constants: Vec<Tree> = constants.map(|end| Tree::Literal(of.clone(), Some(*end))).collect();
        let (mut trees, x) = (vec![], Box::new(Tree::Column(0)));
        for a in &constants {
            let compared = |how| Tree::Compare(how, x.clone(), Box::new(a.clone()));
            trees.extend((0..6).map(compared));
            trees.extend((0..6).map(|how| Tree::Compare(how, Box::new(a.clone()), x.clone())));
            for b in &constants {
                let b = Box::new(b.clone());
                for how in 1..5 {
                    let below = Tree::Compare(2, x.clone(), b.clone());
                    trees.push(Tree::And(Box::new(below), Box::new(compared(how))));
                }
                trees.push(Tree::Between(x.clone(), Box::new(a.clone()), b));
            }
        }
        let schema = Arc::new(Schema::new(vec![Field::new("x", of.clone(), true)]));
        for target in &targets {
            let trees: Vec<&Tree> = some(&trees, target).collect();
            let exprs: Vec<_> = trees.iter().map(|tree| tree.expr()).collect();
            let bound = Query::new().select(&exprs).bind(&schema, &Options::default()).unwrap();
            let batch =
                DeviceBatch::try_new(schema.clone(), vec![target.import(&column)], column.len()).unwrap();
            let made = bound.run(&batch, &target.stream).wait().unwrap();
            for (tree, made) in trees.iter().zip(made.columns()) {
                target.assert_same(made, &tree.arrow(std::slice::from_ref(&column)).unwrap(), &tree.expr());
            }
        }
    }
}

#[test]
fn what_nobody_asks_for_changes_nothing() {
    let (mut rng, rows) = (Random::new(7), 3 * 4096 + 100);
    // Ascending rows with one null in a hundred; arbitrary decimals; small ones; and some that fail in a null
    // row.
    let of = DataType::Decimal128(15, 2);
    let order: ArrayRef =
        Arc::new(Int32Array::from_iter((0..rows as i32).map(|row| (row % 100 != 99).then_some(row))));
    let any = array(&of, rows, Nulls::Some, &mut rng);
    let small = small_column(&of, rows, &mut rng);
    let failing = (0..rows).map(|row| if row % 100 == 99 { i128::MAX } else { row as i128 });
    let failing = Decimal128Array::from_iter_values(failing).with_data_type(of.clone());
    let columns = [order, any, small, Arc::new(failing)];
    let literal = |of: &DataType, raw: i128| Box::new(Tree::Literal(of.clone(), Some(raw)));
    let column = |index: usize| Box::new(Tree::Column(index));
    let mut trees = vec![];
    for (first, last) in [(0, 0), (-5, 5), (100, 300), (4000, 4200), (4096, 8191), (5000, 12_000), (8, -8)] {
        let ends = [first, last].map(|end| literal(&DataType::Int32, end));
        let [low, high] = ends;
        let part = Box::new(Tree::Between(column(0), low, high));
        for how in 0..6 {
            let few = Box::new(Tree::Compare(how, column(1), literal(&of, 3)));
            let half = Box::new(Tree::Compare(how, literal(&of, 1), column(2)));
            let both = Box::new(Tree::And(part.clone(), few.clone()));
            trees.push(Tree::And(both.clone(), half.clone()));
            trees.push(Tree::And(few.clone(), Box::new(Tree::And(part.clone(), half.clone()))));
            trees.push(Tree::Or(both.clone(), few.clone()));
            trees.push(Tree::And(part.clone(), Box::new(Tree::IsNull(true, both))));
            trees.push(Tree::And(part.clone(), Box::new(Tree::IfElse(half, few, part.clone()))));
        }
    }
    let fields = columns.iter().map(|column| Field::new("x", column.data_type().clone(), true));
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    for target in &devices() {
        let imported = columns.iter().map(|column| target.import(column)).collect();
        let batch = DeviceBatch::try_new(schema.clone(), imported, rows).unwrap();
        for tree in some(&trees, target) {
            let (expr, theirs) = (tree.expr(), tree.arrow(&columns).unwrap());
            let made =
                Query::new().select(std::slice::from_ref(&expr)).bind(&schema, &Options::default()).unwrap();
            let made = made.run(&batch, &target.stream).wait().unwrap();
            target.assert_same(&made.columns()[0], &theirs, &expr);
            // One of their products in a hundred fails, but the first column is null there.
            let known = expr.clone() & nth(0).is_not_null();
            let total = aggregate(&batch, &[sum(nth(3) * nth(2)), count_all()], Some(&known), &target.stream);
            let total = RecordBatch::try_from(&total.wait().unwrap()).unwrap();
            let kept = |array: &ArrayRef| {
                let known = arrow_arith::boolean::is_not_null(&columns[0]).unwrap();
                let mask = arrow_arith::boolean::and_kleene(theirs.as_boolean(), &known).unwrap();
                arrow_select::filter::filter(array, &mask).unwrap()
            };
            let products = arrow_arith::numeric::mul(&kept(&columns[3]), &kept(&columns[2])).unwrap();
            let expected = arrow_arith::aggregate::sum(products.as_primitive::<Decimal128Type>());
            let sums = total.column(0).as_primitive::<Decimal128Type>();
            assert_eq!(sums.iter().next().unwrap(), expected, "{expr} on {target:?}");
            let counted = total.column(1).as_primitive::<Int64Type>().value(0);
            assert_eq!(counted as usize, products.len(), "{expr} on {target:?}");
        }
    }
}
