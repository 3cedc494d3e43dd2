//! Streams of items, from other libraries and from Python iterables. They are lazy: an item is read when a
//! consumer asks for it.
//!
//! The one idea: streams fail with errors of the library, and Python exceptions are not such errors. So an
//! exception of Python code is kept beside the stream that it ended, and a Python caller who meets the
//! stream's error gets the exception itself.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use arrow_schema::{DataType, Field, Schema, SchemaRef};
use bowstring::array::{Batches, Place};
use bowstring::{DeviceArray, DeviceBatch, Error, Result, compute};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyIterator;
use pyo3::{PyTraverseError, PyVisit};

use crate::device::default_stream;
use crate::error::exception_of;
use crate::pace::{interrupted, push};

/// A stream of items, with their common shape and the memory that they are in.
pub struct Source<S, T> {
    pub shape: S,
    pub place: Place,
    pub items: Items<T>,
    pub raised: Raised,
}

pub type Items<T> = Box<dyn Iterator<Item = Result<T>> + Send>;

/// The exceptions of the Python code that feeds a stream, each with the error that the stream reports for it.
#[derive(Default)]
pub struct Raised(Vec<Slot>);

/// A Python iterable that a stream reads.
struct Slot {
    /// Only the items own the iterable. Dropping them also drops all that the iterable holds.
    iterator: Weak<Iterable>,
    /// The exception of the iterable, until a Python caller has received it.
    raised: Arc<Mutex<Option<(Error, PyErr)>>>,
}

/// The iterator, or `None` after its end.
type Iterable = Mutex<Option<Py<PyIterator>>>;

/// Locks a value. No thread holds such a lock while Python code runs.
fn locked<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Raised {
    /// Joins the exceptions of two streams.
    pub fn and(mut self, other: Raised) -> Raised {
        self.0.extend(other.0);
        self
    }

    /// Returns the exception for a stream's error: the one that Python code raised, if the error stands for
    /// it.
    pub fn exception(&self, error: Error) -> PyErr {
        let slots = self.0.iter().map(|slot| locked(&slot.raised));
        let raised = slots.filter(|slot| slot.as_ref().is_some_and(|(known, _)| *known == error));
        let raised = raised.filter_map(|mut slot| slot.take()).next();
        raised.map_or_else(|| exception_of(error), |(_, raised)| raised)
    }

    /// Shows the iterables of a stream to the cycle collector. Each belongs to one stream.
    pub fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        for slot in &self.0 {
            if let Some(iterator) = slot.iterator.upgrade()
                && let Ok(iterator) = iterator.try_lock()
            {
                visit.call(iterator.as_ref())?;
            }
        }
        Ok(())
    }
}

/// Makes the stream's error for an exception, and keeps the exception for Python callers.
fn noted(slot: &Mutex<Option<(Error, PyErr)>>, exception: PyErr) -> Error {
    let error = Error::Producer { code: 5, message: exception.to_string(), metadata: Default::default() };
    *locked(slot) = Some((error.clone(), exception));
    error
}

/// Reads the items of a Python iterable with `item`, up to the first failure. Any thread may read them.
pub fn of_python<T: 'static>(
    iterable: &Bound<'_, PyAny>,
    argument: &str,
    item: impl Fn(&Bound<'_, PyAny>) -> PyResult<T> + Send + 'static,
) -> PyResult<(Items<T>, Raised)> {
    let iterator =
        iterable.try_iter().map_err(|error| match error.is_instance_of::<PyTypeError>(iterable.py()) {
            true => PyTypeError::new_err(format!("{argument}: {}", error.value(iterable.py()))),
            false => error,
        });
    let (iterator, slot) = (Arc::new(Mutex::new(Some(iterator?.unbind()))), Arc::default());
    let raised = Raised(vec![Slot { iterator: Arc::downgrade(&iterator), raised: Arc::clone(&slot) }]);
    let items = std::iter::from_fn(move || {
        let next = Python::attach(|py| {
            let mut source = locked(&iterator).as_ref()?.clone_ref(py).into_bound(py);
            let next = source.next().map(|next| next.and_then(|next| item(&next))).transpose();
            if !matches!(next, Ok(Some(_))) {
                let ended = locked(&iterator).take();
                drop(ended);
            }
            Some(next)
        })?;
        let next = next.map_err(|exception| noted(&slot, exception));
        next.transpose()
    });
    Ok((Box::new(items), raised))
}

