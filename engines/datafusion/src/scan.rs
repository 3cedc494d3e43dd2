//! The leaf of plans over batches that are already on a device: our operators above it take them as they are.

use std::fmt;
use std::sync::Arc;

use bowstring::{Device, DeviceBatch};
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::Statistics;
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_plan::coop::cooperative;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType, SchedulingType};
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PhysicalExpr, PlanProperties,
    SendableRecordBatchStream,
};
use futures::StreamExt;

use crate::bridge::batch_out;
use crate::device::stream_of;
use crate::error::external;
use crate::metrics::Counters;
use crate::operator::DeviceBatches;
use crate::streams::{arrived, parts};

/// A scan of batches on a device.
pub struct DeviceScan {
    device: Device,
    partitions: Vec<Vec<DeviceBatch>>,
    /// The numbers of the projected columns.
    columns: Vec<usize>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl DeviceScan {
    pub(crate) fn new(
        device: &Device,
        partitions: Vec<Vec<DeviceBatch>>,
        columns: Vec<usize>,
        schema: SchemaRef,
    ) -> DeviceScan {
        let count = partitions.len();
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema),
            Partitioning::UnknownPartitioning(count),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        DeviceScan {
            device: device.clone(),
            partitions,
            columns,
            properties: Arc::new(properties.with_scheduling_type(SchedulingType::Cooperative)),
            metrics: ExecutionPlanMetricsSet::new(),
        }
    }

    /// Whether the batches are in this device's memory.
    pub(crate) fn is_on(&self, device: &Device) -> bool {
        self.device.place() == device.place()
    }

    /// The batches of a partition on their device, reduced to the projected columns.
    pub(crate) fn execute_on_device(&self, partition: usize) -> Result<DeviceBatches> {
        let Some(batches) = self.partitions.get(partition).cloned() else {
            return datafusion::common::internal_err!("no partition {partition}");
        };
        let columns = self.columns.clone();
        let batches = batches.into_iter().map(move |batch| projected(&batch, &columns).map_err(external));
        // The reader may be ready for each, and others want to run.
        Ok(Box::pin(futures::stream::iter(batches).then(async |batch| {
            tokio::task::consume_budget().await;
            batch
        })))
    }

    fn rows(&self) -> usize {
        self.partitions.iter().flatten().map(DeviceBatch::len).sum()
    }
}

fn projected(batch: &DeviceBatch, columns: &[usize]) -> bowstring::Result<DeviceBatch> {
    let fields: Vec<_> = columns.iter().map(|column| batch.schema().field(*column).clone()).collect();
    let arrays = columns.iter().map(|column| batch.columns()[*column].clone()).collect();
    DeviceBatch::try_new(Arc::new(arrow_schema::Schema::new(fields)), arrays, batch.len())
}

/// Divides the rows evenly into this many partitions, as slices without copying.
fn shared_out(partitions: &[Vec<DeviceBatch>], into: usize) -> bowstring::Result<Vec<Vec<DeviceBatch>>> {
    let rows: usize = partitions.iter().flatten().map(DeviceBatch::len).sum();
    let each = rows.div_ceil(into).max(1);
    let mut made: Vec<Vec<DeviceBatch>> = vec![vec![]];
    let mut room = each;
    for batch in partitions.iter().flatten() {
        let mut first = 0;
        while first < batch.len() {
            if room == 0 {
                made.push(vec![]);
                room = each;
            }
            let count = room.min(batch.len() - first);
            let slice = batch.slice(first, count)?;
            made.last_mut().into_iter().for_each(|last| last.push(slice.clone()));
            (first, room) = (first + count, room - count);
        }
    }
    made.resize_with(into, Vec::new);
    Ok(made)
}

impl fmt::Debug for DeviceScan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DeviceScan({}, {} partitions)", self.device.place(), self.partitions.len())
    }
}

impl DisplayAs for DeviceScan {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let batches: usize = self.partitions.iter().map(Vec::len).sum();
        write!(
            f,
            "DeviceScan: device={}, partitions={}, batches={batches}",
            self.device.place(),
            self.partitions.len()
        )
    }
}

impl ExecutionPlan for DeviceScan {
    fn name(&self) -> &str {
        "DeviceScan"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match children.is_empty() {
            true => Ok(self),
            false => datafusion::common::internal_err!("DeviceScan has no children"),
        }
    }

    fn repartitioned(&self, into: usize, _: &ConfigOptions) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        if into <= self.partitions.len() {
            return Ok(None);
        }
        let partitions = shared_out(&self.partitions, into).map_err(external)?;
        let (columns, schema) = (self.columns.clone(), self.schema());
        Ok(Some(Arc::new(DeviceScan::new(&self.device, partitions, columns, schema))))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let (stream, schema) = (stream_of(&self.device)?, self.schema());
        let counters = Counters::new(&self.metrics, partition, true);
        let (each, to) = (context.session_config().batch_size(), schema.clone());
        let batches = self.execute_on_device(partition)?;
        let downloaded = futures::stream::unfold(Some(batches), move |batches| {
            let (stream, to, counters) = (stream.clone(), to.clone(), counters.clone());
            async move {
                let mut batches = batches?;
                let next = batches.next().await?;
                let down = async {
                    let pending = stream.download_later(&next?).map_err(external)?;
                    let there = arrived(pending).await.map_err(external)?;
                    counters.rows_down.add(there.len());
                    counters.baseline.record_output(there.len());
                    batch_out(&there, &to)
                };
                match down.await {
                    Ok(batch) => Some((Ok(batch), Some(batches))),
                    Err(error) => Some((Err(error), None)),
                }
            }
        });
        let sliced = downloaded.flat_map(move |batch| {
            let parts: Vec<Result<RecordBatch>> = match batch {
                Err(error) => vec![Err(error)],
                Ok(batch) => parts(&batch, each).map(Ok).collect(),
            };
            futures::stream::iter(parts)
        });
        Ok(Box::pin(cooperative(RecordBatchStreamAdapter::new(schema, Box::pin(sliced)))))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn statistics_from_inputs(
        &self,
        _: &[Arc<Statistics>],
        args: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        let rows = match args.partition() {
            None => self.rows(),
            Some(partition) => {
                self.partitions.get(partition).into_iter().flatten().map(DeviceBatch::len).sum()
            }
        };
        let unknown = Statistics::new_unknown(&self.schema());
        Ok(Arc::new(Statistics { num_rows: Precision::Exact(rows), ..unknown }))
    }
}
