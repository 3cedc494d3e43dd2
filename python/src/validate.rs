//! Contents read through: what `validate` means, wherever it is asked for.

use bowstring::compute::batches::validate_batches;
use bowstring::{Array as Inner, Batch, exchange};
use pyo3::prelude::*;

use crate::array::Array;
use crate::batch::RecordBatch;
use crate::device::default_stream;
use crate::error::detached;
use crate::foreign;
use crate::source::Source;

/// Any object with an Arrow, DLPack or CUDA array interface as an array; `type`, if given, is what it is cast to. With
/// `validate`, contents that are no Arrow data are refused, as by `Array.validate`.
#[pyfunction]
#[pyo3(signature = (obj, /, r#type = None, *, validate = false))]
pub fn array(obj: &Bound<'_, PyAny>, r#type: Option<&Bound<'_, PyAny>>, validate: bool) -> PyResult<Array> {
    let array = foreign::as_array(obj, "obj")?;
    if validate {
        check_array(obj.py(), &array.array)?;
    }
    match r#type {
        Some(to) => {
            crate::operations::cast_array(obj.py(), &array, &foreign::field(to, "type")?, false, None)
        }
        None => Ok(array),
    }
}

/// Any object with an Arrow interface as a batch: arrays of structs, streams of batches. With `validate`, contents that are
/// no Arrow data are refused, as by `RecordBatch.validate`.
#[pyfunction]
#[pyo3(signature = (obj, /, *, validate = false))]
pub fn record_batch(obj: &Bound<'_, PyAny>, validate: bool) -> PyResult<RecordBatch> {
    let batch = foreign::as_batch(obj, "obj")?;
    if validate {
        check_batch(obj.py(), &batch.0)?;
    }
    Ok(batch)
}

/// Raises where an array's contents are no Arrow data.
pub fn check_array(py: Python<'_>, array: &Inner) -> PyResult<()> {
    let on = default_stream(array.place())?;
    detached(py, || exchange::validate_on(array, &on))
}

/// Raises where a batch's contents are no Arrow data.
pub fn check_batch(py: Python<'_>, batch: &Batch) -> PyResult<()> {
    let Some(column) = batch.columns().first() else { return Ok(()) };
    let on = default_stream(column.place())?;
    detached(py, || exchange::validate_batch(batch, &on))
}

/// The same batches, each looked at when it comes.
pub fn checked(
    source: Source<arrow_schema::SchemaRef, Batch>,
    stream: &bowstring::Stream,
) -> Source<arrow_schema::SchemaRef, Batch> {
    let (batches, raised) = source.take_apart();
    Source::of(validate_batches(batches, stream), raised)
}
