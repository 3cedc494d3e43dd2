//! Rows that take less than a bit of memory each: nulls of type Null, values of no bytes, runs.
//!
//! The one idea: for all other rows a bitmap or an index a row is as large as the rows themselves, more or less. Of these a
//! few bytes describe any number, so they are kept and taken by ranges, of which there are no more than rows in the list
//! that has them as items.

use std::ops::Range;

use arrow_schema::DataType;

use super::memory;
use crate::array::Array;
use crate::device::{HostMemory, HostPool};
use crate::{Error, Result};

/// Whether memory has at least a bit of every row.
pub(crate) fn dense(array: &Array) -> bool {
    let children = array.children();
    array.validity().is_some()
        || match array.data_type() {
            DataType::Null | DataType::RunEndEncoded(..) => false,
            DataType::FixedSizeBinary(size) => *size > 0,
            DataType::FixedSizeList(_, size) => *size > 0 && children.iter().all(dense),
            DataType::Struct(_) => children.iter().any(dense),
            _ => true,
        }
}

/// Ranges of rows, in any order.
pub(crate) struct Ranges {
    /// Where each starts, and how long it is.
    pairs: HostMemory,
    len: usize,
    rows: usize,
}

impl Ranges {
    /// None yet, and room for so many.
    pub(crate) fn with_room(ranges: usize, pool: &HostPool) -> Result<Ranges> {
        let pairs = pool.alloc(ranges.saturating_mul(16))?;
        Ok(Ranges { pairs, len: 0, rows: 0 })
    }

    /// Adds a range, for which there must be room.
    pub(crate) fn push(&mut self, range: Range<usize>) -> Result<()> {
        let rows = self.rows.checked_add(range.len()).filter(|rows| *rows <= i64::MAX as usize);
        self.rows = rows.ok_or_else(|| Error::invalid("take", "more rows than an array can have"))?;
        if !range.is_empty() {
            memory::values_mut(&mut self.pairs)[self.len] = [range.start as u64, range.len() as u64];
            self.len += 1;
        }
        Ok(())
    }

    /// How many rows there are in all of them.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// Each range; none is empty.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Range<usize>> {
        let pairs: &[[u64; 2]] = memory::plain(self.pairs.bytes()).expect("blocks are aligned to 256 bytes");
        pairs[..self.len].iter().map(|[start, len]| *start as usize..(start + len) as usize)
    }

    /// The same with `size` rows for each.
    pub(crate) fn of_items(&self, size: usize, pool: &HostPool) -> Result<Ranges> {
        let mut items = Ranges::with_room(self.len, pool)?;
        self.iter().try_for_each(|range| items.push(range.start * size..range.end * size))?;
        Ok(items)
    }
}
