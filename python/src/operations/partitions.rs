//! Rows in parts that hashes of their keys choose.

use bowstring::DeviceArray;
use bowstring::compute;
use pyo3::prelude::*;

use super::groups::columns;
use crate::array::Array;
use crate::batch::RecordBatch;
use crate::device::{Stream, stream_for};
use crate::error::detached;
use crate::foreign::as_batch;

/// Divide the rows of a batch into parts by a hash of their keys, and return the parts.
///
/// `keys` are names or numbers of columns, one or a list. Rows with equal keys are in the same part, and keep
/// their order. The hash is bowstring's own; it is the same in every process and on every device, so that
/// parts of two batches match if their keys have the same types. The parts share memory.
#[pyfunction]
#[pyo3(signature = (batch, keys, parts, *, stream = None))]
pub fn partition_by_hash(
    batch: &Bound<'_, PyAny>,
    keys: &Bound<'_, PyAny>,
    parts: usize,
    stream: Option<&Bound<'_, Stream>>,
) -> PyResult<Vec<RecordBatch>> {
    let (py, batch) = (batch.py(), as_batch(batch, "batch")?);
    let keys = columns(batch.0.schema(), keys, "keys")?;
    let keys: Vec<DeviceArray> = keys.iter().map(|key| batch.0.columns()[*key].clone()).collect();
    let on = stream_for(batch.place(), stream)?;
    let made =
        detached(py, || compute::partition_by_hash(&keys, parts, &on).wait()?.split(&batch.0, &on).wait())?;
    Ok(made.into_iter().map(RecordBatch::new).collect())
}

/// Return the rows at which a group of equal rows starts: row 0, and each row that differs from the row
/// before it in any of the columns.
///
/// `keys` are names or numbers of columns, one or a list. Sort by them first, or equal rows may be in several
/// groups. Nulls are equal to each other.
#[pyfunction]
#[pyo3(signature = (batch, keys, *, stream = None))]
pub fn partition(
    batch: &Bound<'_, PyAny>,
    keys: &Bound<'_, PyAny>,
    stream: Option<&Bound<'_, Stream>>,
) -> PyResult<Array> {
    let (py, batch) = (batch.py(), as_batch(batch, "batch")?);
    let keys = columns(batch.0.schema(), keys, "keys")?;
    let keys: Vec<DeviceArray> = keys.iter().map(|key| batch.0.columns()[*key].clone()).collect();
    let on = stream_for(batch.place(), stream)?;
    Ok(Array::nameless(detached(py, || compute::partition(&keys, &on).wait())?))
}
