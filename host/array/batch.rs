//! Record batches: arrays of equal length under a schema.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_schema::{Schema, SchemaRef};

use super::Array;
use crate::{Error, Result};

/// What somebody says of a batch besides its schema.
pub type Metadata = Arc<BTreeMap<String, String>>;

/// Arrays of equal length under a schema: a record batch.
#[derive(Clone, Debug)]
pub struct Batch {
    schema: SchemaRef,
    metadata: Metadata,
    columns: Vec<Array>,
    len: usize,
}

impl Batch {
    /// A batch of these columns, where their types are the schema's and their lengths `len`.
    pub fn try_new(schema: SchemaRef, columns: Vec<Array>, len: usize) -> Result<Batch> {
        columns_are_of("batch", &schema, &columns)?;
        rows_of("batch", [len])?;
        let other = schema.fields().iter().zip(&columns).find(|(_, column)| column.len() != len);
        if let Some((field, column)) = other {
            let problem = format!("{} has {} rows, not {len}", field.name(), column.len());
            return Err(Error::invalid("batch", problem));
        }
        Ok(Batch { schema, metadata: Metadata::default(), columns, len })
    }

    /// Rows `offset .. offset + len`, which share the columns' buffers.
    pub fn slice(&self, offset: usize, len: usize) -> Result<Batch> {
        if offset.checked_add(len).is_none_or(|end| end > self.len) {
            let problem = format!("rows {offset}+{len} of a batch of {}", self.len);
            return Err(Error::invalid("slice", problem));
        }
        let columns = self.columns.iter().map(|column| column.slice(offset, len)).collect::<Result<_>>()?;
        Ok(Batch { schema: self.schema.clone(), metadata: self.metadata.clone(), columns, len })
    }

    /// The fields' names and types.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// What was said of this batch besides its schema, by who sent it in an asynchronous stream or by
    /// [`with_metadata`](Self::with_metadata). Operations give it on with their results, as they do the schema's metadata.
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// The batch with another metadata.
    pub fn with_metadata(mut self, metadata: Metadata) -> Batch {
        self.metadata = metadata;
        self
    }

    /// The columns.
    pub fn columns(&self) -> &[Array] {
        &self.columns
    }

    /// How many rows.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

/// How many rows there are in all: neither an array nor a batch has more than an `i64` can count.
pub(crate) fn rows_of(operation: &'static str, lens: impl IntoIterator<Item = usize>) -> Result<usize> {
    let rows = lens.into_iter().try_fold(0usize, usize::checked_add);
    let rows = rows.filter(|rows| i64::try_from(*rows).is_ok());
    rows.ok_or_else(|| Error::invalid(operation, "more rows than an `i64` can count"))
}

/// That columns are as many as a schema has fields, and of their types.
pub(crate) fn columns_are_of(operation: &'static str, schema: &Schema, columns: &[Array]) -> Result<()> {
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
