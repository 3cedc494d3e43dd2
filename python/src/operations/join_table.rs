//! One side of joins, prepared once for many others.

use arrow_schema::{Field, Schema};
use bowstring::compute::{self, JoinTable as Inner, Query, TakeOptions, nullable};
use bowstring::expr::{Options, nth};
use bowstring::{DeviceArray, DeviceBatch};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyString;

use super::groups::{arranged, columns};
use crate::batch::RecordBatch;
use crate::device::{Stream, stream_for};
use crate::error::detached;
use crate::foreign::as_batch;
use crate::types::place_in;

/// A batch whose rows others find by their keys: the right side of joins, prepared once for any number of
/// left sides, also from several threads.
///
/// `keys` are names or numbers of columns, one or a list. Nulls equal nothing, unless `nulls_equal`.
#[pyclass(frozen, module = "bowstring")]
pub struct JoinTable {
    table: Inner,
    /// The columns that are not keys.
    values: DeviceBatch,
    /// The names of the keys.
    keys: Vec<String>,
}

/// The rows that a join returns.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Inner,
    LeftOuter,
    LeftSemi,
    LeftAnti,
}

fn arrays(batch: &DeviceBatch, which: &[usize]) -> Vec<DeviceArray> {
    which.iter().map(|column| batch.columns()[*column].clone()).collect()
}

impl JoinTable {
    /// The key columns of a left side.
    fn keys_in(
        &self,
        left: &RecordBatch,
        keys: Option<&Bound<'_, PyAny>>,
        py: Python<'_>,
    ) -> PyResult<Vec<usize>> {
        let found = match keys {
            Some(keys) => columns(left.0.schema(), keys, "keys")?,
            None => {
                let place =
                    |name: &String| place_in(left.0.schema(), PyString::new(py, name).as_any(), "keys");
                self.keys.iter().map(place).collect::<PyResult<_>>()?
            }
        };
        if found.len() == self.keys.len() {
            return Ok(found);
        }
        let problem = format!("keys: {} columns for {} of the table", found.len(), self.keys.len());
        Err(PyValueError::new_err(problem))
    }
}

#[pymethods]
impl JoinTable {
    #[new]
    #[pyo3(signature = (batch, keys, *, nulls_equal = false, stream = None))]
    fn new(
        batch: &Bound<'_, PyAny>,
        keys: &Bound<'_, PyAny>,
        nulls_equal: bool,
        stream: Option<&Bound<'_, Stream>>,
    ) -> PyResult<JoinTable> {
        let (py, batch) = (batch.py(), as_batch(batch, "batch")?);
        let keys = columns(batch.0.schema(), keys, "keys")?;
        let on = stream_for(batch.place(), stream)?;
        let (schema, all) = (batch.0.schema(), 0..batch.0.columns().len());
        let kept: Vec<usize> = all.filter(|column| !keys.contains(column)).collect();
        let values = schema.project(&kept).expect("columns of the batch");
        let names = keys.iter().map(|key| schema.field(*key).name().clone()).collect();
        detached(py, || -> bowstring::Result<JoinTable> {
            let values = DeviceBatch::try_new(values.into(), arrays(&batch.0, &kept), batch.0.len())?;
            let table = Inner::new(&arrays(&batch.0, &keys), nulls_equal, &on).wait()?;
            Ok(JoinTable { table, values, keys: names })
        })
    }

    fn __len__(&self) -> usize {
        self.table.len()
    }

    /// Return the rows of `left` beside the rows of the table that have equal keys.
    ///
    /// `keys` are names or numbers of columns of `left`; without them, the names are those of the table's
    /// keys. `join_type` is `"inner"`, `"left outer"`, `"left semi"` or `"left anti"`. The result is that of
    /// `bowstring.join`.
    #[pyo3(signature = (left, keys = None, *, join_type = "inner", suffix = "_right", stream = None))]
    fn join(
        &self,
        left: &Bound<'_, PyAny>,
        keys: Option<&Bound<'_, PyAny>>,
        join_type: &str,
        suffix: &str,
        stream: Option<&Bound<'_, Stream>>,
    ) -> PyResult<RecordBatch> {
        let kind = match join_type {
            "inner" => Kind::Inner,
            "left outer" => Kind::LeftOuter,
            "left semi" => Kind::LeftSemi,
            "left anti" => Kind::LeftAnti,
            other => {
                return Err(PyValueError::new_err(format!(
                    "join_type of a table is inner, left outer, left semi or left anti, not {other:?}"
                )));
            }
        };
        let (py, left) = (left.py(), as_batch(left, "left")?);
        let keys = self.keys_in(&left, keys, py)?;
        let on = stream_for(left.place(), stream)?;
        let joined = detached(py, || {
            let (plain, rows) = (TakeOptions::default(), left.0.len());
            let matches = self.table.find(&arrays(&left.0, &keys), &on).wait()?;
            if matches!(kind, Kind::LeftSemi | Kind::LeftAnti) {
                let found = matches.found(&on).wait()?;
                let field = Field::new("found", found.data_type().clone(), false);
                let found = DeviceBatch::try_new(Schema::new(vec![field]).into(), vec![found], rows)?;
                let wanted = if kind == Kind::LeftSemi { nth(0) } else { !nth(0) };
                let bound = Query::new().filter(wanted).bind(found.schema(), &Options::default())?;
                return bound.selection(&found, &on).wait()?.filter(&left.0).wait();
            }
            let pairs = matches.pairs_of(0..rows, kind == Kind::LeftOuter, &on).wait()?;
            let right = compute::take(&self.values, &pairs.left, &plain, &on).wait()?;
            let own = compute::take(&left.0, &pairs.right, &plain, &on).wait()?;
            let schema =
                if kind == Kind::LeftOuter { nullable(right.schema()) } else { right.schema().clone() };
            let fields: Vec<_> = schema.fields().iter().chain(own.schema().fields()).cloned().collect();
            let columns = [right.columns(), own.columns()].concat();
            let joined = DeviceBatch::try_new(Schema::new(fields).into(), columns, own.len())?;
            arranged(&joined, right.columns().len(), &left.0, [true, true], suffix)
        });
        joined.map(RecordBatch::new)
    }
}
