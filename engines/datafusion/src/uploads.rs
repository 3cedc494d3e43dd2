//! The input of a device: host batches, merged until they are large enough, or batches that are already on
//! the device.

use std::ops::Range;
use std::sync::Arc;

use bowstring::{DeviceBatch, Stream};
use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, GenericByteViewArray, RecordBatch, RecordBatchOptions, UInt64Array,
};
use datafusion::arrow::compute::{concat_batches, take_record_batch};
use datafusion::arrow::datatypes::{ByteViewType, DataType, Schema, SchemaRef};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::physical_plan::SendableRecordBatchStream;
use futures::StreamExt;

use crate::bridge::batch_in;
use crate::config::DeviceOptions;
use crate::device::stream_of;
use crate::error::{external, refused};
use crate::inputs::Inputs;
use crate::metrics::Counters;
use crate::operator::{DeviceBatches, Source, Task};
use crate::streams::{BatchSource, batches_of, bytes_of};

/// The source of batches, with the columns that are needed.
pub(crate) struct Uploads {
    /// `None` after its end.
    source: Option<Source>,
    columns: Vec<usize>,
    schema: arrow_schema::SchemaRef,
    upload_rows: usize,
    upload_bytes: usize,
    counters: Counters,
    /// Batches for which no memory was available; the last comes next.
    put_back: Vec<Taken>,
    /// The error with which the source ended, behind the batches that were read before.
    failed: Option<DataFusionError>,
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
    /// The uploads of a partition. Batches that are on the device already are not copied.
    pub fn new(
        source: Source,
        (columns, schema): (Vec<usize>, arrow_schema::SchemaRef),
        options: &DeviceOptions,
        counters: &Counters,
    ) -> Uploads {
        Uploads {
            source: Some(source),
            columns,
            schema,
            upload_rows: options.upload_rows.max(1),
            upload_bytes: options.upload_bytes.max(1),
            counters: counters.clone(),
            put_back: vec![],
            failed: None,
        }
    }

    /// Gathers the next upload; `None` at the end. An error of the source comes after the rows before it: with
    /// a limit, they may be enough.
    pub async fn gathered(&mut self) -> Result<Option<Taken>> {
        if let Some(taken) = self.put_back.pop() {
            return Ok(Some(taken));
        }
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        let (mut batches, mut together, mut rows, mut bytes) = (vec![], Together::default(), 0, 0);
        let all: Vec<usize> = (0..self.columns.len()).collect();
        while rows < self.upload_rows && bytes < self.upload_bytes {
            let batch = match &mut self.source {
                None => break,
                Some(Source::Device(batches)) => match batches.next().await.transpose()? {
                    Some(batch) => {
                        self.counters.rows_in.add(batch.len());
                        return self.of_device(&batch).map(Some);
                    }
                    None => None,
                },
                Some(Source::Host(input)) => match input.next().await.transpose() {
                    Err(error) if !batches.is_empty() => {
                        self.failed = Some(error);
                        None
                    }
                    batch => batch?,
                },
            };
            let Some(batch) = batch else {
                // The input's resources are not needed any more.
                self.source = None;
                break;
            };
            self.counters.rows_in.add(batch.num_rows());
            if batch.num_rows() == 0 {
                continue;
            }
            let batch = batch.project(&self.columns).map_err(refused)?;
            if !together.add(&batch) {
                let bytes = bytes_of(&batch, &all)?;
                self.put_back.push(Taken::Host { batch: without_others(batch)?, bytes });
                break;
            }
            rows += batch.num_rows();
            bytes += bytes_of(&batch, &all)?;
            batches.push(batch);
        }
        let _timer = self.counters.baseline.elapsed_compute().timer();
        let batches: Vec<RecordBatch> = batches.into_iter().map(without_others).collect::<Result<_>>()?;
        let batch = match &batches[..] {
            [] => return Ok(None),
            [one] => one.clone(),
            [first, ..] => concat_batches(&nullable(&first.schema()), &batches).map_err(refused)?,
        };
        Ok(Some(Taken::Host { batch, bytes }))
    }

    /// Ends with an error, which comes next.
    pub fn fail(&mut self, error: DataFusionError) {
        (self.source, self.failed) = (None, Some(error));
    }

    /// Takes the session's memory for an upload, or for a part of it if there is no more; the rest comes
    /// later. Returns `None` if memory `waits` to be freed; then all of it comes later.
    pub fn granted(
        &mut self,
        mut taken: Taken,
        reservation: &MemoryReservation,
        waits: bool,
    ) -> Result<Option<Taken>> {
        while let Err(error) = reservation.try_grow(taken.bytes()) {
            if waits {
                self.put_back.push(taken);
                return Ok(None);
            }
            taken = match self.halved(&taken)? {
                Some(half) => half,
                None => return Err(error),
            };
        }
        Ok(Some(taken))
    }

    /// Returns the first half of a batch, and keeps the other half for later; `None` if it cannot be divided.
    fn halved(&mut self, taken: &Taken) -> Result<Option<Taken>> {
        let Taken::Host { batch, .. } = taken else { return Ok(None) };
        let (rows, first) = (batch.num_rows(), batch.num_rows() / 2);
        if first == 0 {
            return Ok(None);
        }
        let all: Vec<usize> = (0..batch.num_columns()).collect();
        // A slice would go up with the contents of all rows.
        let part = |rows: Range<u64>| -> Result<Taken> {
            let batch = take_record_batch(batch, &UInt64Array::from_iter_values(rows)).map_err(refused)?;
            let batch = without_others(batch)?;
            Ok(Taken::Host { bytes: bytes_of(&batch, &all)?, batch })
        };
        self.put_back.push(part(first as u64..rows as u64)?);
        part(0..first as u64).map(Some)
    }

