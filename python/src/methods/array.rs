//! What Python sees of an array.

use arrow_schema::DataType as InnerType;
use bowstring::compute;
use bowstring::ffi::{DeviceType, FFI_ArrowSchema};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyList, PySlice, PyTuple};

use crate::array::Array;
use crate::capsule::{export_schema, pair, refuse_unknown};
use crate::device::{Device, Stream, default_stream};
use crate::error::{detached, ours};
use crate::types::{DataType, type_of};
use crate::{foreign, host_rows, operations, pickle, tensor};

impl Array {
    /// The rows of a slice.
    fn rows_of(&self, slice: &Bound<'_, PySlice>) -> PyResult<Array> {
        let rows = slice.indices(isize::try_from(self.array.len()).unwrap_or(isize::MAX))?;
        if rows.step == 1 || rows.slicelength <= 1 {
            let offset = if rows.slicelength == 0 { 0 } else { rows.start };
            return host_rows::part(self, offset as usize, rows.slicelength);
        }
        let on = default_stream(self.array.place())?;
        let taken = detached(slice.py(), || operations::strided(&self.array, &rows, &on))?;
        Ok(Array::new(taken, &self.field))
    }
}

#[pymethods]
impl Array {
    /// What `bowstring.array` makes of it.
    #[new]
    #[pyo3(signature = (obj, r#type = None))]
    fn of(obj: &Bound<'_, PyAny>, r#type: Option<&Bound<'_, PyAny>>) -> PyResult<Array> {
        crate::construct::array(obj, r#type, false)
    }

    /// All rows as Python's values; of a device's array, copied to the host.
    fn to_pylist<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        host_rows::list(py, self)
    }

