//! `bowstring_sql.Session`.

use datafusion::common::TableReference;
use datafusion::prelude::SessionContext;
use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::answer::Answer;
use crate::run::{exception, wait};
use crate::tables;

/// Tables by name, and the options under which queries over them run.
///
/// `device` runs the operators: `"auto"` (the first GPU, else the CPU), `"cpu"`, `"cuda:0"`, `"rocm:0"`,
/// `"emulator"`, or `"off"` for DataFusion alone. `partitions` work at a time, by default as many as there
/// are cores. `settings` are any other options of DataFusion or bowstring, by name.
#[pyclass(frozen, module = "bowstring_sql")]
pub struct Session(SessionContext);

#[pymethods]
impl Session {
    #[new]
    #[pyo3(signature = (*, device = "auto", partitions = None, settings = None))]
    fn new(
        py: Python<'_>,
        device: &str,
        partitions: Option<usize>,
        settings: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Session> {
        if partitions == Some(0) {
            return Err(PyValueError::new_err("partitions: at least 1 is needed, not 0"));
        }
        let text = |(key, value): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
            Ok((key.extract::<String>()?, value.str()?.to_string()))
        };
        // A value's text may be made by code that changes the dictionary, at which pyo3's iterator panics.
        let settings = settings.map(|settings| settings.copy()).transpose()?;
        let settings = settings.iter().flatten().map(text).collect::<PyResult<Vec<_>>>()?;
        let settings = settings.iter().map(|(key, value)| (&**key, &**value));
        let context = bowstring_sql::session(device, partitions, settings).map_err(exception)?;
        // A device that cannot be opened is an error now, and not of the first query.
        py.detach(|| bowstring_datafusion::open(device)).map_err(exception)?;
        Ok(Session(context))
    }

    /// Give a table a name; another table of that name gives way.
    ///
    /// `table` is the path of a Parquet or CSV file, or of a folder of such files, or any object that speaks
    /// the Arrow PyCapsule interface, such as a table of pyarrow, polars, pandas or DuckDB. Host memory is
    /// shared, and validated. Arrays on a GPU stay there.
    fn register(&self, name: &str, table: &Bound<'_, PyAny>) -> PyResult<()> {
        tables::register(&self.0, name, table)
    }

    /// Forget the table of this name.
    fn deregister(&self, name: &str) -> PyResult<()> {
        let name = TableReference::bare(name);
        match self.0.deregister_table(name.clone()).map_err(exception)? {
            Some(_) => Ok(()),
            None => Err(PyKeyError::new_err(name.to_string())),
        }
    }

    /// Plan a query. It runs when its answer is read. `tables` are registered first.
    #[pyo3(signature = (query, tables = None))]
    fn sql(&self, py: Python<'_>, query: &str, tables: Option<&Bound<'_, PyDict>>) -> PyResult<Answer> {
        tables.map_or(Ok(()), |tables| tables::register_all(&self.0, tables))?;
        Ok(Answer::new(wait(py, self.0.sql(query))?))
    }
}
