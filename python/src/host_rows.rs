//! Rows of arrays in host memory, wherever the arrays are: what Python reads of them.

use arrow_array::ArrayRef;
use bowstring::array::Buffer;
use bowstring::{Array as Inner, exchange};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::array::Array;
use crate::error::{detached, ours};
use crate::to_python;

/// Some rows as arrow-rs has them, once they may be read: found to be valid first, since they are going to be followed. Where the host
/// reads the array itself that is done once, for all of it.
fn readable(py: Python<'_>, array: &Array, offset: usize, length: usize) -> PyResult<ArrayRef> {
    detached(py, || {
        if array.array.place().device_type.host_accessible() {
            let whole = ours(|| exchange::to_arrow(&array.array))?;
            return Ok(whole.slice(offset, length));
        }
        let here = part(array, offset, length)?.on_the_host()?;
        ours(|| exchange::to_arrow(&here.array))
    })
}

/// Some rows, as Python's values.
fn some<'py>(py: Python<'py>, array: &Array, offset: usize, length: usize) -> PyResult<Bound<'py, PyList>> {
    let rows = readable(py, array, offset, length)?;
    ours(|| to_python::values(py, &rows, &array.field))
}

/// All rows, as Python's values.
pub fn list<'py>(py: Python<'py>, array: &Array) -> PyResult<Bound<'py, PyList>> {
    some(py, array, 0, array.array.len())
}

/// One row, which there is.
pub fn one<'py>(py: Python<'py>, array: &Array, row: usize) -> PyResult<Bound<'py, PyAny>> {
    some(py, array, row, 1)?.get_item(0)
}

/// All rows, as text.
pub fn texts(py: Python<'_>, array: &Array) -> PyResult<Vec<String>> {
    let rows = readable(py, array, 0, array.array.len())?;
    ours(|| to_python::texts(py, &rows, &array.field))
}

/// Some rows, copying nothing.
pub fn part(array: &Array, offset: usize, length: usize) -> PyResult<Array> {
    Ok(Array::new(ours(|| array.array.slice(offset, length))?, &array.field))
}

/// What `slice` is asked for, of so many rows: neither number may be negative.
pub fn span(offset: i128, length: Option<i128>, rows: usize) -> PyResult<(usize, usize)> {
    let not_negative = |number: i128, name: &str| {
        let problem = || PyIndexError::new_err(format!("{name} must not be negative, as {number} is"));
        // What is more than there can be is refused as beyond the end.
        if number < 0 { Err(problem()) } else { Ok(usize::try_from(number).unwrap_or(usize::MAX)) }
    };
    let offset = not_negative(offset, "offset")?;
    let length = match length {
        Some(length) => not_negative(length, "length")?,
        None => rows.saturating_sub(offset),
    };
    Ok((offset, length))
}

/// How many bytes its buffers have. Memory of another library whose size is not known does not count.
pub fn bytes(array: &Inner) -> usize {
    let validity = array.validity().map(|bitmap| &bitmap.buffer);
    let own = array.buffers().iter().chain(validity).filter_map(Buffer::bytes);
    let inside = array.children().iter().chain(array.dictionary()).map(bytes);
    own.chain(inside).fold(0, usize::saturating_add)
}

/// Whether two arrays are of one type and have the same rows; NaNs are equal, as arrow-rs has it.
pub fn equal(py: Python<'_>, one: &Array, other: &Array) -> PyResult<bool> {
    if one.array.len() != other.array.len() || one.array.data_type() != other.array.data_type() {
        return Ok(false);
    }
    let rows = one.array.len();
    let (one, other) = (readable(py, one, 0, rows)?, readable(py, other, 0, rows)?);
    ours(|| detached(py, || Ok::<_, PyErr>(one == other)))
}
