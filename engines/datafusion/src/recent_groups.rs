//! DataFusion's groups, behind a memory of the keys of recent rows.
//!
//! The one idea: rows that group to a few groups have few keys. So a row's group is nearly always in a small
//! table, at a hash of its key, and DataFusion's hash table is asked for the other rows only. It gets them in
//! their order, so the groups have the numbers that it would give them. If too many rows are not in the
//! table, it is not asked any more.

use std::borrow::Cow;

use datafusion::arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, PrimitiveArray, UInt32Array, downcast_integer_array,
};
use datafusion::arrow::compute::{cast, take_arrays};
use datafusion::arrow::datatypes::{DataType, Date32Type, Date64Type, Decimal128Type};
use datafusion::error::Result;
use datafusion::logical_expr::EmitTo;
use datafusion::physical_plan::aggregates::group_values::GroupValues;

use crate::places::number;

/// The number of places of the table is two to this power.
const BITS: u32 = 10;

/// The most columns of a key.
const MOST_COLUMNS: usize = 4;

/// After so many rows, the table is given up if an eighth of them or more was not in it.
const TRIED: usize = 1 << 12;

/// The word of a null. No short text and no integer has it.
const NULL: u128 = u128::MAX;

/// Texts up to this length are in their views.
const SHORT: u32 = 12;

/// Whether keys of columns of these types are remembered: up to four integers, dates, decimals, and texts, if
/// these are short.
pub(crate) fn are_remembered<'a>(types: impl ExactSizeIterator<Item = &'a DataType>) -> bool {
    use DataType::{Binary, BinaryView, Date32, Date64, Decimal128, Utf8, Utf8View};
    (1..=MOST_COLUMNS).contains(&types.len())
        && types.into_iter().all(|of| {
            of.is_integer()
                || matches!(of, Date32 | Date64 | Decimal128(..) | Utf8 | Utf8View | Binary | BinaryView)
        })
}

/// DataFusion's groups, and the groups of recent keys.
pub(crate) struct RecentGroups {
    theirs: Box<dyn GroupValues>,
    columns: usize,
    /// The keys in the table, each with a word for each column.
    keys: Vec<u128>,
    /// The group of each key in the table; none yet is `usize::MAX`.
    groups: Vec<usize>,
    rows: usize,
    missed: usize,
    given_up: bool,
    /// The rows of a batch that are not in the table.
    misses: Vec<u32>,
}

impl RecentGroups {
    /// Puts a table for keys of so many columns before DataFusion's groups.
    pub fn before(theirs: Box<dyn GroupValues>, columns: usize) -> RecentGroups {
        RecentGroups {
            theirs,
            columns,
            keys: vec![NULL; columns << BITS],
            groups: vec![usize::MAX; 1 << BITS],
            rows: 0,
            missed: 0,
            given_up: false,
            misses: vec![],
        }
    }

    fn forget(&mut self) {
        self.groups.fill(usize::MAX);
    }

    fn give_up(&mut self) {
        self.given_up = true;
        (self.keys, self.groups, self.misses) = (vec![], vec![], vec![]);
    }

