//! Errors as the exceptions that Python programmers expect.

use bowstring::Error;
use pyo3::PyErr;
use pyo3::exceptions::{
    PyBufferError, PyIndexError, PyMemoryError, PyNotImplementedError, PyOSError, PyRuntimeError,
    PyValueError,
};

/// The exception for an error, by who must act.
pub fn raise(error: Error) -> PyErr {
    let words = error.to_string();
    match error {
        Error::Unsupported { .. } => PyNotImplementedError::new_err(words),
        Error::OutOfMemory { .. } => PyMemoryError::new_err(words),
        Error::IndexOutOfBounds { .. } => PyIndexError::new_err(words),
        Error::Producer { .. } => PyOSError::new_err(words),
        Error::Driver { .. } | Error::NoDevice { .. } => PyRuntimeError::new_err(words),
        _ => PyValueError::new_err(words),
    }
}

/// The same where the array API asks for `BufferError`: what DLPack cannot carry.
pub fn raise_buffer(error: Error) -> PyErr {
    match error {
        Error::Invalid { .. } | Error::Unsupported { .. } | Error::OutOfSpec { .. } => {
            PyBufferError::new_err(error.to_string())
        }
        error => raise(error),
    }
}
