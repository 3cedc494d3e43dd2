//! Runs a program on the CPU, batch by batch, on the calling thread: DataFusion has as many threads as it
//! wants, and our operations use no other threads for batches of its size.

use std::sync::Arc;

use bowstring::array::{Batches, Place};
use bowstring::{DeviceArray, DeviceBatch, Stream};
use datafusion::arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::error::Result;
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::physical_plan::SendableRecordBatchStream;
use datafusion::physical_plan::aggregates::create_accumulators;
use datafusion::physical_plan::coalesce::{LimitedBatchCoalescer, PushBatchStatus};
use datafusion::physical_plan::metrics::RecordOutput;
use futures::StreamExt;

use crate::arguments::Arguments;
use crate::bridge::{array_out, batch_in};
use crate::error::{external, refused};
use crate::metrics::Counters;
use crate::program::{Aggregated, Program, Tested, Work};
use crate::rows::{Output, Rows};
use crate::streams::{BatchSource, bytes_of, row, stream_of_batches};

/// The program and settings of one partition.
pub(crate) struct Run {
    pub program: Arc<Program>,
    pub input: SendableRecordBatchStream,
    /// The schema of the output.
    pub schema: SchemaRef,
    /// The number of rows in an output batch, unless the program specifies it.
    pub batch_rows: usize,
    /// The number of batches that an aggregate processes together, if memory allows.
    pub run_batches: usize,
    /// The session memory that the collected batches hold.
    pub reservation: MemoryReservation,
    pub counters: Counters,
}

/// Runs a partition and returns its output stream.
pub(crate) fn run(run: Run) -> SendableRecordBatchStream {
    let schema = run.schema.clone();
    if let Work::Aggregate(_) = &run.program.work {
        return row(schema, aggregated(run));
    }
    let size = run.program.batch_rows.unwrap_or(run.batch_rows);
    let coalescer = run
        .program
        .condition
        .as_ref()
        .map(|_| LimitedBatchCoalescer::new(schema.clone(), size, run.program.fetch));
    stream_of_batches(schema, Kept { run, coalescer, ended: false })
}

/// A stream of the rows that pass.
struct Kept {
    run: Run,
    /// Merges the rows that pass into full batches.
    coalescer: Option<LimitedBatchCoalescer>,
    ended: bool,
}

impl BatchSource<RecordBatch> for Kept {
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(batch) = self.coalescer.as_mut().and_then(LimitedBatchCoalescer::next_completed_batch)
            {
                let batch = batch.record_output(&self.run.counters.baseline);
                return Ok(Some(batch));
            }
            if self.ended {
                return Ok(None);
            }
            let next = self.run.input.next().await.transpose()?;
            let timed = self.run.counters.baseline.elapsed_compute().clone();
            let _timer = timed.timer();
            let Some(batch) = next else {
                self.end()?;
                continue;
            };
            self.run.counters.rows_in.add(batch.num_rows());
            let made = made(&self.run, &batch)?;
            let Some(coalescer) = &mut self.coalescer else {
                let Some(made) = made else { continue };
                let made = made.record_output(&self.run.counters.baseline);
                return Ok(Some(made));
            };
            if let Some(made) = made
                && coalescer.push_batch(made)? == PushBatchStatus::LimitReached
            {
                self.end()?;
            }
        }
    }
}

impl Kept {
    /// Releases the input's resources as soon as it ends, not only when this stream is dropped.
    fn end(&mut self) -> Result<()> {
        self.ended = true;
        let schema = self.run.input.schema();
        self.run.input = Box::pin(datafusion::physical_plan::EmptyRecordBatchStream::new(schema));
        self.coalescer.as_mut().map_or(Ok(()), LimitedBatchCoalescer::finish)
    }
}

/// The output for one batch; `None` if no row passes.
fn made(run: &Run, batch: &RecordBatch) -> Result<Option<RecordBatch>> {
    let Work::Rows(rows) = &run.program.work else { return Ok(None) };
    let stream = Stream::cpu();
    if let Some(masked) = &run.program.masked {
        let Some(kept) = masked.filter(batch, &rows.columns, &stream)? else { return Ok(None) };
        let columns: Vec<usize> = (0..kept.num_columns()).collect();
        return computed(rows, (&kept, &columns), None, &run.schema, &stream).map(Some);
    }
    let whole = (batch, &rows.columns[..]);
    let Some(condition) = &run.program.condition else {
        return computed(rows, whole, None, &run.schema, &stream).map(Some);
    };
    let selection = select(&condition.tested, batch, &stream)?;
    match selection.len() {
        0 => Ok(None),
        all if all == batch.num_rows() => computed(rows, whole, None, &run.schema, &stream).map(Some),
        _ => {
            let all = batch_in(batch, &rows.columns, &rows.schema)?;
            let kept = selection.filter(&all).wait().map_err(external)?;
            computed(rows, whole, Some(kept), &run.schema, &stream).map(Some)
        }
    }
}

fn select(tested: &Tested, batch: &RecordBatch, stream: &Stream) -> Result<bowstring::compute::Selection> {
    let columns = batch_in(batch, &tested.columns, &tested.schema)?;
    tested.predicate.selection(&columns, stream).wait().map_err(external)
}

