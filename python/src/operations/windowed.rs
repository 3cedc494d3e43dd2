//! Windows: values that rows have because of their place among others.

use bowstring::compute::{FrameBound, SortColumn, SortOptions, WindowFrame, Windows as Inner};
use bowstring::{DeviceArray, DeviceBatch};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyList, PyString, PyTuple};

use super::groups::columns;
use super::order::keys;
use crate::array::Array;
use crate::batch::RecordBatch;
use crate::device::{Stream, stream_for};
use crate::error::detached;
use crate::expressions::{aggregations, options};
use crate::foreign::as_batch;

/// The rows of a batch in partitions, each in an order, made by `windows`.
///
/// Its methods return a value for each row, in the rows' own order.
#[pyclass(frozen, module = "bowstring")]
pub struct Windows {
    batch: RecordBatch,
    inner: Inner,
}

/// Partition the rows of a batch by columns, and order the rows of each partition, as SQL's `OVER` does.
///
/// `partition_by` is the name or number of a column, or a list of these; without it, all rows are one
/// partition. `order_by` is as `by` in `sort_indices`, with `descending` and `nulls_last`; without it, rows
/// stay in their order.
#[pyfunction]
#[pyo3(signature = (
    batch, partition_by = None, order_by = None, *, descending = false, nulls_last = false, stream = None
))]
pub fn windows(
    batch: &Bound<'_, PyAny>,
    partition_by: Option<&Bound<'_, PyAny>>,
    order_by: Option<&Bound<'_, PyAny>>,
    descending: bool,
    nulls_last: bool,
    stream: Option<&Bound<'_, Stream>>,
) -> PyResult<Windows> {
    let (py, batch) = (batch.py(), as_batch(batch, "batch")?);
    let parts = partition_by.map_or(Ok(vec![]), |by| columns(batch.0.schema(), by, "partition_by"))?;
    let parts: Vec<DeviceArray> = parts.iter().map(|column| batch.0.columns()[*column].clone()).collect();
    let options = SortOptions { descending, nulls_first: !nulls_last };
    let order = order_by.map_or(Ok(vec![]), |by| keys(&batch, Some(by), options))?;
    let on = stream_for(batch.place(), stream)?;
    let inner = detached(py, || {
        let order: Vec<SortColumn<'_>> =
            order.iter().map(|(values, options)| SortColumn::new(values, *options)).collect();
        Inner::new(&parts, &order, batch.0.len(), &on).wait()
    })?;
    Ok(Windows { batch, inner })
}

impl Windows {
    /// The values of columns, given one or in a list, in other rows.
    fn rows<'py>(
        &self,
        which: &Bound<'py, PyAny>,
        of: impl Fn(&DeviceBatch) -> bowstring::Pending<DeviceBatch> + Send + Sync,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (py, batch) = (which.py(), &self.batch.0);
        let chosen = columns(batch.schema(), which, "column")?;
        let schema = batch.schema().project(&chosen).expect("columns of the batch");
        let values = chosen.iter().map(|column| batch.columns()[*column].clone()).collect();
        let made = detached(py, || {
            let values = DeviceBatch::try_new(schema.into(), values, batch.len())?;
            of(&values).wait()
        })?;
        if which.is_instance_of::<PyList>() {
            return Ok(RecordBatch::new(made).into_pyobject(py)?.into_any());
        }
        let field = made.schema().field(0).clone();
        Ok(Array::new(made.columns()[0].clone(), &field).into_pyobject(py)?.into_any())
    }
}

#[pymethods]
impl Windows {
    /// Return the number of each row in its partition, from 1 on.
    fn row_number(&self, py: Python<'_>) -> PyResult<Array> {
        Ok(Array::nameless(detached(py, || self.inner.row_number().wait())?))
    }

    /// Return one more than the number of rows before those that are equal in the order.
    fn rank(&self, py: Python<'_>) -> PyResult<Array> {
        Ok(Array::nameless(detached(py, || self.inner.rank().wait())?))
    }

