//! Validation of contents, for every `validate` method and keyword.

use bowstring::compute::batches::validate_batches;
use bowstring::{DeviceArray as Inner, DeviceBatch, exchange};
use pyo3::prelude::*;

use crate::device::default_stream;
use crate::error::detached;
use crate::source::Source;

/// Raises an error if an array's contents are not valid Arrow data.
pub fn check_array(py: Python<'_>, array: &Inner) -> PyResult<()> {
    let on = default_stream(array.place())?;
    detached(py, || exchange::validate_on(array, &on))
}

/// Raises an error if a batch's contents are not valid Arrow data.
pub fn check_batch(py: Python<'_>, batch: &DeviceBatch) -> PyResult<()> {
    // The host reads the others where they are.
    let elsewhere = batch.columns().iter().find(|column| !column.place().device_type.host_accessible());
    let Some(column) = elsewhere.or(batch.columns().first()) else { return Ok(()) };
    let on = default_stream(column.place())?;
    detached(py, || exchange::validate_batch(batch, &on))
}

/// Validates each batch when it is read.
pub fn checked(
    source: Source<arrow_schema::SchemaRef, DeviceBatch>,
    stream: &bowstring::Stream,
) -> Source<arrow_schema::SchemaRef, DeviceBatch> {
    let (batches, raised) = source.take_apart();
    Source::of(validate_batches(batches, stream), raised)
}
