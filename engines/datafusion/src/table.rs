//! Batches on a device as a DataFusion table.

use std::fmt;
use std::sync::Arc;

use bowstring::array::Batches;
use bowstring::exchange::validate_batch;
use bowstring::{Device, DeviceBatch, Stream};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::datasource::MemTable;
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_plan::ExecutionPlan;

use crate::bridge::batch_out;
use crate::error::external;
use crate::scan::DeviceScan;
use crate::streams::parts as parts_of;
use crate::types::their_schema;

/// A table of batches on a device: imported from another library that computed them there, or uploaded.
///
/// [`batches_at`](crate::batches_at) reads a stream that another library, or a program in C or Python, has at
/// an address.
///
/// Our operators on the same device read the batches without a copy; all other operators get them downloaded.
/// The table keeps the batches for as long as it lives.
pub struct DeviceTable {
    device: Device,
    schema: SchemaRef,
    batches: Vec<DeviceBatch>,
}

impl DeviceTable {
    /// Creates a table of batches of one schema, in memory that the device serves.
    pub fn try_new(device: &Device, batches: Batches) -> Result<DeviceTable> {
        let schema = Arc::new(their_schema(batches.schema()));
        let ours = batches.schema().clone();
        let batches: Vec<DeviceBatch> = batches.collect::<bowstring::Result<_>>().map_err(external)?;
        let types = |schema: &arrow_schema::Schema| -> Vec<_> {
            schema.fields().iter().map(|field| field.data_type().clone()).collect()
        };
        for batch in &batches {
            if types(batch.schema()) != types(&ours) {
                return datafusion::common::exec_err!("a batch of {} in a table of {ours}", batch.schema());
            }
        }
        Ok(DeviceTable { device: device.clone(), schema, batches })
    }
}

/// A table of batches in host memory that another library has made. They are validated, not copied, and are
/// divided into batches of at most `rows` rows, in so many partitions.
pub fn host_table(batches: Batches, rows: usize, partitions: usize) -> Result<MemTable> {
    let schema = Arc::new(their_schema(batches.schema()));
    let mut parts = vec![];
    for batch in batches {
        let batch = batch.map_err(external)?;
        validate_batch(&batch, &Stream::cpu()).map_err(external)?;
        parts.extend(parts_of(&batch_out(&batch, &schema)?, rows));
    }
    let each = parts.len().div_ceil(partitions.max(1)).max(1);
    let mut partitions: Vec<Vec<_>> = parts.chunks(each).map(<[_]>::to_vec).collect();
    if partitions.is_empty() {
        partitions.push(vec![]);
    }
    MemTable::try_new(schema, partitions)
}

impl fmt::Debug for DeviceTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DeviceTable({}, {} batches)", self.device.place(), self.batches.len())
    }
}

#[async_trait::async_trait]
impl TableProvider for DeviceTable {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        _: &dyn Session,
        projection: Option<&Vec<usize>>,
        _: &[Expr],
        _: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let columns = projection.cloned().unwrap_or_else(|| (0..self.schema.fields().len()).collect());
        let schema = Arc::new(self.schema.project(&columns)?);
        Ok(Arc::new(DeviceScan::new(&self.device, vec![self.batches.clone()], columns, schema)))
    }
}
