//! Tables of rows that others find by their keys: one side of a join.

use std::ops::Range;
use std::sync::Arc;

use arrow_schema::DataType;

use super::arrays::{computed, widened};
use super::{TakeOptions, engine, is_not_null, reach, take};
use crate::engine::Table;
use crate::expr::nth;
use crate::rules::{check_rows, value_type, widened_type};
use crate::{DeviceArray, Error, Pending, Result, Stream};

/// Rows that others find by their keys: one side of a join, prepared once for any number of other sides. It
/// may be used from many threads at once.
#[derive(Clone)]
pub struct JoinTable {
    table: Arc<dyn Table>,
    types: Vec<DataType>,
    rows: usize,
}

/// Rows that have looked for their keys in a [`JoinTable`].
#[derive(Clone)]
pub struct Matches {
    table: JoinTable,
    /// The group of each row, as UInt32; null for rows without a partner.
    found: DeviceArray,
    /// The most pairs that may be made at once.
    most: u64,
}

/// Pairs of rows with equal keys.
#[derive(Clone, Debug)]
pub struct Pairs {
    /// The rows of the table, as UInt32. Null for a row without a partner.
    pub left: DeviceArray,
    /// The rows that were found, as UInt32.
    pub right: DeviceArray,
}

impl JoinTable {
    /// Makes a table of rows by their keys: columns of one length, of which there is at least one. Keys are
    /// equal as [`group`](super::group) says, except that null equals nothing, unless `nulls_equal`.
    /// Synchronises once in nearly all cases. More rows than `u32::MAX`, and on devices than 2^30, are an
    /// error.
    ///
    /// ```
    /// use arrow_array::{Int32Array, UInt32Array};
    /// use bowstring::{Stream, compute::JoinTable, exchange::{from_arrow, to_arrow}};
    /// # fn main() -> bowstring::Result<()> {
    /// let stream = Stream::cpu();
    /// let left = from_arrow(&Int32Array::from(vec![Some(5), Some(7), Some(5), None]))?;
    /// let right = from_arrow(&Int32Array::from(vec![Some(5), Some(6), None]))?;
    /// let table = JoinTable::new(&[left], false, &stream).wait()?;
    /// let pairs = table.find(&[right], &stream).wait()?.pairs(&stream).wait()?;
    /// assert_eq!(to_arrow(&pairs.left)?.as_ref(), &UInt32Array::from(vec![0, 2]));
    /// assert_eq!(to_arrow(&pairs.right)?.as_ref(), &UInt32Array::from(vec![0, 0]));
    /// # Ok(())
    /// # }
    /// ```
    pub fn new(keys: &[DeviceArray], nulls_equal: bool, stream: &Stream) -> Pending<JoinTable> {
        Pending::begun(|| {
            let _current = stream.enter()?;
            let rows = rows_of(keys, stream)?;
            let types = keys.iter().map(|key| key.data_type().clone()).collect();
            let table = match has_short_parts(keys) {
                false => engine(stream).table(keys, nulls_equal, stream)?,
                true => {
                    let (keys, on) = (keys.to_vec(), stream.clone());
                    Pending::begin(stream, async move {
                        let keys = of_both_sides(keys, &on).await?;
                        engine(&on).table(&keys, nulls_equal, &on)?.await
                    })
                }
            };
            Ok(table.map(move |table| Ok(JoinTable { table, types, rows })))
        })
    }

    /// The number of rows in the table.
    pub fn len(&self) -> usize {
        self.rows
    }

    /// Whether the table has no rows.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// The number of groups of rows with equal keys.
    pub(super) fn groups(&self) -> usize {
        self.table.groups()
    }

    /// Finds rows by their keys, which have the types of the table's. Does not synchronise, unless keys are
    /// dictionaries, runs or nested. Nested keys of both sides are sorted by each call.
    pub fn find(&self, keys: &[DeviceArray], stream: &Stream) -> Pending<Matches> {
        Pending::begun(|| {
            let _current = stream.enter()?;
            let types = || keys.iter().map(DeviceArray::data_type);
            if !types().eq(&self.types) {
                let of = types().map(ToString::to_string).collect::<Vec<_>>();
                let problem = format!("keys of {}, and a table of {:?}", of.join(", "), self.types);
                return Err(Error::invalid("join", problem));
            }
            rows_of(keys, stream)?;
            reach("join", self.table.ids(), stream)?;
            let table = self.clone();
            let found = match has_short_parts(keys) {
                false => self.table.clone().find(keys, stream)?,
                true => {
                    let (keys, on, table) = (keys.to_vec(), stream.clone(), self.table.clone());
                    Pending::begin(
                        stream,
                        async move { table.find(&of_both_sides(keys, &on).await?, &on)?.await },
                    )
                }
            };
            Ok(found.map(move |found| Ok(Matches { table, found, most: u64::MAX })))
        })
    }

