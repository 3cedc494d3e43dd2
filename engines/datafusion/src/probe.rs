//! Runs a join on a device: collects the left side once, then joins the batches of the right partitions with
//! it, each on its partition's own stream.

use std::sync::Arc;

use bowstring::compute::{BuiltJoin, JoinBuild, JoinProbe};
use bowstring::{Device, DeviceBatch, Stream};
use datafusion::arrow::array::RecordBatch;
use datafusion::error::{DataFusionError, Result};
use futures::FutureExt;
use futures::future::{BoxFuture, Shared};

use crate::bridge::batch_in;
use crate::config::DeviceOptions;
use crate::device::{is_host, stream_of};
use crate::downloads::OnDevice;
use crate::error::external;
use crate::join::{Join, Side};
use crate::metrics::{Busy, Counters, HostMemory};
use crate::operator::Source;
use crate::streams::BatchSource;
use crate::uploads::Uploads;

/// The left side of a join, for all right partitions.
pub(crate) struct Built {
    built: Arc<BuiltJoin>,
    /// The place of the rows of both sides, if they are spilled.
    memory: HostMemory,
}

/// The left side under construction, awaited by all right partitions that read it.
pub(crate) type Building = Shared<BoxFuture<'static, std::result::Result<Arc<Built>, Arc<DataFusionError>>>>;

/// The join and its settings, for both sides.
#[derive(Clone)]
pub(crate) struct On {
    pub join: Arc<Join>,
    pub device: Device,
    pub options: DeviceOptions,
    pub counters: Counters,
}

/// Collects the left side for some right partitions, when it is first awaited.
pub(crate) fn building(on: On, source: Source, partitions: usize, memory: HostMemory) -> Building {
    async move { built(on, source, partitions, memory).await.map(Arc::new).map_err(Arc::new) }
        .boxed()
        .shared()
}

async fn built(on: On, source: Source, partitions: usize, memory: HostMemory) -> Result<Built> {
    let (stream, side) = (stream_of(&on.device)?, &on.join.left);
    let mut uploads = side.uploads(source, &on);
    let mut build = JoinBuild::new(&on.join.options, &stream);
    if on.join.may_be_spilled {
        build = build.memory(on.options.device_bytes).spill_to(memory.spill.clone());
    }
    let mut is_first = true;
    loop {
        let batch = match uploads.gathered().await? {
            Some(taken) => {
                let Some(taken) = uploads.granted(taken, &memory.reservation, false)? else { break };
                uploads.upload(taken, &stream)?
            }
            None if is_first => side.without_rows(&stream)?,
            None => break,
        };
        is_first = false;
        let _timer = on.counters.baseline.elapsed_compute().timer();
        let (moved, keys) = side.split(&batch, &stream).map_err(external)?;
        build.push(&moved, keys.columns()).await.map_err(|error| memory.spill.why(error))?;
        match is_host(&on.device) {
            // The rows are those of the upload. Those that are spilled have memory of their own.
            true if on.join.may_be_spilled => {
                memory.reservation.shrink(memory.reservation.size().saturating_sub(on.options.device_bytes));
            }
            true => {}
            false => memory.uploaded(),
        }
    }
    let _timer = on.counters.baseline.elapsed_compute().timer();
    let built = Arc::new(build.finish(partitions).await.map_err(|error| memory.spill.why(error))?);
    if let Some(narrowed) = &on.join.narrowed {
        narrowed.to(built.keys(), &stream).await?;
    }
    Ok(Built { built, memory })
}

impl Side {
    fn uploads(&self, source: Source, on: &On) -> Uploads {
        let columns = (self.keys.columns.clone(), self.keys.schema.clone());
        Uploads::new(source, columns, &on.options, &on.counters)
    }

    /// The columns that the join moves, and its keys.
    fn split(&self, batch: &DeviceBatch, stream: &Stream) -> bowstring::Result<(DeviceBatch, DeviceBatch)> {
        let columns = batch.columns()[..self.moved.fields().len()].to_vec();
        let moved = DeviceBatch::try_new(self.moved.clone(), columns, batch.len())?;
        Ok((moved, self.keys.clone().begin(batch, stream)?.wait()?))
    }

