//! Operations on nulls. They treat each column of a batch by itself, except that `drop_null` drops whole
//! rows.

use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema};
use bowstring::compute::{self, Query, Scalar};
use bowstring::expr::{Expr, Options, nth};
use bowstring::{DeviceArray as Inner, DeviceBatch, Pending, Result, Stream as InnerStream};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use crate::array::Array;
use crate::batch::RecordBatch;
use crate::device::{Stream, stream_for};
use crate::error::{detached, ours};
use crate::foreign::{Either, either};
use crate::items::entries;
use crate::types::place_in;
use crate::values::row_of;

type Operation<T> = fn(&Inner, &InnerStream) -> Pending<T>;

/// Return the number of nulls in the validity bitmap; for a batch, a list with one number for each column.
///
/// If a number is not known, this waits for a device: once for all columns of a batch.
#[pyfunction]
#[pyo3(signature = (values, *, stream = None))]
pub fn null_count<'py>(
    values: &Bound<'py, PyAny>,
    stream: Option<&Bound<'py, Stream>>,
) -> PyResult<Bound<'py, PyAny>> {
    counted(values, stream, compute::null_count, |batch, on| compute::null_count(batch, on).wait())
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
    counted(values, stream, compute::logical_null_count, |batch, on| {
        each(batch.columns(), on, compute::logical_null_count)
    })
}

/// Applies a count to an array, or to each column of a batch.
fn counted<'py, N: IntoPyObject<'py> + Send>(
    values: &Bound<'py, PyAny>,
    stream: Option<&Bound<'py, Stream>>,
    of_array: Operation<N>,
    of_batch: fn(&DeviceBatch, &InnerStream) -> Result<Vec<N>>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = values.py();
    match either(values, "values")? {
        Either::Array(values) => {
            let on = stream_for(values.array.place(), stream)?;
            detached(py, || of_array(&values.array, &on).wait())?.into_bound_py_any(py)
        }
        Either::Batch(batch) => {
            let on = stream_for(batch.place(), stream)?;
            detached(py, || of_batch(&batch.0, &on))?.into_bound_py_any(py)
        }
    }
}

/// Starts an operation on each column, then waits for all results.
fn each<'a, T>(
    columns: impl IntoIterator<Item = &'a Inner>,
    on: &InnerStream,
    operation: Operation<T>,
) -> Result<Vec<T>> {
    let pending: Vec<Pending<T>> = columns.into_iter().map(|column| operation(column, on)).collect();
    pending.into_iter().map(Pending::wait).collect()
}

/// Applies a test to each row of an array, or of each column of a batch.
fn tested<'py>(
    values: &Bound<'py, PyAny>,
    stream: Option<&Bound<'py, Stream>>,
    operation: Operation<Inner>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = values.py();
    match either(values, "values")? {
        Either::Array(values) => {
            let on = stream_for(values.array.place(), stream)?;
            let result = detached(py, || operation(&values.array, &on).wait())?;
            Ok(values.others(result).into_pyobject(py)?.into_any())
        }
        Either::Batch(batch) => {
            let on = stream_for(batch.place(), stream)?;
            let fields = batch.0.schema().fields().iter();
            let fields: Vec<Field> =
                fields.map(|field| Field::new(field.name(), DataType::Boolean, true)).collect();
            let tested = detached(py, || {
                let columns = each(batch.0.columns(), &on, operation)?;
                DeviceBatch::try_new(Arc::new(Schema::new(fields)), columns, batch.0.len())
            })?;
            Ok(RecordBatch::new(tested).into_pyobject(py)?.into_any())
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
    tested(values, stream, compute::is_null)
}

/// Return a boolean for each row that says whether it is valid; for a batch, a batch of such columns.
#[pyfunction]
#[pyo3(signature = (values, *, stream = None))]
pub fn is_valid<'py>(
    values: &Bound<'py, PyAny>,
    stream: Option<&Bound<'py, Stream>>,
) -> PyResult<Bound<'py, PyAny>> {
    tested(values, stream, compute::is_not_null)
}

