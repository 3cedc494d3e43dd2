//! Runs a program on a device with memory of its own: merges and uploads host batches, keeps several in
//! flight, and downloads the results when they are ready. The consumer sets the pace: the input is read only
//! while memory is available.

use std::collections::VecDeque;
use std::sync::Arc;

use bowstring::device::Mark;
use bowstring::{Device, DeviceBatch, Pending, Stream};
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::runtime::SpawnedTask;
use datafusion::common::{ScalarValue, internal_err};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::physical_plan::SendableRecordBatchStream;
use datafusion::physical_plan::aggregates::{AccumulatorItem, create_accumulators};
use datafusion::physical_plan::metrics::RecordOutput;
use futures::FutureExt;
use futures::future::{BoxFuture, try_join, try_join_all};

use crate::arguments::Arguments;
use crate::config::DeviceOptions;
use crate::device::stream_of;
use crate::downloads::{OnDevice, download, downloaded, left_there};
use crate::error::external;
use crate::metrics::{Busy, Counters};
use crate::operator::{DeviceBatches, Source};
use crate::program::{Aggregated, Program, Work};
use crate::streams::{BatchSource, parts, row, stream_of_batches};
use crate::top::Top;
use crate::uploads::{Taken, Uploads};

/// The program and settings of one partition.
pub(crate) struct Run {
    pub program: Arc<Program>,
    /// The order of which only the first rows are returned.
    pub top: Option<Top>,
    /// The schema of the output.
    pub schema: SchemaRef,
    /// The number of rows in each output batch.
    pub batch_rows: usize,
    pub device: Device,
    pub options: DeviceOptions,
    /// The session's memory that uploads hold.
    pub reservation: MemoryReservation,
    pub counters: Counters,
}

/// Starts a partition and returns its output stream.
pub(crate) fn run(run: Run, source: Source) -> Result<SendableRecordBatchStream> {
    let (schema, batch_rows) = (run.schema.clone(), run.batch_rows);
    let work = Under::new(run, source)?;
    match &work.run.program.work {
        Work::Rows(_) => Ok(downloaded(Made(work), schema, batch_rows)),
        Work::Aggregate(_) => Ok(stream_of_batches(schema, Groups { work, ready: VecDeque::new() })),
    }
}

/// Reduces the rows of some partitions to one row, each by a task of its own if there are several.
pub(crate) fn reduce(partitions: Vec<(Run, Source)>) -> Result<SendableRecordBatchStream> {
    let all = partitions.into_iter().map(|(run, source)| Under::new(run, source));
    let mut all = all.collect::<Result<Vec<_>>>()?.into_iter();
    let Some(mut first) = all.next() else { return internal_err!("an aggregate of no partition") };
    let schema = first.run.schema.clone();
    Ok(row(schema.clone(), async move {
        let others = all.map(|mut one| SpawnedTask::spawn(async move { one.reduced().await }));
        let others: Vec<_> = others.map(joined).collect();
        let (mut accumulators, others) = try_join(first.reduced(), try_join_all(others)).await?;
        for of_other in others {
            for (accumulator, mut other) in accumulators.iter_mut().zip(of_other) {
                let state = other.state()?.iter().map(ScalarValue::to_array).collect::<Result<Vec<_>>>()?;
                accumulator.merge_batch(&state)?;
            }
        }
        let Work::Aggregate(aggregated) = &first.run.program.work else {
            return internal_err!("an aggregate that is none");
        };
        let row = aggregated.one_row(&mut accumulators, &schema)?;
        Ok(row.record_output(&first.run.counters.baseline))
    }))
}

/// The result of a task, whose panic is ours.
async fn joined(task: SpawnedTask<Result<Vec<AccumulatorItem>>>) -> Result<Vec<AccumulatorItem>> {
    task.join_unwind().await.map_err(|error| DataFusionError::ExecutionJoin(Box::new(error)))?
}

/// Starts a partition, whose rows stay on the device.
pub(crate) fn run_on_device(run: Run, source: Source) -> Result<DeviceBatches> {
    Ok(left_there(Made(Under::new(run, source)?)))
}

/// The columns that are uploaded, and their schema.
pub(crate) fn columns(program: &Program) -> (Vec<usize>, arrow_schema::SchemaRef) {
    match (&program.condition, &program.work) {
        (Some(condition), _) => (condition.whole.columns.clone(), condition.whole.schema.clone()),
        (None, Work::Rows(rows)) => (rows.columns.clone(), rows.schema.clone()),
        (None, Work::Aggregate(aggregated)) => (aggregated.columns.clone(), aggregated.schema.clone()),
    }
}

