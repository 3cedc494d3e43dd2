//! Computes an aggregate's arguments as columns, or the states of single rows, for runs whose sums overflow
//! our types. Our sums are exact, and a decimal sum of more than 38 digits is an error; DataFusion's wrap
//! around and may come back into range.

use bowstring::compute::BoundQuery;
use bowstring::{DeviceBatch, Error, Stream};
use datafusion::error::Result;
use datafusion::physical_plan::aggregates::AccumulatorItem;

use crate::bridge::array_out;
use crate::error::external;
use crate::streams::arrived;

/// Values of the rows for which a condition is true: the arguments of aggregates, one column each, or, if the
/// aggregates have keys, the keys and then the states of each single row.
#[derive(Clone, Debug)]
pub(crate) struct Arguments {
    pub condition: Option<BoundQuery>,
    pub values: BoundQuery,
}

impl Arguments {
    /// Whether this error may come from a sum: of all rows, or of a group, which is cast to its type at the
    /// end. If a cast in an argument failed, it fails again.
    pub fn help_with(error: &Error) -> bool {
        matches!(error, Error::Invalid { operation: "aggregate", .. } | Error::Cast { .. })
    }

    /// The values of a batch's rows, on the stream's device.
    pub async fn values(&self, batch: &DeviceBatch, stream: &Stream) -> Result<DeviceBatch> {
        let kept = match &self.condition {
            None => batch.clone(),
            Some(condition) => condition.run(batch, stream).await.map_err(external)?,
        };
        self.values.run(&kept, stream).await.map_err(external)
    }

    /// Passes the arguments of a batch's rows to DataFusion's accumulators.
    pub async fn update(
        &self,
        batch: &DeviceBatch,
        accumulators: &mut [AccumulatorItem],
        stream: &Stream,
    ) -> Result<()> {
        let values = self.values(batch, stream).await?;
        let values = arrived(stream.download_later(&values).map_err(external)?).await.map_err(external)?;
        for (accumulator, column) in accumulators.iter_mut().zip(values.columns()) {
            accumulator.update_batch(&[array_out(column)?])?;
        }
        Ok(())
    }
}