fn filled(
    py: Python<'_>,
    values: &Array,
    value: &Bound<'_, PyAny>,
    argument: &str,
    on: &InnerStream,
) -> PyResult<Array> {
    let Some(given) = row_of(value, values.array.data_type(), argument)? else { return Ok(values.clone()) };
    let filled = detached(py, || {
        Scalar::try_new(&given).and_then(|row| compute::fill_null(&values.array, &row, on).wait())
    })?;
    Ok(values.result(filled))
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
            return Ok(filled(py, &values, value, "value", &on)?.into_pyobject(py)?.into_any());
        }
        Either::Batch(batch) => batch,
    };
    let on = stream_for(batch.place(), stream)?;
    let schema = batch.0.schema();
    let mut columns = batch.0.columns().to_vec();
    let mut fill = |at: usize, value: &Bound<'py, PyAny>| -> PyResult<()> {
        let column = Array::new(columns[at].clone(), schema.field(at));
        let argument = format!("value for column {:?}", schema.field(at).name());
        columns[at] = filled(py, &column, value, &argument, &on)?.array;
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
    let filled = ours(|| DeviceBatch::try_new(schema.clone(), columns, batch.0.len()))?;
    Ok(RecordBatch::new(filled).into_pyobject(py)?.into_any())
}

/// Returns the numbers of the columns that `drop_null` looks at.
fn subset(schema: &Schema, subset: Option<&Bound<'_, PyAny>>) -> PyResult<Vec<usize>> {
    match subset {
        None => Ok((0..schema.fields().len()).collect()),
        Some(one) if one.is_instance_of::<PyString>() => Ok(vec![place_in(schema, one, "subset")?]),
        Some(names) => names.try_iter()?.map(|name| place_in(schema, &name?, "subset")).collect(),
    }
}

/// Keeps the rows where all of these columns are valid, or any of them if not `all`.
fn rows_left(batch: &DeviceBatch, looked_at: &[usize], all: bool, on: &InnerStream) -> Result<DeviceBatch> {
    let masks = each(looked_at.iter().map(|at| &batch.columns()[*at]), on, compute::is_not_null)?;
    let fields: Vec<Field> = (0..masks.len()).map(|_| Field::new("", DataType::Boolean, false)).collect();
    // Combines the tests in pairs: a chain of hundreds would be deeper than an expression may be.
    let mut tests: Vec<Expr> = (0..masks.len()).map(nth).collect();
    while tests.len() > 1 {
        let pairs = tests.chunks(2).map(|pair| match pair {
            [one, other] if all => one.clone() & other.clone(),
            [one, other] => one.clone() | other.clone(),
            one => one[0].clone(),
        });
        tests = pairs.collect();
    }
    let Some(left) = tests.pop() else { return Ok(batch.clone()) };
    let schema = Arc::new(Schema::new(fields));
    let masks = DeviceBatch::try_new(schema.clone(), masks, batch.len())?;
    let mask = Query::new().select([left]).bind(&schema, &Options::new())?.run(&masks, on).wait()?;
    compute::filter(batch, &mask.columns()[0], on).wait()
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
    let all = match how {
        "any" => true,
        "all" => false,
        other => return Err(PyValueError::new_err(format!("how is \"any\" or \"all\", not {other:?}"))),
    };
    match either(values, "values")? {
        Either::Array(_) if subset.is_some() => {
            Err(PyTypeError::new_err("subset: an array has no columns: it is for batches"))
        }
        Either::Array(values) => {
            let on = stream_for(values.array.place(), stream)?;
            let left = detached(py, || compute::drop_nulls(&values.array, &on).wait())?;
            Ok(values.result(left).into_pyobject(py)?.into_any())
        }
        Either::Batch(batch) => {
            let on = stream_for(batch.place(), stream)?;
            let looked_at = self::subset(batch.0.schema(), subset)?;
            let left = detached(py, || rows_left(&batch.0, &looked_at, all, &on))?;
            Ok(RecordBatch::new(left).into_pyobject(py)?.into_any())
        }
    }
}
