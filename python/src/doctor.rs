//! The doctor: it finds the devices of a machine and tests them.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use bowstring_doctor::{self as examination, Options, Progress, examine};
use pyo3::exceptions::{PyException, PyValueError};
use pyo3::prelude::*;

use crate::error::detached;

/// The results of `doctor`. `str(report)` is a page for people to read.
#[pyclass(frozen, module = "bowstring")]
pub struct Report(examination::Report);

#[pymethods]
impl Report {
    /// Whether every device that the doctor found passed its tests.
    #[getter]
    fn is_well(&self) -> bool {
        self.0.is_well()
    }

    /// Return the results as JSON, with the time of each kernel.
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

/// The caller's function for progress, if there is one, and what ended its use, such as Ctrl-C.
struct Told {
    progress: Option<Py<PyAny>>,
    ended: Option<PyErr>,
}

impl Told {
    fn new(progress: Option<Py<PyAny>>) -> Told {
        Told { progress, ended: None }
    }

    /// Reports the progress of an examination.
    fn show(&mut self, at: &Progress<'_>) {
        let Some(progress) = self.progress.as_ref().filter(|_| self.ended.is_none()) else { return };
        Python::attach(|py| match progress.call1(py, (at.to_string(), at.done, at.of)) {
            // An exception of that function must not change the examination.
            Err(error) if error.is_instance_of::<PyException>(py) => {
                error.write_unraisable(py, Some(progress.bind(py)));
            }
            Err(end) => self.ended = Some(end),
            Ok(_) => {}
        });
    }

    /// Raises what ended the reports, once the examination is over.
    fn raise(self) -> PyResult<()> {
        self.ended.map_or(Ok(()), Err)
    }
}

fn options(seconds: f64, devices: usize) -> PyResult<Options> {
    let budget = Duration::try_from_secs_f64(seconds);
    let budget = budget.map_err(|_| PyValueError::new_err("seconds: not a number of seconds"))?;
    Ok(Options { budget, devices })
}

/// Find the machine's devices, examine the CPU and each GPU, and return a report.
///
/// This examines at most `devices` GPUs of each kind, and takes about `seconds`. It calls `progress` with a
/// description of the current step, the amount done, and the total.
///
/// The examination runs in this process, which ends if a driver crashes. ROCm ends the process, too, if its
/// GPU has a fault. `python -m bowstring` examines each GPU in a process of its own.
#[pyfunction]
#[pyo3(signature = (*, seconds = 100.0, devices = 8, progress = None))]
pub fn doctor(py: Python<'_>, seconds: f64, devices: usize, progress: Option<Py<PyAny>>) -> PyResult<Report> {
    let options = options(seconds, devices)?;
    let mut told = Told::new(progress);
    let report = detached(py, || Ok::<_, PyErr>(Report(examine(&options, &mut |at| told.show(at)))))?;
    told.raise()?;
    Ok(report)
}

/// Examine each GPU in a process of its own, for `python -m bowstring`.
///
/// `command` starts such a process, which must call `_examine_only`. The file `json` always has the report
/// so far. Return the report, and why the file could not be written last, or `None`.
#[pyfunction]
#[pyo3(name = "_examine_apart")]
pub fn examine_apart(
    py: Python<'_>,
    command: Vec<OsString>,
    seconds: f64,
    devices: usize,
    progress: Option<Py<PyAny>>,
    json: Option<PathBuf>,
) -> PyResult<(Report, Option<String>)> {
    let options = options(seconds, devices)?;
    let Some((program, arguments)) = command.split_first() else {
        return Err(PyValueError::new_err("command: there is none"));
    };
    let mut told = Told::new(progress);
    let found = detached(py, || {
        let start = || {
            let mut command = Command::new(program);
            command.args(arguments);
            command
        };
        let mut problem = None;
        let mut write = |report: &examination::Report| {
            if let Some(file) = &json {
                let written = std::fs::write(file, report.to_json() + "\n");
                problem = written.err().map(|error| format!("{}: {error}", file.display()));
            }
        };
        let report = examination::examine_apart(&start, &options, &mut |at| told.show(at), &mut write);
        Ok::<_, PyErr>((Report(report), problem))
    })?;
    told.raise()?;
    Ok(found)
}

/// Write the results for one library or device to the standard output, for `python -m bowstring --only WHAT`.
#[pyfunction]
#[pyo3(name = "_examine_only")]
pub fn examine_only(py: Python<'_>, what: &str, seconds: f64, devices: usize) -> PyResult<()> {
    let options = options(seconds, devices)?;
    detached(py, || Ok::<_, PyErr>(examination::examine_only(what, &options, &mut std::io::stdout())?))
}
