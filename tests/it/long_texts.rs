//! Tests for texts that are too long for blocks of 64 bytes.

use std::sync::Arc;

use arrow_array::*;
use arrow_schema::{DataType, Field, Schema};
use arrow_string::like;
use bowstring::DeviceBatch;
use bowstring::compute::Query;
use bowstring::expr::{Options, col, lit};

use crate::support::*;

/// Texts of more than 64 bytes are looked for in each row alone if rows are hardly longer, and else in many rows
/// at once, without those that are too short.
#[test]
fn long_texts_are_found_in_their_own_rows_only() {
    let mut rng = Random::new(65);
    for (most, rows) in [(150, 300), (2000, 130)] {
        // Ends with the first byte of the text that is looked for, so that it goes on in the next row.
        let row = |rng: &mut Random| format!("{}{}", "b".repeat(rng.below(2)), "a".repeat(rng.below(most)));
        let column: StringArray = (0..rows).map(|i| (i % 9 > 0).then(|| row(&mut rng))).collect();
        for target in devices() {
            let batch = DeviceBatch::try_new(
                Arc::new(Schema::new(vec![Field::new("a", DataType::Utf8, true)])),
                vec![target.import(&(Arc::new(column.clone()) as ArrayRef))],
                rows,
            );
            let batch = batch.unwrap();
            for needle in ["a".repeat(65), format!("b{}", "a".repeat(70)), format!("{}b", "a".repeat(64))] {
                let one = Scalar::new(StringArray::from(vec![needle.as_str()]));
                let pattern = format!("b%{needle}%a");
                let two = Scalar::new(StringArray::from(vec![pattern.as_str()]));
                let expected = [like::contains(&column, &one), like::like(&column, &two)];
                let exprs = [col("a").contains(lit(&needle)), col("a").like(lit(&pattern))];
                let made = Query::new().select(&exprs).bind(batch.schema(), &Options::default()).unwrap();
                let made = made.run(&batch, &target.stream).wait().unwrap();
                for (expected, ours) in expected.into_iter().zip(made.columns()) {
                    let expected: ArrayRef = Arc::new(expected.unwrap());
                    target.assert_same(ours, &expected, &format!("{} bytes in {most}", needle.len()));
                }
            }
        }
    }
}
