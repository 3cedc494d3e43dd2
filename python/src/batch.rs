//! Record batches.

use std::sync::Arc;

use arrow_schema::Schema;
use bowstring::Batch;
use bowstring::array::Place;
use bowstring::compute::{CastOptions, cast};
use pyo3::exceptions::{PyIndexError, PyKeyError, PyTypeError};
use pyo3::prelude::*;

use crate::capsule::import_schema;
use crate::device::default_stream;
use crate::error::{detached, ours};
use crate::source::{Raised, Source};

/// Arrays of equal length with names.
#[pyclass(frozen, module = "bowstring")]
#[derive(Clone)]
pub struct RecordBatch(pub Batch);

impl RecordBatch {
    /// Where it is, going by the first column.
    pub fn place(&self) -> Place {
        self.0.columns().first().map_or(Place::CPU, |column| column.place())
    }

    /// With the columns cast to a schema's types, each value of which must fit.
    pub fn as_schema(&self, schema: Schema) -> PyResult<RecordBatch> {
        let options = CastOptions { safe: false, ..CastOptions::default() };
        self.cast(schema, &options, &default_stream(self.place())?)
    }

    /// With the columns cast to the types of a schema.
    pub fn cast(
        &self,
        schema: Schema,
        options: &CastOptions<'static>,
        stream: &bowstring::Stream,
    ) -> PyResult<RecordBatch> {
        ours(|| cast(&self.0, &Arc::new(schema), options, stream).wait()).map(RecordBatch)
    }

    /// This batch as a consumer asks for it.
    pub fn requested(&self, py: Python<'_>, schema: Option<&Bound<'_, PyAny>>) -> PyResult<RecordBatch> {
        match schema.map(import_schema).transpose()? {
            None => Ok(self.clone()),
            Some(schema) => detached(py, || self.as_schema(schema)),
        }
    }

    /// In host memory, a copy where it is not.
    pub fn on_the_host(&self) -> PyResult<RecordBatch> {
        if self.0.columns().iter().all(|column| column.place().device_type.host_accessible()) {
            return Ok(self.clone());
        }
        let stream = default_stream(self.place())?;
        ours(|| stream.download(&self.0)).map(RecordBatch)
    }

    /// As a stream of one batch.
    pub fn once(self, place: Place) -> Source<arrow_schema::SchemaRef, Batch> {
        let (shape, raised) = (self.0.schema().clone(), Raised::default());
        Source { shape, place, items: Box::new(std::iter::once(Ok(self.0))), raised }
    }
}

/// The names and types of columns, for people.
pub fn described(schema: &Schema) -> String {
    let fields = schema.fields().iter().map(|field| {
        let not_null = if field.is_nullable() { "" } else { " not null" };
        format!("{}: {}{not_null}", field.name(), field.data_type())
    });
    fields.collect::<Vec<_>>().join(", ")
}

/// Where a column is, by number or name; negative numbers count from the end.
pub fn place_in(schema: &Schema, which: &Bound<'_, PyAny>, argument: &str) -> PyResult<usize> {
    if let Ok(name) = which.extract::<String>() {
        return schema.index_of(&name).map_err(|_| PyKeyError::new_err(name));
    }
    let number: i128 = which.extract().map_err(|_| {
        PyTypeError::new_err(format!("{argument}: a column's name or number, not {}", which.get_type()))
    })?;
    let columns = schema.fields().len() as i128;
    match if number < 0 { number + columns } else { number } {
        index if (0..columns).contains(&index) => Ok(index as usize),
        _ => Err(PyIndexError::new_err(format!("no column {number} of {columns}"))),
    }
}
