//! Selection of rows: `filter`, `take` and slices with a step.

use std::sync::Arc;

use arrow_array::Int64Array;
use arrow_schema::{DataType, Field, Schema};
use bowstring::compute::{self, Columns, Query};
use bowstring::exchange::from_arrow;
use bowstring::expr::{Literal, Options, if_else, lit, nth};
use bowstring::ffi::DeviceType;
use bowstring::{DeviceArray as Inner, DeviceBatch, Error, Result, Stream as InnerStream};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyString;
use pyo3::types::slice::PySliceIndices;

use crate::batch::RecordBatch;
use crate::device::{Stream, stream_for};
use crate::error::detached;
use crate::expr::Expr;
use crate::expressions::{filter_where, options};
use crate::foreign::{Either, as_array_on, as_batch, either};
use crate::reader::take_options;
use crate::types::place_in;

/// The effect of a null in the mask on its row.
#[derive(Clone, Copy, PartialEq)]
enum Nulls {
    Drop,
    Emit,
}

fn null_selection(said: &str) -> PyResult<Nulls> {
    match said {
        "drop" => Ok(Nulls::Drop),
        "emit_null" => Ok(Nulls::Emit),
        other => {
            let problem = format!("null_selection is \"drop\" or \"emit_null\", not {other:?}");
            Err(PyValueError::new_err(problem))
        }
    }
}

/// Return the rows where `mask` is true.
///
/// A null in the mask drops its row; with `null_selection="emit_null"` it makes the row null instead, at the
/// cost of a `take` of the values. The mask must be as long as the values (arrow-rs accepts a
/// shorter one). For a batch, it may also be the name of a column, or an expression; `overflow`,
/// `division_by_zero` and `floats` apply to expressions, as in `evaluate`.
///
/// A mask on another device raises `ValueError`, unless `copy=True` copies it to the device of the values.
/// This waits once for a device.
#[pyfunction]
#[pyo3(signature = (
    values, mask, *, null_selection = "drop", copy = false, overflow = "error", division_by_zero = "error",
    floats = "total", stream = None
))]
#[allow(clippy::too_many_arguments, reason = "they are Python's keywords")]
pub fn filter<'py>(
    values: &Bound<'py, PyAny>,
    mask: &Bound<'py, PyAny>,
    null_selection: &str,
    copy: bool,
    overflow: &str,
    division_by_zero: &str,
    floats: &str,
    stream: Option<&Bound<'py, Stream>>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = values.py();
    let (options, nulls) =
        (options(overflow, division_by_zero, floats)?, self::null_selection(null_selection)?);
    if let Ok(predicate) = mask.cast::<Expr>() {
        let batch = as_batch(values, "values")?;
        if nulls == Nulls::Emit {
            return Err(PyValueError::new_err(
                "null_selection: \"emit_null\" is for masks, and an expression is none: evaluate it first",
            ));
        }
        return Ok(filter_where(&batch, predicate, &options, stream)?.into_pyobject(py)?.into_any());
    }
    match either(values, "values")? {
        Either::Array(values) => {
            if mask.is_instance_of::<PyString>() {
                return Err(PyTypeError::new_err(
                    "mask: a column's name is for batches, and values is an array",
                ));
            }
            let on = stream_for(values.array.place(), stream)?;
            let mask = as_array_on(mask, ("mask", &DataType::Boolean), &on, copy)?;
            let kept = detached(py, || match nulls {
                Nulls::Drop => compute::filter(&values.array, &mask.array, &on).wait(),
                Nulls::Emit => {
                    let rows = rows_of(&mask.array, values.array.len(), &on)?;
                    compute::take(&values.array, &rows, &Default::default(), &on).wait()
                }
            })?;
            Ok(values.result(kept).into_pyobject(py)?.into_any())
        }
        Either::Batch(batch) => {
            let on = stream_for(batch.place(), stream)?;
            let mask = match mask.is_instance_of::<PyString>() {
                true => batch.0.columns()[place_in(batch.0.schema(), mask, "mask")?].clone(),
                false => as_array_on(mask, ("mask", &DataType::Boolean), &on, copy)?.array,
            };
            let kept = detached(py, || match nulls {
                Nulls::Drop => compute::filter(&batch.0, &mask, &on).wait(),
                Nulls::Emit => {
                    let rows = rows_of(&mask, batch.0.len(), &on)?;
                    compute::take(&batch.0, &rows, &Default::default(), &on).wait()
                }
            })?;
            Ok(RecordBatch::new(kept).into_pyobject(py)?.into_any())
        }
    }
}

