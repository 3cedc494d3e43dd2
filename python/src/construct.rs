//! Arrays and batches of whatever object there is: the functions that Python calls for it.

use pyo3::prelude::*;

use crate::array::Array;
use crate::batch::RecordBatch;
use crate::foreign;
use crate::operations::cast_array;
use crate::types;
use crate::validate::{check_array, check_batch};

/// Any object with an Arrow, DLPack or CUDA array interface as an array, copying nothing that need not be; numpy's arrays of whatever
/// kind, and lists and other iterables of Python's values, which are copied. `type`, if given, is what it is cast to. With
/// `validate`, contents that are no Arrow data are refused, as by `Array.validate`.
#[pyfunction]
#[pyo3(signature = (obj, /, r#type = None, *, validate = false))]
pub fn array(obj: &Bound<'_, PyAny>, r#type: Option<&Bound<'_, PyAny>>, validate: bool) -> PyResult<Array> {
    let to = r#type.map(|to| types::field(to, "type")).transpose()?;
    let array = foreign::as_array_of(obj, "obj", to.as_ref().map(|to| to.data_type()))?;
    if validate {
        check_array(obj.py(), &array.array)?;
    }
    match to {
        Some(to) => cast_array(obj.py(), &array, &to, false, None),
        None => Ok(array),
    }
}

/// The chunks of a chunked array or a series, as they are and copying nothing: what operations make one array of. A list of one where
/// there are no chunks.
#[pyfunction]
#[pyo3(signature = (obj, /))]
pub fn chunks(obj: &Bound<'_, PyAny>) -> PyResult<Vec<Array>> {
    foreign::chunks(obj, "obj")
}

/// Any object with an Arrow interface as a batch: arrays of structs, streams of batches; a dictionary of columns, or a list of
/// dictionaries. With `validate`, contents that are
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
