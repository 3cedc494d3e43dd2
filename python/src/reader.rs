//! Streams of batches: foreign ones, Python's iterables, and operations mapped over either. Lazy: a batch is read when
//! one is asked for.

use std::sync::{Arc, Mutex, PoisonError};

use arrow_schema::{Field, Schema, SchemaRef};
use bowstring::array::Place;
use bowstring::compute::batches::{cast_batches, column, filter_batches, in_step, take_batches};
use bowstring::compute::{CastOptions, OutOfBounds, TakeOptions};
use bowstring::ffi::FFI_ArrowSchema;
use bowstring::{Array as Inner, Batch, Error, Result, Stream as InnerStream, exchange};
use pyo3::exceptions::{PyKeyError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyIterator};

use crate::batch::RecordBatch;
use crate::capsule::{Capsule, export_schema, import_device_batches, import_schema, refuse_unknown};
use crate::device::{Device, Stream, default_stream};
use crate::error::raise;
use crate::foreign;

/// Items that come one after another, what they have in common, and the memory they are in.
pub struct Source<S, T> {
    pub shape: S,
    pub place: Place,
    pub items: Box<dyn Iterator<Item = Result<T>> + Send>,
}

impl Source<SchemaRef, Batch> {
    /// As a capsule of a device stream.
    pub fn device_capsule(self, py: Python<'_>) -> PyResult<Bound<'_, PyCapsule>> {
        exchange::export_batches(self.shape, self.place.device_type, self.items).capsule(py)
    }

    /// As a capsule of a plain stream; batches elsewhere are copied to the host as they come.
    pub fn host_capsule(self, py: Python<'_>) -> PyResult<Bound<'_, PyCapsule>> {
        if self.place.device_type.host_accessible() {
            return exchange::export_host_batches(self.shape, self.items).capsule(py);
        }
        let stream = self.stream()?;
        let here = self.items.map(move |batch| stream.download_batch(&batch?));
        exchange::export_host_batches(self.shape, here).capsule(py)
    }

    /// The default stream of where the batches are.
    fn stream(&self) -> PyResult<InnerStream> {
        default_stream(self.place)
    }

    /// Each batch cast to a schema.
    fn cast(self, schema: Schema, safe: bool, stream: &InnerStream) -> Source<SchemaRef, Batch> {
        let (shape, options) = (Arc::new(schema), CastOptions { safe, ..CastOptions::default() });
        let items = Box::new(cast_batches(self.items, shape.clone(), &options, stream));
        Source { shape, place: stream.device().place(), items }
    }
}

/// A stream of batches that is read once, by whoever asks: a `for` loop, an operation, or another library.
#[pyclass(frozen, module = "bowstring")]
pub struct BatchReader {
    source: Mutex<Option<Source<SchemaRef, Batch>>>,
    schema: SchemaRef,
}

impl BatchReader {
    fn over(source: Source<SchemaRef, Batch>) -> BatchReader {
        BatchReader { schema: source.shape.clone(), source: Mutex::new(Some(source)) }
    }

    fn give(&self) -> PyResult<Source<SchemaRef, Batch>> {
        let mut source = self.source.lock().unwrap_or_else(PoisonError::into_inner);
        source.take().ok_or_else(|| PyValueError::new_err("the reader was given away already"))
    }

    /// The source cast to what a consumer asks for.
    fn requested(&self, schema: Option<&Bound<'_, PyAny>>) -> PyResult<Source<SchemaRef, Batch>> {
        let schema = schema.map(import_schema).transpose()?;
        let source = self.give()?;
        match schema {
            None => Ok(source),
            Some(schema) => {
                let stream = source.stream()?;
                Ok(source.cast(schema, false, &stream))
            }
        }
    }

    fn stream(
        &self,
        stream: Option<&Bound<'_, Stream>>,
        source: &Source<SchemaRef, Batch>,
    ) -> PyResult<InnerStream> {
        stream.map_or_else(|| source.stream(), |stream| Ok(stream.get().0.clone()))
    }
}

#[pymethods]
impl BatchReader {
    /// Any object with an Arrow stream interface. A device stream says which kind of device it is of, not which one: the
    /// first, unless `device` says another.
    #[new]
    #[pyo3(signature = (obj, *, device = None))]
    fn of(obj: &Bound<'_, PyAny>, device: Option<&Bound<'_, Device>>) -> PyResult<BatchReader> {
        if let Ok(reader) = obj.cast::<BatchReader>() {
            return reader.get().give().map(BatchReader::over);
        }
        if obj.hasattr("__arrow_c_device_stream__")? {
            let capsule = obj.call_method0("__arrow_c_device_stream__")?;
            return import_device_batches(&capsule, device.map(|device| &device.get().0))
                .map(BatchReader::over);
        }
        if obj.hasattr("__arrow_c_stream__")? {
            let capsule = obj.call_method0("__arrow_c_stream__")?;
            return crate::capsule::import_batches(&capsule).map(BatchReader::over);
        }
        Err(PyTypeError::new_err(format!("{} has no Arrow stream interface", obj.get_type())))
    }

    /// The batches of a Python iterable, which is asked when somebody asks for a batch; its exceptions are the stream's
    /// errors. `schema` is any object with `__arrow_c_schema__`.
    #[staticmethod]
    #[pyo3(signature = (schema, batches, *, device = None))]
    fn from_batches(
        schema: &Bound<'_, PyAny>,
        batches: &Bound<'_, PyAny>,
        device: Option<&Bound<'_, Device>>,
    ) -> PyResult<BatchReader> {
        let shape = Arc::new(foreign::schema(schema)?);
        let place = device.map_or(Place::CPU, |device| device.get().0.place());
        let items = PythonIterator(batches.try_iter()?.unbind());
        let items =
            items.map(|item| item.and_then(|item| attached(|py| foreign::record_batch(item.bind(py)))));
        let items = items.map(|batch| Ok(batch?.0));
        Ok(BatchReader::over(Source { shape, place, items: Box::new(items) }))
    }

    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<RecordBatch>> {
        py.detach(|| {
            let mut source = self.source.lock().unwrap_or_else(PoisonError::into_inner);
            let source = source.as_mut();
            let source = source.ok_or_else(|| PyValueError::new_err("the reader was given away already"))?;
            source.items.next().transpose().map(|batch| batch.map(RecordBatch)).map_err(raise)
        })
    }

    /// The columns' names.
    #[getter]
    fn column_names(&self) -> Vec<String> {
        self.schema.fields().iter().map(|field| field.name().clone()).collect()
    }

    /// Each batch with the rows where `mask` is true: the name or number of one of its columns, a stream of masks, or a
    /// Python iterable of them. This reader is given away.
    #[pyo3(signature = (mask, *, stream = None))]
    fn filter(&self, mask: &Bound<'_, PyAny>, stream: Option<&Bound<'_, Stream>>) -> PyResult<BatchReader> {
        let which = if let Ok(name) = mask.extract::<String>() {
            Some(self.schema.index_of(&name).map_err(|_| PyKeyError::new_err(name))?)
        } else {
            mask.extract::<usize>().ok()
        };
        let masks = if which.is_none() { Some(arrays(mask)?) } else { None };
        let source = self.give()?;
        let stream = self.stream(stream, &source)?;
        let (shape, place) = (source.shape, stream.device().place());
        let items: Box<dyn Iterator<Item = Result<Batch>> + Send> = match (which, masks) {
            (None, Some(masks)) => Box::new(filter_batches(source.items, in_step(masks), &stream)),
            (which, _) => Box::new(filter_batches(source.items, column(which.unwrap_or(0)), &stream)),
        };
        Ok(BatchReader::over(Source { shape, place, items }))
    }

    /// Each batch's rows at the next of `indices`, a stream or a Python iterable. This reader is given away.
    #[pyo3(signature = (indices, *, out_of_bounds = "raise", stream = None))]
    fn take(
        &self,
        indices: &Bound<'_, PyAny>,
        out_of_bounds: &str,
        stream: Option<&Bound<'_, Stream>>,
    ) -> PyResult<BatchReader> {
        let (options, indices) = (take_options(out_of_bounds)?, arrays(indices)?);
        let source = self.give()?;
        let stream = self.stream(stream, &source)?;
        let (shape, place) = (source.shape, stream.device().place());
        let items = Box::new(take_batches(source.items, in_step(indices), &options, &stream));
        Ok(BatchReader::over(Source { shape, place, items }))
    }

    /// Each batch with its columns cast to the types of `schema`, any object with `__arrow_c_schema__`. This reader is
    /// given away.
    #[pyo3(signature = (schema, *, strict = true, stream = None))]
    fn cast(
        &self,
        schema: &Bound<'_, PyAny>,
        strict: bool,
        stream: Option<&Bound<'_, Stream>>,
    ) -> PyResult<BatchReader> {
        let schema = foreign::schema(schema)?;
        let source = self.give()?;
        let stream = self.stream(stream, &source)?;
        Ok(BatchReader::over(source.cast(schema, !strict, &stream)))
    }

    /// Each batch as it is, once it was found valid, as by `RecordBatch.validate`; one that is not raises, and is the last. This
    /// reader is given away.
    #[pyo3(signature = (*, stream = None))]
    fn validate(&self, stream: Option<&Bound<'_, Stream>>) -> PyResult<BatchReader> {
        let source = self.give()?;
        let stream = self.stream(stream, &source)?;
        Ok(BatchReader::over(crate::validate::checked(source, &stream)))
    }

    /// Each batch on another device; as `Array.to`. This reader is given away.
    fn to(&self, target: &Bound<'_, PyAny>) -> PyResult<BatchReader> {
        let target = foreign::target(target)?;
        let source = self.give()?;
        let (from, shape) = (source.stream()?, source.shape);
        let place = target.device().place();
        let items = source.items.map(move |batch| target.upload_batch(&from.download_batch(&batch?)?));
        Ok(BatchReader::over(Source { shape, place, items: Box::new(items) }))
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
        self.requested(requested_schema)?.host_capsule(py)
    }

    #[pyo3(signature = (requested_schema = None, **kwargs))]
    fn __arrow_c_device_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        refuse_unknown(kwargs)?;
        self.requested(requested_schema)?.device_capsule(py)
    }
}

pub fn take_options(out_of_bounds: &str) -> PyResult<TakeOptions> {
    match out_of_bounds {
        "raise" => Ok(TakeOptions { out_of_bounds: OutOfBounds::Error }),
        "null" => Ok(TakeOptions { out_of_bounds: OutOfBounds::Null }),
        other => Err(PyValueError::new_err(format!("out_of_bounds is \"raise\" or \"null\", not {other:?}"))),
    }
}

/// Arrays one after another: of a stream, or of a Python iterable.
fn arrays(obj: &Bound<'_, PyAny>) -> PyResult<Box<dyn Iterator<Item = Result<Inner>> + Send>> {
    let source: Source<Field, Inner> = if obj.hasattr("__arrow_c_device_stream__")? {
        crate::capsule::import_device_arrays(&obj.call_method0("__arrow_c_device_stream__")?, None)?
    } else if obj.hasattr("__arrow_c_stream__")? {
        crate::capsule::import_arrays(&obj.call_method0("__arrow_c_stream__")?)?
    } else {
        let items = PythonIterator(obj.try_iter()?.unbind());
        let array = |item: Py<PyAny>| attached(|py| foreign::array(item.bind(py), None));
        return Ok(Box::new(items.map(move |item| Ok(item.and_then(array)?.array))));
    };
    Ok(source.items)
}

/// A Python iterator, asked from any thread.
struct PythonIterator(Py<PyIterator>);

impl Iterator for PythonIterator {
    type Item = Result<Py<PyAny>>;

    fn next(&mut self) -> Option<Self::Item> {
        attached(|py| Ok(self.0.bind(py).clone().next().transpose()?.map(Bound::unbind))).transpose()
    }
}

/// Runs Python; what it raises is the failure of a producer.
fn attached<T>(body: impl FnOnce(Python<'_>) -> PyResult<T>) -> Result<T> {
    Python::attach(body).map_err(|error| Error::Producer {
        code: 5,
        message: error.to_string(),
        metadata: Default::default(),
    })
}