/// Returns the numbers of the rows where a mask is not false, with null where the mask is null.
fn rows_of(mask: &Inner, rows: usize, on: &InnerStream) -> Result<Inner> {
    let numbers = numbers(0, 1, rows)?;
    if mask.len() != rows || *mask.data_type() != DataType::Boolean {
        // Let `filter` report the error, as for any mask that does not fit.
        return compute::filter(&on.upload(&numbers)?, mask, on).wait();
    }
    let fields =
        [("mask", DataType::Boolean), ("row", DataType::Int64)].map(|(name, of)| Field::new(name, of, true));
    let schema = Arc::new(Schema::new(fields.to_vec()));
    let batch = DeviceBatch::try_new(schema.clone(), vec![mask.clone(), on.upload(&numbers)?], rows)?;
    let row = if_else(nth(0).is_null(), lit(Literal::null(DataType::Int64)), nth(1));
    let columns = Query::new().select([row, nth(0).is_not_false()]).bind(&schema, &Options::new())?;
    let columns = columns.run(&batch, on).wait()?;
    compute::filter(&columns.columns()[0], &columns.columns()[1], on).wait()
}

/// Return the rows at `indices`, which are integers of any type.
///
/// A null index gives a null row. An index out of bounds raises `IndexError`, or gives a null row with
/// `out_of_bounds="null"`. It is checked even if all values are null, unlike in arrow-rs. Columns of a batch
/// whose rows may become null are nullable in the schema of the result.
///
/// Indices on another device raise `ValueError`, unless `copy=True` copies them to the device of the values.
/// On a GPU, `wait` raises the `IndexError`.
#[pyfunction]
#[pyo3(signature = (values, indices, *, out_of_bounds = "raise", copy = false, stream = None))]
pub fn take<'py>(
    values: &Bound<'py, PyAny>,
    indices: &Bound<'py, PyAny>,
    out_of_bounds: &str,
    copy: bool,
    stream: Option<&Bound<'py, Stream>>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = values.py();
    let options = take_options(out_of_bounds)?;
    match either(values, "values")? {
        Either::Array(values) => {
            let on = stream_for(values.array.place(), stream)?;
            let indices = as_array_on(indices, ("indices", &DataType::Int64), &on, copy)?;
            let taken = detached(py, || compute::take(&values.array, &indices.array, &options, &on).wait())?;
            Ok(values.result(taken).into_pyobject(py)?.into_any())
        }
        Either::Batch(batch) => {
            let on = stream_for(batch.place(), stream)?;
            let indices = as_array_on(indices, ("indices", &DataType::Int64), &on, copy)?;
            let taken = detached(py, || compute::take(&batch.0, &indices.array, &options, &on).wait())?;
            Ok(RecordBatch::new(taken).into_pyobject(py)?.into_any())
        }
    }
}

/// Returns an array of `count` numbers: `start`, `start + step`, and so on.
fn numbers(start: i64, step: i64, count: usize) -> Result<Inner> {
    let bytes = count.saturating_mul(size_of::<i64>());
    let mut numbers = vec![];
    let room = numbers.try_reserve_exact(count);
    room.map_err(|_| Error::OutOfMemory { bytes, device: DeviceType::Cpu })?;
    numbers.extend((0..count as i64).map(|i| start + i * step));
    from_arrow(&Int64Array::new(numbers.into(), None))
}

/// Selects the rows of a slice with any step.
pub fn strided<C: Columns>(values: &C, rows: &PySliceIndices, on: &InnerStream) -> Result<C> {
    let indices = on.upload(&numbers(rows.start as i64, rows.step as i64, rows.slicelength)?)?;
    compute::take(values, &indices, &Default::default(), on).wait()
}