    fn without_rows(&self, stream: &Stream) -> Result<DeviceBatch> {
        let schema = Arc::new(crate::types::their_schema(&self.keys.schema));
        let all: Vec<usize> = (0..schema.fields().len()).collect();
        let none = batch_in(&RecordBatch::new_empty(schema), &all, &self.keys.schema)?;
        stream.upload(&none).map_err(external)
    }
}

/// A right partition's work.
pub(crate) struct Probe {
    on: On,
    building: Building,
    /// The left side and the join with it, once it is known.
    built: Option<(Arc<Built>, JoinProbe)>,
    stream: Stream,
    uploads: Uploads,
    memory: HostMemory,
    /// Whether all rows of this partition have been joined.
    ended: bool,
    /// The number of rows that may still be emitted.
    left: usize,
    busy: Busy,
}

impl Probe {
    pub fn new(
        on: On,
        building: Building,
        source: Source,
        fetch: Option<usize>,
        memory: HostMemory,
    ) -> Result<Probe> {
        let stream = stream_of(&on.device)?;
        Ok(Probe {
            building,
            built: None,
            uploads: on.join.right.uploads(source, &on),
            memory,
            ended: false,
            left: fetch.unwrap_or(usize::MAX),
            busy: Busy::new(&stream, &on.counters),
            stream,
            on,
        })
    }

    /// Awaits the left side, which may say that no right row is needed.
    async fn begin(&mut self) -> Result<()> {
        if self.built.is_some() {
            return Ok(());
        }
        let built = self.building.clone().await.map_err(DataFusionError::Shared)?;
        let left = &built.built;
        let no_rows = self.on.join.ends_without_rows && left.rows() == 0;
        let no_keys = self.on.join.ends_without_keys && !left.has_keys();
        self.ended |= no_rows || no_keys;
        let probe = JoinProbe::new(left, &self.on.join.right.moved, &self.stream);
        self.built = Some((built, probe));
        Ok(())
    }

    /// The next rows of the join; `None` at the end.
    async fn joined(&mut self) -> Result<Option<DeviceBatch>> {
        let Some((built, probe)) = &mut self.built else { return Ok(None) };
        loop {
            if let Some(rows) = probe.next().await.map_err(external)? {
                return Ok(Some(rows));
            }
            if self.ended {
                return Ok(None);
            }
            // The rows of the batch before are not needed any more.
            self.memory.uploaded();
            let taken = match self.uploads.gathered().await? {
                Some(taken) => self.uploads.granted(taken, &self.memory.reservation, false)?,
                None => None,
            };
            match taken {
                Some(taken) => {
                    let right = self.uploads.upload(taken, &self.stream)?;
                    let (moved, keys) = self.on.join.right.split(&right, &self.stream).map_err(external)?;
                    // The left side has the place of both sides.
                    let pushed = probe.push(&moved, keys.columns()).await;
                    pushed.map_err(|error| built.memory.spill.why(error))?;
                }
                None => {
                    self.ended = true;
                    probe.end().map_err(external)?;
                }
            }
        }
    }

    /// The output columns of a result, up to the partition's limit.
    fn output(&mut self, rows: &DeviceBatch) -> Result<DeviceBatch> {
        let outputs = &self.on.join.outputs;
        let fields = outputs.iter().map(|column| rows.schema().fields()[*column].clone());
        let schema = Arc::new(arrow_schema::Schema::new(fields.collect::<Vec<_>>()));
        let columns = outputs.iter().map(|column| rows.columns()[*column].clone()).collect();
        let made = DeviceBatch::try_new(schema, columns, rows.len()).map_err(external)?;
        let made = made.slice(0, made.len().min(self.left)).map_err(external)?;
        self.left -= made.len();
        Ok(made)
    }
}

impl BatchSource<DeviceBatch> for Probe {
    async fn next(&mut self) -> Result<Option<DeviceBatch>> {
        self.begin().await?;
        if self.left == 0 {
            return Ok(None);
        }
        let from = self.stream.mark().map_err(external)?;
        let rows = self.joined().await?;
        self.busy.queued(from).map_err(external)?;
        match rows {
            Some(rows) => self.output(&rows).map(Some),
            None => {
                self.busy.count();
                Ok(None)
            }
        }
    }
}

impl OnDevice for Probe {
    fn counters(&self) -> &Counters {
        &self.on.counters
    }

    fn stream(&mut self) -> (&Stream, &mut Busy) {
        (&self.stream, &mut self.busy)
    }
}
