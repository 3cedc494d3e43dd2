//! Pickling: arrays, batches and types to pickles and back. All contents come back in host memory.

use std::sync::Arc;

use arrow_schema::Schema as InnerSchema;
use bowstring::{DeviceBatch, exchange};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::array::Array;
use crate::batch::RecordBatch;
use crate::error::{detached, ours};
use crate::ipc;
use crate::types::{DataType, Field, Schema};

fn written<'py>(py: Python<'py>, class: &str, batch: DeviceBatch) -> PyResult<Bound<'py, PyTuple>> {
    let theirs = detached(py, || -> PyResult<_> {
        let here = RecordBatch::new(batch).on_the_host()?.0;
        ours(|| exchange::batch_to_arrow(&here))
    })?;
    ipc::reduced(py, class, &theirs.schema(), Some(&theirs))
}

/// Returns the `__reduce__` tuple of an array.
pub fn reduced_array<'py>(py: Python<'py>, array: &Array) -> PyResult<Bound<'py, PyTuple>> {
    let schema = Arc::new(InnerSchema::new(vec![array.field.clone()]));
    let batch = ours(|| DeviceBatch::try_new(schema, vec![array.array.clone()], array.array.len()))?;
    written(py, "Array", batch)
}

/// Returns the `__reduce__` tuple of a batch.
pub fn reduced_batch<'py>(py: Python<'py>, batch: &RecordBatch) -> PyResult<Bound<'py, PyTuple>> {
    written(py, "RecordBatch", batch.0.clone())
}

/// Restore an object from its pickle. Bytes that are no pickle of the class raise `ValueError`.
#[pyfunction]
#[pyo3(name = "_unpickle")]
pub fn unpickle<'py>(py: Python<'py>, class: &str, bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    let (schema, batch) = ipc::read(bytes)?;
    let nothing = || PyValueError::new_err("no pickle of bowstring's: it ends early");
    let first = || schema.fields().first().map(|field| field.as_ref().clone()).ok_or_else(nothing);
    let batch = batch.map(|batch| ours(|| exchange::batch_from_arrow(&batch))).transpose()?;
    Ok(match (class, batch) {
        ("DataType", _) => DataType(first()?).into_pyobject(py)?.into_any(),
        ("Field", _) => Field(first()?).into_pyobject(py)?.into_any(),
        ("Schema", _) => Schema(schema.as_ref().clone()).into_pyobject(py)?.into_any(),
        ("RecordBatch", Some(batch)) => RecordBatch::new(batch).into_pyobject(py)?.into_any(),
        ("Array", Some(batch)) => {
            let field = first()?;
            Array::new(batch.columns().first().ok_or_else(nothing)?.clone(), &field)
                .into_pyobject(py)?
                .into_any()
        }
        _ => return Err(nothing()),
    })
}
