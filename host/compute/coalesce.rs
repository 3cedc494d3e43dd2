//! Combines small batches into batches of a given size.
//!
//! The one idea: rows that can be written to their final location are filtered straight into the batch under
//! construction. For all other rows, the pieces are kept until the batch is complete, and then concatenated.

use std::collections::VecDeque;

use arrow_schema::SchemaRef;

use super::selection::{check_mask, check_rows};
use super::{TakeOptions, admit, concat, filter, reach_all, take};
use crate::array::columns_are_of;
use crate::cpu::building::Building;
use crate::cpu::selection::{PARALLEL, Selection};
use crate::cpu::threads::among_threads;
use crate::device::HostPool;
use crate::{DeviceArray, DeviceBatch, Error, Pending, Result, Stream, cpu, pass};

/// Combines the results of filters and takes into batches of a given number of rows, in their order. The
/// batches that a selective filter produces are too small for the operations that follow it.
///
/// On the CPU, values of fixed widths, booleans, text, bytes and views are filtered straight into the batch
/// under construction, whose memory has room for all of its rows; each value is copied once. For other types
/// (dictionaries, nested ones, Null, bytes of odd widths) the kept rows of each batch are concatenated as by
/// [`concat()`] when the batch is complete. On a GPU this applies to all types.
///
/// The [metadata](DeviceBatch::metadata) of input batches is not passed on. If an operation on an input batch
/// fails, its first rows may already be in a completed batch. Rows buffered before it are kept, unless
/// completing a batch failed.
///
/// ```
/// use arrow_array::{ArrayRef, BooleanArray, Int32Array, RecordBatch};
/// use bowstring::{DeviceArray, DeviceBatch, Stream, compute::Coalescer};
/// # use std::sync::Arc;
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let numbers: ArrayRef = Arc::new(Int32Array::from(vec![1, 2, 3, 4]));
/// let batch = DeviceBatch::try_from(&RecordBatch::try_from_iter([("n", numbers)])?)?;
/// let mask: ArrayRef = Arc::new(BooleanArray::from(vec![true, false, true, true]));
/// let mask = DeviceArray::try_from(&mask)?;
///
/// let mut coalescer = Coalescer::new(batch.schema().clone(), 4, &Stream::cpu())?;
/// coalescer.push_batch_with_filter(&batch, &mask)?;
/// assert!(coalescer.next_completed_batch().is_none());
/// coalescer.push_batch_with_filter(&batch, &mask)?;
/// let first = RecordBatch::try_from(&coalescer.next_completed_batch().unwrap())?;
/// assert_eq!(first.column(0).as_ref(), &Int32Array::from(vec![1, 3, 4, 1]));
/// coalescer.finish_buffered_batch()?;
/// assert_eq!(coalescer.next_completed_batch().unwrap().len(), 2);
/// # Ok(())
/// # }
/// ```
pub struct Coalescer {
    schema: SchemaRef,
    target: usize,
    stream: Stream,
    columns: Vec<Column>,
    /// The number of rows in the batch under construction.
    rows: usize,
    /// The number of pieces that those rows consist of.
    pieces: usize,
    /// Each batch has `target` rows or a multiple, which is split on request; the last may have fewer.
    completed: VecDeque<DeviceBatch>,
}

/// A column of the batch under construction.
enum Column {
    Straight(Building),
    Pieces(Vec<DeviceArray>),
}

impl Coalescer {
    /// Creates a coalescer for batches of `target` rows under this schema. The last batch may have fewer
    /// rows.
    pub fn new(schema: SchemaRef, target: usize, stream: &Stream) -> Result<Coalescer> {
        if target == 0 {
            return Err(Error::invalid("coalesce", "batches of no rows"));
        }
        let straight = |data_type| match stream.as_gpu() {
            None => Building::new(data_type, target),
            Some(_) => None,
        };
        let column = |data_type| straight(data_type).map_or(Column::Pieces(vec![]), Column::Straight);
        let columns = schema.fields().iter().map(|field| column(field.data_type())).collect();
        let (stream, completed) = (stream.clone(), VecDeque::new());
        Ok(Coalescer { schema, target, stream, columns, rows: 0, pieces: 0, completed })
    }

    /// The schema of the input and output batches.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The number of rows in the batch under construction.
    pub fn buffered_rows(&self) -> usize {
        self.rows
    }

    /// Adds all rows of a batch. If no rows are buffered, whole batches are shared instead of copied.
    pub fn push_batch(&mut self, batch: &DeviceBatch) -> Result<()> {
        columns_are_of("coalesce", &self.schema, batch.columns())?;
        reach_all("coalesce", batch.columns(), &self.stream)?;
        let pool = self.stream.device().host_pool().clone();
        let mut first = 0;
        while first < batch.len() {
            let left = batch.len() - first;
            // Rows without memory can be arbitrarily many whole batches, so these are split on request.
            let whole = if self.rows == 0 { left - left % self.target } else { 0 };
            let rows = if whole > 0 { whole } else { (self.target - self.rows).min(left) };
            let now = batch.slice(first, rows)?;
            if whole > 0 {
                let columns = now.columns().to_vec();
                self.completed.push_back(DeviceBatch::try_new(self.schema.clone(), columns, rows)?);
            } else if self.stream.as_gpu().is_some() {
                self.push_pieces(&now)?;
            } else {
                self.push(&now, Selection::all(rows, &pool)?, &pool)?;
            }
            first += rows;
        }
        Ok(())
    }

