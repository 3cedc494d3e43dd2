//! Arrays: a library array under the field it came with.

use std::collections::HashMap;
use std::sync::OnceLock;

use arrow_schema::Field;
use bowstring::compute::{self, CastOptions};
use bowstring::ffi::{ArrowArray, ArrowDeviceArray, DeviceType, FFI_ArrowSchema};
use bowstring::{Array as Inner, exchange};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyTuple};

use crate::capsule::{export_schema, import_field, pair, refuse_unknown};
use crate::device::{Device, default_stream};
use crate::error::raise;
use crate::foreign;

/// Arrow data on a device: immutable, shared, never copied unless a method says so.
#[pyclass(frozen, module = "bowstring")]
#[derive(Clone)]
pub struct Array {
    pub array: Inner,
    pub field: Field,
    /// Booleans as bytes, made when the CUDA array interface is asked for: its user relies on this object for them.
    pub bytes: OnceLock<Inner>,
}

impl Array {
    /// An array under a field but for the type, which is its own.
    pub fn new(array: Inner, field: &Field) -> Array {
        let field = field.clone().with_data_type(array.data_type().clone());
        Array { array, field, bytes: OnceLock::new() }
    }

    /// An array without a name.
    pub fn nameless(array: Inner) -> Array {
        let field = Field::new("", array.data_type().clone(), true);
        Array { array, field, bytes: OnceLock::new() }
    }

    /// The result of an operation on this array: any result may have nulls.
    pub fn result(&self, array: Inner) -> Array {
        let mut result = Array::new(array, &self.field);
        result.field = result.field.with_nullable(true);
        if result.field.data_type() != self.field.data_type() {
            // Metadata may say what the type means, which is another now.
            result.field = result.field.with_metadata(HashMap::<String, String>::new());
        }
        result
    }

    /// This array as another type, every value of which must fit.
    fn as_type(&self, field: &Field) -> PyResult<Array> {
        if field.data_type() == self.array.data_type() {
            return Ok(Array::new(self.array.clone(), field));
        }
        let options = CastOptions { safe: false, ..CastOptions::default() };
        let stream = default_stream(self.array.place())?;
        let casted = compute::cast(&self.array, field.data_type(), &options, &stream);
        Ok(Array::new(casted.map_err(raise)?, field))
    }

    fn requested(&self, py: Python<'_>, schema: Option<&Bound<'_, PyAny>>) -> PyResult<Array> {
        match schema.map(import_field).transpose()? {
            None => Ok(self.clone()),
            // The name is ours: only types are asked for. What makes an extension type of one is metadata, and asked for or
            // not, too: pyarrow fails where it gets one that it has not asked for.
            Some(asked) => {
                let is_extension = |key: &String| key.starts_with("ARROW:extension:");
                let mut metadata = self.field.metadata().clone();
                metadata.retain(|key, _| !is_extension(key));
                let extension = asked.metadata().iter().filter(|(key, _)| is_extension(key));
                metadata.extend(extension.map(|(key, value)| (key.clone(), value.clone())));
                let field = self.field.clone().with_data_type(asked.data_type().clone());
                py.detach(|| self.as_type(&field.with_metadata(metadata)))
            }
        }
    }

    /// In host memory, a copy where it is not.
    pub fn on_the_host(&self) -> PyResult<Array> {
        if self.array.place().device_type.host_accessible() {
            return Ok(self.clone());
        }
        let copy = default_stream(self.array.place())?.download(&self.array);
        Ok(Array::new(copy.map_err(raise)?, &self.field))
    }

    pub fn to_host_struct(&self) -> PyResult<(ArrowArray, FFI_ArrowSchema)> {
        let here = self.on_the_host()?;
        exchange::export_host_array(&here.array, &here.field).map_err(raise)
    }

    fn to_device_struct(&self) -> PyResult<(ArrowDeviceArray, FFI_ArrowSchema)> {
        exchange::export_array(&self.array, &self.field).map_err(raise)
    }
}

#[pymethods]
impl Array {
    /// Any object with an Arrow, DLPack or CUDA array interface as an array, copying nothing that need not be.
    #[new]
    fn of(obj: &Bound<'_, PyAny>) -> PyResult<Array> {
        foreign::array(obj, None)
    }

