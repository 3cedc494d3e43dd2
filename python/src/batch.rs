//! The class `RecordBatch`.

use std::sync::Arc;

use arrow_schema::Schema;
use bowstring::DeviceBatch;
use bowstring::array::Place;
use bowstring::compute::{CastOptions, cast};
use pyo3::prelude::*;

use crate::capsule::{as_plain, import_schema};
use crate::device::default_stream;
use crate::error::{detached, ours};
use crate::source::{Raised, Source};

/// A batch of named arrays of equal length.
#[pyclass(frozen, weakref, module = "bowstring")]
#[derive(Clone)]
pub struct RecordBatch(pub DeviceBatch, pub Option<&'static str>);

impl RecordBatch {
    /// Wraps a batch that was made here, not imported.
    pub fn new(batch: DeviceBatch) -> RecordBatch {
        RecordBatch(batch, None)
    }

    /// Records the method of another library's object that the batch was imported by.
    pub fn came_by(self, method: &'static str) -> RecordBatch {
        RecordBatch(self.0, Some(method))
    }

    /// The memory of the first column, which stands for all; the CPU's if the batch has no columns.
    pub fn place(&self) -> Place {
        self.0.columns().first().map_or(Place::CPU, |column| column.place())
    }

    /// Casts the columns to the types of a schema; fails if a value does not fit.
    pub fn as_schema(&self, schema: Schema) -> PyResult<RecordBatch> {
        let options = CastOptions { safe: false, ..CastOptions::default() };
        self.casted(schema, &options, &default_stream(self.place())?)
    }

    /// Casts the columns to the types of a schema.
    pub fn casted(
        &self,
        schema: Schema,
        options: &CastOptions<'static>,
        stream: &bowstring::Stream,
    ) -> PyResult<RecordBatch> {
        ours(|| cast(&self.0, &Arc::new(schema), options, stream).wait()).map(RecordBatch::new)
    }

    /// Casts the batch to the schema capsule that a consumer passed, if any.
    pub fn requested(&self, py: Python<'_>, schema: Option<&Bound<'_, PyAny>>) -> PyResult<RecordBatch> {
        match schema.map(import_schema).transpose()? {
            Some(schema) if has_names_of(&schema, self.0.schema()) => detached(py, || self.as_schema(schema)),
            _ => Ok(self.clone()),
        }
    }

    /// Returns the batch in plain host memory, copied if the host cannot read it where it is.
    pub fn on_the_host(&self) -> PyResult<RecordBatch> {
        if self.0.columns().iter().all(|column| column.place().device_type.host_accessible()) {
            return ours(|| plain(&self.0)).map(|here| RecordBatch(here, self.1));
        }
        let there = self.0.columns().iter().map(|column| column.place());
        let elsewhere = there.into_iter().find(|place| !place.device_type.host_accessible());
        let stream = default_stream(elsewhere.unwrap_or(self.place()))?;
        ours(|| stream.download(&self.0)).map(RecordBatch::new)
    }

    /// Turns the batch into a stream of one batch.
    pub fn once(self, place: Place) -> Source<arrow_schema::SchemaRef, DeviceBatch> {
        let (shape, raised) = (self.0.schema().clone(), Raised::default());
        Source { shape, place, items: Box::new(std::iter::once(Ok(self.0))), raised }
    }
}

/// Returns a batch that the host can read as one in plain host memory; see `as_plain`.
pub fn plain(batch: &DeviceBatch) -> bowstring::Result<DeviceBatch> {
    let columns = batch.schema().fields().iter().zip(batch.columns());
    let columns = columns.map(|(field, column)| match column.place() {
        Place::CPU => Ok(column.clone()),
        _ => as_plain(column, field),
    });
    let plain =
        DeviceBatch::try_new(batch.schema().clone(), columns.collect::<Result<_, _>>()?, batch.len())?;
    Ok(plain.with_metadata(batch.metadata().clone()))
}

/// Whether columns have the names of others, in their order. A consumer may ask for other types of columns,
/// and not for other columns: it sees by the schema that it gets that it has not got them.
pub fn has_names_of(asked: &Schema, own: &Schema) -> bool {
    let names =
        |schema: &Schema| schema.fields().iter().map(|field| field.name().clone()).collect::<Vec<_>>();
    names(asked) == names(own)
}
