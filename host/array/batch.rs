//! Record batches: arrays of equal length under a schema.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_schema::{Schema, SchemaRef};

use super::DeviceArray;
use crate::{Error, Result};

/// Key-value metadata of a single batch, in addition to its schema's metadata.
pub type Metadata = Arc<BTreeMap<String, String>>;

/// Arrays of equal length under a schema: a record batch.
#[derive(Clone, Debug)]
pub struct DeviceBatch {
    schema: SchemaRef,
    metadata: Metadata,
    columns: Vec<DeviceArray>,
    len: usize,
}

impl DeviceBatch {
    /// Creates a batch. Returns an error unless the columns have the schema's types and `len` rows each.
    pub fn try_new(schema: SchemaRef, columns: Vec<DeviceArray>, len: usize) -> Result<DeviceBatch> {
        DeviceBatch::with(schema, columns, len, Metadata::default())
    }

    /// As [`try_new`](DeviceBatch::try_new), with metadata.
    pub(crate) fn with(
        schema: SchemaRef,
        columns: Vec<DeviceArray>,
        len: usize,
        metadata: Metadata,
    ) -> Result<DeviceBatch> {
        columns_are_of("batch", &schema, &columns)?;
        rows_of("batch", [len])?;
        let other = schema.fields().iter().zip(&columns).find(|(_, column)| column.len() != len);
        if let Some((field, column)) = other {
            let problem = format!("{} has {} rows, not {len}", field.name(), column.len());
            return Err(Error::invalid("batch", problem));
        }
        Ok(DeviceBatch { schema, metadata, columns, len })
    }

    /// Rows `offset .. offset + len`. The result shares the columns' buffers.
    pub fn slice(&self, offset: usize, len: usize) -> Result<DeviceBatch> {
        if offset.checked_add(len).is_none_or(|end| end > self.len) {
            let problem = format!("rows {offset}+{len} of a batch of {}", self.len);
            return Err(Error::invalid("slice", problem));
        }
        let columns = self.columns.iter().map(|column| column.slice(offset, len)).collect::<Result<_>>()?;
        Ok(DeviceBatch { schema: self.schema.clone(), metadata: self.metadata.clone(), columns, len })
    }

    /// The schema of the columns.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The metadata of this batch, apart from that of its schema. The producer of an asynchronous stream sets
    /// it, or [`with_metadata`](Self::with_metadata). Operations that select, order or convert the rows of
    /// one batch copy it to their results, as they do the schema's metadata. Results of several batches,
    /// groups and computed columns may lack either.
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// Replaces the batch's metadata.
    pub fn with_metadata(mut self, metadata: Metadata) -> DeviceBatch {
        self.metadata = metadata;
        self
    }

    /// The columns in the order of the schema's fields.
    pub fn columns(&self) -> &[DeviceArray] {
        &self.columns
    }

    /// The number of rows, also of a batch without columns.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the batch has no rows.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

/// Adds up numbers of rows. Returns an error above `i64::MAX`, the limit of arrays and batches.
pub(crate) fn rows_of(operation: &'static str, lens: impl IntoIterator<Item = usize>) -> Result<usize> {
    let rows = lens.into_iter().try_fold(0usize, usize::checked_add);
    let rows = rows.filter(|rows| i64::try_from(*rows).is_ok());
    rows.ok_or_else(|| Error::invalid(operation, "more rows than an `i64` can count"))
}

/// Checks that the number and types of columns match a schema.
pub(crate) fn columns_are_of(
    operation: &'static str,
    schema: &Schema,
    columns: &[DeviceArray],
) -> Result<()> {
    let fields = schema.fields();
    if columns.len() != fields.len() {
        let problem = format!("{} fields but {} columns", fields.len(), columns.len());
        return Err(Error::invalid(operation, problem));
    }
    let mut both = fields.iter().zip(columns);
    match both.find(|(field, column)| field.data_type() != column.data_type()) {
        None => Ok(()),
        Some((field, column)) => {
            let (name, theirs) = (field.name(), column.data_type());
            let problem = format!("{name} is {} but its column {theirs}", field.data_type());
            Err(Error::invalid(operation, problem))
        }
    }
}
