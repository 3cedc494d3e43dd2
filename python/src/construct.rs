//! Arrays and batches of whatever object there is: the functions that Python calls for it.

use pyo3::prelude::*;

use crate::array::Array;
use crate::batch::RecordBatch;
use crate::foreign;
use crate::operations::cast_array;
use crate::validate::{check_array, check_batch};

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
        Some(to) => cast_array(obj.py(), &array, &foreign::field(to, "type")?, false, None),
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
