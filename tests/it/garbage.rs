//! Columns without the contents of other rows.

use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, BooleanArray, DictionaryArray, Int32Array, StringArray, StringViewArray};
use bowstring::DeviceArray;
use bowstring::compute::{filter, garbage_collect};

use crate::groups::batch_on;
use crate::support::*;

const ROWS: usize = 3000;

/// The bytes of all buffers of a column, and of its dictionary.
fn held(column: &DeviceArray) -> usize {
    let own: usize = column.buffers().iter().map(|buffer| buffer.bytes().unwrap_or(0)).sum();
    own + column.dictionary().map_or(0, held)
}

/// Rows that a filter keeps have their own text, unless it is most of what they hold or they hold little.
#[test]
fn rows_keep_their_own_text() {
    let texts = || (0..ROWS).map(|row| (row % 7 != 2).then(|| format!("{row} {}", "long ".repeat(200))));
    let views: ArrayRef = Arc::new(StringViewArray::from_iter(texts()));
    let keys = Int32Array::from_iter((0..ROWS as i32).map(|row| (row % 5 != 1).then_some(row)));
    let values = StringArray::from_iter(texts());
    let dictionary: ArrayRef = Arc::new(DictionaryArray::<Int32Type>::new(keys, Arc::new(values)));
    let short: ArrayRef = Arc::new(StringViewArray::from_iter((0..ROWS).map(|row| Some(format!("{row}")))));
    for target in &devices() {
        let columns =
            [("views", views.clone()), ("dictionary", dictionary.clone()), ("short", short.clone())];
        let all = batch_on(target, &columns);
        for (every, expected) in [(100, 1 << 17), (1, ROWS * 1100)] {
            let mask: ArrayRef =
                Arc::new(BooleanArray::from_iter((0..ROWS).map(|row| Some(row % every == 0))));
            let kept = filter(&all, &target.import(&mask), &target.stream).wait().unwrap();
            let own = garbage_collect(&kept, &target.stream).wait().unwrap();
            assert_eq!(own.schema(), kept.schema(), "{target:?}");
            for (own, kept) in own.columns().iter().zip(kept.columns()) {
                let context = format!("{} of every {every} on {target:?}", own.data_type());
                assert_eq!(rows(&target.export(own)), rows(&target.export(kept)), "{context}");
                assert!(held(own) <= expected, "{context}: {} bytes", held(own));
            }
            let is_same = |i: usize| {
                own.columns()[i].buffers()[0].address() == kept.columns()[i].buffers()[0].address()
            };
            assert_eq!((is_same(0), is_same(2)), (every == 1, true), "{every} on {target:?}");
        }
    }
}
