//! Which rows are null, and what becomes of them. Of a batch, each column by itself, but where rows are dropped.

use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema};
use bowstring::compute::{self, Projection, Scalar};
use bowstring::expr::{Expr, Options, nth};
use bowstring::{Array as Inner, Batch, Pending, Result, Stream as InnerStream};
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

/// How many rows are null by the validity bitmap; of a batch, a list with the number of each column, which are counted
/// together. Waits once for a device where that is not known.
#[pyfunction]
#[pyo3(signature = (values, *, stream = None))]
pub fn null_count<'py>(
    values: &Bound<'py, PyAny>,
    stream: Option<&Bound<'py, Stream>>,
) -> PyResult<Bound<'py, PyAny>> {
    counted(values, stream, compute::null_count, |batch, on| compute::null_count(batch, on).wait())
}

/// How many rows are null when dictionaries, runs and unions are looked through; of a batch, a list with the number of each column.
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

/// A number of rows of an array, or of each column of a batch.
fn counted<'py, N: IntoPyObject<'py> + Send>(
    values: &Bound<'py, PyAny>,
    stream: Option<&Bound<'py, Stream>>,
    of_array: Operation<N>,
    of_batch: fn(&Batch, &InnerStream) -> Result<Vec<N>>,
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

/// What an operation says of each column.
fn each<'a, T>(
    columns: impl IntoIterator<Item = &'a Inner>,
    on: &InnerStream,
    operation: Operation<T>,
) -> Result<Vec<T>> {
    let pending: Vec<Pending<T>> = columns.into_iter().map(|column| operation(column, on)).collect();
    pending.into_iter().map(Pending::wait).collect()
}

/// A boolean for each row of an array, or of each column of a batch.
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
                Batch::try_new(Arc::new(Schema::new(fields)), columns, batch.0.len())
            })?;
            Ok(RecordBatch::new(tested).into_pyobject(py)?.into_any())
        }
    }
}

/// Whether each row is null; of a batch, each row of each column.
#[pyfunction]
#[pyo3(signature = (values, *, stream = None))]
pub fn is_null<'py>(
    values: &Bound<'py, PyAny>,
    stream: Option<&Bound<'py, Stream>>,
) -> PyResult<Bound<'py, PyAny>> {
    tested(values, stream, compute::is_null)
}

/// Whether each row is valid; of a batch, each row of each column.
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

/// The values, and `value` where they are null: a Python value that fits their type, or any array of one row of it. `None` leaves
/// all as it is. Of a batch, either such a value for every column, or a dictionary of one for each of some columns.
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
    let filled = ours(|| Batch::try_new(schema.clone(), columns, batch.0.len()))?;
    Ok(RecordBatch::new(filled).into_pyobject(py)?.into_any())
}

/// The columns that a table's rows are looked at in.
fn subset(schema: &Schema, subset: Option<&Bound<'_, PyAny>>) -> PyResult<Vec<usize>> {
    match subset {
        None => Ok((0..schema.fields().len()).collect()),
        Some(one) if one.is_instance_of::<PyString>() => Ok(vec![place_in(schema, one, "subset")?]),
        Some(names) => names.try_iter()?.map(|name| place_in(schema, &name?, "subset")).collect(),
    }
}

/// Those rows of a batch of which all these columns are valid, or any.
fn rows_left(batch: &Batch, looked_at: &[usize], all: bool, on: &InnerStream) -> Result<Batch> {
    let masks = each(looked_at.iter().map(|at| &batch.columns()[*at]), on, compute::is_not_null)?;
    let fields: Vec<Field> = (0..masks.len()).map(|_| Field::new("", DataType::Boolean, false)).collect();
    // By pairs: what is written in one row of hundreds is deeper than an expression may be.
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
    let masks = Batch::try_new(schema.clone(), masks, batch.len())?;
    let mask = Projection::bind(&[left], &schema, &Options::new())?.evaluate(&masks, on).wait()?;
    compute::filter(batch, &mask.columns()[0], on).wait()
}

/// The rows that are not null. Of a batch, those of which no column is null, or not every one with `how="all"`, looking at the
/// columns in `subset` alone, by name or number, if it is there. Waits once for a device.
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
