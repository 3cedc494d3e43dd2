//! What Python sees of a record batch.

use std::sync::Arc;

use arrow_schema::{Field, Schema};
use bowstring::array::Place;
use bowstring::ffi::FFI_ArrowSchema;
use bowstring::{Batch, exchange};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyTuple};

use crate::array::Array;
use crate::batch::{RecordBatch, described, place_in};
use crate::capsule::{device_capsule, export_schema, host_capsule, pair, refuse_unknown};
use crate::device::{Device, device_of};
use crate::error::{detached, ours};
use crate::foreign;

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
            ours(|| target.upload(&here)).map(RecordBatch)
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
