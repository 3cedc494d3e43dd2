//! Operations on nulls. They treat each column of a batch by itself, except that `drop_null` drops whole
//! rows.

use arrow_schema::{DataType, Schema};
use bowstring::compute::{self, DropIf, DropOptions, Scalar};
use bowstring::{DeviceArray as Inner, DeviceBatch, Pending, Stream as InnerStream};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use crate::batch::RecordBatch;
use crate::device::{Stream, stream_for};
use crate::error::{detached, ours};
use crate::foreign::{Either, either};
use crate::items::entries;
use crate::types::place_in;
use crate::values::row_of;

/// Return the number of nulls in the validity bitmap; for a batch, a list with one number for each column.
///
/// If a number is not known, this waits for a device: once for all columns of a batch.
#[pyfunction]
#[pyo3(signature = (values, *, stream = None))]
pub fn null_count<'py>(
    values: &Bound<'py, PyAny>,
    stream: Option<&Bound<'py, Stream>>,
) -> PyResult<Bound<'py, PyAny>> {
    counted(values, stream, compute::null_count, compute::null_count)
}

/// Return the number of rows whose value is null; for a batch, a list with one number for each column.
///
/// Unlike `null_count`, this also counts nulls among the values of dictionaries, runs and unions.
#[pyfunction]
#[pyo3(signature = (values, *, stream = None))]
pub fn logical_null_count<'py>(
    values: &Bound<'py, PyAny>,
    stream: Option<&Bound<'py, Stream>>,
) -> PyResult<Bound<'py, PyAny>> {
    counted(values, stream, compute::logical_null_count, compute::logical_null_count)
}

/// An operation on arrays, or one on batches.
type Operation<C, T> = fn(&C, &InnerStream) -> Pending<T>;

fn counted<'py>(
    values: &Bound<'py, PyAny>,
    stream: Option<&Bound<'py, Stream>>,
    of_array: Operation<Inner, usize>,
    of_batch: Operation<DeviceBatch, Vec<usize>>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = values.py();
    match either(values, "values")? {
        Either::Array(values) => {
            let on = stream_for(values.array.place(), stream)?;
            detached(py, || of_array(&values.array, &on).wait())?.into_bound_py_any(py)
        }
        Either::Batch(batch) => {
            let on = stream_for(batch.place(), stream)?;
            detached(py, || of_batch(&batch.0, &on).wait())?.into_bound_py_any(py)
        }
    }
}

fn tested<'py>(
    values: &Bound<'py, PyAny>,
    stream: Option<&Bound<'py, Stream>>,
    of_array: Operation<Inner, Inner>,
    of_batch: Operation<DeviceBatch, DeviceBatch>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = values.py();
    match either(values, "values")? {
        Either::Array(values) => {
            let on = stream_for(values.array.place(), stream)?;
            let result = detached(py, || of_array(&values.array, &on).wait())?;
            Ok(values.others(result).into_pyobject(py)?.into_any())
        }
        Either::Batch(batch) => {
            let on = stream_for(batch.place(), stream)?;
            let result = detached(py, || of_batch(&batch.0, &on).wait())?;
            Ok(RecordBatch::new(result).into_pyobject(py)?.into_any())
        }
    }
}

/// Return a boolean for each row that says whether it is null; for a batch, a batch of such columns.
#[pyfunction]
#[pyo3(signature = (values, *, stream = None))]
pub fn is_null<'py>(
    values: &Bound<'py, PyAny>,
    stream: Option<&Bound<'py, Stream>>,
) -> PyResult<Bound<'py, PyAny>> {
    tested(values, stream, compute::is_null, compute::is_null)
}

/// Return a boolean for each row that says whether it is valid; for a batch, a batch of such columns.
#[pyfunction]
#[pyo3(signature = (values, *, stream = None))]
pub fn is_valid<'py>(
    values: &Bound<'py, PyAny>,
    stream: Option<&Bound<'py, Stream>>,
) -> PyResult<Bound<'py, PyAny>> {
    tested(values, stream, compute::is_not_null, compute::is_not_null)
}

/// Reads the value that replaces nulls of a type; `None` keeps the nulls.
fn scalar(value: &Bound<'_, PyAny>, of: &DataType, argument: &str) -> PyResult<Option<Scalar>> {
    row_of(value, of, argument)?.map(|row| ours(|| Scalar::try_new(&row))).transpose()
}

