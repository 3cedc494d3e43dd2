//! Tests each operation of the table with each type: the plain definition, arrow-rs and every device agree.
//! Each operation has a file of its name for its laws and special cases.

use crate::support::operations::{Answer, OPERATIONS};
use crate::support::*;

/// Each type is tested with this many of the lengths and offsets; together they cover all.
const TURNS: usize = 3;

#[test]
fn every_operation_of_every_type() {
    let targets = devices();
    for (i, operation) in OPERATIONS.iter().enumerate() {
        for (j, data_type) in types().into_iter().enumerate() {
            for turn in 0..TURNS {
                let n = i + j + turn * 5;
                let (len, offset) = (LENGTHS[n % LENGTHS.len()], OFFSETS[n % OFFSETS.len()]);
                let nulls = Nulls::ALL[n % Nulls::ALL.len()];
                let sample = Sample { data_type: data_type.clone(), len, nulls, offset, seed: n as u64 };
                let mut rng = Random::new(!sample.seed);
                let Some(argument) = (operation.argument)(&data_type, len, &mut rng) else { continue };
                let values = sample.array();
                let context = format!("{} of {sample:?} with {argument:?}", operation.name);
                let Ok(theirs) = (operation.arrow)(&values, &argument) else {
                    // Some values cannot be converted: a time beyond a day as text, say.
                    let ours = targets[0].import(&values);
                    assert!(operation.run(&ours, &argument, &targets[0].stream).is_err(), "{context}");
                    continue;
                };
                if let Some(plain) = (operation.definition)(&rows(&values), &argument) {
                    assert_same_rows(&theirs.rows(), &plain, &format_args!("arrow-rs, {context}"));
                }
                for target in &targets {
                    let form = Form::ALL[n % Form::ALL.len()];
                    let ours = uncounted(target.import_as(form, &sample.longer(), offset, len));
                    let answer = operation.run(&ours, &argument, &target.stream);
                    match (target.answer(answer, &context), &theirs) {
                        (None, _) => {}
                        (Some(Answer::Array(ours)), Answer::Array(theirs)) => {
                            target.assert_same(&ours, theirs, &context);
                        }
                        (Some(Answer::Count(ours)), Answer::Count(theirs)) => {
                            assert_eq!(ours, *theirs, "{context}, on {target:?}");
                        }
                        (Some(ours), theirs) => panic!("{context}: {ours:?}, {theirs:?}"),
                    }
                }
            }
        }
    }
}
