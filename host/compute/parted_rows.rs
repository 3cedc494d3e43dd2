//! Rows in host memory, in parts that hashes of their keys choose: rows with equal keys are in one part.

use std::ops::Range;
use std::sync::Arc;

use super::host_rows::{HostRows, bounded, uploaded};
use super::spill::Spill;
use super::{TakeOptions, partition_by_hash, take};
use crate::{DeviceArray, DeviceBatch, Result, Stream};

/// The number of parts, of which neighbours are put together as long as there is room for them.
const PARTS: usize = 256;

/// Batches in host memory, the rows of each in the order of their parts.
#[derive(Debug, Default)]
pub(super) struct PartedRows {
    batches: Vec<Parted>,
    spill: Option<Arc<dyn Spill>>,
}

#[derive(Debug)]
struct Parted {
    rows: HostRows,
    /// The first row of each part, and the number of rows.
    starts: Vec<usize>,
    bytes: usize,
}

impl PartedRows {
    /// Begins without rows, which a place gets, if there is one.
    pub fn new(spill: Option<Arc<dyn Spill>>) -> PartedRows {
        PartedRows { spill, ..PartedRows::default() }
    }

    /// Moves rows to host memory, divided by keys.
    pub async fn push(&mut self, rows: &DeviceBatch, keys: &[DeviceArray], stream: &Stream) -> Result<()> {
        let parts = partition_by_hash(keys, PARTS, stream).await?;
        let ordered = take(rows, parts.order(), &TakeOptions::default(), stream).await?;
        let rows = HostRows::of(&ordered, self.spill.as_ref(), stream).await?;
        self.batches.push(Parted { bytes: rows.bytes(), rows, starts: parts.starts().to_vec() });
        Ok(())
    }

    /// The bytes of all rows.
    pub fn bytes(&self) -> usize {
        self.batches.iter().map(|batch| batch.bytes).sum()
    }

    /// Neighbouring parts, together of at most so many bytes, if rows are equally long and one part has not
    /// more alone.
    pub fn ranges(&self, bytes: usize) -> Vec<Range<usize>> {
        let (mut ranges, mut size) = (Vec::<Range<usize>>::new(), 0);
        for part in 0..PARTS {
            let own: usize = self.batches.iter().map(|batch| batch.bytes_of(&(part..part + 1))).sum();
            match ranges.last_mut() {
                Some(last) if size == 0 || size + own <= bytes => (last.end, size) = (part + 1, size + own),
                _ => {
                    ranges.push(part..part + 1);
                    size = own;
                }
            }
        }
        ranges
    }

    /// The rows of some parts, in pieces of so many bytes: of at least a batch's, and of no more than
    /// offsets of 32 bits allow.
    pub fn pieces(&self, parts: &Range<usize>, bytes: usize) -> Result<Vec<Vec<HostRows>>> {
        let columns = self.batches.first().map_or(&[][..], |batch| batch.rows.columns());
        let bytes = bounded(Some(bytes), columns.iter().map(DeviceArray::data_type)).unwrap_or(bytes);
        let (mut pieces, mut size) = (vec![], usize::MAX);
        for batch in self.batches.iter().filter(|batch| !batch.rows_of(parts).is_empty()) {
            let own = batch.bytes_of(parts);
            if size.saturating_add(own) > bytes {
                pieces.push(vec![]);
                size = 0;
            }
            size += own;
            pieces
                .last_mut()
                .into_iter()
                .try_for_each(|piece| batch.slice(parts).map(|rows| piece.push(rows)))?;
        }
        Ok(pieces)
    }

    /// The rows of some parts on the device, of which there may be none.
    pub async fn uploaded(&self, parts: &Range<usize>, stream: &Stream) -> Result<DeviceBatch> {
        let some = self.batches.iter().filter(|batch| !batch.rows_of(parts).is_empty());
        let mut rows = some.map(|batch| batch.slice(parts)).collect::<Result<Vec<_>>>()?;
        if rows.is_empty() {
            rows.extend(self.batches.first().map(|batch| batch.rows.slice(0, 0)).transpose()?);
        }
        uploaded(&rows, stream).await
    }
}

impl Parted {
    fn rows_of(&self, parts: &Range<usize>) -> Range<usize> {
        self.starts[parts.start]..self.starts[parts.end]
    }

    fn slice(&self, parts: &Range<usize>) -> Result<HostRows> {
        let rows = self.rows_of(parts);
        self.rows.slice(rows.start, rows.len())
    }

    fn bytes_of(&self, parts: &Range<usize>) -> usize {
        (self.bytes as u128 * self.rows_of(parts).len() as u128 / self.rows.len().max(1) as u128) as usize
    }
}
