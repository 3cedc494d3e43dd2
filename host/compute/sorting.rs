//! Sorts streams of batches, of which a device may not have memory for all rows.
//!
//! The one idea: rows beyond the limit become sorted runs in host memory. Some rows of the runs, in their
//! order, say where to cut all runs, so that what lies between two cuts fits on the device and is sorted
//! once more there, and nothing has to be compared with what comes later.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use arrow_schema::SchemaRef;

use super::compacted::garbage_collect;
use super::cuts::cuts;
use super::evaluated::check;
use super::host_rows::{HostRows, arrived, batch_bytes, bounded, uploaded};
use super::sort::{SortColumn, SortOptions, sort_by};
use super::spill::Spill;
use super::{concat, reach_all};
use crate::{DeviceArray, DeviceBatch, Error, Result, Stream};

/// Rows are sorted before all have come, to keep the first of them, if there are so many.
const MANY: usize = 1 << 16;

/// Sorts batches that arrive one by one, as [`sort_by`] does for one batch.
///
/// ```
/// use arrow_array::record_batch;
/// use bowstring::compute::{SortOptions, Sorting};
/// use bowstring::{DeviceBatch, Stream};
/// # async fn sorted() -> Result<(), Box<dyn std::error::Error>> {
/// // Rows of more than a gigabyte wait in host memory.
/// let mut sorting = Sorting::new(&[(0, SortOptions::default())], &Stream::cpu()).memory(1 << 30);
/// for batch in [record_batch!(("n", Int32, [3, 1]))?, record_batch!(("n", Int32, [2]))?] {
///     sorting.push(&DeviceBatch::try_from(&batch)?).await?;
/// }
/// let mut sorted = sorting.finish().await?;
/// while let Some(batch) = sorted.next().await? {
///     println!("{} rows, in order", batch.len());
/// }
/// # Ok(())
/// # }
/// ```
pub struct Sorting {
    by: Vec<(usize, SortOptions)>,
    limit: Option<usize>,
    memory: Option<usize>,
    spill: Option<Arc<dyn Spill>>,
    stream: Stream,
    /// The schema of the first batch.
    schema: Option<SchemaRef>,
    /// The rows on the device, and how many there are.
    held: Vec<DeviceBatch>,
    rows: usize,
    bytes: usize,
    runs: Vec<HostRows>,
}

impl Sorting {
    /// Sorts by columns, which it knows by their numbers.
    pub fn new(by: &[(usize, SortOptions)], stream: &Stream) -> Sorting {
        let (by, stream) = (by.to_vec(), stream.clone());
        let (limit, memory, spill, schema) = (None, None, None, None);
        let (held, runs) = (vec![], vec![]);
        Sorting { by, limit, memory, spill, stream, schema, held, rows: 0, bytes: 0, runs }
    }

    /// Returns only the first rows of the order.
    pub fn limit(self, rows: usize) -> Sorting {
        Sorting { limit: Some(rows), ..self }
    }

    /// Spills rows to host memory once they take more than so many bytes, or more than 1 GiB if a column has
    /// offsets of 32 bits. To sort them takes about three times as many. Then the result comes in several
    /// batches.
    pub fn memory(self, bytes: usize) -> Sorting {
        Sorting { memory: Some(bytes), ..self }
    }

    /// Has spilled rows kept elsewhere than in host memory.
    pub fn spill_to(self, spill: Arc<dyn Spill>) -> Sorting {
        Sorting { spill: Some(spill), ..self }
    }

    pub(super) fn limited(self, rows: Option<usize>, memory: Option<usize>) -> Sorting {
        Sorting { limit: rows, memory, ..self }
    }

    /// The bytes of spilled rows.
    pub fn spilled_bytes(&self) -> usize {
        self.runs.iter().map(HostRows::bytes).sum()
    }

    /// Adds rows: all batches have the same columns. Rows are added even if spilling them fails, or is
    /// abandoned: the next call spills them.
    pub async fn push(&mut self, batch: &DeviceBatch) -> Result<()> {
        reach_all("sort_by", batch.columns(), &self.stream)?;
        if self.schema.is_none() {
            self.memory = bounded(self.memory, batch.columns().iter().map(DeviceArray::data_type));
        }
        let schema = self.schema.get_or_insert_with(|| batch.schema().clone());
        check("sort_by", schema, batch)?;
        if let Some((column, _)) = self.by.iter().find(|(column, _)| *column >= batch.columns().len()) {
            return Err(Error::invalid("sort_by", format!("column {column} of {}", batch.columns().len())));
        }
        if batch.is_empty() {
            return Ok(());
        }
        self.rows += batch.len();
        self.bytes += self.memory.map_or(0, |_| batch_bytes(batch));
        self.held.push(batch.clone());
        if self.limit.is_some_and(|limit| self.rows > limit.saturating_mul(4).max(MANY)) {
            self.merge().await?;
        }
        let Some(memory) = self.memory.filter(|memory| self.bytes > *memory) else { return Ok(()) };
        if self.limit.is_some() {
            self.merge().await?;
            // The first rows may be few. If they take half of the memory, each batch would merge them again.
            if self.bytes <= memory / 2 {
                return Ok(());
            }
        }
        self.spill().await
    }