/// The result of a piece of work.
type Later = BoxFuture<'static, bowstring::Result<DeviceBatch>>;

/// A piece of work that was started on the device.
struct Begun {
    made: Later,
    /// The input batch, kept in case an aggregate has to read it again.
    of: Option<DeviceBatch>,
    /// The mark after which the work begins on the stream.
    from: Mark,
    /// The bytes that this work holds of the session's memory pool.
    bytes: usize,
}

/// A completed piece of work.
struct Ended {
    made: bowstring::Result<DeviceBatch>,
    of: Option<DeviceBatch>,
    from: Mark,
}

/// The states of some rows, and those rows.
type Reduced = (bowstring::Result<DeviceBatch>, Option<DeviceBatch>);

/// A partition's work on the device.
struct Under {
    run: Run,
    stream: Stream,
    uploads: Uploads,
    /// The work in flight, oldest first.
    under_way: VecDeque<Begun>,
    busy: Busy,
    /// The number of rows that may still be emitted.
    left: usize,
}

impl Under {
    fn new(run: Run, source: Source) -> Result<Under> {
        let stream = stream_of(&run.device)?;
        let uploads = Uploads::new(source, columns(&run.program), &run.options, &run.counters);
        let left = run.program.fetch.unwrap_or(usize::MAX);
        let busy = Busy::new(&stream, &run.counters);
        Ok(Under { run, stream, uploads, under_way: VecDeque::new(), busy, left })
    }

    /// Fills the device with as many pieces of work as allowed, then waits for the oldest; `None` at the end.
    async fn next(&mut self) -> Result<Option<Ended>> {
        while self.under_way.len() < self.run.options.in_flight.max(1) {
            let taken = match self.uploads.gathered().await {
                // The rows before may be enough.
                Err(error) if !self.under_way.is_empty() => {
                    self.uploads.fail(error);
                    break;
                }
                taken => taken?,
            };
            let Some(taken) = taken else { break };
            // Memory becomes free again when the work in flight completes.
            let waits = !self.under_way.is_empty();
            let Some(taken) = self.uploads.granted(taken, &self.run.reservation, waits)? else { break };
            let bytes = taken.bytes();
            match self.begin(taken) {
                Ok((made, of, from)) => self.under_way.push_back(Begun { made, of, from, bytes }),
                Err(error) => {
                    self.run.reservation.shrink(bytes);
                    return Err(error);
                }
            }
        }
        let Some(Begun { made, of, from, bytes }) = self.under_way.pop_front() else {
            self.busy.end().map_err(external)?;
            return Ok(None);
        };
        let waited = self.run.counters.device_wait.timer();
        let made = made.await;
        waited.done();
        self.run.reservation.shrink(bytes);
        Ok(Some(Ended { made, of, from }))
    }

    /// Uploads a batch, if it is not on the device yet, and starts its work.
    fn begin(&self, taken: Taken) -> Result<(Later, Option<DeviceBatch>, Mark)> {
        let counters = &self.run.counters;
        let _timer = counters.baseline.elapsed_compute().timer();
        let (program, stream) = (&self.run.program, &self.stream);
        let from = stream.mark().map_err(external)?;
        let batch = self.uploads.upload(taken, stream)?;
        let kept = match &program.condition {
            None => Pending::known(Ok(batch)),
            Some(condition) => condition.whole.predicate.run(&batch, stream),
        };
        let stream = stream.clone();
        match &program.work {
            Work::Rows(rows) => {
                let rows = rows.as_ref().clone();
                if program.condition.is_none() {
                    let begun = kept.wait().and_then(|batch| rows.begin(&batch, &stream));
                    return Ok((begun.map_err(external)?.boxed(), None, from));
                }
                let made = async move { rows.begin(&kept.await?, &stream)?.await };
                Ok((made.boxed(), None, from))
            }
            Work::Aggregate(aggregated) if program.condition.is_none() => {
                let batch = kept.wait().map_err(external)?;
                Ok((aggregated.aggregates.run(&batch, &stream).boxed(), Some(batch), from))
            }
            // `aggregated` aggregates the rows that pass.
            Work::Aggregate(_) => Ok((kept.boxed(), None, from)),
        }
    }

