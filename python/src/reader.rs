//! Streams of batches as Python sees them, and operations mapped over them.
//!
//! The one idea: one thread at a time uses a reader's source, and a thread that waits for it does not hold
//! the interpreter, because the source may be a Python generator.

use std::sync::Arc;

use arrow_schema::{Schema, SchemaRef};
use bowstring::array::Batches;
use bowstring::compute::batches::cast_batches;
use bowstring::compute::{CastOptions, OutOfBounds, TakeOptions};
use bowstring::exchange::Turns;
use bowstring::{DeviceArray as Inner, DeviceBatch, Error, Stream as InnerStream};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::array::Array;
use crate::batch::{RecordBatch, has_names_of};
use crate::capsule::import_schema;
use crate::device::{Device, Stream};
use crate::error::{detached, ours};
use crate::foreign;
use crate::protocols::{Found, by_arrow, by_stream};
use crate::source::{Items, Raised, Source, of_python};
use crate::types::described;

/// A stream of batches that can be read once: by a `for` loop, an operation, or another library.
#[pyclass(frozen, module = "bowstring")]
pub struct BatchReader {
    pub source: Turns<Option<Source<SchemaRef, DeviceBatch>>>,
    pub schema: SchemaRef,
    /// The method of another library's object that the batches come by, or `None` if they are made here.
    pub method: Option<&'static str>,
}

pub fn given_away() -> Error {
    Error::Invalid { operation: "BatchReader", problem: "the reader was given away already".to_owned() }
}

/// Casts each batch to a schema.
pub fn cast_source(
    source: Source<SchemaRef, DeviceBatch>,
    schema: Schema,
    safe: bool,
    stream: &InnerStream,
) -> Source<SchemaRef, DeviceBatch> {
    let options = CastOptions { safe, ..CastOptions::default() };
    let (batches, raised) = source.take_apart();
    Source::of(cast_batches(batches, Arc::new(schema), &options, stream), raised)
}

impl BatchReader {
    pub fn over(source: Source<SchemaRef, DeviceBatch>) -> BatchReader {
        BatchReader { schema: source.shape.clone(), source: Turns::new(Some(source)), method: None }
    }

    /// Makes a reader of any object with an Arrow interface.
    pub fn of(obj: &Bound<'_, PyAny>, device: Option<&Bound<'_, Device>>) -> PyResult<BatchReader> {
        if let Ok(reader) = obj.cast::<BatchReader>() {
            return reader.get().give(obj.py()).map(BatchReader::over);
        }
        let once = |batch: RecordBatch| {
            let (place, method) = (batch.place(), batch.1);
            (batch.once(place), method)
        };
        let (source, method) = match by_arrow(obj, device.map(|device| &device.get().0))? {
            Some(Found::Several(arrays, method)) => (ours(|| arrays.batches())?, Some(method)),
            Some(Found::Rows(batch)) => once(batch),
            Some(Found::One(rows)) => once(foreign::rows(&rows)?),
            None => {
                let problem = format!("obj: {} has no Arrow stream interface", obj.get_type());
                return Err(PyTypeError::new_err(problem));
            }
        };
        let (batches, raised) = source.take_apart();
        Ok(BatchReader { method, ..BatchReader::over(Source::of(batches, raised)) })
    }

    /// Uses the source once no other thread does; Ctrl-C ends the waiting.
    pub fn in_turn<R: Send>(
        &self,
        py: Python<'_>,
        body: impl FnOnce(&mut Option<Source<SchemaRef, DeviceBatch>>) -> Result<R, Error> + Send,
    ) -> PyResult<R> {
        let mut signal = None;
        let used = detached(py, || {
            let interrupted = || {
                signal = Python::attach(|py| py.check_signals()).err();
                signal.is_some()
            };
            self.source.with_interrupts(interrupted, body)
        });
        signal.map_or(used, Err)
    }