    /// Sorts the rows on the device.
    async fn merge(&mut self) -> Result<()> {
        let Some(all) = together(&self.held, &self.stream).await? else { return Ok(()) };
        // All rows stay here while they are sorted, because that may fail or be abandoned.
        self.held = vec![all.clone()];
        let mut sorted = sorted(&all, &self.by, self.limit, &self.stream).await?;
        if self.limit.is_some() {
            sorted = garbage_collect(&sorted, &self.stream).await?;
        }
        self.rows = sorted.len();
        self.bytes = self.memory.map_or(0, |_| batch_bytes(&sorted));
        self.held = vec![sorted];
        Ok(())
    }

    /// Moves the rows on the device to host memory, as a run.
    async fn spill(&mut self) -> Result<()> {
        self.merge().await?;
        let Some(run) = self.held.first() else { return Ok(()) };
        self.runs.push(HostRows::of(run, self.spill.as_ref(), &self.stream).await?);
        self.held.clear();
        (self.rows, self.bytes) = (0, 0);
        Ok(())
    }

    /// Returns the rows of all batches in their order.
    pub async fn finish(mut self) -> Result<Sorted> {
        let mut ranges = VecDeque::new();
        match self.memory {
            Some(memory) if !self.runs.is_empty() => {
                self.spill().await?;
                ranges = self.ranges(memory / 4).await?.into();
            }
            _ => self.merge().await?,
        }
        let left = self.limit.unwrap_or(usize::MAX);
        let Sorting { by, stream, held, runs, .. } = self;
        Ok(Sorted { by, stream, left, whole: held.into_iter().next(), runs, ranges })
    }

    /// The rows of each run that are sorted together, one range after the other: of some bytes, if rows are
    /// equally long.
    async fn ranges(&self, bytes: usize) -> Result<Vec<Vec<Range<usize>>>> {
        let rows: usize = self.runs.iter().map(HostRows::len).sum();
        let of_row = self.spilled_bytes() / rows.max(1);
        let keys =
            self.runs.iter().flat_map(|run| self.by.iter().map(|(key, _)| run.columns()[*key].clone()));
        arrived(keys.collect(), &self.stream).await?;
        let mut keys = vec![];
        for run in &self.runs {
            let mut own = vec![];
            for (key, _) in &self.by {
                own.push(run.column_like(*key, &self.runs).await?);
            }
            keys.push(own);
        }
        let options: Vec<_> = self.by.iter().map(|(_, options)| *options).collect();
        let ends = cuts(&keys, &options, (bytes / of_row.max(1)).max(1)).await?;
        let mut starts = vec![0; self.runs.len()];
        let ranges = ends.into_iter().map(|ends| {
            let ranges = starts.iter().zip(&ends).map(|(start, end)| *start..*end).collect();
            starts = ends;
            ranges
        });
        Ok(ranges.collect())
    }
}

/// The sorted rows of a stream.
pub struct Sorted {
    by: Vec<(usize, SortOptions)>,
    stream: Stream,
    /// The number of rows that may still be returned.
    left: usize,
    /// All rows, if they fit on the device.
    whole: Option<DeviceBatch>,
    runs: Vec<HostRows>,
    /// The rows of each run that make the next batches.
    ranges: VecDeque<Vec<Range<usize>>>,
}

impl Sorted {
    /// Returns the next rows; `None` at the end. After a call that failed or was abandoned, the next one
    /// returns its rows.
    pub async fn next(&mut self) -> Result<Option<DeviceBatch>> {
        if let Some(whole) = self.whole.take() {
            return Ok(Some(whole));
        }
        let Some(ranges) = self.ranges.front().filter(|_| self.left > 0) else { return Ok(None) };
        let parts = self.runs.iter().zip(ranges).filter(|(_, rows)| !rows.is_empty());
        let parts = parts.map(|(run, rows)| run.slice(rows.start, rows.len()));
        // Equal rows stay in the order of their runs, which is that in which they came.
        let there = uploaded(&parts.collect::<Result<Vec<_>>>()?, &self.stream).await?;
        let made = sorted(&there, &self.by, Some(self.left.min(there.len())), &self.stream).await?;
        self.left -= made.len();
        self.ranges.pop_front();
        Ok(Some(made))
    }
}

/// All rows of some batches; `None` if there are no batches.
pub(super) async fn together(batches: &[DeviceBatch], stream: &Stream) -> Result<Option<DeviceBatch>> {
    Ok(match batches {
        [] => None,
        [one] => Some(one.clone()),
        several => Some(concat(&several.iter().collect::<Vec<_>>(), stream).await?),
    })
}

async fn sorted(
    rows: &DeviceBatch,
    by: &[(usize, SortOptions)],
    limit: Option<usize>,
    stream: &Stream,
) -> Result<DeviceBatch> {
    let by = by.iter().map(|(column, options)| SortColumn::new(&rows.columns()[*column], *options));
    let by: Vec<_> = by.collect();
    let sorted = sort_by(rows, &by, limit, stream);
    sorted.await
}
