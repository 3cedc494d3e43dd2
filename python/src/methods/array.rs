//! What Python sees of an array.

use bowstring::compute;
use bowstring::ffi::{DeviceType, FFI_ArrowSchema};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyTuple};

use crate::array::Array;
use crate::capsule::{export_schema, pair, refuse_unknown};
use crate::device::{Device, default_stream};
use crate::error::{detached, ours};
use crate::foreign;

#[pymethods]
impl Array {
    /// Any object with an Arrow, DLPack or CUDA array interface as an array, copying nothing that need not be.
    #[new]
    fn of(obj: &Bound<'_, PyAny>) -> PyResult<Array> {
        foreign::as_array(obj, "obj")
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
        let stream = default_stream(self.array.place())?;
        detached(py, || compute::null_count(&self.array, &stream).wait())
    }

    /// Rows `offset` up to `offset + length`, or to the end, copying nothing. Neither may be negative, nor reach beyond the end.
    #[pyo3(signature = (offset, length = None))]
    fn slice(&self, offset: i128, length: Option<i128>) -> PyResult<Array> {
        let not_negative = |number: i128, name: &str| {
            let problem = || PyIndexError::new_err(format!("{name} must not be negative, as {number} is"));
            // What is more than there can be is refused as beyond the end.
            if number < 0 { Err(problem()) } else { Ok(usize::try_from(number).unwrap_or(usize::MAX)) }
        };
        let offset = not_negative(offset, "offset")?;
        let length = match length {
            Some(length) => not_negative(length, "length")?,
            None => self.array.len().saturating_sub(offset),
        };
        let array = ours(|| self.array.slice(offset, length))?;
        Ok(Array::new(array, &self.field))
    }

    /// The array on another device (or the device of a stream, copied on that stream): itself where it is there already.
    fn to(&self, py: Python<'_>, target: &Bound<'_, PyAny>) -> PyResult<Array> {
        let target = foreign::target(target)?;
        detached(py, || {
            if target.device().place() == self.array.place() {
                return Ok::<_, PyErr>(self.clone());
            }
            let here = self.on_the_host()?.array;
            Ok(Array::new(ours(|| target.upload(&here))?, &self.field))
        })
    }

    /// Blocks until the contents may be read. Errors that only the data shows (an index out of bounds) surface here.
    fn wait(&self, py: Python<'_>) -> PyResult<()> {
        detached(py, || self.array.wait())
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
        let (array, schema) = detached(py, || array.to_host_struct())?;
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
        let (array, schema) = detached(py, || array.to_device_struct())?;
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
