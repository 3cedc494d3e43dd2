//! Random expressions: every device gives what arrow-rs' kernels give one after the other, or an error where those do.

use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_schema::{DataType, Field, Schema};
use bowstring::compute::{Predicate, Projection};
use bowstring::expr::Options;
use bowstring::{Array, Batch};

use crate::support::trees::{Tree, column_types, small_column};
use crate::support::*;

/// Two columns of each type: of anything, and of small values.
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

    fn batch(&self, target: &Target) -> Batch {
        let column = |column: &ArrayRef| target.import_as(self.form, column, self.offset, self.rows);
        let columns: Vec<Array> = self.columns.iter().map(column).collect();
        Batch::try_new(Arc::new(schema()), columns, self.rows).unwrap()
    }

    fn theirs(&self) -> Vec<ArrayRef> {
        self.columns.iter().map(|column| column.slice(self.offset, self.rows)).collect()
    }
}

/// What is wrong with a tree on a device; nothing, if it is right.
fn wrong(tree: &Tree, case: &Case, target: &Target) -> Option<String> {
    let projection = match Projection::bind(&[tree.expr()], &schema(), &Options::default()) {
        Ok(projection) => projection,
        Err(error) => return Some(format!("does not bind: {error}")),
    };
    let theirs = tree.arrow(&case.theirs());
    let ours = projection.evaluate(&case.batch(target), &target.stream).wait();
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
            let (ours, theirs) = (rows(&ours), rows(&theirs));
            let row = ours.iter().zip(&theirs).position(|(ours, theirs)| ours != theirs);
            match row {
                Some(row) => Some(format!("row {row}: {:?} instead of {:?}", ours[row], theirs[row])),
                None if ours.len() != theirs.len() => Some(format!("{} rows", ours.len())),
                None => None,
            }
        }
    }
}

/// The smallest part of a tree that is wrong too.
fn smallest<'a>(tree: &'a Tree, case: &Case, target: &Target) -> &'a Tree {
    let part = tree.parts().into_iter().find(|part| wrong(part, case, target).is_some());
    part.map_or(tree, |part| smallest(part, case, target))
}

fn cases(default: u64) -> u64 {
    std::env::var("BOWSTRING_CASES")
        .ok()
        .and_then(|cases| cases.parse().ok())
        .map_or(default, |cases: u64| cases * 4)
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
        let predicate = Predicate::bind(&tree.expr(), &schema(), &Options::default()).unwrap();
        for target in &targets {
            let ours = predicate.filter(&case.batch(target), &target.stream).wait();
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
