//! Record batches: arrays of equal length under a schema.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_schema::SchemaRef;

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
        let problem = |problem| Err(Error::Invalid { operation: "batch", problem });
        if schema.fields().len() != columns.len() {
            return problem(format!("{} fields but {} columns", schema.fields().len(), columns.len()));
        }
        for (field, column) in schema.fields().iter().zip(&columns) {
            if field.data_type() != column.data_type() {
                return problem(format!(
                    "{} is {} but its column {}",
                    field.name(),
                    field.data_type(),
                    column.data_type()
                ));
            }
            if column.len() != len {
                return problem(format!("{} has {} rows, not {len}", field.name(), column.len()));
            }
        }
        Ok(Batch { schema, metadata: Metadata::default(), columns, len })
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