/// Whether arrays of this field are batches: structs whose field is not nullable. Unlike a batch, an array of
/// structs may have null rows, so every library that has both declares its field nullable.
pub fn are_batches(field: &Field) -> bool {
    matches!(field.data_type(), DataType::Struct(_)) && !field.is_nullable()
}

/// Returns the schema of batches that are imported as arrays of structs with this field.
pub fn schema_of(field: &Field) -> Result<SchemaRef> {
    match field.data_type() {
        DataType::Struct(fields) => {
            Ok(Arc::new(Schema::new_with_metadata(fields.clone(), field.metadata().clone())))
        }
        other => Err(Error::Invalid {
            operation: "record_batch",
            problem: format!("arrays of {other} are no batches: structs are"),
        }),
    }
}

/// Converts an array of structs to a batch. A batch has no null rows: nulls are counted in host memory, and
/// elsewhere their number must be known.
pub fn batch_of(schema: &SchemaRef, rows: &DeviceArray) -> Result<DeviceBatch> {
    let nulls = match rows.place().device_type.host_accessible() {
        true => Some(compute::null_count(rows, &bowstring::Stream::cpu()).wait()?),
        false => rows.known_null_count(),
    };
    if nulls != Some(0) {
        let problem = match nulls {
            Some(nulls) => format!("{nulls} rows are null, which a batch's cannot be"),
            None => "a batch's rows must be known not to be null".to_owned(),
        };
        return Err(Error::OutOfSpec { at: "array.null_count".to_owned(), problem });
    }
    let columns = (0..rows.children().len()).map(|i| rows.child_rows(i)).collect::<Result<_>>()?;
    DeviceBatch::try_new(schema.clone(), columns, rows.len())
}

impl Source<SchemaRef, DeviceBatch> {
    /// Splits the source into its batches and the exceptions that Python raises meanwhile.
    pub fn take_apart(self) -> (Batches, Raised) {
        (Batches::new(self.shape, self.place, self.items), self.raised)
    }

    /// Makes Ctrl-C end the batches, for loops inside the library.
    pub fn interruptible(mut self) -> Source<SchemaRef, DeviceBatch> {
        let slot = Arc::default();
        self.raised.0.push(Slot { iterator: Weak::new(), raised: Arc::clone(&slot) });
        let mut items = self.items;
        let asked = std::iter::from_fn(move || match interrupted() {
            Ok(()) => items.next(),
            Err(signal) => Some(Err(noted(&slot, signal))),
        });
        Source { items: Box::new(asked), ..self }
    }

    /// Wraps a stream that the library has made, with the exceptions of the Python code that feeds it.
    pub fn of(batches: Batches, raised: Raised) -> Source<SchemaRef, DeviceBatch> {
        let (shape, place) = (batches.schema().clone(), batches.place());
        Source { shape, place, items: Box::new(batches), raised }
    }
}

impl Source<Field, DeviceArray> {
    /// Converts arrays of structs to batches.
    pub fn batches(self) -> Result<Source<SchemaRef, DeviceBatch>> {
        let shape = schema_of(&self.shape)?;
        let schema = shape.clone();
        let mut items = Some(self.items);
        // The stream ends after a failure.
        let batches = std::iter::from_fn(move || {
            let batch = items.as_mut()?.next()?.and_then(|rows| batch_of(&schema, &rows));
            if batch.is_err() {
                items = None;
            }
            Some(batch)
        });
        Ok(Source { shape, place: self.place, items: Box::new(batches), raised: self.raised })
    }
}

impl<S, T> Source<S, T> {
    /// Reads all items; Ctrl-C ends the reading.
    pub fn all(self) -> PyResult<(S, Vec<T>)> {
        let mut all = vec![];
        for item in self.items {
            push(&mut all, item.map_err(|error| self.raised.exception(error))?)?;
            interrupted()?;
        }
        Ok((self.shape, all))
    }

    /// Returns the default stream for the memory of the items.
    pub fn stream(&self) -> PyResult<bowstring::Stream> {
        default_stream(self.place)
    }
}
