//! `bowstring_sql.Session`.

use datafusion::prelude::{SessionConfig, SessionContext};
use pyo3::exceptions::PyValueError;
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
        let mut config = SessionConfig::new().with_information_schema(true);
        match partitions {
            Some(0) => return Err(PyValueError::new_err("partitions: at least 1 is needed, not 0")),
            Some(partitions) => config = config.with_target_partitions(partitions),
            None => {}
        }
        let context = bowstring_datafusion::session(config);
        let set = |key: &str, value: &str| bowstring_sql::set(&context, key, value).map_err(exception);
        set("bowstring.device", device)?;
        for (key, value) in settings.into_iter().flatten() {
            set(&key.extract::<String>()?, &value.str()?.to_string())?;
        }
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
        let name = datafusion::common::TableReference::bare(name);
        match self.0.deregister_table(name.clone()).map_err(exception)? {
            Some(_) => Ok(()),
            None => Err(pyo3::exceptions::PyKeyError::new_err(name.to_string())),
        }
    }

    /// Plan a query. It runs when its answer is read. `tables` are registered first.
    #[pyo3(signature = (query, tables = None))]
    fn sql(&self, py: Python<'_>, query: &str, tables: Option<&Bound<'_, PyDict>>) -> PyResult<Answer> {
        tables.map_or(Ok(()), |tables| tables::register_all(&self.0, tables))?;
        Ok(Answer::new(wait(py, self.0.sql(query))?))
    }
}
