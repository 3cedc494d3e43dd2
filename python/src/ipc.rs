//! Arrow IPC streams of one batch: what pickles are made of.

use arrow_array::RecordBatch;
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{ArrowError, SchemaRef};
use pyo3::exceptions::{PyNotImplementedError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

/// A schema, and a batch of it if there is one, as bytes.
pub fn write(schema: &SchemaRef, batch: Option<&RecordBatch>) -> PyResult<Vec<u8>> {
    let write = || -> Result<Vec<u8>, ArrowError> {
        let mut writer = StreamWriter::try_new(vec![], schema)?;
        batch.map_or(Ok(()), |batch| writer.write(batch))?;
        writer.into_inner()
    };
    write().map_err(|error| PyNotImplementedError::new_err(format!("pickle: {error}")))
}

/// What [`write`] has made bytes of; anything else is a `ValueError`.
pub fn read(bytes: &[u8]) -> PyResult<(SchemaRef, Option<RecordBatch>)> {
    let read = || -> Result<_, ArrowError> {
        let mut reader = StreamReader::try_new(bytes, None)?;
        Ok((reader.schema(), reader.next().transpose()?))
    };
    read().map_err(|error| PyValueError::new_err(format!("no pickle of bowstring's: {error}")))
}

/// What `__reduce__` gives for an object of a class that is in these bytes.
pub fn reduced<'py>(py: Python<'py>, class: &str, bytes: &[u8]) -> PyResult<Bound<'py, PyTuple>> {
    let unpickle = py.import("bowstring._bowstring")?.getattr("_unpickle")?;
    (unpickle, (class, PyBytes::new(py, bytes))).into_pyobject(py)
}
