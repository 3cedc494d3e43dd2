//! Errors as the exceptions that Python programmers expect. Every call of the library goes through [`ours`] or [`detached`]:
//! so a panic of ours is an ordinary exception too, and not one that `except Exception` lets pass.

use std::panic::{AssertUnwindSafe, catch_unwind};

use bowstring::Error;
use pyo3::exceptions::{
    PyArithmeticError, PyBufferError, PyIndexError, PyMemoryError, PyNotImplementedError, PyOSError,
    PyRuntimeError, PyValueError,
};
use pyo3::{PyErr, PyResult, Python};

/// What Python can raise.
pub trait Exception {
    /// As an exception.
    fn exception(self) -> PyErr;
}

impl Exception for PyErr {
    fn exception(self) -> PyErr {
        self
    }
}

impl Exception for Error {
    /// By who must act.
    fn exception(self) -> PyErr {
        let words = self.to_string();
        match self {
            Error::Unsupported { .. } => PyNotImplementedError::new_err(words),
            Error::OutOfMemory { .. } => PyMemoryError::new_err(words),
            // Overflow, or division by zero: Python's class of both.
            Error::Evaluation { .. } => PyArithmeticError::new_err(words),
            Error::IndexOutOfBounds { .. } => PyIndexError::new_err(words),
            Error::Producer { .. } => PyOSError::new_err(words),
            Error::Driver { .. } | Error::NoDevice { .. } => PyRuntimeError::new_err(words),
            _ => PyValueError::new_err(words),
        }
    }
}

/// The exception for an error that somebody else has caught.
pub fn exception_of(error: Error) -> PyErr {
    error.exception()
}

/// Runs the library, at once.
pub fn ours<T, E: Exception>(body: impl FnOnce() -> Result<T, E>) -> PyResult<T> {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(result) => result.map_err(Exception::exception),
        Err(panic) => {
            let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
            let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
            Err(PyRuntimeError::new_err(format!("a bug in bowstring: {}", text.unwrap_or_default())))
        }
    }
}

/// Runs the library, and lets other Python threads run meanwhile: for whatever may compute or wait.
pub fn detached<T: Send, E: Exception + Send>(
    py: Python<'_>,
    body: impl FnOnce() -> Result<T, E> + Send,
) -> PyResult<T> {
    ours(|| py.detach(body))
}

/// The exception where the array API asks for `BufferError`: what DLPack cannot carry.
pub fn for_buffers(error: Error) -> PyErr {
    match error {
        Error::Invalid { .. } | Error::Unsupported { .. } | Error::OutOfSpec { .. } => {
            PyBufferError::new_err(error.to_string())
        }
        error => error.exception(),
    }
}
