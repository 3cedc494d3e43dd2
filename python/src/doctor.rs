//! The doctor: what devices there are, and whether they are well.

use std::time::Duration;

use bowstring::doctor::{Options, examine};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::error::detached;

/// What the doctor found. As a string, a page for people.
#[pyclass(frozen, module = "bowstring")]
pub struct Report(bowstring::doctor::Report);

#[pymethods]
impl Report {
    /// Whether every device that is here did what it should.
    #[getter]
    fn is_well(&self) -> bool {
        self.0.is_well()
    }

    /// The same as JSON, with each kernel's time.
    fn to_json(&self) -> String {
        self.0.to_json()
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        let state = if self.0.is_well() { "all is well" } else { "something is wrong" };
        format!("<bowstring.Report: {state}; print it>")
    }
}

/// Looks for devices, and examines the CPU and each GPU that it finds, `devices` of a kind at most, in so many seconds. `progress` is
/// called with what is being done, how much of it has been done, and how much there is.
#[pyfunction]
#[pyo3(signature = (*, seconds = 100.0, devices = 8, progress = None))]
pub fn doctor(py: Python<'_>, seconds: f64, devices: usize, progress: Option<Py<PyAny>>) -> PyResult<Report> {
    let budget = Duration::try_from_secs_f64(seconds);
    let budget = budget.map_err(|_| PyValueError::new_err("seconds: not a number of seconds"))?;
    detached(py, || {
        let found = examine(&Options { budget, devices }, &mut |at| {
            let Some(progress) = &progress else { return };
            Python::attach(|py| {
                // What it raises is nothing that an examination could do anything about.
                if let Err(error) = progress.call1(py, (at.to_string(), at.done, at.of)) {
                    error.write_unraisable(py, Some(progress.bind(py)));
                }
            });
        });
        Ok::<_, PyErr>(Report(found))
    })
}