    /// All rows as Python's values: what numpy calls `to_pylist`.
    fn tolist<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        host_rows::list(py, self)
    }

    /// A numpy array, of the same memory where numpy has such values; of a device's array, copied to the host. Nulls are NaN among
    /// numbers, integers too, which become floats for it; NaT among days and times; and `None` among everything else, which are objects.
    #[pyo3(signature = (zero_copy_only = false, writable = false))]
    fn to_numpy<'py>(
        this: &Bound<'py, Self>,
        zero_copy_only: bool,
        writable: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        this.py().import("bowstring._numpy")?.call_method1("taken", (this, zero_copy_only, writable))
    }

    #[pyo3(signature = (dtype = None, copy = None))]
    fn __array__<'py>(
        this: &Bound<'py, Self>,
        dtype: Option<&Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        this.py().import("bowstring._numpy")?.call_method1("as_asked", (this, dtype, copy))
    }

    /// The value of a row, as Python has it, negative numbers counting from the end. Of a slice, those rows: without a copy where its
    /// step is 1. Of booleans or integers, what `filter` or `take` gives.
    fn __getitem__<'py>(this: &Bound<'py, Self>, rows: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let (py, array) = (this.py(), this.get());
        let length = array.array.len();
        if let Ok(slice) = rows.cast::<PySlice>() {
            return Ok(array.rows_of(slice)?.into_pyobject(py)?.into_any());
        }
        if !rows.hasattr("__index__")? || rows.hasattr("__len__")? {
            let on = default_stream(array.array.place())?;
            let rows = foreign::as_array_on(rows, "rows", &on, false)?;
            let boolean = *rows.array.data_type() == InnerType::Boolean;
            let rows = rows.into_pyobject(py)?.into_any();
            return match boolean {
                true => operations::filter(this, &rows, "drop", false, "error", "error", "total", None),
                false => operations::take(this, &rows, "raise", false, None),
            };
        }
        let row: i128 = rows.call_method0("__index__")?.extract()?;
        let from_start = if row < 0 { row + length as i128 } else { row };
        match usize::try_from(from_start) {
            Ok(row) if row < length => host_rows::one(py, array, row),
            _ => Err(PyIndexError::new_err(format!("no row {row} of {length}"))),
        }
    }

    fn __iter__<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        this.py().import("bowstring._values")?.call_method1("rows", (this,))
    }

    /// Whether `other` is an array of the same type with the same rows, wherever either is. NaNs are equal, as arrow-rs has it.
    fn equals(&self, other: &Bound<'_, PyAny>) -> PyResult<bool> {
        host_rows::equal(other.py(), self, &foreign::as_array(other, "other")?)
    }

    fn __eq__<'py>(&self, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = other.py();
        match other.cast::<Array>() {
            Ok(other) => {
                let equal = host_rows::equal(py, self, other.get())?;
                Ok(equal.into_pyobject(py)?.to_owned().into_any())
            }
            Err(_) => Ok(py.NotImplemented().into_bound(py)),
        }
    }

    /// A copy where it is, whose memory nobody else has.
    fn copy(&self, py: Python<'_>) -> PyResult<Array> {
        Ok(Array::new(detached(py, || tensor::fresh_copy(&self.array))?, &self.field))
    }

    /// Itself: it never changes.
    fn __copy__(&self) -> Array {
        self.clone()
    }

    fn __deepcopy__(&self, py: Python<'_>, _memo: &Bound<'_, PyAny>) -> PyResult<Array> {
        self.copy(py)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        pickle::reduced_array(py, self)
    }

    /// As `bowstring.filter`.
    #[pyo3(signature = (mask, *, null_selection = "drop", copy = false, stream = None))]
    fn filter<'py>(
        this: &Bound<'py, Self>,
        mask: &Bound<'py, PyAny>,
        null_selection: &str,
        copy: bool,
        stream: Option<&Bound<'py, Stream>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        operations::filter(this, mask, null_selection, copy, "error", "error", "total", stream)
    }

    /// As `bowstring.take`.
    #[pyo3(signature = (indices, *, out_of_bounds = "raise", copy = false, stream = None))]
    fn take<'py>(
        this: &Bound<'py, Self>,
        indices: &Bound<'py, PyAny>,
        out_of_bounds: &str,
        copy: bool,
        stream: Option<&Bound<'py, Stream>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        operations::take(this, indices, out_of_bounds, copy, stream)
    }

    /// As `bowstring.cast`.
    #[pyo3(signature = (to, *, strict = true, stream = None))]
    fn cast<'py>(
        this: &Bound<'py, Self>,
        to: &Bound<'py, PyAny>,
        strict: bool,
        stream: Option<&Bound<'py, Stream>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        operations::cast(this, to, strict, stream)
    }

    /// As `bowstring.is_null`.
    #[pyo3(signature = (*, stream = None))]
    fn is_null<'py>(
        this: &Bound<'py, Self>,
        stream: Option<&Bound<'py, Stream>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        operations::is_null(this, stream)
    }

    /// As `bowstring.is_valid`.
    #[pyo3(signature = (*, stream = None))]
    fn is_valid<'py>(
        this: &Bound<'py, Self>,
        stream: Option<&Bound<'py, Stream>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        operations::is_valid(this, stream)
    }

    /// As `bowstring.fill_null`.
    #[pyo3(signature = (value, *, stream = None))]
    fn fill_null<'py>(
        this: &Bound<'py, Self>,
        value: &Bound<'py, PyAny>,
        stream: Option<&Bound<'py, Stream>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        operations::fill_null(this, value, stream)
    }

    /// As `bowstring.drop_null`.
    #[pyo3(signature = (*, stream = None))]
    fn drop_null<'py>(
        this: &Bound<'py, Self>,
        stream: Option<&Bound<'py, Stream>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        operations::drop_null(this, "any", None, stream)
    }

    fn __len__(&self) -> usize {
        self.array.len()
    }

    /// The type.
    #[getter]
    fn r#type(&self) -> DataType {
        type_of(&self.field)
    }

    /// How many bytes its buffers have, with those that it shares with others, and with rows outside of its slice.
    #[getter]
    fn nbytes(&self) -> usize {
        host_rows::bytes(&self.array)
    }

    /// As a `pyarrow.Array`; a device's is copied to the host.
    fn to_arrow<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        this.py().import("bowstring._libraries")?.call_method1("arrow", (this,))
    }

    /// As a `pandas.Series`, by way of pyarrow; a device's is copied to the host.
    fn to_pandas<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        this.py().import("bowstring._libraries")?.call_method1("pandas", (this,))
    }

    /// The name it came with.
    #[getter]
    fn name(&self) -> &str {
        self.field.name()
    }

    /// By which method of another library's object it came, such as `"__arrow_c_stream__"`; `None` where it was
    /// made here. That stream and `"__arrow_c_array__"` are of host memory: the library has copied data that it had
    /// elsewhere.
    #[getter]
    fn source(&self) -> Option<&'static str> {
        self.source
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
        let (offset, length) = host_rows::span(offset, length, self.array.len())?;
        host_rows::part(self, offset, length)
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

    /// These rows, as text.
    fn _texts(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        host_rows::texts(py, self)
    }

    fn __repr__<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        this.py().import("bowstring._show")?.call_method1("array", (this,))
    }

    fn _repr_html_<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        this.py().import("bowstring._show")?.call_method1("array_html", (this,))
    }
}
