//! Combines small batches into batches of a given size.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use arrow_schema::SchemaRef;

use super::selection::{check_mask, check_rows};
use super::{TakeOptions, concat, engine, filter, reach, reach_all, take};
use crate::array::columns_are_of;
use crate::engine::Assembly;
use crate::{DeviceArray, DeviceBatch, Error, Pending, Result, Stream};

/// Combines the results of filters and takes into batches of a given number of rows, in their order. The
/// batches that a selective filter produces are too small for the operations that follow it.
///
/// On the CPU, values of fixed widths, booleans, text, bytes and views are filtered straight into the batch
/// under construction, whose memory has room for all of its rows; each value is copied once. For other types
/// (dictionaries, nested ones, Null, bytes of odd widths) the kept rows of each batch are concatenated as by
/// [`concat()`] when the batch is complete. On a GPU this applies to all types.
///
/// Adding rows on a GPU does not block: it begins a filter or a take. Only
/// [`next_completed_batch`](Coalescer::next_completed_batch) waits for the numbers of rows that they keep, so
/// several can be begun before it is called.
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
/// assert!(coalescer.next_completed_batch()?.is_none());
/// coalescer.push_batch_with_filter(&batch, &mask)?;
/// let first = RecordBatch::try_from(&coalescer.next_completed_batch()?.unwrap())?;
/// assert_eq!(first.column(0).as_ref(), &Int32Array::from(vec![1, 3, 4, 1]));
/// coalescer.finish_buffered_batch()?;
/// assert_eq!(coalescer.next_completed_batch()?.unwrap().len(), 2);
/// # Ok(())
/// # }
/// ```
pub struct Coalescer {
    schema: SchemaRef,
    target: usize,
    stream: Stream,
    /// The batch under construction, if the engine filters straight into it.
    assembly: Option<Box<dyn Assembly>>,
    /// Its pieces otherwise, which are concatenated when it is complete, and their rows.
    pieces: Vec<DeviceBatch>,
    rows: usize,
    /// The next steps, in their order. The first one waits for the device.
    begun: VecDeque<Step>,
    /// Each batch has `target` rows or a multiple, which is split on request; the last may have fewer.
    completed: VecDeque<Pending<DeviceBatch>>,
}

enum Step {
    Add(Pending<DeviceBatch>),
    Finish,
}

impl Coalescer {
    /// Creates a coalescer for batches of `target` rows under this schema. The last batch may have fewer
    /// rows.
    pub fn new(schema: SchemaRef, target: usize, stream: &Stream) -> Result<Coalescer> {
        if target == 0 {
            return Err(Error::invalid("coalesce", "batches of no rows"));
        }
        let assembly = engine(stream).assembly(&schema, target);
        let stream = stream.clone();
        Ok(Coalescer {
            schema,
            target,
            stream,
            assembly,
            pieces: vec![],
            rows: 0,
            begun: VecDeque::new(),
            completed: VecDeque::new(),
        })
    }

    /// The schema of the input and output batches.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The number of rows in the batch under construction. Rows of filters and takes that are still running
    /// are not counted.
    pub fn buffered_rows(&self) -> usize {
        match &self.assembly {
            Some(assembly) => assembly.rows(),
            None => self.rows,
        }
    }

    /// Adds all rows of a batch. If no rows are buffered, whole batches are shared instead of copied.
    pub fn push_batch(&mut self, batch: &DeviceBatch) -> Result<()> {
        columns_are_of("coalesce", &self.schema, batch.columns())?;
        reach_all("coalesce", batch.columns(), &self.stream)?;
        self.add(Pending::known(Ok(batch.clone())))
    }

    /// Adds the rows for which `mask` is true, as by [`filter`].
    pub fn push_batch_with_filter(&mut self, batch: &DeviceBatch, mask: &DeviceArray) -> Result<()> {
        columns_are_of("coalesce", &self.schema, batch.columns())?;
        check_rows(batch, mask.len())?;
        let Some(assembly) = &mut self.assembly else {
            return self.add(filter(batch, mask, &self.stream));
        };
        reach("coalesce", mask, &self.stream)?;
        check_mask("coalesce", mask)?;
        reach_all("coalesce", batch.columns(), &self.stream)?;
        let (schema, target, completed) = (&self.schema, self.target, &mut self.completed);
        let mut complete = |columns| {
            completed.push_back(Pending::known(Ok(batch_of(schema, columns, target)?)));
            Ok(())
        };
        assembly.push_filtered(batch, mask, &mut complete, &self.stream)
    }

    /// Adds the rows at `indices`, as by [`take`]. If an index may be null, the fields of the schema must be
    /// nullable.
    pub fn push_batch_with_take(
        &mut self,
        batch: &DeviceBatch,
        indices: &DeviceArray,
        options: &TakeOptions,
    ) -> Result<()> {
        columns_are_of("coalesce", &self.schema, batch.columns())?;
        let schema = self.schema.clone();
        self.add(take(batch, indices, options, &self.stream).map(move |taken| {
            let mut fields = taken.schema().fields().iter().zip(schema.fields());
            match fields.find(|(of, to)| of.is_nullable() && !to.is_nullable()) {
                Some((_, field)) => {
                    let problem = format!("{} may have nulls, and its field is not nullable", field.name());
                    Err(Error::invalid("coalesce", problem))
                }
                None => Ok(taken),
            }
        }))
    }

