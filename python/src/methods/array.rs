//! The methods and attributes of `bowstring.Array`.

use bowstring::ffi::FFI_ArrowSchema;
use bowstring::{compute, exchange};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyList, PySlice, PyTuple};

use crate::array::Array;
use crate::capsule::{export_schema, pair, refuse_unknown};
use crate::device::{Device, Stream, default_stream};
use crate::error::{detached, ours};
use crate::types::{DataType, type_of};
use crate::{foreign, host_rows, operations, pickle, tensor};

#[pymethods]
impl Array {
    /// Make an array from `obj`; see `bowstring.array`.
    #[new]
    #[pyo3(signature = (obj, r#type = None))]
    fn of(obj: &Bound<'_, PyAny>, r#type: Option<&Bound<'_, PyAny>>) -> PyResult<Array> {
        crate::construct::array(obj, r#type, false)
    }

    /// Return all rows as a list of Python values.
    ///
    /// An array on a device is copied to the host first.
    fn to_pylist<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        host_rows::list(py, self)
    }

    /// Return all rows as a list of Python values. This is `to_pylist` under numpy's name.
    fn tolist<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        host_rows::list(py, self)
    }

    /// Return the rows as a numpy array.
    ///
    /// The result shares the array's memory if numpy has the same representation; otherwise the values are
    /// copied, or `ValueError` is raised with `zero_copy_only=True`. `writable=True` copies memory that may
    /// not be written. An array on a device is copied to the host first. Nulls become NaN among numbers
    /// (integers with nulls become floats), and NaT among dates and times. All other types become arrays of
    /// objects, where nulls are `None`.
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

    /// Return the value of one row, or an array of several rows.
    ///
    /// An integer gives the row's Python value; negative numbers count from the end. A row that
    /// does not exist raises `IndexError`. A slice gives an array of those rows, without a copy if its step
    /// is 1. An array or a list selects rows: booleans as `filter` does, and integers as `take` does.
    fn __getitem__<'py>(this: &Bound<'py, Self>, rows: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let (py, array) = (this.py(), this.get());
        let length = array.array.len();
        if let Ok(slice) = rows.cast::<PySlice>() {
            return Ok(array.rows_of(slice)?.into_pyobject(py)?.into_any());
        }
        if !rows.hasattr("__index__")? || rows.hasattr("__len__")? {
            return array.rows_by(this, rows);
        }
        let row: i128 = rows.call_method0("__index__")?.extract()?;
        let from_start = if row < 0 { row + length as i128 } else { row };
        match usize::try_from(from_start) {
            Ok(row) if row < length => host_rows::one(py, array, row),
            _ => Err(PyIndexError::new_err(format!("no row {row} of {length}"))),
        }
    }

    fn __iter__<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let array = &this.get().array;
        if array.place().device_type.host_accessible() {
            // As a whole, and not once more with each part of the rows; a part that is not valid says so.
            detached(this.py(), || Ok::<_, pyo3::PyErr>(exchange::to_arrow(array).is_ok()))?;
        }
        this.py().import("bowstring._values")?.call_method1("rows", (this,))
    }

    /// Return whether `other` is an array of the same type with the same rows.
    ///
    /// The two may be on different devices. NaNs are equal to each other, as in arrow-rs.
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

    /// Return the rows in sorted order; see `bowstring.sort`.
    #[pyo3(signature = (*, descending = false, nulls_last = false, limit = None, stream = None))]
    fn sort<'py>(
        this: &Bound<'py, Self>,
        descending: bool,
        nulls_last: bool,
        limit: Option<usize>,
        stream: Option<&Bound<'py, Stream>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        operations::sort(this, None, descending, nulls_last, limit, stream)
    }

    /// Return the first of equal rows; see `bowstring.unique`.
    #[pyo3(signature = (*, stream = None))]
    fn unique<'py>(
        this: &Bound<'py, Self>,
        stream: Option<&Bound<'py, Stream>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        operations::unique(this, stream)
    }

    /// Copy the array on its device, to memory that it shares with no other array.
    fn copy(&self, py: Python<'_>) -> PyResult<Array> {
        Ok(Array::new(detached(py, || tensor::fresh_copy(&self.array))?, &self.field))
    }

    /// Return the array itself, because arrays are immutable.
    fn __copy__(&self) -> Array {
        self.clone()
    }

    fn __deepcopy__(&self, py: Python<'_>, _memo: &Bound<'_, PyAny>) -> PyResult<Array> {
        self.copy(py)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        pickle::reduced_array(py, self)
    }

    /// Return the rows where a mask is true; see `bowstring.filter`.
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

    /// Return the rows at the given indices; see `bowstring.take`.
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

    /// Return the values as another type; see `bowstring.cast`.
    #[pyo3(signature = (to, *, strict = true, stream = None))]
    fn cast<'py>(
        this: &Bound<'py, Self>,
        to: &Bound<'py, PyAny>,
        strict: bool,
        stream: Option<&Bound<'py, Stream>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        operations::cast(this, to, strict, stream)
    }

    /// Return a boolean for each row that says whether it is null; see `bowstring.is_null`.
    #[pyo3(signature = (*, stream = None))]
    fn is_null<'py>(
        this: &Bound<'py, Self>,
        stream: Option<&Bound<'py, Stream>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        operations::is_null(this, stream)
    }

    /// Return a boolean for each row that says whether it is valid; see `bowstring.is_valid`.
    #[pyo3(signature = (*, stream = None))]
    fn is_valid<'py>(
        this: &Bound<'py, Self>,
        stream: Option<&Bound<'py, Stream>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        operations::is_valid(this, stream)
    }

    /// Return the values with nulls replaced; see `bowstring.fill_null`.
    #[pyo3(signature = (value, *, stream = None))]
    fn fill_null<'py>(
        this: &Bound<'py, Self>,
        value: &Bound<'py, PyAny>,
        stream: Option<&Bound<'py, Stream>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        operations::fill_null(this, value, stream)
    }

    /// Return the rows that are not null; see `bowstring.drop_null`.
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

    /// The type of the array's values.
    #[getter]
    fn r#type(&self) -> DataType {
        type_of(&self.field)
    }

    /// The size of the array's buffers in bytes.
    ///
    /// Buffers that the array shares with others count in full, and so do rows outside its slice.
    #[getter]
    fn nbytes(&self) -> usize {
        host_rows::bytes(&self.array)
    }

    /// Return the array as a `pyarrow.Array`.
    ///
    /// An array on a device is copied to the host first.
    fn to_arrow<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        this.py().import("bowstring._libraries")?.call_method1("arrow", (this,))
    }

    /// Return the array as a `pandas.Series`, converted by pyarrow.
    ///
    /// An array on a device is copied to the host first.
    fn to_pandas<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        this.py().import("bowstring._libraries")?.call_method1("pandas", (this,))
    }

    /// The name that the array was imported with, such as its column's; an empty string if it has none.
    #[getter]
    fn name(&self) -> &str {
        self.field.name()
    }

    /// The name of the method that another library's object was imported by, such as `"__arrow_c_stream__"`.
    ///
    /// It is `None` for arrays that bowstring made. `"__arrow_c_stream__"` and `"__arrow_c_array__"` transfer
    /// host memory: with these, the other library has copied any data that it had elsewhere.
    #[getter]
    fn source(&self) -> Option<&'static str> {
        self.source
    }

    /// The device that holds the array.
    #[getter]
    fn device(&self) -> PyResult<Device> {
        let place = self.array.place();
        crate::device::device_of(place.device_type as i32, place.device_id).map(Device)
    }

    /// The number that the Arrow device interface and DLPack give the kind of the array's memory; 1 is the
    /// CPU.
    #[getter]
    fn device_type(&self) -> i32 {
        self.array.place().device_type as i32
    }

    /// The number of nulls in the validity bitmap.
    ///
    /// If the number is not known, this counts the nulls, which may wait for a device.
    #[getter]
    fn null_count(&self, py: Python<'_>) -> PyResult<usize> {
        let stream = default_stream(self.array.place())?;
        detached(py, || compute::null_count(&self.array, &stream).wait())
    }

    /// Return `length` rows from row `offset` on, or all up to the end, without a copy.
    ///
    /// Raise an error if a number is negative, or if the rows reach beyond the end.
    #[pyo3(signature = (offset, length = None))]
    fn slice(&self, offset: i128, length: Option<i128>) -> PyResult<Array> {
        let (offset, length) = host_rows::span(offset, length, self.array.len())?;
        host_rows::part(self, offset, length)
    }

    /// Return the array on another device.
    ///
    /// `target` is a device, its name, or a stream: the stream makes the copy on its device. If the array is
    /// already there, nothing is copied.
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

    /// Block until the device has computed the contents.
    ///
    /// This raises errors that depend on the data, such as `IndexError` for an index out of bounds.
    fn wait(&self, py: Python<'_>) -> PyResult<()> {
        detached(py, || self.array.wait())
    }

    /// Raise `ValueError` if a part of the array is not valid Arrow data.
    ///
    /// This reads the whole array; an array on a device is copied to the host first. With `full=False` it
    /// does nothing, because everything that can be checked without reading the data was checked on import.
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

    /// The CUDA array interface, version 3.
    ///
    /// Arrays in memory that CUDA cannot access do not have this attribute, nor do those that it cannot
    /// describe, such as text.
    #[getter]
    fn __cuda_array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        crate::cuda::attribute(py, self)
    }

    /// Returns the beginning of each row as text.
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