    fn __len__(&self) -> usize {
        self.array.len()
    }

    /// The type, as text.
    #[getter]
    fn r#type(&self) -> String {
        self.array.data_type().to_string()
    }

    /// The name it came with.
    #[getter]
    fn name(&self) -> &str {
        self.field.name()
    }

    /// Where it is.
    #[getter]
    fn device(&self) -> PyResult<Device> {
        let place = self.array.place();
        crate::device::device_of(place.device_type as i32, place.device_id).map(Device)
    }

    /// The type of its memory, by the number of the Arrow device interface and DLPack.
    #[getter]
    fn device_type(&self) -> i32 {
        self.array.place().device_type as i32
    }

    /// How many rows are null by the validity bitmap; counted where it is not known, which may wait for a device.
    #[getter]
    fn null_count(&self, py: Python<'_>) -> PyResult<usize> {
        py.detach(|| {
            let stream = default_stream(self.array.place())?;
            compute::null_count(&self.array, &stream).map_err(raise)
        })
    }

    /// Rows `offset` up to `offset + length`, or to the end, copying nothing.
    #[pyo3(signature = (offset, length = None))]
    fn slice(&self, offset: usize, length: Option<usize>) -> PyResult<Array> {
        let length = length.unwrap_or_else(|| self.array.len().saturating_sub(offset));
        let array = self.array.slice(offset, length).map_err(raise)?;
        Ok(Array::new(array, &self.field))
    }

    /// The array on another device (or the device of a stream, copied on that stream): itself where it is there already.
    fn to(&self, py: Python<'_>, target: &Bound<'_, PyAny>) -> PyResult<Array> {
        let target = foreign::target(target)?;
        py.detach(|| {
            if target.device().place() == self.array.place() {
                return Ok(self.clone());
            }
            let here = self.on_the_host()?.array;
            Ok(Array::new(target.upload(&here).map_err(raise)?, &self.field))
        })
    }

    /// Blocks until the contents may be read. Errors that only the data shows (an index out of bounds) surface here.
    fn wait(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.array.wait()).map_err(raise)
    }

    /// Reads all of it, and raises where a part is no valid Arrow data; a device's array is copied to the host for it. Without
    /// `full` there is nothing to do: what can be seen without reading was looked at when it came.
    #[pyo3(signature = (*, full = true))]
    fn validate(&self, py: Python<'_>, full: bool) -> PyResult<()> {
        if full { crate::validate::check_array(py, &self.array) } else { Ok(()) }
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        export_schema(py, FFI_ArrowSchema::try_from(&self.field))
    }

    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let array = self.requested(py, requested_schema)?;
        let (array, schema) = py.detach(|| array.to_host_struct())?;
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
        let array = self.requested(py, requested_schema)?;
        let (array, schema) = py.detach(|| array.to_device_struct())?;
        pair(py, array, schema)
    }

    #[pyo3(signature = (*, stream = None, max_version = None, dl_device = None, copy = None))]
    fn __dlpack__<'py>(
        &self,
        py: Python<'py>,
        stream: Option<&Bound<'py, PyAny>>,
        max_version: Option<(u32, u32)>,
        dl_device: Option<(i32, i32)>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let versioned = max_version.is_some_and(|(major, _)| major >= 1);
        crate::tensor::export(py, self, stream, versioned, dl_device, copy)
    }

    fn __dlpack_device__(&self) -> (i32, i64) {
        let place = self.array.place();
        (place.device_type as i32, place.device_id.max(0))
    }

    /// Version 3; only where CUDA reaches the memory: other arrays have no such attribute.
    #[getter]
    fn __cuda_array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        match self.array.place().device_type {
            DeviceType::Cuda | DeviceType::CudaHost | DeviceType::CudaManaged => {
                crate::cuda::interface(py, self)
            }
            _ => Err(pyo3::exceptions::PyAttributeError::new_err("__cuda_array_interface__")),
        }
    }

    fn __repr__(&self) -> String {
        let place = self.array.place();
        format!("<bowstring.Array {} of {} rows on {place}>", self.array.data_type(), self.array.len())
    }
}
