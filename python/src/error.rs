//! Conversion of errors to the exceptions that Python programmers expect. Every call of the library goes
//! through [`ours`] or [`detached`], so a panic, too, is an ordinary exception, which `except Exception`
//! catches.

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bowstring::{Error, Failure};
use pyo3::exceptions::{
    PyArithmeticError, PyBufferError, PyIndexError, PyKeyError, PyMemoryError, PyNotImplementedError,
    PyOSError, PyOverflowError, PyRuntimeError, PyValueError, PyZeroDivisionError,
};
use pyo3::types::PyAnyMethods;
use pyo3::{PyErr, PyResult, Python};

/// Errors that convert to a Python exception.
pub trait Exception {
    /// Converts the error to an exception.
    fn exception(self) -> PyErr;
}

impl Exception for PyErr {
    fn exception(self) -> PyErr {
        self
    }
}

impl Exception for Error {
    /// Chooses the class by who has to act on the error.
    fn exception(self) -> PyErr {
        let words = self.to_string();
        match self {
            Error::Unsupported { .. } => PyNotImplementedError::new_err(words),
            Error::OutOfMemory { .. } | Error::TooManyPairs { .. } => PyMemoryError::new_err(words),
            Error::Evaluation { failure: Failure::Overflow, .. } => PyOverflowError::new_err(words),
            Error::Evaluation { failure: Failure::DivisionByZero, .. } => PyZeroDivisionError::new_err(words),
            // This class is the base of both classes above.
            Error::Evaluation { .. } => PyArithmeticError::new_err(words),
            Error::NoColumn { number: Some(number), columns, .. } => {
                PyIndexError::new_err(format!("no column {number} of {}", columns.len()))
            }
            Error::NoColumn { column, columns, .. } => no_column(&column, &columns),
            Error::IndexOutOfBounds { .. } => PyIndexError::new_err(words),
            Error::Producer { .. } => PyOSError::new_err(words),
            Error::Driver { .. } | Error::NoDevice { .. } => PyRuntimeError::new_err(words),
            _ => PyValueError::new_err(words),
        }
    }
}

/// Makes the error for a column that is not among these.
pub fn no_column(name: &str, columns: &[String]) -> PyErr {
    PyKeyError::new_err(format!("no column {name:?}{}", nearest(name, columns)))
}

/// Returns a hint for an error message: the known name that is most like the wrong one, if any.
pub fn nearest(name: &str, names: &[String]) -> String {
    let near = Python::attach(|py| -> PyResult<Vec<String>> {
        py.import("difflib")?.call_method1("get_close_matches", (name, names))?.extract()
    });
    match near.unwrap_or_default().first() {
        Some(near) => format!("; did you mean {near:?}?"),
        None => String::new(),
    }
}

/// Converts an error that another part of the code has caught.
pub fn exception_of(error: Error) -> PyErr {
    error.exception()
}

/// The number of calls of [`ours`] under way in all threads; the library's own threads work for them.
static UNDER_WAY: AtomicUsize = AtomicUsize::new(0);
/// The place of such a call's last panic.
static PANICKED_AT: Mutex<Option<String>> = Mutex::new(None);

/// From now on, prints nothing to stderr for a panic that becomes an exception. All other panics are printed
/// as before.
pub fn keep_panics_off_stderr() {
    let print = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if UNDER_WAY.load(Ordering::Relaxed) == 0 {
            return print(info);
        }
        let at = info.location().map(|at| format!(" ({}:{})", at.file(), at.line()));
        *PANICKED_AT.lock().unwrap_or_else(PoisonError::into_inner) = at;
    }));
}

/// Runs `body` and converts a panic to an error with the panic's message.
pub fn caught<T>(body: impl FnOnce() -> T) -> Result<T, String> {
    UNDER_WAY.fetch_add(1, Ordering::Relaxed);
    let done = catch_unwind(AssertUnwindSafe(body));
    UNDER_WAY.fetch_sub(1, Ordering::Relaxed);
    done.map_err(|panic| {
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default()
    })
}

/// Runs the library and holds the interpreter. Errors and panics become exceptions.
pub fn ours<T, E: Exception>(body: impl FnOnce() -> Result<T, E>) -> PyResult<T> {
    match caught(body) {
        Ok(result) => result.map_err(Exception::exception),
        Err(words) => {
            let at = PANICKED_AT.lock().unwrap_or_else(PoisonError::into_inner).take().unwrap_or_default();
            Err(PyRuntimeError::new_err(format!("a bug in bowstring: {words}{at}")))
        }
    }
}

/// The interval at which a running operation checks for signals.
const LOOKS: Duration = Duration::from_millis(50);

/// Runs the library and lets other Python threads run meanwhile: for everything that may compute or wait.
/// Operations on the CPU end at Ctrl-C, and at any signal whose handler raises: its exception is then the
/// result.
pub fn detached<T: Send, E: Exception + Send>(
    py: Python<'_>,
    body: impl FnOnce() -> Result<T, E> + Send,
) -> PyResult<T> {
    ours(|| {
        let (done, raised) = py.detach(|| {
            let raised = Rc::new(Cell::new(None));
            let seen = raised.clone();
            let interrupted = move || match Python::attach(|py| py.check_signals()) {
                Ok(()) => false,
                Err(error) => {
                    seen.set(Some(error));
                    true
                }
            };
            (bowstring::interruptible(LOOKS, interrupted, body), raised.take())
        });
        raised.map_or(done.map_err(Exception::exception), Err)
    })
}

/// Converts an error to `BufferError`, as the array API asks, if DLPack cannot carry the array.
pub fn for_buffers(error: Error) -> PyErr {
    match error {
        Error::Invalid { .. } | Error::Unsupported { .. } | Error::OutOfSpec { .. } => {
            PyBufferError::new_err(error.to_string())
        }
        error => error.exception(),
    }
}