/// Return the values with nulls replaced by `value`.
///
/// `value` is a Python value that fits the type, or an array of one row of that type; `None` keeps the nulls.
/// For a batch, it is one such value for every column, or a dictionary of values for some columns.
#[pyfunction]
#[pyo3(signature = (values, value, *, stream = None))]
pub fn fill_null<'py>(
    values: &Bound<'py, PyAny>,
    value: &Bound<'py, PyAny>,
    stream: Option<&Bound<'py, Stream>>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = values.py();
    let batch = match either(values, "values")? {
        Either::Array(values) => {
            let on = stream_for(values.array.place(), stream)?;
            let filled = match scalar(value, values.array.data_type(), "value")? {
                Some(scalar) => {
                    values.result(detached(py, || compute::fill_null(&values.array, &scalar, &on).wait())?)
                }
                None => values,
            };
            return Ok(filled.into_pyobject(py)?.into_any());
        }
        Either::Batch(batch) => batch,
    };
    let on = stream_for(batch.place(), stream)?;
    let schema = batch.0.schema();
    let mut scalars: Vec<Option<Scalar>> = vec![None; schema.fields().len()];
    let mut fill = |at: usize, value: &Bound<'py, PyAny>| -> PyResult<()> {
        let field = schema.field(at);
        let scalar = scalar(value, field.data_type(), &format!("value for column {:?}", field.name()))?;
        // A column that two keys name has no nulls left for the second.
        scalars[at] = scalars[at].take().or(scalar);
        Ok(())
    };
    match value.cast::<PyDict>() {
        Ok(values) => {
            for entry in entries(values)? {
                let (name, value) = entry?;
                fill(place_in(schema, &name, "value")?, &value)?;
            }
        }
        Err(_) => (0..schema.fields().len()).try_for_each(|at| fill(at, value))?,
    }
    let filled = detached(py, || compute::fill_null(&batch.0, &scalars, &on).wait())?;
    Ok(RecordBatch::new(filled).into_pyobject(py)?.into_any())
}

/// Returns the numbers of the columns that `drop_null` looks at.
fn subset(schema: &Schema, subset: &Bound<'_, PyAny>) -> PyResult<Vec<usize>> {
    match subset.is_instance_of::<PyString>() {
        true => Ok(vec![place_in(schema, subset, "subset")?]),
        false => subset.try_iter()?.map(|name| place_in(schema, &name?, "subset")).collect(),
    }
}

/// Return the rows that are not null.
///
/// From a batch, this drops the rows where any column is null, or with `how="all"` the rows where every
/// column is null. `subset` restricts the test to some columns, given by name or number. This waits once for
/// a device.
#[pyfunction]
#[pyo3(signature = (values, *, how = "any", subset = None, stream = None))]
pub fn drop_null<'py>(
    values: &Bound<'py, PyAny>,
    how: &str,
    subset: Option<&Bound<'py, PyAny>>,
    stream: Option<&Bound<'py, Stream>>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = values.py();
    let drop_if = match how {
        "any" => DropIf::AnyNull,
        "all" => DropIf::AllNull,
        other => return Err(PyValueError::new_err(format!("how is \"any\" or \"all\", not {other:?}"))),
    };
    match either(values, "values")? {
        Either::Array(_) if subset.is_some() => {
            Err(PyTypeError::new_err("subset: an array has no columns: it is for batches"))
        }
        Either::Array(values) => {
            let on = stream_for(values.array.place(), stream)?;
            let left =
                detached(py, || compute::drop_nulls(&values.array, &DropOptions::default(), &on).wait())?;
            Ok(values.result(left).into_pyobject(py)?.into_any())
        }
        Either::Batch(batch) => {
            let on = stream_for(batch.place(), stream)?;
            let columns = subset.map(|subset| self::subset(batch.0.schema(), subset)).transpose()?;
            let options = DropOptions { drop_if, columns };
            let left = detached(py, || compute::drop_nulls(&batch.0, &options, &on).wait())?;
            Ok(RecordBatch::new(left).into_pyobject(py)?.into_any())
        }
    }
}