    /// Finds the groups of the rows of a batch, and which rows have none.
    fn find(&mut self, words: &[Cow<'_, [u128]>], groups: &mut Vec<usize>) {
        match words {
            [a] => self.find_all([a], groups),
            [a, b] => self.find_all([a, b], groups),
            [a, b, c] => self.find_all([a, b, c], groups),
            [a, b, c, d] => self.find_all([a, b, c, d], groups),
            _ => unreachable!("keys of {} columns", words.len()),
        }
    }

    fn find_all<const COLUMNS: usize>(&mut self, words: [&[u128]; COLUMNS], groups: &mut Vec<usize>) {
        let (keys, _) = self.keys.as_chunks::<COLUMNS>();
        groups.clear();
        self.misses.clear();
        let found = (0..words[0].len()).map(|row| {
            let key = words.map(|column| column[row]);
            let place = place(&key);
            let group = self.groups[place];
            // As numbers: the bytes of a key that was just written are not read again.
            let others =
                key.iter().zip(&keys[place]).fold(0, |others, (word, known)| others | (word ^ known));
            if others != 0 || group == usize::MAX {
                self.misses.push(row as u32);
            }
            group
        });
        groups.extend(found);
    }

    /// Remembers the group of a row.
    fn remember(&mut self, words: &[Cow<'_, [u128]>], row: usize, group: usize) {
        let mut key = [0; MOST_COLUMNS];
        for (word, column) in key.iter_mut().zip(words) {
            *word = column[row];
        }
        let key = &key[..self.columns];
        let place = place(key);
        self.keys[place * self.columns..][..self.columns].copy_from_slice(key);
        self.groups[place] = group;
    }
}

/// The bytes of a table for keys of so many columns.
pub(crate) fn table_bytes(columns: usize) -> usize {
    (columns * size_of::<u128>() + size_of::<usize>()) << BITS
}

/// The place of a key in the table.
fn place(key: &[u128]) -> usize {
    let mixed = key.iter().fold(0u64, |hash, word| {
        let (low, high) = (*word as u64, (*word >> 64) as u64);
        (hash.rotate_left(23) ^ low ^ high.rotate_left(32)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    });
    (mixed >> (u64::BITS - BITS)) as usize
}

/// A word for each row of a column, which equal keys share; `None` if it does not fit.
fn words(column: &ArrayRef) -> Result<Option<Cow<'_, [u128]>>> {
    Ok(downcast_integer_array!(
        column => Some(Cow::Owned(of_integers(column))),
        DataType::Date32 => {
            Some(Cow::Owned(of_integers(column.as_primitive::<Date32Type>())))
        }
        DataType::Date64 => {
            Some(Cow::Owned(of_integers(column.as_primitive::<Date64Type>())))
        }
        DataType::Decimal128(..) => {
            let column = column.as_primitive::<Decimal128Type>();
            // Each word is a decimal.
            (column.null_count() == 0).then(|| {
                Cow::Owned(column.values().iter().map(|key| *key as u128).collect())
            })
        }
        DataType::Utf8View => of_views(column.as_string_view().views(), column),
        DataType::BinaryView => of_views(column.as_binary_view().views(), column),
        DataType::Utf8 | DataType::Binary => {
            let view = match column.data_type() {
                DataType::Utf8 => DataType::Utf8View,
                _ => DataType::BinaryView,
            };
            let views = cast(column, &view)?;
            words(&views)?.map(|words| Cow::Owned(words.into_owned()))
        }
        _ => None,
    ))
}

fn of_integers<T: ArrowPrimitiveType>(column: &PrimitiveArray<T>) -> Vec<u128> {
    let word = |key| u128::from(number(key) as u64);
    match column.null_count() {
        0 => column.values().iter().map(|key| word(*key)).collect(),
        _ => column.iter().map(|key| key.map_or(NULL, word)).collect(),
    }
}

fn of_views<'a>(views: &'a [u128], column: &ArrayRef) -> Option<Cow<'a, [u128]>> {
    let is_short = |view: &u128| *view as u32 <= SHORT;
    match column.nulls() {
        Some(valid) if valid.null_count() > 0 => {
            let rows = || views.iter().zip(valid);
            rows()
                .all(|(view, valid)| !valid || is_short(view))
                .then(|| rows().map(|(view, valid)| if valid { *view } else { NULL }).collect())
        }
        _ => views.iter().all(is_short).then_some(Cow::Borrowed(views)),
    }
}

impl GroupValues for RecentGroups {
    fn intern(&mut self, columns: &[ArrayRef], groups: &mut Vec<usize>) -> Result<()> {
        if self.given_up {
            return self.theirs.intern(columns, groups);
        }
        let rows = columns[0].len();
        let found = columns.iter().map(words).collect::<Result<Option<Vec<_>>>>()?;
        match found {
            // The table is empty, and no row can be in it.
            Some(words) if self.theirs.is_empty() => {
                self.theirs.intern(columns, groups)?;
                groups.iter().enumerate().for_each(|(row, group)| self.remember(&words, row, *group));
                return Ok(());
            }
            Some(words) => {
                self.find(&words, groups);
                self.missed += self.misses.len();
                if !self.misses.is_empty() {
                    let missed = UInt32Array::from(std::mem::take(&mut self.misses));
                    let mut numbers = vec![];
                    self.theirs.intern(&take_arrays(columns, &missed, None)?, &mut numbers)?;
                    for (row, group) in missed.values().iter().zip(numbers) {
                        groups[*row as usize] = group;
                        self.remember(&words, *row as usize, group);
                    }
                }
            }
            None => {
                self.missed += rows;
                self.theirs.intern(columns, groups)?;
            }
        }
        self.rows += rows;
        if self.rows >= TRIED && self.missed > self.rows / 8 {
            self.give_up();
        }
        Ok(())
    }

    fn size(&self) -> usize {
        self.theirs.size() + if self.given_up { 0 } else { table_bytes(self.columns) }
    }

    fn is_empty(&self) -> bool {
        self.theirs.is_empty()
    }