    /// Passes the states of all rows to DataFusion's accumulators.
    async fn reduced(&mut self) -> Result<Vec<AccumulatorItem>> {
        let program = self.run.program.clone();
        let Work::Aggregate(aggregated) = &program.work else {
            return internal_err!("an aggregate that is none");
        };
        let mut accumulators = create_accumulators(&aggregated.states.functions)?;
        while let Some(ended) = self.next().await? {
            let (row, of) = self.states(aggregated, ended).await?;
            match (row, of) {
                (Ok(row), _) => {
                    // Numbers are in host memory already; the least and greatest text are not.
                    let row = self.downloaded(&row).await.map_err(external)?;
                    aggregated.states.merge(&row, &mut accumulators)?;
                }
                (Err(error), Some(of)) if Arguments::help_with(&error) => {
                    aggregated.arguments.update(&of, &mut accumulators, &self.stream).await?;
                }
                (Err(error), _) => return Err(external(error)),
            }
        }
        Ok(accumulators)
    }

    /// The states of a completed piece of work, and its rows, if they may be needed again.
    async fn states(&mut self, aggregated: &Aggregated, ended: Ended) -> Result<Reduced> {
        let Ended { made, of, from } = ended;
        if of.is_some() || self.run.program.condition.is_none() {
            self.busy.queued(from).map_err(external)?;
            return Ok((made, of));
        }
        let kept = aggregated.without_condition(&made.map_err(external)?).map_err(external)?;
        let row = aggregated.aggregates.run(&kept, &self.stream);
        self.busy.queued(from).map_err(external)?;
        Ok((row.await, Some(kept)))
    }

    /// The groups of a completed piece of work, as DataFusion's states.
    async fn groups(&mut self, aggregated: &Aggregated, ended: Ended) -> Result<RecordBatch> {
        let (groups, of) = self.states(aggregated, ended).await?;
        // A sum that does not fit may become known only when the groups arrive.
        let groups = match groups {
            Ok(groups) => self.downloaded(&groups).await,
            Err(error) => Err(error),
        };
        let groups = match (groups, of) {
            (Err(error), Some(of)) if Arguments::help_with(&error) => {
                let rows = aggregated.arguments.values(&of, &self.stream).await?;
                self.downloaded(&rows).await
            }
            (groups, _) => groups,
        };
        let groups = groups.map_err(external)?;
        let counters = &self.run.counters;
        let _timer = counters.baseline.elapsed_compute().timer();
        let states = aggregated.states.rows(&groups, &self.run.schema)?;
        counters.down(&states);
        Ok(states)
    }
}

/// The rows that the program computes, batch by batch.
struct Made(Under);

impl BatchSource<DeviceBatch> for Made {
    async fn next(&mut self) -> Result<Option<DeviceBatch>> {
        let work = &mut self.0;
        if work.left == 0 {
            // The work still in flight is no longer needed, so it is not awaited.
            work.busy.count();
            return Ok(None);
        }
        let Some(ended) = work.next().await? else { return Ok(None) };
        let made = work.rows(ended).await?;
        let made = made.slice(0, made.len().min(work.left)).map_err(external)?;
        work.left -= made.len();
        Ok(Some(made))
    }
}

impl OnDevice for Made {
    fn counters(&self) -> &Counters {
        &self.0.run.counters
    }

    fn stream(&mut self) -> (&Stream, &mut Busy) {
        (&self.0.stream, &mut self.0.busy)
    }
}

/// The states of groups, in batches of the requested size.
struct Groups {
    work: Under,
    ready: VecDeque<RecordBatch>,
}

impl BatchSource<RecordBatch> for Groups {
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        let program = self.work.run.program.clone();
        let Work::Aggregate(aggregated) = &program.work else {
            return internal_err!("an aggregate that is none");
        };
        loop {
            if let Some(batch) = self.ready.pop_front() {
                let batch = batch.record_output(&self.work.run.counters.baseline);
                return Ok(Some(batch));
            }
            let Some(ended) = self.work.next().await? else { return Ok(None) };
            let groups = self.work.groups(aggregated, ended).await?;
            self.ready.extend(parts(&groups, self.work.run.batch_rows));
        }
    }
}

impl Under {
    /// The rows of a completed piece of work.
    async fn rows(&mut self, ended: Ended) -> Result<DeviceBatch> {
        let mut made = ended.made;
        if let (Ok(all), Some(top)) = (&made, &self.run.top) {
            made = top.first(all.clone(), &self.stream).await;
        }
        self.busy.queued(ended.from).map_err(external)?;
        made.map_err(external)
    }

    async fn downloaded(&mut self, made: &DeviceBatch) -> bowstring::Result<DeviceBatch> {
        download(made, &self.stream, &mut self.busy, &self.run.counters).await
    }
}
