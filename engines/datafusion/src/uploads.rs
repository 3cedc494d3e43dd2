//! The input of a device: host batches, merged until they are large enough, or batches that are already on
//! the device.

use std::sync::Arc;

use bowstring::{DeviceBatch, Stream};
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::compute::concat_batches;
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::physical_plan::{ExecutionPlan, SendableRecordBatchStream};
use futures::StreamExt;

use crate::bridge::batch_in;
use crate::config::DeviceOptions;
use crate::error::{external, refused};
use crate::metrics::Counters;
use crate::scan::{DeviceBatches, DeviceScan};
use crate::streams::bytes_of;

/// The source of batches, with the columns that are needed.
pub(crate) struct Uploads {
    source: Source,
    columns: Vec<usize>,
    schema: arrow_schema::SchemaRef,
    upload_rows: usize,
    upload_bytes: usize,
    counters: Counters,
    /// Batches for which no memory was available; the last comes next.
    put_back: Vec<Taken>,
}

enum Source {
    Host(SendableRecordBatchStream),
    Device(DeviceBatches),
    Ended,
}

/// The unit of one upload.
pub(crate) enum Taken {
    Host { batch: RecordBatch, bytes: usize },
    Device(DeviceBatch),
}

impl Taken {
    /// The device memory that an upload takes.
    pub fn bytes(&self) -> usize {
        match self {
            Taken::Host { bytes, .. } => *bytes,
            // The batch's memory is already accounted for.
            Taken::Device(_) => 0,
        }
    }
}

impl Uploads {
    /// Opens a partition of an input. A scan of batches on the same device returns them without copying.
    pub fn new(
        input: &Arc<dyn ExecutionPlan>,
        partition: usize,
        context: Arc<TaskContext>,
        (columns, schema): (Vec<usize>, arrow_schema::SchemaRef),
        stream: &Stream,
        (options, counters): (&DeviceOptions, &Counters),
    ) -> Result<Uploads> {
        let scan = input.downcast_ref::<DeviceScan>();
        let source = match scan.filter(|scan| scan.is_on(stream.device())) {
            Some(scan) => Source::Device(scan.execute_device(partition)?),
            None => Source::Host(input.execute(partition, context)?),
        };
        Ok(Uploads {
            source,
            columns,
            schema,
            upload_rows: options.upload_rows.max(1),
            upload_bytes: options.upload_bytes.max(1),
            counters: counters.clone(),
            put_back: vec![],
        })
    }

    /// Gathers the next upload; `None` at the end.
    pub async fn gathered(&mut self) -> Result<Option<Taken>> {
        if let Some(taken) = self.put_back.pop() {
            return Ok(Some(taken));
        }
        let (mut batches, mut rows, mut bytes) = (vec![], 0, 0);
        let all: Vec<usize> = (0..self.columns.len()).collect();
        while rows < self.upload_rows && bytes < self.upload_bytes {
            let batch = match &mut self.source {
                Source::Ended => break,
                Source::Device(batches) => match batches.next() {
                    Some(batch) => {
                        let batch = batch.map_err(external)?;
                        self.counters.rows_in.add(batch.len());
                        return self.of_device(&batch).map(Some);
                    }
                    None => None,
                },
                Source::Host(input) => input.next().await.transpose()?,
            };
            let Some(batch) = batch else {
                self.source = Source::Ended;
                break;
            };
            self.counters.rows_in.add(batch.num_rows());
            if batch.num_rows() == 0 {
                continue;
            }
            let batch = batch.project(&self.columns).map_err(refused)?;
            rows += batch.num_rows();
            bytes += bytes_of(&batch, &all)?;
            batches.push(batch);
        }
        let Some(first) = batches.first() else { return Ok(None) };
        let _timer = self.counters.baseline.elapsed_compute().timer();
        let batch = match batches.len() {
            1 => first.clone(),
            _ => concat_batches(&first.schema(), &batches).map_err(refused)?,
        };
        Ok(Some(Taken::Host { batch, bytes }))
    }

    /// Keeps a batch for later, if memory is short.
    pub fn put_back(&mut self, taken: Taken) {
        self.put_back.push(taken);
    }

    /// Returns the first half of a batch for which there is no memory, and keeps the other half for later;
    /// `None` if it cannot be divided.
    pub fn halved(&mut self, taken: &Taken) -> Result<Option<Taken>> {
        let Taken::Host { batch, .. } = taken else { return Ok(None) };
        let (rows, first) = (batch.num_rows(), batch.num_rows() / 2);
        if first == 0 {
            return Ok(None);
        }
        let all: Vec<usize> = (0..batch.num_columns()).collect();
        let part = |batch: RecordBatch| -> Result<Taken> {
            Ok(Taken::Host { bytes: bytes_of(&batch, &all)?, batch })
        };
        self.put_back.push(part(batch.slice(first, rows - first))?);
        part(batch.slice(0, first)).map(Some)
    }

    /// Moves a batch to the device, if it is not there yet.
    pub fn upload(&self, taken: Taken, stream: &Stream, counters: &Counters) -> Result<DeviceBatch> {
        match taken {
            Taken::Device(batch) => Ok(batch),
            Taken::Host { batch, bytes } => {
                let all: Vec<usize> = (0..batch.num_columns()).collect();
                let ours = batch_in(&batch, &all, &self.schema)?;
                counters.rows_up.add(batch.num_rows());
                counters.bytes_up.add(bytes);
                stream.upload(&ours).map_err(external)
            }
        }
    }

    fn of_device(&self, batch: &DeviceBatch) -> Result<Taken> {
        let columns = self.columns.iter().map(|column| batch.columns()[*column].clone()).collect();
        Ok(Taken::Device(DeviceBatch::try_new(self.schema.clone(), columns, batch.len()).map_err(external)?))
    }
}