    /// Moves a batch to the device, if it is not there yet.
    pub fn upload(&self, taken: Taken, stream: &Stream) -> Result<DeviceBatch> {
        match taken {
            Taken::Device(batch) => Ok(batch),
            Taken::Host { batch, bytes } => {
                let all: Vec<usize> = (0..batch.num_columns()).collect();
                let ours = batch_in(&batch, &all, &self.schema)?;
                self.counters.rows_up.add(batch.num_rows());
                self.counters.bytes_up.add(bytes);
                stream.upload(&ours).map_err(external)
            }
        }
    }

    fn of_device(&self, batch: &DeviceBatch) -> Result<Taken> {
        let columns = self.columns.iter().map(|column| batch.columns()[*column].clone()).collect();
        Ok(Taken::Device(DeviceBatch::try_new(self.schema.clone(), columns, batch.len()).map_err(external)?))
    }
}

/// A schema of nullable fields: the first batch may declare a column NOT NULL in which others have nulls.
fn nullable(schema: &Schema) -> SchemaRef {
    let fields = schema.fields().iter().map(|field| field.as_ref().clone().with_nullable(true));
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// All batches of a stream, on a device.
pub(crate) fn uploaded(rows: SendableRecordBatchStream, task: &Task<'_>) -> Result<DeviceBatches> {
    let all = Inputs::all_of(&task.schema);
    let columns = (all.used().to_vec(), all.schema());
    let counters = Counters::new(task.metrics, task.partition, true);
    let uploads = Uploads::new(Source::Host(rows), columns, task.options, &counters);
    Ok(Box::pin(batches_of(Uploaded { uploads, stream: stream_of(task.device)? })))
}

struct Uploaded {
    uploads: Uploads,
    stream: Stream,
}

impl BatchSource<DeviceBatch> for Uploaded {
    async fn next(&mut self) -> Result<Option<DeviceBatch>> {
        let taken = self.uploads.gathered().await?;
        taken.map(|taken| self.uploads.upload(taken, &self.stream)).transpose()
    }
}

/// The batches of an upload so far: what decides whether another one can be appended to them.
#[derive(Default)]
struct Together {
    rows: usize,
    dictionaries: Vec<Values>,
}

/// The dictionaries of a column.
#[derive(Default)]
struct Values {
    count: usize,
    /// The values, if all batches have the same.
    shared: Option<ArrayRef>,
}

impl Together {
    /// Adds a batch, unless keys of dictionaries or ends of runs are too short to number the values, or the
    /// rows, of all. The first batch always fits.
    fn add(&mut self, next: &RecordBatch) -> bool {
        let first = self.rows == 0;
        let rows = self.rows + next.num_rows();
        let mut before = std::mem::take(&mut self.dictionaries).into_iter();
        let mut fits = true;
        for column in next.columns() {
            let before = before.next().unwrap_or_default();
            let mut own = Values::default();
            fits &= match column.data_type() {
                DataType::Dictionary(keys, of) => {
                    let values = column.as_any_dictionary().values();
                    own.count = before.count + values.len();
                    let shared = before.shared.as_ref().is_some_and(|shared| Arc::ptr_eq(shared, values));
                    own.shared = (first || shared).then(|| values.clone());
                    shared || own.count <= most(keys) && !has_short_keys(of)
                }
                DataType::RunEndEncoded(ends, of) => {
                    rows <= most(ends.data_type()) && !has_short_keys(of.data_type())
                }
                of => !has_short_keys(of),
            };
            self.dictionaries.push(own);
        }
        self.rows = rows;
        first || fits
    }
}

/// The most values that keys of a type number, or rows that end there.
fn most(of: &DataType) -> usize {
    match of.primitive_width().unwrap_or(0) {
        1 => i8::MAX as usize,
        2 => i16::MAX as usize,
        _ => i32::MAX as usize,
    }
}

/// Whether a nested type has dictionaries or runs inside whose keys or ends are shorter than 32 bits.
fn has_short_keys(of: &DataType) -> bool {
    use DataType::*;
    match of {
        Dictionary(keys, values) => most(keys) < i32::MAX as usize || has_short_keys(values),
        RunEndEncoded(ends, values) => {
            most(ends.data_type()) < i32::MAX as usize || has_short_keys(values.data_type())
        }
        List(item) | LargeList(item) | ListView(item) | LargeListView(item) | FixedSizeList(item, _) => {
            has_short_keys(item.data_type())
        }
        Map(entries, _) => has_short_keys(entries.data_type()),
        Struct(fields) => fields.iter().any(|field| has_short_keys(field.data_type())),
        Union(fields, _) => fields.iter().any(|(_, field)| has_short_keys(field.data_type())),
        _ => false,
    }
}

/// A batch whose views keep little text of other rows: all of the text behind views goes up.
fn without_others(batch: RecordBatch) -> Result<RecordBatch> {
    let column = |column: &ArrayRef| match column.data_type() {
        DataType::Utf8View => own_text(column.as_string_view(), column),
        DataType::BinaryView => own_text(column.as_binary_view(), column),
        _ => column.clone(),
    };
    let columns = batch.columns().iter().map(column).collect();
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(batch.schema(), columns, &options).map_err(refused)
}

/// A column of views. Its text is copied if the views use less than half of what their buffers hold.
fn own_text<T: ByteViewType>(views: &GenericByteViewArray<T>, column: &ArrayRef) -> ArrayRef {
    let held: usize = views.data_buffers().iter().map(|buffer| buffer.len()).sum();
    match held / 2 > views.total_buffer_bytes_used() {
        true => Arc::new(views.gc()),
        false => column.clone(),
    }
}
