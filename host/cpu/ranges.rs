//! Rows that take less than a bit of memory each: null arrays, values of zero bytes, runs.
//!
//! The one idea: for other rows, a bitmap or an index for each row is about as large as the rows themselves.
//! But a few bytes can describe any number of these rows. So they are kept and taken by ranges, which number
//! at most as many as the rows of the list that has them as items.

use std::ops::Range;

use arrow_schema::DataType;

use super::memory;
use crate::array::DeviceArray;
use crate::device::{HostMemory, HostPool};
use crate::{Error, Result};

/// Returns whether an array takes at least a bit of memory for every row.
pub(crate) fn dense(array: &DeviceArray) -> bool {
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
    /// The start and the length of each range.
    pairs: HostMemory,
    len: usize,
    rows: usize,
}

impl Ranges {
    /// Makes an empty set with capacity for `ranges` ranges.
    pub(crate) fn with_room(ranges: usize, pool: &HostPool) -> Result<Ranges> {
        let pairs = pool.alloc(ranges.saturating_mul(16))?;
        Ok(Ranges { pairs, len: 0, rows: 0 })
    }

    /// Adds a range; the capacity must suffice.
    pub(crate) fn push(&mut self, range: Range<usize>) -> Result<()> {
        let rows = self.rows.checked_add(range.len()).filter(|rows| *rows <= i64::MAX as usize);
        self.rows = rows.ok_or_else(|| Error::invalid("take", "more rows than an array can have"))?;
        if !range.is_empty() {
            memory::values_mut(&mut self.pairs)[self.len] = [range.start as u64, range.len() as u64];
            self.len += 1;
        }
        Ok(())
    }

    /// Returns the number of rows in all ranges.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// Iterates over the ranges, none of which is empty.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Range<usize>> {
        let pairs: &[[u64; 2]] = memory::plain(self.pairs.bytes()).expect("blocks are aligned to 256 bytes");
        pairs[..self.len].iter().map(|[start, len]| *start as usize..(start + len) as usize)
    }

    /// Returns the same ranges with `size` rows for each row.
    pub(crate) fn of_items(&self, size: usize, pool: &HostPool) -> Result<Ranges> {
        let mut items = Ranges::with_room(self.len, pool)?;
        self.iter().try_for_each(|range| items.push(range.start * size..range.end * size))?;
        Ok(items)
    }
}
