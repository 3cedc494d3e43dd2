//! Groups all rows of a partition on a device, up to the results: batch by batch, with memory for the groups.

use std::sync::Arc;

use bowstring::array::Batches;
use bowstring::compute::Grouping;
use bowstring::{DeviceBatch, Stream};
use datafusion::error::Result;

use crate::device::stream_of;
use crate::downloads::OnDevice;
use crate::error::external;
use crate::gpu::{Run, columns};
use crate::metrics::{Busy, Counters};
use crate::operator::Source;
use crate::program::{Aggregated, Work};
use crate::spill::SpilledRows;
use crate::streams::BatchSource;
use crate::uploads::Uploads;

/// The groups of a partition, finished.
pub(crate) struct Finishing {
    run: Run,
    stream: Stream,
    uploads: Uploads,
    /// The groups, once all rows have been read.
    groups: Option<Batches>,
    /// The place of groups that the device may not keep.
    spill: Arc<SpilledRows>,
    busy: Busy,
}

impl Finishing {
    pub fn new(run: Run, source: Source, spill: Arc<SpilledRows>) -> Result<Finishing> {
        let stream = stream_of(&run.device)?;
        let uploads = Uploads::new(source, columns(&run.program), &run.options, &run.counters);
        let busy = Busy::new(&stream, &run.counters);
        Ok(Finishing { run, stream, uploads, groups: None, spill, busy })
    }

    /// Groups the rows of all uploads.
    async fn grouped(&mut self, aggregated: &Aggregated) -> Result<Batches> {
        let grouping = aggregated.aggregates.grouping(&self.stream).map_err(external)?;
        let mut grouping = grouping.spill_to(self.spill.clone());
        // A batch is in use until the next one has been pushed.
        let mut before = 0;
        while let Some(taken) = self.uploads.gathered().await? {
            let Some(taken) = self.uploads.granted(taken, &self.run.reservation, false)? else { break };
            let from = self.stream.mark().map_err(external)?;
            let bytes = taken.bytes();
            let batch = self.uploads.upload(taken, &self.stream)?;
            self.push(&mut grouping, aggregated, batch).await?;
            self.run.reservation.shrink(before);
            before = bytes;
            self.busy.queued(from).map_err(external)?;
        }
        let groups = grouping.finish().map_err(|error| self.spill.why(error))?;
        self.run.reservation.free();
        Ok(groups)
    }

    /// Groups the rows of a batch for which the condition is true.
    async fn push(
        &mut self,
        grouping: &mut Grouping,
        aggregated: &Aggregated,
        batch: DeviceBatch,
    ) -> Result<()> {
        let kept = match &self.run.program.condition {
            None => batch,
            Some(condition) => {
                let kept = condition.whole.predicate.run(&batch, &self.stream);
                aggregated.without_condition(&kept.await.map_err(external)?).map_err(external)?
            }
        };
        grouping.push(&kept).map_err(|error| self.spill.why(error))
    }
}

impl BatchSource<DeviceBatch> for Finishing {
    async fn next(&mut self) -> Result<Option<DeviceBatch>> {
        let program = self.run.program.clone();
        let Work::Aggregate(aggregated) = &program.work else {
            return datafusion::common::internal_err!("an aggregate that is none");
        };
        let Some(finished) = &aggregated.finished else {
            return datafusion::common::internal_err!("groups that are not finished");
        };
        if self.groups.is_none() {
            self.groups = Some(self.grouped(aggregated).await?);
        }
        let Some(groups) = self.groups.as_mut().and_then(Iterator::next) else {
            self.busy.count();
            return Ok(None);
        };
        let groups = groups.map_err(external)?;
        finished.run(&groups, &self.stream).await.map(Some).map_err(external)
    }
}

impl OnDevice for Finishing {
    fn counters(&self) -> &Counters {
        &self.run.counters
    }

    fn stream(&mut self) -> (&Stream, &mut Busy) {
        (&self.stream, &mut self.busy)
    }
}
