//! Adapts sources of batches to DataFusion's streams.

use std::future::Future;

use bowstring::{DeviceArray, DeviceBatch, Pending};
use datafusion::arrow::array::{Array, AsArray as _, RecordBatch};
use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::error::Result;
use datafusion::physical_plan::SendableRecordBatchStream;
use datafusion::physical_plan::coalesce::LimitedBatchCoalescer;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::{Stream, StreamExt};

use crate::error::refused;

/// A source of batches, in host memory or on a device.
pub(crate) trait BatchSource<T>: Send + 'static {
    /// The next batch; `None` at the end.
    fn next(&mut self) -> impl Future<Output = Result<Option<T>>> + Send;
}

/// The source's batches, up to its end or its first error.
pub(crate) fn batches_of<T: Send>(source: impl BatchSource<T>) -> impl Stream<Item = Result<T>> + Send {
    futures::stream::unfold(Some(source), |source| async {
        let mut source = source?;
        match source.next().await {
            Ok(batch) => batch.map(|batch| (Ok(batch), Some(source))),
            Err(error) => Some((Err(error), None)),
        }
    })
}

/// A stream of the source's batches, up to its end or its first error.
pub(crate) fn stream_of_batches(
    schema: SchemaRef,
    source: impl BatchSource<RecordBatch>,
) -> SendableRecordBatchStream {
    Box::pin(RecordBatchStreamAdapter::new(schema, batches_of(source)))
}

/// A stream of the one batch that a future returns.
pub(crate) fn row(
    schema: SchemaRef,
    made: impl Future<Output = Result<RecordBatch>> + Send + 'static,
) -> SendableRecordBatchStream {
    Box::pin(RecordBatchStreamAdapter::new(schema, futures::stream::once(made)))
}

/// A downloaded batch, once its copies have arrived.
pub(crate) async fn arrived(pending: Pending<DeviceBatch>) -> bowstring::Result<DeviceBatch> {
    let there = pending.await?;
    there.columns().iter().try_for_each(DeviceArray::wait)?;
    Ok(there)
}

/// The rows of a batch in batches of at most `each` rows.
pub(crate) fn parts(batch: &RecordBatch, each: usize) -> impl Iterator<Item = RecordBatch> {
    let (rows, each) = (batch.num_rows(), each.max(1));
    (0..rows).step_by(each).map(move |first| batch.slice(first, each.min(rows - first)))
}

/// The bytes of some columns of a batch: of its rows only, even if they are slices of longer arrays.
pub(crate) fn bytes_of(batch: &RecordBatch, columns: &[usize]) -> Result<usize> {
    let bytes = columns.iter().map(|column| {
        let column = batch.column(*column);
        // arrow-rs counts the views alone.
        let behind_views = match column.data_type() {
            DataType::Utf8View => column.as_string_view().total_buffer_bytes_used(),
            DataType::BinaryView => column.as_binary_view().total_buffer_bytes_used(),
            _ => 0,
        };
        column.to_data().get_slice_memory_size().map(|bytes| bytes + behind_views)
    });
    bytes.sum::<std::result::Result<usize, _>>().map_err(refused)
}

/// The rows of small batches in batches of the session's size; large ones are left as they are.
pub(crate) fn together(input: SendableRecordBatchStream, batch_rows: usize) -> SendableRecordBatchStream {
    let schema = input.schema();
    let batches = LimitedBatchCoalescer::new(schema.clone(), batch_rows, None);
    stream_of_batches(schema, Together { input, batches, ended: false })
}

struct Together {
    input: SendableRecordBatchStream,
    batches: LimitedBatchCoalescer,
    ended: bool,
}

impl BatchSource<RecordBatch> for Together {
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(batch) = self.batches.next_completed_batch() {
                return Ok(Some(batch));
            }
            if self.ended {
                return Ok(None);
            }
            match self.input.next().await.transpose()? {
                Some(batch) => {
                    // Without a limit on the rows, the status says nothing.
                    let _ = self.batches.push_batch(batch)?;
                }
                None => {
                    self.ended = true;
                    self.batches.finish()?;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{ArrayRef, StringViewArray};

    use super::*;

    /// Text that is not in its view takes memory too, and that of rows outside of a slice takes none.
    #[test]
    fn views_are_counted_with_their_text() {
        let texts = StringViewArray::from_iter_values((0..10).map(|row| "x".repeat(row * 10)));
        let batch = RecordBatch::try_from_iter([("v", Arc::new(texts) as ArrayRef)]).unwrap();
        assert_eq!(bytes_of(&batch, &[0]).unwrap(), 10 * 16 + 440);
        assert_eq!(bytes_of(&batch.slice(8, 2), &[0]).unwrap(), 2 * 16 + 170);
    }
}