    /// Completes the batch under construction after the rows added so far, if it has any rows.
    pub fn finish_buffered_batch(&mut self) -> Result<()> {
        if self.begun.is_empty() {
            return self.finish();
        }
        self.begun.push_back(Step::Finish);
        Ok(())
    }

    /// Removes and returns the first completed batch; `None` if the rows added so far complete none. Waits
    /// for the filters and takes that decide that.
    pub fn next_completed_batch(&mut self) -> Result<Option<DeviceBatch>> {
        match self.next(&mut |result| Poll::Ready(result.wait_in_place())) {
            Poll::Ready(next) => next,
            Poll::Pending => unreachable!("waiting leaves nothing pending"),
        }
    }

    /// Like [`next_completed_batch`](Coalescer::next_completed_batch), but never blocks: the task is woken
    /// when it should poll again.
    pub fn poll_next_completed_batch(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<Option<DeviceBatch>>> {
        self.next(&mut |result| Pin::new(result).poll(context))
    }

    /// Goes on with the steps until a batch is complete. `get` gets a result.
    fn next(
        &mut self,
        get: &mut dyn FnMut(&mut Pending<DeviceBatch>) -> Poll<Result<DeviceBatch>>,
    ) -> Poll<Result<Option<DeviceBatch>>> {
        loop {
            if let Some(first) = self.completed.front_mut() {
                let first = ready!(get(first));
                self.completed.pop_front();
                return Poll::Ready(first.and_then(|first| self.split(first)).map(Some));
            }
            let done = match self.begun.front_mut() {
                None => return Poll::Ready(Ok(None)),
                Some(Step::Finish) => None,
                Some(Step::Add(rows)) => Some(ready!(get(rows))),
            };
            self.begun.pop_front();
            match done {
                Some(rows) => rows.and_then(|rows| self.append(&rows))?,
                None => self.finish()?,
            }
        }
    }

    /// Returns the first rows of a completed batch, as many as were asked for, and keeps the others.
    fn split(&mut self, first: DeviceBatch) -> Result<DeviceBatch> {
        if first.len() <= self.target {
            return Ok(first);
        }
        let others = first.slice(self.target, first.len() - self.target)?;
        self.completed.push_front(Pending::known(Ok(others)));
        first.slice(0, self.target)
    }

    /// Adds rows after those that were added before.
    fn add(&mut self, mut rows: Pending<DeviceBatch>) -> Result<()> {
        // All rows on the CPU are known here.
        if self.begun.is_empty() && rows.is_ready()? {
            return self.append(&rows.wait()?);
        }
        self.begun.push_back(Step::Add(rows));
        Ok(())
    }

    /// Adds all rows of a batch to the batches under construction.
    fn append(&mut self, batch: &DeviceBatch) -> Result<()> {
        let mut first = 0;
        while first < batch.len() {
            let (left, buffered) = (batch.len() - first, self.buffered_rows());
            // Rows without memory can be arbitrarily many whole batches, so these are split on request.
            let whole = if buffered == 0 { left - left % self.target } else { 0 };
            let rows = if whole > 0 { whole } else { (self.target - buffered).min(left) };
            let now = batch_of(&self.schema, batch.slice(first, rows)?.columns().to_vec(), rows)?;
            if whole > 0 {
                self.completed.push_back(Pending::known(Ok(now)));
            } else {
                self.push(now)?;
            }
            first += rows;
        }
        Ok(())
    }

    /// Adds a batch whose rows fit into the one under construction.
    fn push(&mut self, batch: DeviceBatch) -> Result<()> {
        match &mut self.assembly {
            Some(assembly) => assembly.push(&batch, &self.stream)?,
            None => {
                self.rows += batch.len();
                self.pieces.push(batch);
            }
        }
        if self.buffered_rows() == self.target { self.finish() } else { Ok(()) }
    }

    /// Completes the batch under construction, if it has any rows.
    fn finish(&mut self) -> Result<()> {
        let rows = self.buffered_rows();
        if rows == 0 {
            return Ok(());
        }
        let whole = match &mut self.assembly {
            Some(assembly) => {
                let columns = assembly.finish(&self.stream)?;
                Pending::known(Ok(batch_of(&self.schema, columns, rows)?))
            }
            None => {
                let pieces = std::mem::take(&mut self.pieces);
                self.rows = 0;
                concat(&pieces.iter().collect::<Vec<_>>(), &self.stream)
            }
        };
        self.completed.push_back(whole);
        Ok(())
    }
}

fn batch_of(schema: &SchemaRef, columns: Vec<DeviceArray>, rows: usize) -> Result<DeviceBatch> {
    DeviceBatch::try_new(schema.clone(), columns, rows)
}
