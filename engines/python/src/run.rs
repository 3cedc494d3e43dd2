//! Runs futures for Python, and converts their errors to exceptions.
//!
//! Python waits in steps of a tenth of a second, between which Ctrl-C ends the wait and drops the future.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use datafusion::arrow::error::ArrowError;
use datafusion::error::{DataFusionError, Result};
use futures::{Stream, StreamExt};
use pyo3::exceptions::{
    PyMemoryError, PyNotImplementedError, PyOSError, PyRuntimeError, PyValueError, PyZeroDivisionError,
};
use pyo3::prelude::*;
use tokio::runtime::{Builder, Runtime};

const STEP: Duration = Duration::from_millis(100);

/// The runtime, and the process that it belongs to: a forked child has none of its threads. It is never
/// dropped, because a child must not wait for its parent's.
static RUNTIME: Mutex<Option<(u32, &'static Runtime)>> = Mutex::new(None);

/// The runtime of this process.
pub fn runtime() -> PyResult<&'static Runtime> {
    let mut kept = RUNTIME.lock().unwrap_or_else(PoisonError::into_inner);
    let process = std::process::id();
    if let Some((_, runtime)) = kept.filter(|(owner, _)| *owner == process) {
        return Ok(runtime);
    }
    let made = Builder::new_multi_thread().thread_name("bowstring-sql").enable_time().build();
    let made: &'static Runtime = Box::leak(Box::new(made?));
    *kept = Some((process, made));
    Ok(made)
}

/// Waits for a future without the interpreter.
pub fn wait<T: Send>(py: Python<'_>, future: impl Future<Output = Result<T>> + Send) -> PyResult<T> {
    let runtime = runtime()?;
    let mut future = Box::pin(future);
    loop {
        let step = || runtime.block_on(async { tokio::time::timeout(STEP, &mut future).await });
        match caught(py.detach(|| catch_unwind(AssertUnwindSafe(step))))? {
            Ok(done) => return done.map_err(exception),
            Err(_) => py.check_signals()?,
        }
    }
}

/// The items of a stream, for a consumer that is no code of Python's. Ctrl-C is an error of the stream.
pub struct Items<S> {
    stream: S,
    runtime: &'static Runtime,
    /// The thread that asked for the stream. Another one must not wait for the interpreter, which a thread
    /// that waits for the stream may hold.
    asker: ThreadId,
    looked: Instant,
}

impl<S> Items<S> {
    pub fn new(stream: S) -> PyResult<Items<S>> {
        let (asker, looked) = (thread::current().id(), Instant::now());
        Ok(Items { stream, runtime: runtime()?, asker, looked })
    }

    /// Asks for signals, if that was long ago.
    fn look(&mut self) -> Result<()> {
        if self.looked.elapsed() < STEP || thread::current().id() != self.asker {
            return Ok(());
        }
        self.looked = Instant::now();
        let signal = |error: PyErr| DataFusionError::Execution(format!("the query was interrupted: {error}"));
        Python::attach(|py| py.check_signals()).map_err(signal)
    }
}

impl<T, S: Stream<Item = Result<T>> + Unpin> Iterator for Items<S> {
    type Item = Result<T>;

    fn next(&mut self) -> Option<Result<T>> {
        loop {
            if let Err(interrupt) = self.look() {
                return Some(Err(interrupt));
            }
            let (runtime, stream) = (self.runtime, &mut self.stream);
            let step = async { tokio::time::timeout(STEP, stream.next()).await };
            if let Ok(item) = runtime.block_on(step) {
                return item;
            }
        }
    }
}

/// Does work without the interpreter.
pub fn detached<T: Send>(py: Python<'_>, work: impl FnOnce() -> Result<T> + Send) -> PyResult<T> {
    caught(py.detach(|| catch_unwind(AssertUnwindSafe(work))))?.map_err(exception)
}

/// A panic as an exception that `except Exception` catches.
fn caught<T>(done: std::thread::Result<T>) -> PyResult<T> {
    done.map_err(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        PyRuntimeError::new_err(format!("a bug: {}", text.unwrap_or_default()))
    })
}

/// The exception for an error of bowstring's.
pub fn ours(error: &bowstring::Error) -> PyErr {
    let words = error.to_string();
    match error {
        bowstring::Error::OutOfMemory { .. } | bowstring::Error::TooManyPairs { .. } => {
            PyMemoryError::new_err(words)
        }
        bowstring::Error::Producer { .. } => PyOSError::new_err(words),
        bowstring::Error::Unsupported { .. } => PyNotImplementedError::new_err(words),
        bowstring::Error::Driver { .. } | bowstring::Error::NoDevice { .. } => PyRuntimeError::new_err(words),
        _ => PyValueError::new_err(words),
    }
}

/// The exception for an error, by who has to act on it.
pub fn exception(error: DataFusionError) -> PyErr {
    let words = error.to_string();
    match error.find_root() {
        DataFusionError::SQL(..)
        | DataFusionError::Plan(_)
        | DataFusionError::Configuration(_)
        | DataFusionError::SchemaError(..)
        | DataFusionError::Execution(_)
        | DataFusionError::Diagnostic(..) => PyValueError::new_err(words),
        DataFusionError::ResourcesExhausted(_) => PyMemoryError::new_err(words),
        DataFusionError::NotImplemented(_) => PyNotImplementedError::new_err(words),
        DataFusionError::IoError(_) | DataFusionError::ObjectStore(_) | DataFusionError::ParquetError(_) => {
            PyOSError::new_err(words)
        }
        DataFusionError::ArrowError(error, _) => match **error {
            ArrowError::DivideByZero => PyZeroDivisionError::new_err(words),
            ArrowError::IoError(..) => PyOSError::new_err(words),
            _ => PyValueError::new_err(words),
        },
        DataFusionError::External(error) => {
            error.downcast_ref().map_or_else(|| PyRuntimeError::new_err(words), ours)
        }
        _ => PyRuntimeError::new_err(words),
    }
}