    /// Return one more than the number of different rows before each row.
    fn dense_rank(&self, py: Python<'_>) -> PyResult<Array> {
        Ok(Array::nameless(detached(py, || self.inner.dense_rank().wait())?))
    }

    /// Return the values of a column, or of a list of columns, in the row that is `n` rows before each row in
    /// its partition; null if there is none.
    #[pyo3(signature = (column, n = 1))]
    fn lag<'py>(&self, column: &Bound<'py, PyAny>, n: i64) -> PyResult<Bound<'py, PyAny>> {
        self.rows(column, |values| self.inner.lag(values, n))
    }

    /// Like `lag`, for the row that is `n` rows after each row.
    #[pyo3(signature = (column, n = 1))]
    fn lead<'py>(&self, column: &Bound<'py, PyAny>, n: i64) -> PyResult<Bound<'py, PyAny>> {
        self.rows(column, |values| self.inner.lag(values, n.saturating_neg()))
    }

    /// Like `lag`, for the row that has number `n` in each row's partition, from 1 on.
    fn nth_value<'py>(&self, column: &Bound<'py, PyAny>, n: u64) -> PyResult<Bound<'py, PyAny>> {
        self.rows(column, |values| self.inner.nth_value(values, n))
    }

    /// Return a batch with the aggregations of each row's partition, or of its frame.
    ///
    /// `frame` is a pair of the first row and the last. Each is a number of rows after the row itself (0 is
    /// the row, -1 the one before it), `None` for the end of the partition, or `"peers"` for the first or
    /// last row that is equal in the order. So `(None, 0)` makes running sums, and `(-6, 0)` sums of seven
    /// rows. Frames have sums, means, counts, least, greatest, first and last values, and `all` and `any`. The
    /// other options are as in `aggregate`.
    #[pyo3(signature = (
        aggregations, frame = None, *, overflow = "error", division_by_zero = "error", floats = "total"
    ))]
    fn aggregate(
        &self,
        aggregations: &Bound<'_, PyAny>,
        frame: Option<&Bound<'_, PyAny>>,
        overflow: &str,
        division_by_zero: &str,
        floats: &str,
    ) -> PyResult<RecordBatch> {
        let (all, options) =
            (self::aggregations(aggregations)?, options(overflow, division_by_zero, floats)?);
        let frame = frame.map(frame_of).transpose()?;
        let made = detached(aggregations.py(), || match frame {
            Some(frame) => self.inner.aggregate_frames(&self.batch.0, frame, all.clone(), &options).wait(),
            None => self.inner.aggregate(&self.batch.0, all.clone(), &options).wait(),
        })?;
        Ok(RecordBatch::new(made))
    }
}

/// Reads a frame: a pair of bounds.
fn frame_of(frame: &Bound<'_, PyAny>) -> PyResult<WindowFrame> {
    let pair = frame.cast::<PyTuple>().ok().filter(|pair| pair.len() == 2);
    let Some(pair) = pair else {
        return Err(PyTypeError::new_err(format!(
            "frame: a pair of bounds is needed, not {}",
            frame.get_type()
        )));
    };
    Ok(WindowFrame { start: bound_of(&pair.get_item(0)?)?, end: bound_of(&pair.get_item(1)?)? })
}

fn bound_of(bound: &Bound<'_, PyAny>) -> PyResult<FrameBound> {
    if bound.is_none() {
        return Ok(FrameBound::Unbounded);
    }
    if bound.is_instance_of::<PyInt>() {
        return Ok(FrameBound::Row(bound.extract()?));
    }
    match bound.cast::<PyString>() {
        Ok(name) if name.to_string_lossy() == "peers" => Ok(FrameBound::Peers),
        Ok(name) => {
            let name = name.to_string_lossy();
            Err(PyValueError::new_err(format!("frame: a bound is a number, None or \"peers\", not {name:?}")))
        }
        Err(_) => {
            let problem = format!("frame: a bound is a number, None or \"peers\", not {}", bound.get_type());
            Err(PyTypeError::new_err(problem))
        }
    }
}
