//! The functions that make arrays and batches from other objects: `array`, `chunks` and `record_batch`.

use pyo3::prelude::*;

use crate::array::Array;
use crate::batch::RecordBatch;
use crate::foreign;
use crate::operations::cast_array;
use crate::types;
use crate::validate::{check_array, check_batch};

/// Make an array from any object.
///
/// Objects with an Arrow, DLPack or CUDA array interface, and numpy's arrays, share their memory with the
/// array wherever possible. Shared memory must not be written while an operation reads it: the operation
/// could then read out of bounds. Lists and other iterables of Python values are copied. The result is cast
/// to `type`, if given. With `validate`, contents that are not valid Arrow data raise `ValueError`, as in
/// `Array.validate`. An object of any other kind raises `TypeError`.
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

/// Return the chunks of a chunked array or a series as a list of arrays, without a copy.
///
/// Any other operation would join the chunks into one array. An object without chunks gives a list of one
/// array.
#[pyfunction]
#[pyo3(signature = (obj, /))]
pub fn chunks(obj: &Bound<'_, PyAny>) -> PyResult<Vec<Array>> {
    foreign::chunks(obj, "obj")
}

/// Make a batch from an object with an Arrow interface, a dictionary of columns, or a list of dictionaries.
///
/// An Arrow object may be an array of structs or a stream of batches. With `validate`, contents that are not
/// valid Arrow data raise `ValueError`, as in `RecordBatch.validate`.
#[pyfunction]
#[pyo3(signature = (obj, /, *, validate = false))]
pub fn record_batch(obj: &Bound<'_, PyAny>, validate: bool) -> PyResult<RecordBatch> {
    let batch = foreign::as_batch(obj, "obj")?;
    if validate {
        check_batch(obj.py(), &batch.0)?;
    }
    Ok(batch)
}
