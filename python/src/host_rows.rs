//! Rows of arrays as Python values or text. Arrays on a device are copied to the host for this.

use arrow_array::ArrayRef;
use bowstring::array::Buffer;
use bowstring::{DeviceArray as Inner, exchange};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::array::Array;
use crate::error::{detached, ours};
use crate::{shown, to_python};

/// Returns some rows as an arrow-rs array. They are validated first, because reading them follows their
/// offsets. An array in host memory is validated once, as a whole.
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

/// Converts some rows to Python values.
fn some<'py>(py: Python<'py>, array: &Array, offset: usize, length: usize) -> PyResult<Bound<'py, PyList>> {
    let rows = readable(py, array, offset, length)?;
    ours(|| to_python::values(py, &rows, &array.field))
}

/// Converts all rows to Python values.
pub fn list<'py>(py: Python<'py>, array: &Array) -> PyResult<Bound<'py, PyList>> {
    some(py, array, 0, array.array.len())
}

/// Converts one row, which must exist, to a Python value.
pub fn one<'py>(py: Python<'py>, array: &Array, row: usize) -> PyResult<Bound<'py, PyAny>> {
    some(py, array, row, 1)?.get_item(0)
}

/// Converts the beginning of each row to text.
pub fn texts(py: Python<'_>, array: &Array) -> PyResult<Vec<String>> {
    let rows = readable(py, array, 0, array.array.len())?;
    ours(|| shown::texts(py, &rows, &array.field))
}

/// Slices an array without a copy.
pub fn part(array: &Array, offset: usize, length: usize) -> PyResult<Array> {
    Ok(Array::new(ours(|| array.array.slice(offset, length))?, &array.field))
}

/// Checks the arguments of `slice` for an array of `rows` rows: neither number may be negative.
pub fn span(offset: i128, length: Option<i128>, rows: usize) -> PyResult<(usize, usize)> {
    let not_negative = |number: i128, name: &str| {
        let problem = || PyIndexError::new_err(format!("{name} must not be negative, as {number} is"));
        // A number beyond `usize` is refused later, as beyond the end.
        if number < 0 { Err(problem()) } else { Ok(usize::try_from(number).unwrap_or(usize::MAX)) }
    };
    let offset = not_negative(offset, "offset")?;
    let length = match length {
        Some(length) => not_negative(length, "length")?,
        None => rows.saturating_sub(offset),
    };
    Ok((offset, length))
}

/// The size of the array's buffers in bytes. Another library's memory of unknown size does not count.
pub fn bytes(array: &Inner) -> usize {
    let validity = array.validity().map(|bitmap| &bitmap.buffer);
    let own = array.buffers().iter().chain(validity).filter_map(Buffer::bytes);
    let inside = array.children().iter().chain(array.dictionary()).map(bytes);
    own.chain(inside).fold(0, usize::saturating_add)
}

/// Whether two arrays have the same type and rows; NaNs are equal, as in arrow-rs.
pub fn equal(py: Python<'_>, one: &Array, other: &Array) -> PyResult<bool> {
    if one.array.len() != other.array.len() || one.array.data_type() != other.array.data_type() {
        return Ok(false);
    }
    let rows = one.array.len();
    let (one, other) = (readable(py, one, 0, rows)?, readable(py, other, 0, rows)?);
    ours(|| detached(py, || Ok::<_, PyErr>(one == other)))
}
