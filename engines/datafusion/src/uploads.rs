//! What a device is given: host batches put together until there are enough of them, or batches that are on the device already.

use std::sync::Arc;

use bowstring::{Batch, Stream};
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

/// Where batches come from, and the columns of them that are needed.
pub(crate) struct Uploads {
    source: Source,
    columns: Vec<usize>,
    schema: arrow_schema::SchemaRef,
    upload_rows: usize,
    upload_bytes: usize,
    counters: Counters,
    /// What there was no room for.
    put_back: Option<Taken>,
}

enum Source {
    Host(SendableRecordBatchStream),
    Device(DeviceBatches),
    Ended,
}

/// As much as is uploaded at once.
pub(crate) enum Taken {
    Host { batch: RecordBatch, bytes: usize },
    Device(Batch),
}

impl Taken {
    /// The bytes that an upload takes.
    pub fn bytes(&self) -> usize {
        match self {
            Taken::Host { bytes, .. } => *bytes,
            // Its memory is somebody's already.
            Taken::Device(_) => 0,
        }
    }
}

impl Uploads {
    /// A partition of an input. A scan of the same device's batches is asked for those as they are.
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
            put_back: None,
        })
    }

    /// The next that there is to upload.
    pub async fn gathered(&mut self) -> Result<Option<Taken>> {
        if self.put_back.is_some() {
            return Ok(self.put_back.take());
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

    /// Keeps for later what there is no room for now.
    pub fn put_back(&mut self, taken: Taken) {
        self.put_back = Some(taken);
    }

    /// What was taken, on the device.
    pub fn upload(&self, taken: Taken, stream: &Stream, counters: &Counters) -> Result<Batch> {
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

    fn of_device(&self, batch: &Batch) -> Result<Taken> {
        let columns = self.columns.iter().map(|column| batch.columns()[*column].clone()).collect();
        Ok(Taken::Device(Batch::try_new(self.schema.clone(), columns, batch.len()).map_err(external)?))
    }
}
