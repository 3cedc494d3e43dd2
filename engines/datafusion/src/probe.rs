//! Runs a join on a device: collects the left side once, then joins the batches of the right partitions with
//! it, each on its partition's own stream.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use bowstring::compute::{PreparedJoin, Probed, Visited, concat};
use bowstring::{Device, DeviceBatch, Error, Stream};
use datafusion::arrow::array::RecordBatch;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::MemoryReservation;
use futures::FutureExt;
use futures::future::{BoxFuture, Shared};

use crate::bridge::batch_in;
use crate::config::DeviceOptions;
use crate::device::stream_of;
use crate::downloads::OnDevice;
use crate::error::external;
use crate::join::{Join, Side};
use crate::metrics::{Busy, Counters};
use crate::operator::Source;
use crate::streams::BatchSource;
use crate::uploads::Uploads;

/// The left side of a join, prepared for all right partitions.
pub(crate) struct Built {
    prepared: PreparedJoin,
    left_rows: usize,
    /// The left rows that the right partitions that have ended have found.
    ended: Mutex<Vec<Visited>>,
    /// The session's memory that the left side holds.
    _reservation: MemoryReservation,
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

/// Collects the left side, when it is first awaited.
pub(crate) fn building(on: On, source: Source, reservation: MemoryReservation) -> Building {
    async move { built(on, source, reservation).await.map(Arc::new).map_err(Arc::new) }.boxed().shared()
}

async fn built(on: On, source: Source, reservation: MemoryReservation) -> Result<Built> {
    let (stream, side) = (stream_of(&on.device)?, &on.join.left);
    let mut uploads = side.uploads(source, &on);
    let mut batches = vec![];
    while let Some(taken) = uploads.gathered().await? {
        reservation.try_grow(taken.bytes())?;
        batches.push(uploads.upload(taken, &stream)?);
    }
    let _timer = on.counters.baseline.elapsed_compute().timer();
    let whole = match &batches[..] {
        [] => side.without_rows(&stream)?,
        [one] => one.clone(),
        several => concat(&several.iter().collect::<Vec<_>>(), &stream).await.map_err(external)?,
    };
    drop(batches);
    let (moved, keys) = side.split(&whole, &stream).map_err(external)?;
    let prepared = PreparedJoin::new(&moved, keys.columns(), &on.join.options, &stream);
    let prepared = prepared.await.map_err(external)?;
    if let Some(narrowed) = &on.join.narrowed {
        narrowed.to(&keys, &stream).await?;
    }
    Ok(Built { prepared, left_rows: whole.len(), ended: Mutex::default(), _reservation: reservation })
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
        Ok((moved, self.keys.of(batch, stream)?))
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
    built: Option<Arc<Built>>,
    /// The number of right partitions that read the left side.
    partitions: usize,
    stream: Stream,
    uploads: Uploads,
    reservation: MemoryReservation,
    /// Right batches, or parts of them, that are on the device.
    waiting: VecDeque<DeviceBatch>,
    visited: Visited,
    /// Whether all rows of this partition have been joined.
    ended: bool,
    /// The number of rows that may still be emitted.
    left: usize,
    busy: Busy,
}

/// The place of a partition among those that share a left side, and its limits.
pub(crate) struct Partition {
    pub partitions: usize,
    pub fetch: Option<usize>,
    pub reservation: MemoryReservation,
}

impl Probe {
    pub fn new(on: On, building: Building, source: Source, partition: Partition) -> Result<Probe> {
        let Partition { partitions, fetch, reservation } = partition;
        let stream = stream_of(&on.device)?;
        Ok(Probe {
            building,
            built: None,
            partitions,
            uploads: on.join.right.uploads(source, &on),
            reservation,
            waiting: VecDeque::new(),
            visited: Visited::default(),
            ended: false,
            left: fetch.unwrap_or(usize::MAX),
            busy: Busy::new(&stream, &on.counters),
            stream,
            on,
        })
    }

    async fn built(&mut self) -> Result<Arc<Built>> {
        if let Some(built) = &self.built {
            return Ok(built.clone());
        }
        let built = self.building.clone().await.map_err(DataFusionError::Shared)?;
        self.built = Some(built.clone());
        Ok(built)
    }

    /// The next right batch on the device; `None` at the end.
    async fn next_right(&mut self) -> Result<Option<DeviceBatch>> {
        if let Some(part) = self.waiting.pop_front() {
            return Ok(Some(part));
        }
        self.reservation.free();
        let Some(taken) = self.uploads.gathered().await? else { return Ok(None) };
        match self.uploads.granted(taken, &self.reservation, false)? {
            Some(taken) => self.uploads.upload(taken, &self.stream).map(Some),
            None => Ok(None),
        }
    }

    /// Joins a right batch. If the result is larger than memory, that of the first half, and the other half
    /// waits.
    async fn joined(&mut self, built: &Built, mut right: DeviceBatch) -> Result<Option<DeviceBatch>> {
        loop {
            let (moved, keys) = self.on.join.right.split(&right, &self.stream).map_err(external)?;
            match built.prepared.probe(&moved, keys.columns(), &self.stream).await {
                Ok(Probed { rows, visited }) => {
                    let visited = self.visited.and(&visited, &self.stream);
                    self.visited = visited.await.map_err(external)?;
                    return Ok(rows);
                }
                Err(Error::OutOfMemory { .. }) if right.len() > 1 => {
                    let (rows, first) = (right.len(), right.len() / 2);
                    self.waiting.push_front(right.slice(first, rows - first).map_err(external)?);
                    right = right.slice(0, first).map_err(external)?;
                }
                Err(error) => return Err(external(error)),
            }
        }
    }

    /// The left rows that are known when all right rows have been seen; the last partition returns them.
    async fn rest(&mut self, built: &Built) -> Result<Option<DeviceBatch>> {
        let all = {
            let mut ended = built.ended.lock().unwrap_or_else(PoisonError::into_inner);
            ended.push(std::mem::take(&mut self.visited));
            if ended.len() < self.partitions {
                return Ok(None);
            }
            std::mem::take(&mut *ended)
        };
        let mut visited = Visited::default();
        for one in &all {
            visited = visited.and(one, &self.stream).await.map_err(external)?;
        }
        built.prepared.rest(&visited, &self.on.join.right.moved, &self.stream).await.map_err(external)
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
        let built = self.built().await?;
        let no_rows = self.on.join.ends_without_rows && built.left_rows == 0;
        let no_keys = self.on.join.ends_without_keys && !built.prepared.has_keys();
        if self.left == 0 || no_rows || no_keys {
            self.ended = true;
        }
        while !self.ended {
            let from = self.stream.mark().map_err(external)?;
            let rows = match self.next_right().await? {
                Some(right) => self.joined(&built, right).await?,
                None => {
                    self.ended = true;
                    self.rest(&built).await?
                }
            };
            self.busy.queued(from).map_err(external)?;
            if let Some(rows) = rows.filter(|rows| !rows.is_empty()) {
                return self.output(&rows).map(Some);
            }
        }
        self.busy.count();
        Ok(None)
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