    /// Adds the rows for which `mask` is true, as by [`filter`]. Synchronises as `filter` does.
    pub fn push_batch_with_filter(&mut self, batch: &DeviceBatch, mask: &DeviceArray) -> Result<()> {
        columns_are_of("coalesce", &self.schema, batch.columns())?;
        check_rows(batch, mask.len())?;
        if self.stream.as_gpu().is_some() {
            let kept = filter(batch, mask, &self.stream).wait()?;
            return self.push_pieces(&kept);
        }
        let mask = &*admit("coalesce", mask, &self.stream)?;
        check_mask(mask)?;
        reach_all("coalesce", batch.columns(), &self.stream)?;
        let pool = self.stream.device().host_pool().clone();
        among_threads(mask.len() >= PARALLEL, |_| {
            // Splitting a selection searches it from its beginning each time, so large batches are processed
            // in parts.
            let part = self.target.max(PARALLEL);
            (0..batch.len()).step_by(part).try_for_each(|first| {
                let rows = part.min(batch.len() - first);
                let kept = Selection::of_mask(&mask.slice(first, rows)?, &pool)?;
                self.push(&batch.slice(first, rows)?, kept, &pool)
            })
        })
    }

    /// Adds the rows at `indices`, as by [`take`]. Synchronises as `take` does. If an index may be null, the
    /// fields of the schema must be nullable.
    pub fn push_batch_with_take(
        &mut self,
        batch: &DeviceBatch,
        indices: &DeviceArray,
        options: &TakeOptions,
    ) -> Result<()> {
        columns_are_of("coalesce", &self.schema, batch.columns())?;
        let taken = take(batch, indices, options, &self.stream).wait()?;
        let fields = taken.schema().fields().iter().zip(self.schema.fields());
        if let Some((_, field)) = fields.into_iter().find(|(of, to)| of.is_nullable() && !to.is_nullable()) {
            let problem = format!("{} may have nulls, and its field is not nullable", field.name());
            return Err(Error::invalid("coalesce", problem));
        }
        self.push_batch(&taken)
    }

    /// Completes the batch under construction, if it has any rows.
    pub fn finish_buffered_batch(&mut self) -> Result<()> {
        if self.rows == 0 {
            return Ok(());
        }
        let rows = self.rows;
        let (stream, pieces) = (&self.stream, self.pieces);
        let finished = self.columns.iter_mut().map(|column| match column {
            Column::Straight(building) => Pending::known(building.finish(rows)),
            Column::Pieces(all) => {
                all.truncate(pieces);
                concat(&std::mem::take(all).iter().collect::<Vec<_>>(), stream)
            }
        });
        // All columns finish before an error is returned, so that none keeps rows that others have lost.
        let finished: Vec<Pending<DeviceArray>> = finished.collect();
        (self.rows, self.pieces) = (0, 0);
        let columns = pass::block_on(pass::all(finished))?;
        self.completed.push_back(DeviceBatch::try_new(self.schema.clone(), columns, rows)?);
        Ok(())
    }

    /// Removes and returns the first completed batch; `None` if no batch is complete.
    pub fn next_completed_batch(&mut self) -> Option<DeviceBatch> {
        let first = self.completed.pop_front()?;
        if first.len() <= self.target {
            return Some(first);
        }
        let rows = |at: usize, len: usize| first.slice(at, len).expect("it has these rows");
        self.completed.push_front(rows(self.target, first.len() - self.target));
        Some(rows(0, self.target))
    }

    /// Adds the selected rows of a batch in host memory.
    fn push(&mut self, batch: &DeviceBatch, selection: Selection, pool: &HostPool) -> Result<()> {
        let mut left = Some(selection).filter(|selection| selection.len() > 0);
        while let Some(selection) = left {
            let room = self.target - self.rows;
            let (now, later) = match selection.len() > room {
                true => selection.split(room, pool).map(|(now, later)| (now, Some(later)))?,
                false => (selection, None),
            };
            for (column, array) in self.columns.iter_mut().zip(batch.columns()) {
                let array = &*admit("coalesce", array, &self.stream)?;
                match column {
                    Column::Straight(building) => building.append(array, &now, self.rows, pool)?,
                    Column::Pieces(all) => {
                        all.truncate(self.pieces);
                        all.push(cpu::filter::filter(array, &now, pool)?);
                    }
                }
            }
            self.added(now.len())?;
            left = later;
        }
        Ok(())
    }

    /// Adds a batch whose rows are concatenated later.
    fn push_pieces(&mut self, batch: &DeviceBatch) -> Result<()> {
        let mut first = 0;
        while first < batch.len() {
            let now = batch.slice(first, (self.target - self.rows).min(batch.len() - first))?;
            for (column, array) in self.columns.iter_mut().zip(now.columns()) {
                if let Column::Pieces(all) = column {
                    all.push(array.clone());
                }
            }
            first += now.len();
            self.added(now.len())?;
        }
        Ok(())
    }

    /// Counts rows that were added to all columns.
    fn added(&mut self, rows: usize) -> Result<()> {
        self.rows += rows;
        self.pieces += 1;
        if self.rows == self.target { self.finish_buffered_batch() } else { Ok(()) }
    }
}
