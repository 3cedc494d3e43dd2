//! Rows of small batches that wait until there are enough of them to be grouped together.
//!
//! The one idea: the groups of a small batch are hardly fewer than its rows if there are many groups at all,
//! and each batch's groups would be merged with all others. Rows of many batches are copied once instead, and
//! grouped by all threads.

use crate::compute::arrays::bytes_in;
use crate::compute::concat;
use crate::{DeviceBatch, Error, Result, Stream};

/// The bytes that may wait at first.
const BYTES: usize = 128 << 20;

/// The bytes that may wait at most: text of 2 GiB would not fit into one array.
const MOST_BYTES: usize = 1 << 30;

/// Groups are many if there is one for so many rows.
const MANY: usize = 32;

/// Computed keys and values of rows that have not been grouped.
pub(in crate::compute) struct Gathered {
    pieces: Vec<DeviceBatch>,
    rows: usize,
    bytes: usize,
    /// The number of rows, and of bytes, that are grouped together.
    enough: (usize, usize),
    most_bytes: usize,
}

impl Gathered {
    /// Begins with no rows. `limit` is the number of bytes beyond which groups are spilled.
    pub fn new(enough: usize, limit: Option<usize>) -> Gathered {
        let most_bytes = limit.map_or(MOST_BYTES, |limit| MOST_BYTES.min(limit / 4));
        Gathered { pieces: vec![], rows: 0, bytes: 0, enough: (enough, BYTES.min(most_bytes)), most_bytes }
    }

    /// Adds the rows of a batch. Returns all rows if they are enough, and none otherwise.
    pub fn add(&mut self, batch: DeviceBatch, stream: &Stream) -> Result<Vec<DeviceBatch>> {
        self.rows += batch.len();
        // Pieces without rows may hold on to much text. One says which columns there are, if all have none.
        if self.rows == 0 {
            (self.bytes, self.pieces) = (0, vec![]);
        }
        if self.pieces.is_empty() || !batch.is_empty() {
            self.bytes += batch.columns().iter().map(bytes_in).sum::<usize>();
            self.pieces.push(batch);
        }
        if self.rows < self.enough.0 && self.bytes <= self.enough.1 {
            return Ok(vec![]);
        }
        self.all(stream)
    }

    /// Learns how many groups some rows had. If there are many, merging them costs as much as grouping rows,
    /// so more rows are gathered next time.
    pub fn learn(&mut self, rows: usize, groups: usize) {
        if groups > rows / MANY {
            let (rows, bytes) = self.enough;
            self.enough = (rows.saturating_mul(4), bytes.saturating_mul(4).min(self.most_bytes));
        }
    }

    /// Returns all rows: in one batch, unless the rows of several do not fit into one, as those of
    /// dictionaries with keys of few bits.
    pub fn all(&mut self, stream: &Stream) -> Result<Vec<DeviceBatch>> {
        let pieces = std::mem::take(&mut self.pieces);
        (self.rows, self.bytes) = (0, 0);
        if pieces.len() < 2 {
            return Ok(pieces);
        }
        match concat(&pieces.iter().collect::<Vec<_>>(), stream).wait() {
            Ok(all) => Ok(vec![all]),
            Err(error @ (Error::Interrupted | Error::OutOfMemory { .. })) => Err(error),
            Err(_) => Ok(pieces),
        }
    }
}
