//! The rows of the table that sort.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int32Array, Int64Array, StringArray};
use bowstring::compute::{SortOptions, sort_to_indices};

use super::{Bench, ROWS, bytes_of};
use crate::support::*;

impl Bench {
    /// Sorts to indices: random numbers of all their bits and of few, and text of twelve letters.
    pub fn sorts(&mut self, rng: &mut Random) {
        let letters = |rng: &mut Random| -> String {
            (0..12).map(|_| char::from(b'a' + rng.below(26) as u8)).collect()
        };
        let sorts: [(&str, ArrayRef); 4] = [
            ("Int32", Arc::new(Int32Array::from_iter_values((0..ROWS).map(|_| rng.bits() as i32)))),
            ("Int64", Arc::new(Int64Array::from_iter_values((0..ROWS).map(|_| rng.bits() as i64)))),
            (
                "Int64, 1000 values",
                Arc::new(Int64Array::from_iter_values((0..ROWS).map(|_| rng.below(1000) as i64))),
            ),
            ("Utf8 of 12 bytes", Arc::new(StringArray::from_iter_values((0..ROWS).map(|_| letters(rng))))),
        ];
        for (name, values) in &sorts {
            let there = self.on(values);
            self.row(&format!("sort_to_indices {name}"), bytes_of(values) + 4 * ROWS, |stream| {
                sort_to_indices(&there, SortOptions::default(), None, stream).wait()
            });
        }
    }
}
