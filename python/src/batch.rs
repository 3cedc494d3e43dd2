//! Record batches.

use std::sync::Arc;

use arrow_schema::{Field, Schema};
use bowstring::array::Place;
use bowstring::compute::{CastOptions, cast};
use bowstring::ffi::FFI_ArrowSchema;
use bowstring::{Batch, exchange};
use pyo3::exceptions::{PyIndexError, PyKeyError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyTuple};

use crate::array::Array;
use crate::capsule::{device_capsule, export_schema, host_capsule, import_schema, pair, refuse_unknown};
use crate::device::{Device, default_stream, device_of};
use crate::error::{detached, ours};
use crate::foreign;
use crate::source::{Raised, Source};

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
        ours(|| cast(&self.0, &Arc::new(schema), options, stream).wait()).map(RecordBatch)
    }

    fn requested(&self, py: Python<'_>, schema: Option<&Bound<'_, PyAny>>) -> PyResult<RecordBatch> {
        match schema.map(import_schema).transpose()? {
            None => Ok(self.clone()),
            Some(schema) => detached(py, || self.as_schema(schema)),
        }
    }

    fn on_the_host(&self) -> PyResult<RecordBatch> {
        if self.0.columns().iter().all(|column| column.place().device_type.host_accessible()) {
            return Ok(self.clone());
        }
        let stream = default_stream(self.place())?;
        ours(|| stream.download_batch(&self.0)).map(RecordBatch)
    }

    fn once(self, place: Place) -> Source<arrow_schema::SchemaRef, Batch> {
        let (shape, raised) = (self.0.schema().clone(), Raised::default());
        Source { shape, place, items: Box::new(std::iter::once(Ok(self.0))), raised }
    }
}

#[pymethods]
impl RecordBatch {
    /// Any object with an Arrow interface as a batch, copying nothing but the chunks of several that must be one.
    #[new]
    fn of(obj: &Bound<'_, PyAny>) -> PyResult<RecordBatch> {
        foreign::as_batch(obj, "obj")
    }

    /// A batch of arrays by name.
    #[staticmethod]
    fn from_arrays(columns: &Bound<'_, PyDict>) -> PyResult<RecordBatch> {
        let mut fields = vec![];
        let mut arrays = vec![];
        for (name, column) in columns {
            let name: String = name.extract()?;
            let column = foreign::as_array(&column, &format!("columns[{name:?}]"))?;
            fields.push(Field::new(name, column.array.data_type().clone(), true));
            arrays.push(column.array);
        }
        let rows = arrays.first().map_or(0, |column| column.len());
        ours(|| Batch::try_new(Arc::new(Schema::new(fields)), arrays, rows)).map(RecordBatch)
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

    /// A column by number or name; negative numbers count from the end.
    fn column(&self, which: &Bound<'_, PyAny>) -> PyResult<Array> {
        let schema = self.0.schema();
        let index = place_in(schema, which, "which")?;
        Ok(Array::new(self.0.columns()[index].clone(), schema.field(index)))
    }

    fn __getitem__(&self, which: &Bound<'_, PyAny>) -> PyResult<Array> {
        self.column(which)
    }

    /// The batch on another device; as `Array.to`.
    fn to(&self, py: Python<'_>, target: &Bound<'_, PyAny>) -> PyResult<RecordBatch> {
        let target = foreign::target(target)?;
        detached(py, || {
            if target.device().place() == self.place() {
                return Ok(self.clone());
            }
            let here = self.on_the_host()?.0;
            ours(|| target.upload_batch(&here)).map(RecordBatch)
        })
    }

    /// Blocks until the contents may be read; as `Array.wait`.
    fn wait(&self, py: Python<'_>) -> PyResult<()> {
        detached(py, || self.0.columns().iter().try_for_each(|column| column.wait()))
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
        let here = detached(py, || batch.on_the_host())?;
        let (array, schema) = detached(py, || exchange::export_host_batch(&here.0))?;
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
        let (array, schema) = detached(py, || exchange::export_batch(&batch.0))?;
        pair(py, array, schema)
    }

    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let batch = self.requested(py, requested_schema)?;
        let batch = detached(py, || batch.on_the_host())?;
        host_capsule(batch.once(Place::CPU), py)
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
        device_capsule(batch.once(place), py)
    }

    fn __repr__(&self) -> String {
        let columns = described(self.0.schema());
        format!("<bowstring.RecordBatch of {} rows on {}: {columns}>", self.0.len(), self.place())
    }
}

/// The names and types of columns, for people.
pub fn described(schema: &Schema) -> String {
    let fields = schema.fields().iter().map(|field| {
        let not_null = if field.is_nullable() { "" } else { " not null" };
        format!("{}: {}{not_null}", field.name(), field.data_type())
    });
    fields.collect::<Vec<_>>().join(", ")
}

/// Where a column is, by number or name; negative numbers count from the end.
pub fn place_in(schema: &Schema, which: &Bound<'_, PyAny>, argument: &str) -> PyResult<usize> {
    if let Ok(name) = which.extract::<String>() {
        return schema.index_of(&name).map_err(|_| PyKeyError::new_err(name));
    }
    let number: i128 = which.extract().map_err(|_| {
        PyTypeError::new_err(format!("{argument}: a column's name or number, not {}", which.get_type()))
    })?;
    let columns = schema.fields().len() as i128;
    match if number < 0 { number + columns } else { number } {
        index if (0..columns).contains(&index) => Ok(index as usize),
        _ => Err(PyIndexError::new_err(format!("no column {number} of {columns}"))),
    }
}
