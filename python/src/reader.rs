//! Streams of batches as Python sees them, and operations mapped over them.
//!
//! The one idea: one thread at a time uses a reader's source, and a thread that waits for it does not hold
//! the interpreter, because the source may be a Python generator.

use std::sync::Arc;

use arrow_schema::{Schema, SchemaRef};
use bowstring::array::{Batches, Place};
use bowstring::compute::batches::{
    aggregate_batches, cast_batches, column, evaluate_batches, filter_batches, filter_batches_where, in_step,
    take_batches,
};
use bowstring::compute::{CastOptions, OutOfBounds, Predicate, TakeOptions};
use bowstring::exchange::Turns;
use bowstring::ffi::FFI_ArrowSchema;
use bowstring::{Array as Inner, Batch, Error, Stream as InnerStream};
use pyo3::exceptions::{PyStopIteration, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyInt, PyString, PyTuple};
use pyo3::{PyTraverseError, PyVisit};

use crate::array::Array;
use crate::batch::RecordBatch;
use crate::capsule::{device_capsule, export_schema, host_capsule, import_schema, refuse_unknown};
use crate::device::{Device, Stream};
use crate::error::{detached, ours};
use crate::expr::Expr;
use crate::expressions::{aggregates, options, projection};
use crate::foreign;
use crate::protocols::{Found, by_arrow, by_stream};
use crate::source::{Items, Raised, Source, of_python};
use crate::types::{self, Schema as PublicSchema, described, place_in};

/// A stream of batches that can be read once: by a `for` loop, an operation, or another library.
#[pyclass(frozen, module = "bowstring")]
pub struct BatchReader {
    source: Turns<Option<Source<SchemaRef, Batch>>>,
    schema: SchemaRef,
    /// The method of another library's object that the batches come by, or `None` if they are made here.
    method: Option<&'static str>,
}

fn given_away() -> Error {
    Error::Invalid { operation: "BatchReader", problem: "the reader was given away already".to_owned() }
}

/// Casts each batch to a schema.
fn cast_source(
    source: Source<SchemaRef, Batch>,
    schema: Schema,
    safe: bool,
    stream: &InnerStream,
) -> Source<SchemaRef, Batch> {
    let options = CastOptions { safe, ..CastOptions::default() };
    let (batches, raised) = source.take_apart();
    Source::of(cast_batches(batches, Arc::new(schema), &options, stream), raised)
}

impl BatchReader {
    fn over(source: Source<SchemaRef, Batch>) -> BatchReader {
        BatchReader { schema: source.shape.clone(), source: Turns::new(Some(source)), method: None }
    }