    /// The rows whose group is marked, as booleans without nulls.
    pub(super) fn rows_of_groups(
        &self,
        marks: &DeviceArray,
        stream: &Stream,
    ) -> Result<Pending<DeviceArray>> {
        let (marks, ids, on) = (marks.clone(), self.table.ids().clone(), stream.clone());
        Ok(Pending::begin(stream, async move {
            let marks = take(&marks, &ids, &TakeOptions::default(), &on).await?;
            computed(nth(0).is_true(), vec![marks], &on).await
        }))
    }
}

impl Matches {
    /// Returns the pairs: for each row that was found, in order, all rows of the table with its keys, in
    /// order. Synchronises once, for their number, before it takes memory for them. More pairs than there is
    /// memory for are [`Error::TooManyPairs`]; then ask for those of fewer rows.
    pub fn pairs(&self, stream: &Stream) -> Pending<Pairs> {
        self.pairs_of(0..self.found.len(), false, stream)
    }

    /// Returns the pairs of some of the rows. With `outer`, a row that was not found has one pair, with null.
    pub fn pairs_of(&self, rows: Range<usize>, outer: bool, stream: &Stream) -> Pending<Pairs> {
        Pending::begun(|| {
            let _current = stream.enter()?;
            let found = self.found.slice(rows.start, rows.len())?;
            let pairs = self.table.table.pairs(&found, rows.start, outer, self.most, stream)?;
            Ok(pairs.map(|[left, right]| Ok(Pairs { left, right })))
        })
    }

    /// Makes more than so many pairs at once an error.
    pub(super) fn at_most(self, pairs: u64) -> Matches {
        Matches { most: pairs, ..self }
    }

    /// The group of each row.
    pub(super) fn groups(&self) -> &DeviceArray {
        &self.found
    }

    /// Whether no two rows of the table have equal keys; then each group is the row of its number.
    pub(super) fn are_unique(&self) -> bool {
        self.table.table.is_unique()
    }

    /// Returns the rows that have a partner, as booleans without nulls.
    pub fn found(&self, stream: &Stream) -> Pending<DeviceArray> {
        is_not_null(&self.found, stream)
    }

    /// Returns the rows of the table that have a partner, as booleans without nulls.
    pub fn found_left(&self, stream: &Stream) -> Pending<DeviceArray> {
        Pending::begun(|| {
            let _current = stream.enter()?;
            self.table.rows_of_groups(&self.found_groups(stream)?, stream)
        })
    }

    /// The groups of the table that have a partner, as booleans without nulls.
    pub(super) fn found_groups(&self, stream: &Stream) -> Result<DeviceArray> {
        engine(stream).mark(&self.found, self.table.table.groups(), stream)
    }
}

/// Whether some keys are nested, and have dictionaries or runs inside or around them whose own keys or ends
/// are short.
fn has_short_parts(keys: &[DeviceArray]) -> bool {
    keys.iter().any(is_short)
}

fn is_short(key: &DeviceArray) -> bool {
    value_type(key.data_type()).is_nested() && widened_type(key.data_type()) != *key.data_type()
}

/// Returns keys that can be concatenated with those of the other side: nested keys of both are ranked.
async fn of_both_sides(keys: Vec<DeviceArray>, stream: &Stream) -> Result<Vec<DeviceArray>> {
    let mut wide = Vec::with_capacity(keys.len());
    for key in keys {
        wide.push(if is_short(&key) { widened(&key, stream).await? } else { key });
    }
    Ok(wide)
}

/// Checks keys. Returns the number of their rows.
fn rows_of(keys: &[DeviceArray], stream: &Stream) -> Result<usize> {
    let Some(first) = keys.first() else { return Err(Error::invalid("join", "no keys")) };
    if let Some(other) = keys.iter().find(|other| other.len() != first.len()) {
        let problem = format!("keys for {} and {} rows", first.len(), other.len());
        return Err(Error::invalid("join", problem));
    }
    check_rows("join", first.len())?;
    keys.iter().try_for_each(|key| reach("join", key, stream))?;
    Ok(first.len())
}
