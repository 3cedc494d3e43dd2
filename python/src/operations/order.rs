//! The order of rows: sorted rows, their numbers, and ranks.

use arrow_schema::Schema;
use bowstring::DeviceArray as Inner;
use bowstring::compute::{self, SortColumn, SortOptions, Ties};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString, PyTuple};

use crate::array::Array;
use crate::batch::RecordBatch;
use crate::device::{Stream, stream_for};
use crate::error::detached;
use crate::foreign::{Either, as_array, either};
use crate::types::place_in;

/// The columns of a batch to sort by, with their directions.
pub(super) fn keys(
    batch: &RecordBatch,
    by: Option<&Bound<'_, PyAny>>,
    options: SortOptions,
) -> PyResult<Vec<(Inner, SortOptions)>> {
    let by = places(batch.0.schema(), by, options)?;
    Ok(by.into_iter().map(|(column, options)| (batch.0.columns()[column].clone(), options)).collect())
}

/// The numbers of the columns to sort by, with their directions.
pub(super) fn places(
    schema: &Schema,
    by: Option<&Bound<'_, PyAny>>,
    options: SortOptions,
) -> PyResult<Vec<(usize, SortOptions)>> {
    let Some(by) = by else {
        return Ok((0..schema.fields().len()).map(|column| (column, options)).collect());
    };
    let one = |which: &Bound<'_, PyAny>| {
        let (which, descending) = match which.cast::<PyTuple>() {
            Ok(pair) if pair.len() == 2 => (pair.get_item(0)?, direction(&pair.get_item(1)?)?),
            _ => (which.clone(), options.descending),
        };
        Ok((place_in(schema, &which, "by")?, SortOptions { descending, ..options }))
    };
    match by.cast::<PyList>() {
        Ok(several) => several.iter().map(|which| one(&which)).collect(),
        Err(_) => Ok(vec![one(by)?]),
    }
}

/// Reads a direction as pyarrow writes it.
fn direction(said: &Bound<'_, PyAny>) -> PyResult<bool> {
    match said.cast::<PyString>().map(|said| said.to_string_lossy().into_owned()).as_deref() {
        Ok("ascending") => Ok(false),
        Ok("descending") => Ok(true),
        _ => Err(PyValueError::new_err(format!(
            "by: a direction is \"ascending\" or \"descending\", not {}",
            said.repr()?
        ))),
    }
}

fn no_columns(by: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
    match by {
        None => Ok(()),
        Some(_) => Err(PyTypeError::new_err("by: columns are for batches, and values is an array")),
    }
}

/// Return the numbers of the rows in sorted order, as an array of `uint32`.
///
/// For a batch, `by` is the name or number of a column, or a list of these; each may also be a pair with
/// `"ascending"` or `"descending"`, as in pyarrow. Without `by`, all columns count, the first one first. Rows
/// that are equal stay in their order. Nulls come first unless `nulls_last`, also if `descending`. Floats
/// have their total order, in which NaN is greatest. pyarrow differs in both: by default it puts nulls last,
/// and NaN beside them. `limit` returns only so many of the first rows.
#[pyfunction]
#[pyo3(signature = (values, by = None, *, descending = false, nulls_last = false, limit = None, stream = None))]
pub fn sort_indices(
    values: &Bound<'_, PyAny>,
    by: Option<&Bound<'_, PyAny>>,
    descending: bool,
    nulls_last: bool,
    limit: Option<usize>,
    stream: Option<&Bound<'_, Stream>>,
) -> PyResult<Array> {
    let (py, options) = (values.py(), SortOptions { descending, nulls_first: !nulls_last });
    let (place, keys) = match either(values, "values")? {
        Either::Array(values) => {
            no_columns(by)?;
            (values.array.place(), vec![(values.array, options)])
        }
        Either::Batch(batch) => (batch.place(), keys(&batch, by, options)?),
    };
    let on = stream_for(place, stream)?;
    let by: Vec<SortColumn<'_>> =
        keys.iter().map(|(values, options)| SortColumn::new(values, *options)).collect();
    Ok(Array::nameless(detached(py, || compute::lexsort_to_indices(&by, limit, &on).wait())?))
}

/// Return the rows in sorted order; the arguments are those of `sort_indices`.
#[pyfunction]
#[pyo3(signature = (values, by = None, *, descending = false, nulls_last = false, limit = None, stream = None))]
pub fn sort<'py>(
    values: &Bound<'py, PyAny>,
    by: Option<&Bound<'py, PyAny>>,
    descending: bool,
    nulls_last: bool,
    limit: Option<usize>,
    stream: Option<&Bound<'py, Stream>>,
) -> PyResult<Bound<'py, PyAny>> {
    let (py, options) = (values.py(), SortOptions { descending, nulls_first: !nulls_last });
    match either(values, "values")? {
        Either::Array(values) => {
            no_columns(by)?;
            let on = stream_for(values.array.place(), stream)?;
            let by = [SortColumn::new(&values.array, options)];
            let sorted = detached(py, || compute::sort_by(&values.array, &by, limit, &on).wait())?;
            Ok(Array::new(sorted, &values.field).into_pyobject(py)?.into_any())
        }
        Either::Batch(batch) => {
            let (on, keys) = (stream_for(batch.place(), stream)?, keys(&batch, by, options)?);
            let by: Vec<SortColumn<'_>> =
                keys.iter().map(|(values, options)| SortColumn::new(values, *options)).collect();
            let sorted = detached(py, || compute::sort_by(&batch.0, &by, limit, &on).wait())?;
            Ok(RecordBatch::new(sorted).into_pyobject(py)?.into_any())
        }
    }
}

/// Return the rank of each row in sorted order, as an array of `uint32` from 1 on.
///
/// Nulls have ranks too. Rows that are equal have the lowest of their places with `ties="min"`, as SQL's
/// `RANK()`; the highest with `"max"`; and with `"dense"` the ranks have no gaps. `descending` and
/// `nulls_last` are as in `sort_indices`.
#[pyfunction]
#[pyo3(signature = (values, *, ties = "min", descending = false, nulls_last = false, stream = None))]
pub fn rank(
    values: &Bound<'_, PyAny>,
    ties: &str,
    descending: bool,
    nulls_last: bool,
    stream: Option<&Bound<'_, Stream>>,
) -> PyResult<Array> {
    let py = values.py();
    let ties = match ties {
        "min" => Ties::Lowest,
        "max" => Ties::Highest,
        "dense" => Ties::Dense,
        other => {
            let problem = format!("ties is \"min\", \"max\" or \"dense\", not {other:?}");
            return Err(PyValueError::new_err(problem));
        }
    };
    let values = as_array(values, "values")?;
    let (on, options) =
        (stream_for(values.array.place(), stream)?, SortOptions { descending, nulls_first: !nulls_last });
    Ok(values.others(detached(py, || compute::rank(&values.array, options, ties, &on).wait())?))
}
