//! The result of operations on a device: left there for the operator above, or downloaded.

use std::collections::VecDeque;

use bowstring::compute::garbage_collect;
use bowstring::{DeviceBatch, Error, Stream};
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::error::Result;
use datafusion::physical_plan::SendableRecordBatchStream;
use datafusion::physical_plan::metrics::RecordOutput;
use futures::StreamExt;

use crate::bridge::batch_out;
use crate::device::is_host;
use crate::error::external;
use crate::metrics::{Busy, Counters};
use crate::operator::DeviceBatches;
use crate::streams::{BatchSource, arrived, batches_of, parts, stream_of_batches};

/// Operations on a device, whose batches are there.
pub(crate) trait OnDevice: BatchSource<DeviceBatch> {
    fn counters(&self) -> &Counters;

    /// The stream of the operations, and what measures its time.
    fn stream(&mut self) -> (&Stream, &mut Busy);
}

/// Leaves batches on the device.
pub(crate) fn left_there(source: impl OnDevice) -> DeviceBatches {
    let baseline = source.counters().baseline.clone();
    let batches = batches_of(source).inspect(move |batch| {
        baseline.record_output(batch.as_ref().map_or(0, DeviceBatch::len));
    });
    Box::pin(batches)
}

/// Downloads batches, and returns them in parts of the session's size.
pub(crate) fn downloaded(
    source: impl OnDevice,
    schema: SchemaRef,
    batch_rows: usize,
) -> SendableRecordBatchStream {
    let to = schema.clone();
    stream_of_batches(schema, Downloads { source, schema: to, batch_rows, ready: VecDeque::new() })
}

struct Downloads<S> {
    source: S,
    schema: SchemaRef,
    batch_rows: usize,
    ready: VecDeque<RecordBatch>,
}

impl<S: OnDevice> BatchSource<RecordBatch> for Downloads<S> {
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(batch) = self.ready.pop_front() {
                return Ok(Some(batch.record_output(&self.source.counters().baseline)));
            }
            let Some(made) = self.source.next().await? else { return Ok(None) };
            let counters = self.source.counters().clone();
            let (stream, busy) = self.source.stream();
            let made = own_text(made, stream).await.map_err(external)?;
            let there = download(&made, stream, busy, &counters).await.map_err(external)?;
            let _timer = counters.baseline.elapsed_compute().timer();
            let batch = batch_out(&there, &self.schema)?;
            counters.down(&batch);
            self.ready.extend(parts(&batch, self.batch_rows));
        }
    }
}

/// A batch without the text of other rows: a download copies all text that its rows share with those of the
/// same upload. Without memory for a copy, it stays as it is.
async fn own_text(made: DeviceBatch, stream: &Stream) -> bowstring::Result<DeviceBatch> {
    if is_host(stream.device()) {
        return Ok(made);
    }
    match garbage_collect(&made, stream).await {
        Err(Error::OutOfMemory { .. }) => Ok(made),
        own => own,
    }
}

/// Downloads a batch, and returns when its copies have arrived.
pub(crate) async fn download(
    made: &DeviceBatch,
    stream: &Stream,
    busy: &mut Busy,
    counters: &Counters,
) -> bowstring::Result<DeviceBatch> {
    let from = stream.mark()?;
    let pending = stream.download_later(made)?;
    busy.queued(from)?;
    let waited = counters.device_wait.timer();
    let there = arrived(pending).await;
    waited.done();
    there
}