    /// Checks that the source has not been given away.
    pub fn is_there(&self, py: Python<'_>) -> PyResult<()> {
        self.in_turn(py, |source| if source.is_some() { Ok(()) } else { Err(given_away()) })
    }

    pub fn give(&self, py: Python<'_>) -> PyResult<Source<SchemaRef, DeviceBatch>> {
        self.in_turn(py, |source| source.take().ok_or_else(given_away))
    }

    /// Gives the source away, cast to the schema capsule that a consumer passed, if any.
    pub fn requested(
        &self,
        py: Python<'_>,
        schema: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Source<SchemaRef, DeviceBatch>> {
        let schema = schema.map(import_schema).transpose()?;
        let source = self.give(py)?;
        match schema {
            None => Ok(source),
            Some(schema) if has_names_of(&schema, &source.shape) => {
                let stream = source.stream()?;
                Ok(cast_source(source, schema, false, &stream))
            }
            Some(_) => Ok(source),
        }
    }

    /// Gives the source away to a reader that applies a library operation to each batch.
    pub fn mapped(
        &self,
        py: Python<'_>,
        stream: Option<&Bound<'_, Stream>>,
        map: impl FnOnce(Batches, &InnerStream) -> Batches,
    ) -> PyResult<BatchReader> {
        let source = self.give(py)?;
        let stream = self.stream(stream, &source)?;
        // The operation may read many batches for the first of its own.
        let (batches, raised) = source.interruptible().take_apart();
        Ok(BatchReader::over(Source::of(map(batches, &stream), raised)))
    }

    pub fn stream(
        &self,
        stream: Option<&Bound<'_, Stream>>,
        source: &Source<SchemaRef, DeviceBatch>,
    ) -> PyResult<InnerStream> {
        stream.map_or_else(|| source.stream(), |stream| Ok(stream.get().0.clone()))
    }
}

/// Puts a Python producer's batch under the declared schema of the stream; an error if it does not fit.
pub fn under(batch: RecordBatch, shape: &SchemaRef) -> PyResult<DeviceBatch> {
    let (batch, theirs) = (&batch.0, batch.0.schema());
    let declared = shape.fields().iter().zip(theirs.fields());
    let fits = declared.zip(batch.columns()).all(|((declared, own), column)| {
        let never_null = !own.is_nullable() || column.known_null_count() == Some(0);
        own.name() == declared.name()
            && own.data_type() == declared.data_type()
            && (declared.is_nullable() || never_null)
    });
    if !fits || shape.fields().len() != theirs.fields().len() {
        let problem = format!("a batch of {} in a stream of {}", described(theirs), described(shape));
        return Err(PyValueError::new_err(problem));
    }
    let metadata = batch.metadata().clone();
    let columns = batch.columns().to_vec();
    ours(|| {
        Ok::<_, Error>(DeviceBatch::try_new(shape.clone(), columns, batch.len())?.with_metadata(metadata))
    })
}

pub fn take_options(out_of_bounds: &str) -> PyResult<TakeOptions> {
    match out_of_bounds {
        "raise" => Ok(TakeOptions { out_of_bounds: OutOfBounds::Error }),
        "null" => Ok(TakeOptions { out_of_bounds: OutOfBounds::Null }),
        other => Err(PyValueError::new_err(format!("out_of_bounds is \"raise\" or \"null\", not {other:?}"))),
    }
}

/// Reads a stream or a Python iterable of arrays, one for each batch.
pub fn arrays(obj: &Bound<'_, PyAny>, argument: &'static str) -> PyResult<(Items<Inner>, Raised)> {
    if let Some(source) = by_stream(obj)? {
        return Ok((source.items, source.raised));
    }
    if obj.cast::<Array>().is_ok() {
        let problem = format!("{argument}: one array for each batch is needed: pass a list of arrays");
        return Err(PyTypeError::new_err(problem));
    }
    of_python(obj, argument, move |item| Ok(foreign::as_array(item, argument)?.array))
}
