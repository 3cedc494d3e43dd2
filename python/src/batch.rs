//! Record batches.

use std::sync::Arc;

use arrow_schema::{Field, Schema};
use bowstring::array::Place;
use bowstring::compute::{CastOptions, cast_batch};
use bowstring::ffi::FFI_ArrowSchema;
use bowstring::{Batch, exchange};
use pyo3::exceptions::{PyIndexError, PyKeyError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyTuple};

use crate::array::Array;
use crate::capsule::{export_schema, import_schema, pair, refuse_unknown};
use crate::device::{Device, default_stream, device_of};
use crate::error::raise;
use crate::foreign;
use crate::reader::Source;

/// Arrays of equal length with names.
#[pyclass(frozen, module = "bowstring")]
#[derive(Clone)]
pub struct RecordBatch(pub Batch);

impl RecordBatch {
    /// Where it is, going by the first column.
    pub fn place(&self) -> Place {
        self.0.columns().first().map_or(Place::CPU, |column| column.place())
    }

    /// With the columns cast to a schema's types, each value of which must fit.
    pub fn as_schema(&self, schema: Schema) -> PyResult<RecordBatch> {
        let options = CastOptions { safe: false, ..CastOptions::default() };
        self.cast(schema, &options, &default_stream(self.place())?)
    }

    pub fn cast(
        &self,
        schema: Schema,
        options: &CastOptions<'static>,
        stream: &bowstring::Stream,
    ) -> PyResult<RecordBatch> {
        cast_batch(&self.0, &Arc::new(schema), options, stream).map(RecordBatch).map_err(raise)
    }

    fn requested(&self, py: Python<'_>, schema: Option<&Bound<'_, PyAny>>) -> PyResult<RecordBatch> {
        match schema.map(import_schema).transpose()? {
            None => Ok(self.clone()),
            Some(schema) => py.detach(|| self.as_schema(schema)),
        }
    }

    fn on_the_host(&self) -> PyResult<RecordBatch> {
        if self.0.columns().iter().all(|column| column.place().device_type.host_accessible()) {
            return Ok(self.clone());
        }
        default_stream(self.place())?.download_batch(&self.0).map(RecordBatch).map_err(raise)
    }

    fn once(self, place: Place) -> Source<arrow_schema::SchemaRef, Batch> {
        Source { shape: self.0.schema().clone(), place, items: Box::new(std::iter::once(Ok(self.0))) }
    }
}

#[pymethods]
impl RecordBatch {
    /// Any object with an Arrow interface as a batch, copying nothing but the chunks of several that must be one.
    #[new]
    fn of(obj: &Bound<'_, PyAny>) -> PyResult<RecordBatch> {
        foreign::record_batch(obj)
    }

    /// A batch of arrays by name.
    #[staticmethod]
    fn from_arrays(columns: &Bound<'_, PyDict>) -> PyResult<RecordBatch> {
        let mut fields = vec![];
        let mut arrays = vec![];
        for (name, column) in columns {
            let column = foreign::array(&column, None)?;
            let name: String = name.extract()?;
            fields.push(Field::new(name, column.array.data_type().clone(), true));
            arrays.push(column.array);
        }
        let rows = arrays.first().map_or(0, |column| column.len());
        Batch::try_new(Arc::new(Schema::new(fields)), arrays, rows).map(RecordBatch).map_err(raise)
    }

    fn __len__(&self) -> usize {
        self.0.len()
    }

    /// How many rows.
    #[getter]
    fn num_rows(&self) -> usize {
        self.0.len()
    }

    /// How many columns.
    #[getter]
    fn num_columns(&self) -> usize {
        self.0.columns().len()
    }

    /// The columns' names.
    #[getter]
    fn column_names(&self) -> Vec<String> {
        self.0.schema().fields().iter().map(|field| field.name().clone()).collect()
    }

    /// Where it is.
    #[getter]
    fn device(&self) -> PyResult<Device> {
        device_of(self.place().device_type as i32, self.place().device_id).map(Device)
    }

    /// A column by number or name.
    fn column(&self, which: &Bound<'_, PyAny>) -> PyResult<Array> {
        let schema = self.0.schema();
        let index = match which.extract::<String>() {
            Ok(name) => schema.index_of(&name).map_err(|_| PyKeyError::new_err(name))?,
            Err(_) => which.extract::<usize>()?,
        };
        let column = self.0.columns().get(index);
        let column = column.ok_or_else(|| PyIndexError::new_err(format!("no column {index}")))?;
        Ok(Array::new(column.clone(), schema.field(index)))
    }

    fn __getitem__(&self, which: &Bound<'_, PyAny>) -> PyResult<Array> {
        self.column(which)
    }

    /// The batch on another device; as `Array.to`.
    fn to(&self, py: Python<'_>, target: &Bound<'_, PyAny>) -> PyResult<RecordBatch> {
        let target = foreign::target(target)?;
        py.detach(|| {
            if target.device().place() == self.place() {
                return Ok(self.clone());
            }
            let here = self.on_the_host()?.0;
            target.upload_batch(&here).map(RecordBatch).map_err(raise)
        })
    }

    /// Blocks until the contents may be read; as `Array.wait`.
    fn wait(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.0.columns().iter().try_for_each(|column| column.wait())).map_err(raise)
    }

    /// Reads every column, and raises where one is no valid Arrow data, or has nulls that its field forbids; as
    /// `Array.validate`.
    #[pyo3(signature = (*, full = true))]
    fn validate(&self, py: Python<'_>, full: bool) -> PyResult<()> {
        if full { crate::validate::check_batch(py, &self.0) } else { Ok(()) }
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        export_schema(py, FFI_ArrowSchema::try_from(self.0.schema().as_ref()))
    }

    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let batch = self.requested(py, requested_schema)?;
        let exported = py.detach(|| exchange::export_host_batch(&batch.on_the_host()?.0).map_err(raise));
        let (array, schema) = exported?;
        pair(py, array, schema)
    }

    #[pyo3(signature = (requested_schema = None, **kwargs))]
    fn __arrow_c_device_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        refuse_unknown(kwargs)?;
        let batch = self.requested(py, requested_schema)?;
        let (array, schema) = py.detach(|| exchange::export_batch(&batch.0)).map_err(raise)?;
        pair(py, array, schema)
    }

    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let batch = self.requested(py, requested_schema)?;
        let batch = py.detach(|| batch.on_the_host())?;
        batch.once(Place::CPU).host_capsule(py)
    }

    #[pyo3(signature = (requested_schema = None, **kwargs))]
    fn __arrow_c_device_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        refuse_unknown(kwargs)?;
        let batch = self.requested(py, requested_schema)?;
        let place = batch.place();
        batch.once(place).device_capsule(py)
    }

    fn __repr__(&self) -> String {
        let types = self.0.schema();
        let fields = types.fields().iter().map(|f| format!("{}: {}", f.name(), f.data_type()));
        let fields = fields.collect::<Vec<_>>().join(", ");
        format!("<bowstring.RecordBatch of {} rows on {}: {fields}>", self.0.len(), self.place())
    }
}