    /// Makes a reader of any object with an Arrow interface.
    fn of(obj: &Bound<'_, PyAny>, device: Option<&Bound<'_, Device>>) -> PyResult<BatchReader> {
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
    fn in_turn<R: Send>(
        &self,
        py: Python<'_>,
        body: impl FnOnce(&mut Option<Source<SchemaRef, Batch>>) -> Result<R, Error> + Send,
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

    fn give(&self, py: Python<'_>) -> PyResult<Source<SchemaRef, Batch>> {
        self.in_turn(py, |source| source.take().ok_or_else(given_away))
    }

    /// Gives the source away, cast to the schema capsule that a consumer passed, if any.
    fn requested(
        &self,
        py: Python<'_>,
        schema: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Source<SchemaRef, Batch>> {
        let schema = schema.map(import_schema).transpose()?;
        let source = self.give(py)?;
        match schema {
            None => Ok(source),
            Some(schema) => {
                let stream = source.stream()?;
                Ok(cast_source(source, schema, false, &stream))
            }
        }
    }

    /// Gives the source away to a reader that applies a library operation to each batch.
    fn mapped(
        &self,
        py: Python<'_>,
        stream: Option<&Bound<'_, Stream>>,
        map: impl FnOnce(Batches, &InnerStream) -> Batches,
    ) -> PyResult<BatchReader> {
        let source = self.give(py)?;
        let stream = self.stream(stream, &source)?;
        let (batches, raised) = source.take_apart();
        Ok(BatchReader::over(Source::of(map(batches, &stream), raised)))
    }

    fn stream(
        &self,
        stream: Option<&Bound<'_, Stream>>,
        source: &Source<SchemaRef, Batch>,
    ) -> PyResult<InnerStream> {
        stream.map_or_else(|| source.stream(), |stream| Ok(stream.get().0.clone()))
    }
}

/// Puts a Python producer's batch under the declared schema of the stream; an error if it does not fit.
fn under(batch: RecordBatch, shape: &SchemaRef) -> PyResult<Batch> {
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
    ours(|| Ok::<_, Error>(Batch::try_new(shape.clone(), columns, batch.len())?.with_metadata(metadata)))
}

#[pymethods]
impl BatchReader {
    /// Make a reader from any object with an Arrow interface; an object that is not a stream gives one batch.
    ///
    /// `device` is the device of a device stream, which says only the kind of its device: without `device`,
    /// the first of that kind is assumed. With `validate`, each batch is checked when it is read; see
    /// `BatchReader.validate`.
    #[new]
    #[pyo3(signature = (obj, *, device = None, validate = false))]
    fn new(
        obj: &Bound<'_, PyAny>,
        device: Option<&Bound<'_, Device>>,
        validate: bool,
    ) -> PyResult<BatchReader> {
        let reader = BatchReader::of(obj, device)?;
        if validate { reader.validate(obj.py(), None) } else { Ok(reader) }
    }

    /// Make a reader from a Python iterable of batches. It takes a batch from the iterable only when one is
    /// read.
    ///
    /// Each batch must fit `schema`: any object with `__arrow_c_schema__`, or a dictionary of types by name.
    /// An exception in the iterable ends the stream: Python code gets the exception itself, and other
    /// libraries get its message.
    #[staticmethod]
    #[pyo3(signature = (schema, batches, *, device = None))]
    fn from_batches(
        schema: &Bound<'_, PyAny>,
        batches: &Bound<'_, PyAny>,
        device: Option<&Bound<'_, Device>>,
    ) -> PyResult<BatchReader> {
        let shape = Arc::new(types::schema(schema, "schema", None)?);
        let place = device.map_or(Place::CPU, |device| device.get().0.place());
        let held_to = shape.clone();
        let (items, raised) = of_python(batches, "batches", move |batch| {
            under(foreign::as_batch(batch, "batches")?, &held_to)
        })?;
        Ok(BatchReader::over(Source::of(Batches::new(shape, place, items), raised)))
    }

    /// Lets the cycle collector visit the iterables. While a thread reads, it visits none.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        let source = |source: &mut Option<Source<_, _>>| source.as_ref().map(|it| it.raised.traverse(&visit));
        self.source.try_with(source).flatten().unwrap_or(Ok(()))
    }

    fn __clear__(&self) {
        drop(self.source.try_with(Option::take));
    }

    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<RecordBatch>> {
        let next = self.in_turn(py, |source| {
            let source = source.as_mut().ok_or_else(given_away)?;
            Ok(source.items.next().transpose().map_err(|error| source.raised.exception(error)))
        });
        Ok(next??.map(|batch| RecordBatch(batch, self.method)))
    }

    /// The names and types of the columns.
    #[getter]
    fn schema(&self) -> PublicSchema {
        PublicSchema(self.schema.as_ref().clone())
    }

    /// The name of the method that the batches are imported by, or `None`; see `Array.source`.
    #[getter]
    fn source(&self) -> Option<&'static str> {
        self.method
    }

    /// Return all remaining batches as one batch, and use up this reader.
    ///
    /// If there are several batches, they must be in host memory, and are copied.
    fn read_all(&self, py: Python<'_>) -> PyResult<RecordBatch> {
        let source = self.give(py)?;
        detached(py, || foreign::joined_batches(source))
    }

    /// Return the next batch; raise `StopIteration` if there is none.
    fn read_next_batch(&self, py: Python<'_>) -> PyResult<RecordBatch> {
        self.__next__(py)?.ok_or_else(|| PyStopIteration::new_err(()))
    }

    /// Release the stream, even if batches remain; afterwards the reader cannot be used.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.in_turn(py, |source| {
            drop(source.take());
            Ok(())
        })
    }

    fn __enter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.close(py)
    }

    fn __repr__(&self) -> String {
        format!("<bowstring.BatchReader of {}>", described(&self.schema))
    }

    /// The names of the columns, in order.
    #[getter]
    fn column_names(&self) -> Vec<String> {
        self.schema.fields().iter().map(|field| field.name().clone()).collect()
    }

    /// Return a reader of the rows where `mask` is true, and use up this reader.
    ///
    /// `mask` is the name or number of a column, an expression, or a stream or Python iterable with one mask
    /// for each batch. The keywords `overflow`, `division_by_zero` and `floats` are for expressions.
    #[pyo3(signature = (
        mask, *, overflow = "error", division_by_zero = "error", floats = "total", stream = None
    ))]
    fn filter(
        &self,
        mask: &Bound<'_, PyAny>,
        overflow: &str,
        division_by_zero: &str,
        floats: &str,
        stream: Option<&Bound<'_, Stream>>,
    ) -> PyResult<BatchReader> {
        let options = options(overflow, division_by_zero, floats)?;
        if let Ok(predicate) = mask.cast::<Expr>() {
            let bound = ours(|| Predicate::bind(&predicate.get().0, &self.schema, &options))?;
            return self.mapped(mask.py(), stream, |batches, on| filter_batches_where(batches, bound, on));
        }
        let named = mask.cast::<PyString>().is_ok() || mask.cast::<PyInt>().is_ok();
        let which =
            if named { Err(place_in(&self.schema, mask, "mask")?) } else { Ok(arrays(mask, "mask")?) };
        let source = self.give(mask.py())?;
        let stream = self.stream(stream, &source)?;
        let (batches, raised) = source.take_apart();
        Ok(BatchReader::over(match which {
            Ok((masks, theirs)) => {
                Source::of(filter_batches(batches, in_step(masks), &stream), raised.and(theirs))
            }
            Err(which) => Source::of(filter_batches(batches, column(which), &stream), raised),
        }))
    }

    /// Return a reader of the batches that `bowstring.evaluate` makes of each batch, and use up this reader.
    #[pyo3(signature = (
        exprs, *, overflow = "error", division_by_zero = "error", floats = "total", stream = None
    ))]
    fn evaluate(
        &self,
        exprs: &Bound<'_, PyAny>,
        overflow: &str,
        division_by_zero: &str,
        floats: &str,
        stream: Option<&Bound<'_, Stream>>,
    ) -> PyResult<BatchReader> {
        let bound = projection(exprs, &self.schema, &options(overflow, division_by_zero, floats)?)?;
        self.mapped(exprs.py(), stream, |batches, on| evaluate_batches(batches, bound, on))
    }

    /// Return a batch of one row that aggregates all batches, and use up this reader; see
    /// `bowstring.aggregate`.
    ///
    /// Without the expression `where`, all rows count; with it, those where it is true. This reads the
    /// stream to its end.
    #[pyo3(signature = (
        aggregations, r#where = None, *, overflow = "error", division_by_zero = "error", floats = "total", stream = None
    ))]
    #[allow(clippy::too_many_arguments, reason = "they are Python's keywords")]
    fn aggregate(
        &self,
        aggregations: &Bound<'_, PyAny>,
        r#where: Option<&Bound<'_, PyAny>>,
        overflow: &str,
        division_by_zero: &str,
        floats: &str,
        stream: Option<&Bound<'_, Stream>>,
    ) -> PyResult<RecordBatch> {
        let py = aggregations.py();
        let options = options(overflow, division_by_zero, floats)?;
        let bound = aggregates(aggregations, r#where, &self.schema, &options)?;
        let source = self.give(py)?;
        let stream = self.stream(stream, &source)?;
        let (batches, raised) = source.interruptible().take_apart();
        let row = detached(py, || Ok::<_, Error>(aggregate_batches(batches, &bound, &stream)))?;
        row.map(RecordBatch::new).map_err(|error| raised.exception(error))
    }

    /// Return a reader of the rows at `indices` in each batch, and use up this reader.
    ///
    /// `indices` is a stream or a Python iterable with one array for each batch. All columns become nullable.
    #[pyo3(signature = (indices, *, out_of_bounds = "raise", stream = None))]
    fn take(
        &self,
        indices: &Bound<'_, PyAny>,
        out_of_bounds: &str,
        stream: Option<&Bound<'_, Stream>>,
    ) -> PyResult<BatchReader> {
        let (options, (arrays, raised)) = (take_options(out_of_bounds)?, arrays(indices, "indices")?);
        let source = self.give(indices.py())?;
        let stream = self.stream(stream, &source)?;
        let (batches, theirs) = source.take_apart();
        let taken = take_batches(batches, in_step(arrays), &options, &stream);
        Ok(BatchReader::over(Source::of(taken, theirs.and(raised))))
    }

    /// Return a reader of the columns cast to the types of `schema`, and use up this reader.
    ///
    /// `schema` is any object with `__arrow_c_schema__`, or a dictionary of types for some of the columns.
    #[pyo3(signature = (schema, *, strict = true, stream = None))]
    fn cast(
        &self,
        schema: &Bound<'_, PyAny>,
        strict: bool,
        stream: Option<&Bound<'_, Stream>>,
    ) -> PyResult<BatchReader> {
        let to = types::schema(schema, "schema", Some(&self.schema))?;
        let source = self.give(schema.py())?;
        let stream = self.stream(stream, &source)?;
        Ok(BatchReader::over(cast_source(source, to, !strict, &stream)))
    }

    /// Return a reader that checks each batch as `RecordBatch.validate` does, and use up this reader.
    ///
    /// A batch that is not valid raises `ValueError` and ends the stream.
    #[pyo3(signature = (*, stream = None))]
    fn validate(&self, py: Python<'_>, stream: Option<&Bound<'_, Stream>>) -> PyResult<BatchReader> {
        let source = self.give(py)?;
        let stream = self.stream(stream, &source)?;
        Ok(BatchReader::over(crate::validate::checked(source, &stream)))
    }

    /// Return a reader of the batches on another device, and use up this reader; see `Array.to`.
    fn to(&self, target: &Bound<'_, PyAny>) -> PyResult<BatchReader> {
        let on = foreign::target(target)?;
        let source = self.give(target.py())?;
        let from = source.stream()?;
        let place = on.device().place();
        let (batches, raised) = source.take_apart();
        let schema = batches.schema().clone();
        let moved = batches.map(move |batch| on.upload(&from.download(&batch?)?));
        Ok(BatchReader::over(Source::of(Batches::new(schema, place, moved), raised)))
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        export_schema(py, FFI_ArrowSchema::try_from(self.schema.as_ref()))
    }

    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        host_capsule(self.requested(py, requested_schema)?, py)
    }

    #[pyo3(signature = (requested_schema = None, **kwargs))]
    fn __arrow_c_device_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        refuse_unknown(kwargs)?;
        device_capsule(self.requested(py, requested_schema)?, py)
    }
}

pub fn take_options(out_of_bounds: &str) -> PyResult<TakeOptions> {
    match out_of_bounds {
        "raise" => Ok(TakeOptions { out_of_bounds: OutOfBounds::Error }),
        "null" => Ok(TakeOptions { out_of_bounds: OutOfBounds::Null }),
        other => Err(PyValueError::new_err(format!("out_of_bounds is \"raise\" or \"null\", not {other:?}"))),
    }
}

/// Reads a stream or a Python iterable of arrays, one for each batch.
fn arrays(obj: &Bound<'_, PyAny>, argument: &'static str) -> PyResult<(Items<Inner>, Raised)> {
    if let Some(source) = by_stream(obj)? {
        return Ok((source.items, source.raised));
    }
    if obj.cast::<Array>().is_ok() {
        let problem = format!("{argument}: one array for each batch is needed: pass a list of arrays");
        return Err(PyTypeError::new_err(problem));
    }
    of_python(obj, argument, move |item| Ok(foreign::as_array(item, argument)?.array))
}
