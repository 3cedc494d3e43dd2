//! Compares the benches' model of the bytes that an operation must move with a plain definition that numbers
//! every byte and sector.

#[path = "../../benches/support/model.rs"]
#[allow(dead_code)]
mod model;

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Int64Array, StringArray, UInt32Array};
use arrow_array::{Decimal128Array, Int8Array};
use arrow_buffer::BooleanBuffer;
use model::Moved;

const ROWS: usize = 5000;

/// Masks that keep random rows, each with some rows before the first.
fn masks() -> Vec<BooleanBuffer> {
    let kept = |every: usize| {
        BooleanBuffer::collect_bool(ROWS + 3, |row| (row * 7919 + row / 13).is_multiple_of(every))
    };
    [1, 2, 10, 400].map(|every| kept(every).slice(3, ROWS)).into()
}

/// Counts the sectors of the rows' bytes; `ends` gives each row's first byte and end.
fn sectors(sector: u64, ends: impl Fn(usize) -> (usize, usize), rows: impl Iterator<Item = usize>) -> u64 {
    let of = |row| {
        let (from, to) = ends(row);
        (from..to).map(|byte| byte / sector as usize)
    };
    rows.flat_map(of).collect::<BTreeSet<_>>().len() as u64
}

fn strings(nulls: bool) -> StringArray {
    let one = |row: usize| {
        (!nulls || !row.is_multiple_of(5)).then(|| "abcdefghijklmnopqrstuvwxyz"[..row * 31 % 25].to_owned())
    };
    (0..ROWS).map(one).collect()
}

#[test]
fn a_filter_moves_the_mask_the_values_and_what_is_kept() {
    let bitmap = ROWS as u64 / 8;
    for (mask, sector) in masks().into_iter().flat_map(|mask| [(mask.clone(), 32), (mask, 64)]) {
        let kept = mask.count_set_bits() as u64;
        let arrays: [(ArrayRef, usize); 3] = [
            (Arc::new(Int8Array::from(vec![1; ROWS])), 1),
            (Arc::new(Int64Array::from(vec![1; ROWS])), 8),
            (Arc::new(Decimal128Array::from(vec![1; ROWS])), 16),
        ];
        for (array, width) in arrays {
            let touched = sectors(sector, |row| (row * width, (row + 1) * width), mask.set_indices());
            let (all, width) = (ROWS as u64, width as u64);
            let expected = Moved {
                bytes: bitmap + width * (all + kept),
                sectors: Some(bitmap + sector * touched + width * kept),
            };
            assert_eq!(model::filter(&array, &mask, sector), expected, "{} of {width} bytes", kept);
        }
        let bits = BooleanArray::new(mask.clone(), None);
        assert_eq!(model::filter(&bits, &mask, sector).bytes, 2 * bitmap + kept.div_ceil(8));

        for nulls in [false, true] {
            let strings = strings(nulls);
            let ends = |row: usize| {
                let offsets = strings.value_offsets();
                (offsets[row] as usize, offsets[row + 1] as usize)
            };
            let text: usize = mask.set_indices().map(|row| ends(row).1 - ends(row).0).sum();
            let written = 4 * kept + text as u64 + if nulls { kept.div_ceil(8) } else { 0 };
            let bitmaps = if nulls { 2 * bitmap } else { bitmap };
            let touched = sectors(sector, ends, mask.set_indices())
                + sectors(sector, |row| (row * 4, row * 4 + 4), mask.set_indices());
            let expected = Moved {
                bytes: bitmaps + 4 * ROWS as u64 + strings.values().len() as u64 + written,
                sectors: Some(bitmaps + sector * touched + written),
            };
            assert_eq!(model::filter(&strings, &mask, sector), expected, "{kept} strings");
        }
    }
}

#[test]
fn a_take_moves_indices_and_rows_twice() {
    let indices: UInt32Array = (0..ROWS).map(|i| Some((i * 7919 % ROWS) as u32)).collect();
    let rows = ROWS as u64;
    let numbers = Int64Array::from(vec![1; ROWS]);
    assert_eq!(model::take(&numbers, &indices, Some(32)), Moved::bytes(4 * rows + 16 * rows));
    let strings = strings(true);
    // 7919 and the rows are coprime, so each row is taken once.
    let text = strings.values().len() as u64;
    let bitmap = rows / 8;
    assert_eq!(model::take(&strings, &indices, Some(32)).bytes, 4 * rows + 2 * (4 * rows + text + bitmap));
}

#[test]
fn a_batch_reads_its_mask_once() {
    let one = Moved { bytes: 100 + 7, sectors: Some(50 + 7) };
    assert_eq!(one.columns(10, 7), Moved { bytes: 1007, sectors: Some(507) });
}

#[test]
fn a_cast_reads_one_type_and_writes_another() {
    let nulls: Int64Array = (0..ROWS).map(|row| (!row.is_multiple_of(3)).then_some(1)).collect();
    let to = arrow_schema::DataType::Boolean;
    assert_eq!(model::cast(&nulls, &to).bytes, (8 * ROWS + 3 * ROWS / 8) as u64);
}