/// Computes the output columns, from the rows that pass or from a whole batch. Its columns are those that the
/// program reads.
fn computed(
    rows: &Rows,
    (batch, columns): (&RecordBatch, &[usize]),
    kept: Option<DeviceBatch>,
    schema: &SchemaRef,
    stream: &Stream,
) -> Result<RecordBatch> {
    let count = kept.as_ref().map_or(batch.num_rows(), DeviceBatch::len);
    let computed: Option<DeviceBatch> = match &rows.projection {
        None => None,
        Some(projection) => {
            let whole = match &kept {
                Some(kept) => kept.clone(),
                None => batch_in(batch, columns, &rows.schema)?,
            };
            Some(projection.run(&whole, stream).wait().map_err(external)?)
        }
    };
    let there = |batch: &Option<DeviceBatch>, column: usize| -> Option<DeviceArray> {
        batch.as_ref().and_then(|batch| batch.columns().get(column).cloned())
    };
    let column = |output: &Output| -> Result<ArrayRef> {
        let array = match *output {
            Output::Kept(column) => match there(&kept, column) {
                Some(array) => array,
                // A column that is kept whole needs no conversion.
                None => return Ok(batch.column(columns[column]).clone()),
            },
            Output::Computed(column) => there(&computed, column).ok_or_else(|| {
                datafusion::common::internal_datafusion_err!("a projection without column {column}")
            })?,
        };
        array_out(&array)
    };
    let columns = rows.outputs.iter().map(column).collect::<Result<Vec<_>>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(count));
    RecordBatch::try_new_with_options(schema.clone(), columns, &options).map_err(refused)
}

/// The columns that an aggregate reads, filtered by the condition if the aggregate does not apply it itself.
fn columns(
    program: &Program,
    aggregated: &Aggregated,
    batch: &RecordBatch,
    stream: &Stream,
) -> Result<DeviceBatch> {
    let columns = batch_in(batch, &aggregated.columns, &aggregated.schema)?;
    match &program.condition {
        None => Ok(columns),
        Some(condition) => {
            select(&condition.tested, batch, stream)?.filter(&columns).wait().map_err(external)
        }
    }
}

/// The input of an aggregate, a run of batches at a time.
struct Runs {
    program: Arc<Program>,
    input: SendableRecordBatchStream,
    /// The number of batches in a run, if memory allows.
    run_batches: usize,
    reservation: MemoryReservation,
    counters: Counters,
    ended: bool,
}

impl Runs {
    fn new(run: Run) -> Runs {
        Runs {
            program: run.program,
            input: run.input,
            run_batches: run.run_batches.max(1),
            reservation: run.reservation,
            counters: run.counters,
            ended: false,
        }
    }

    /// The next batches, with the columns that the aggregate reads; none at the end.
    async fn next(&mut self, aggregated: &Aggregated) -> Result<Vec<DeviceBatch>> {
        let stream = Stream::cpu();
        let mut together: Vec<DeviceBatch> = vec![];
        self.reservation.free();
        let mut room = true;
        while room && together.len() < self.run_batches && !self.ended {
            match self.input.next().await.transpose()? {
                None => {
                    // The input's resources are not needed any more.
                    let schema = self.input.schema();
                    self.input = Box::pin(datafusion::physical_plan::EmptyRecordBatchStream::new(schema));
                    self.ended = true;
                }
                Some(batch) if batch.num_rows() == 0 => continue,
                Some(batch) => {
                    let _timer = self.counters.baseline.elapsed_compute().timer();
                    self.counters.rows_in.add(batch.num_rows());
                    // A batch that memory cannot hold is not collected: it is here already, so it is
                    // processed now.
                    let bytes = bytes_of(&batch, &aggregated.columns)?;
                    room = self.reservation.try_grow(bytes).is_ok();
                    together.push(columns(&self.program, aggregated, &batch, &stream)?);
                }
            }
        }
        Ok(together)
    }
}

/// The states of a run of batches: one row.
fn reduced(aggregated: &Aggregated, batches: Vec<DeviceBatch>) -> Result<bowstring::Result<DeviceBatch>> {
    let all = batches.into_iter().map(Ok);
    let run = Batches::new(aggregated.schema.clone(), Place::CPU, all);
    match aggregated.aggregates.run_batches(run, &Stream::cpu()).next() {
        Some(row) => Ok(row),
        None => datafusion::common::internal_err!("aggregates without a row"),
    }
}

/// Aggregates all batches to one row.
async fn aggregated(run: Run) -> Result<RecordBatch> {
    let (program, schema, counters) = (run.program.clone(), run.schema.clone(), run.counters.clone());
    let Work::Aggregate(aggregated) = &program.work else {
        return datafusion::common::internal_err!("an aggregate that is none");
    };
    let mut accumulators = create_accumulators(&aggregated.states.functions)?;
    let mut runs = Runs::new(run);
    loop {
        let batches = runs.next(aggregated).await?;
        if batches.is_empty() {
            break;
        }
        let _timer = counters.baseline.elapsed_compute().timer();
        match reduced(aggregated, batches.clone())? {
            Ok(row) => aggregated.states.merge(&row, &mut accumulators)?,
            Err(error) if Arguments::help_with(&error) => {
                for batch in &batches {
                    aggregated.arguments.update(batch, &mut accumulators, &Stream::cpu()).await?;
                }
            }
            Err(error) => return Err(external(error)),
        }
    }
    drop(runs);
    let _timer = counters.baseline.elapsed_compute().timer();
    let row = aggregated.one_row(&mut accumulators, &schema)?;
    Ok(row.record_output(&counters.baseline))
}
