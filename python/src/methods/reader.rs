//! The methods and attributes of `bowstring.BatchReader`.

use std::sync::Arc;

use bowstring::Error;
use bowstring::array::{Batches, Place};
use bowstring::compute::batches::{column, filter_batches, in_step, take_batches};
use bowstring::compute::{Query, SortOptions};
use bowstring::ffi::FFI_ArrowSchema;
use pyo3::exceptions::PyStopIteration;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyInt, PyString, PyTuple};
use pyo3::{PyTraverseError, PyVisit};

use crate::batch::{RecordBatch, plain};
use crate::capsule::{device_capsule, export_schema, host_capsule, refuse_unknown};
use crate::device::{Device, Stream};
use crate::error::{detached, ours};
use crate::expr::Expr;
use crate::expressions::{aggregates, options, projection};
use crate::foreign;
use crate::operations::ReaderGroupBy;
use crate::reader::{BatchReader, arrays, cast_source, given_away, take_options, under};
use crate::source::{Source, of_python};
use crate::types::{self, Schema as PublicSchema, described, place_in};

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
    /// If there are several batches, they are copied, on the device where they are.
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
            let bound = ours(|| Query::new().filter(&predicate.get().0).bind(&self.schema, &options))?;
            return self.mapped(mask.py(), stream, |batches, on| bound.run_batches(batches, on));
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
        self.mapped(exprs.py(), stream, |batches, on| bound.run_batches(batches, on))
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
        let row = detached(py, || Ok::<_, Error>(bound.run_batches(batches, &stream).next()))?;
        let row = row.transpose().map_err(|error| raised.exception(error))?;
        row.map(RecordBatch::new).ok_or_else(|| PyStopIteration::new_err(()))
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

    /// Return a reader of the rows in sorted order, and use up this reader; the arguments are those of
    /// `bowstring.sort_indices`.
    ///
    /// The rows are read when the first of them is. With `memory`, rows that take more than so many bytes
    /// wait in host memory, and come in several batches: a GPU then sorts more rows than it has memory for.
    #[pyo3(signature = (
        by = None, *, descending = false, nulls_last = false, limit = None, memory = None, stream = None
    ))]
    #[allow(clippy::too_many_arguments, reason = "they are Python's keywords")]
    fn sort_by(
        &self,
        py: Python<'_>,
        by: Option<&Bound<'_, PyAny>>,
        descending: bool,
        nulls_last: bool,
        limit: Option<usize>,
        memory: Option<usize>,
        stream: Option<&Bound<'_, Stream>>,
    ) -> PyResult<BatchReader> {
        let options = SortOptions { descending, nulls_first: !nulls_last };
        self.sorted(py, by, options, (limit, memory), stream)
    }

    /// Group the rows by `keys`, as `RecordBatch.group_by` does.
    #[pyo3(signature = (keys, *, sets = None))]
    fn group_by(
        this: &Bound<'_, Self>,
        keys: &Bound<'_, PyAny>,
        sets: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<ReaderGroupBy> {
        ReaderGroupBy::of(this, keys, sets)
    }

    /// Return a reader of the rows that have equal keys in both, side by side, and use up this reader; the
    /// arguments are those of `bowstring.join`.
    ///
    /// `right` is a batch, a reader or another stream, and is read first. With `memory`, rows of both sides
    /// wait in host memory if those of `right` take more than so many bytes; then rows come in another order.
    #[pyo3(signature = (
        right, keys, right_keys = None, *, join_type = "inner", nulls_equal = false, suffix = "_right",
        memory = None, stream = None
    ))]
    #[allow(clippy::too_many_arguments, reason = "they are Python's keywords")]
    fn join(
        &self,
        right: &Bound<'_, PyAny>,
        keys: &Bound<'_, PyAny>,
        right_keys: Option<&Bound<'_, PyAny>>,
        join_type: &str,
        nulls_equal: bool,
        suffix: &str,
        memory: Option<usize>,
        stream: Option<&Bound<'_, Stream>>,
    ) -> PyResult<BatchReader> {
        self.joined(right, (keys, right_keys), (join_type, nulls_equal, suffix), memory, stream)
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
        let moved = batches.map(move |batch| on.upload(&plain(&from.download(&batch?)?)?));
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