    fn len(&self) -> usize {
        self.theirs.len()
    }

    fn emit(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        self.forget();
        self.theirs.emit(emit_to)
    }

    fn clear_shrink(&mut self, rows: usize) {
        self.forget();
        self.theirs.clear_shrink(rows);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{Decimal128Array, Int64Array, StringArray, StringViewArray, UInt8Array};
    use datafusion::arrow::datatypes::{Field, Schema};
    use datafusion::physical_plan::aggregates::group_values::new_group_values;
    use datafusion::physical_plan::aggregates::order::GroupOrdering;

    use super::*;

    /// Groups batches of keys as DataFusion does. Returns whether the table was given up.
    fn as_theirs(batches: &[Vec<ArrayRef>]) -> bool {
        let fields = batches[0].iter().map(|column| Field::new("key", column.data_type().clone(), true));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let made = || new_group_values(schema.clone(), &GroupOrdering::None).unwrap();
        let (mut theirs, mut ours) = (made(), RecentGroups::before(made(), batches[0].len()));
        for _ in 0..2 {
            for batch in batches {
                let (mut expected, mut groups) = (vec![], vec![7]);
                theirs.intern(batch, &mut expected).unwrap();
                ours.intern(batch, &mut groups).unwrap();
                assert_eq!(groups, expected);
                assert_eq!(ours.len(), theirs.len());
            }
            // Once they have left, groups have other numbers.
            assert_eq!(ours.emit(EmitTo::All).unwrap(), theirs.emit(EmitTo::All).unwrap());
            theirs.clear_shrink(0);
            ours.clear_shrink(0);
            assert!(ours.is_empty());
        }
        ours.given_up
    }

    fn long(keys: impl IntoIterator<Item = Option<i64>>) -> ArrayRef {
        Arc::new(Int64Array::from_iter(keys))
    }

    fn views(keys: impl IntoIterator<Item = Option<String>>) -> ArrayRef {
        Arc::new(StringViewArray::from_iter(keys))
    }

    #[test]
    fn groups_have_datafusions_numbers() {
        let text = |row: i64, of: i64| (row % 7 != 0).then(|| "x".repeat((row % of) as usize));
        let batch = |first: i64, of: i64| {
            let rows = || first..first + 500;
            let decimals = Decimal128Array::from_iter_values(rows().map(|row| i128::from(row % 3 - 1)));
            vec![
                views(rows().map(|row| text(row, of))),
                long(rows().map(|row| (row % 11 != 0).then_some(row % 5 - 2))),
                Arc::new(decimals) as ArrayRef,
                Arc::new(StringArray::from_iter(rows().map(|row| text(row / 3, of)))) as ArrayRef,
            ]
        };
        for columns in 1..=4 {
            let part = |first, of| batch(first, of)[..columns].to_vec();
            as_theirs(&[part(0, 3), part(20, 6), part(9, 13), part(700, 4)]);
            // Texts too long for views.
            as_theirs(&[part(0, 3), part(20, 20), part(9, 3)]);
            // Sliced.
            let slices = part(0, 5).iter().map(|column| column.slice(13, 300)).collect();
            as_theirs(&[slices, part(0, 3)]);
        }
    }

    #[test]
    fn nulls_are_no_other_keys() {
        as_theirs(&[
            vec![long([Some(-1), None, Some(i64::MAX), Some(i64::MIN), Some(0)])],
            vec![long([None, Some(0), Some(-1)])],
        ]);
        as_theirs(&[vec![Arc::new(UInt8Array::from(vec![Some(255), None, Some(0)]))]]);
        as_theirs(&[vec![Arc::new(Decimal128Array::from(vec![Some(-1), None, Some(0)]))]]);
        as_theirs(&[vec![Arc::new(Decimal128Array::from(vec![-1, i128::MAX, i128::MIN, -1]))]]);
        as_theirs(&[vec![views([None, Some(String::new()), Some("\u{0}".into()), None])]]);
    }

    #[test]
    fn a_table_that_does_not_help_is_given_up() {
        let far = |rows: i64| (0..rows).map(|row| Some(row.wrapping_mul(0x1234_5678_9abc_def1)));
        assert!(as_theirs(&[vec![long(far(300))], vec![long(far(9000))]]));
        let few = |rows: i64| (0..rows).map(|row| Some(row % 100));
        assert!(!as_theirs(&vec![vec![long(few(5000))]; 30]));
        let text = || views((0..9000).map(|row| Some(format!("a text of more than {}", row % 3))));
        assert!(as_theirs(&vec![vec![text()]; 8]));
    }
}
