//! `bowstring_sql.Answer`.

use std::sync::{Arc, Mutex, PoisonError};

use bowstring::array::Batches;
use bowstring_datafusion::batches_of;
use bowstring_sql::left_to_datafusion;
use bowstring_sql::progress::Watch;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::dataframe::DataFrame;
use datafusion::physical_plan::execute_stream;
use futures::TryStreamExt;
use pyo3::exceptions::PyNotImplementedError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::capsule::stream_capsule;
use crate::run::{Items, exception, wait};

/// The rows that are shown of an answer.
const SHOWN: usize = 20;

/// The answer to a query, which runs when it is first read.
///
/// It speaks the Arrow PyCapsule interface: `pyarrow.table(answer)` and `polars.DataFrame(answer)` read it.
#[pyclass(frozen, module = "bowstring_sql")]
pub struct Answer {
    query: DataFrame,
    /// The rows, once they have been collected.
    rows: Mutex<Option<Arc<Rows>>>,
}

/// The rows of an answer. Their schema is the plan's: that of the query is older than the casts that make its
/// types meet, so it may say an integer where the rows have a float.
struct Rows {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
}

impl Answer {
    pub fn new(query: DataFrame) -> Answer {
        Answer { query, rows: Mutex::new(None) }
    }

    fn kept(&self) -> Option<Arc<Rows>> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Runs the query, unless it has run, with a progress bar if standard error is a terminal.
    fn collected(&self, py: Python<'_>, progress: bool) -> PyResult<Arc<Rows>> {
        if let Some(rows) = self.kept() {
            return Ok(rows);
        }
        let query = self.query.clone();
        let rows = wait(py, async move {
            let context = Arc::new(query.task_ctx());
            let plan = query.create_physical_plan().await?;
            let _watch = progress.then(|| Watch::new(plan.clone()));
            let stream = execute_stream(plan, context)?;
            Ok(Rows { schema: stream.schema(), batches: stream.try_collect().await? })
        })?;
        let rows = Arc::new(rows);
        *self.rows.lock().unwrap_or_else(PoisonError::into_inner) = Some(rows.clone());
        Ok(rows)
    }

    /// The rows, or those that the query gives while they are read.
    fn batches(&self, py: Python<'_>) -> PyResult<Batches> {
        if let Some(rows) = self.kept() {
            let schema = rows.schema.clone();
            let all = (0..rows.batches.len()).map(move |batch| Ok(rows.batches[batch].clone()));
            return Ok(batches_of(&schema, all));
        }
        let stream = wait(py, self.query.clone().execute_stream())?;
        Ok(batches_of(&stream.schema(), Items::new(stream)?))
    }
}

#[pymethods]
impl Answer {
    /// Run the query, unless it has run, and keep its rows. `progress` shows a bar on a terminal.
    #[pyo3(signature = (*, progress = true))]
    fn collect(this: Bound<'_, Self>, progress: bool) -> PyResult<Bound<'_, Self>> {
        this.get().collected(this.py(), progress)?;
        Ok(this)
    }

    /// Convert the answer to a table of pyarrow.
    fn to_arrow<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        this.get().collected(this.py(), true)?;
        this.py().import("pyarrow")?.call_method1("table", (this,))
    }

    /// Convert the answer to a frame of polars.
    fn to_polars<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        this.get().collected(this.py(), true)?;
        this.py().import("polars")?.call_method1("DataFrame", (this,))
    }

    /// Convert the answer to a frame of pandas, by way of pyarrow.
    fn to_pandas<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Answer::to_arrow(this)?.call_method0("to_pandas")
    }

    /// Describe the plan, in which `DeviceExec` is an operator of bowstring's, and say why other operators
    /// are left to DataFusion. With `analyze`, run it and say what each operator did.
    #[pyo3(signature = (*, analyze = false))]
    fn explain(&self, py: Python<'_>, analyze: bool) -> PyResult<String> {
        let query = self.query.clone();
        wait(py, async move {
            let rows = query.clone().explain(false, analyze)?.collect().await?;
            let shown =
                rows.iter().map(|rows| rows.project(&[1])).collect::<std::result::Result<Vec<_>, _>>()?;
            let shown = pretty_format_batches(&shown)?.to_string();
            if !analyze {
                return Ok(shown);
            }
            // `EXPLAIN ANALYZE` does not say what is left to DataFusion.
            let context = query.task_ctx();
            let plan = query.create_physical_plan().await?;
            let left = left_to_datafusion(&plan, context.session_config().options())?;
            Ok(format!("{shown}\n{left}"))
        })
    }

    /// The names of the columns.
    #[getter]
    fn column_names(&self) -> Vec<String> {
        self.query.schema().fields().iter().map(|field| field.name().clone()).collect()
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.collected(py, true)?.batches.iter().map(RecordBatch::num_rows).sum())
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let all = self.collected(py, true)?;
        let (mut shown, mut rows) = (vec![RecordBatch::new_empty(all.schema.clone())], 0);
        for batch in &all.batches {
            shown.push(batch.slice(0, batch.num_rows().min(SHOWN.saturating_sub(rows))));
            rows += batch.num_rows();
        }
        let table = pretty_format_batches(&shown).map_err(|error| exception(error.into()))?;
        let more = if rows > SHOWN { format!(", of which {SHOWN} are shown") } else { String::new() };
        Ok(format!("{table}\n{rows} rows{more}"))
    }

    /// Return the rows as a stream. If the query has not run, it runs as the stream is read, and its rows are
    /// not kept.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // A producer may ignore the schema that a consumer prefers; only a capsule can be one.
        if requested_schema.is_some_and(|schema| !schema.is_instance_of::<PyCapsule>()) {
            return Err(PyNotImplementedError::new_err("requested_schema: a capsule is needed"));
        }
        stream_capsule(py, self.batches(py)?)
    }
}
