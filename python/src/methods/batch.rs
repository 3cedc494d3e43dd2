//! The methods and attributes of `bowstring.RecordBatch`.

use arrow_schema::{DataType as InnerType, Field, Schema as InnerSchema};
use bowstring::array::Place;
use bowstring::ffi::FFI_ArrowSchema;
use bowstring::{DeviceBatch, exchange};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyList, PySlice, PyTuple};

use crate::array::Array;
use crate::batch::RecordBatch;
use crate::capsule::{device_capsule, export_schema, host_capsule, pair, refuse_unknown};
use crate::device::{Device, Stream, device_of};
use crate::error::{detached, ours};
use crate::methods::chosen::Chosen;
use crate::pace::Pace;
use crate::types::{self, Schema, place_in};
use crate::{expressions, foreign, host_rows, operations, pickle, tensor, to_python};

#[pymethods]
impl RecordBatch {
    /// Make a batch from `obj`; see `bowstring.record_batch`.
    #[new]
    fn of(obj: &Bound<'_, PyAny>) -> PyResult<RecordBatch> {
        foreign::as_batch(obj, "obj")
    }

    /// Make a batch from a dictionary of arrays by name; values may be anything that `bowstring.array` takes.
    #[staticmethod]
    fn from_arrays(columns: &Bound<'_, PyDict>) -> PyResult<RecordBatch> {
        foreign::of_columns(columns, "columns", None)
    }

    /// Make a batch from a dictionary of lists or arrays by name. `schema`, which may be a dictionary of
    /// types by name, sets the types and the order of the columns.
    #[staticmethod]
    #[pyo3(signature = (mapping, schema = None))]
    fn from_pydict(mapping: &Bound<'_, PyDict>, schema: Option<&Bound<'_, PyAny>>) -> PyResult<RecordBatch> {
        let schema = schema.map(|schema| types::schema(schema, "schema", None)).transpose()?;
        foreign::of_columns(mapping, "mapping", schema.as_ref())
    }

    /// Return the columns as a dictionary of lists by name; see `Array.to_pylist`.
    fn to_pydict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let here = detached(py, || self.on_the_host())?;
        let found = PyDict::new(py);
        for (column, field) in here.0.columns().iter().zip(here.0.schema().fields()) {
            found.set_item(field.name(), host_rows::list(py, &Array::new(column.clone(), field))?)?;
        }
        Ok(found)
    }

    /// Return the rows as a list of dictionaries, each of Python values by column name.
    fn to_pylist<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let columns: Vec<_> = self.to_pydict(py)?.into_iter().collect();
        let rows = PyList::empty(py);
        if columns.is_empty() {
            // A batch without columns has no memory that limits the number of its rows.
            to_python::check_rows(&InnerType::Null, self.0.len())?;
        }
        let mut pace = Pace::new();
        for at in 0..self.0.len() {
            pace.object(py, 0)?;
            let row = PyDict::new(py);
            for (name, column) in &columns {
                row.set_item(name, column.get_item(at)?)?;
            }
            rows.append(row)?;
        }
        Ok(rows)
    }

    /// The names and types of the columns.
    #[getter]
    fn schema(&self) -> Schema {
        Schema(self.0.schema().as_ref().clone())
    }

    /// The columns as a list of arrays, in order.
    #[getter]
    pub fn columns(&self) -> Vec<Array> {
        let fields = self.0.schema().fields().iter();
        fields.zip(self.0.columns()).map(|(field, column)| Array::new(column.clone(), field)).collect()
    }

    /// The number of rows and the number of columns, as a tuple.
    #[getter]
    fn shape(&self) -> (usize, usize) {
        (self.0.len(), self.0.columns().len())
    }

    /// Return a batch of some columns, given by name or number, in the given order.
    fn select(&self, columns: &Bound<'_, PyAny>) -> PyResult<RecordBatch> {
        let schema = self.0.schema();
        let at = columns.try_iter()?.map(|which| place_in(schema, &which?, "columns"));
        let at = at.collect::<PyResult<Vec<_>>>()?;
        let fields: Vec<Field> = at.iter().map(|at| schema.field(*at).clone()).collect();
        let arrays = at.iter().map(|at| self.0.columns()[*at].clone()).collect();
        let schema = InnerSchema::new_with_metadata(fields, schema.metadata().clone());
        ours(|| DeviceBatch::try_new(schema.into(), arrays, self.0.len())).map(RecordBatch::new)
    }

    /// Return `length` rows from row `offset` on, or all up to the end, without a copy; see `Array.slice`.
    #[pyo3(signature = (offset = 0, length = None))]
    fn slice(&self, offset: i128, length: Option<i128>) -> PyResult<RecordBatch> {
        let (offset, length) = host_rows::span(offset, length, self.0.len())?;
        ours(|| self.0.slice(offset, length)).map(RecordBatch::new)
    }

    /// Return the first `rows` rows, or all if the batch has fewer.
    #[pyo3(signature = (rows = 5))]
    fn head(&self, rows: usize) -> PyResult<RecordBatch> {
        ours(|| self.0.slice(0, rows.min(self.0.len()))).map(RecordBatch::new)
    }

    /// Return the last `rows` rows, or all if the batch has fewer.
    #[pyo3(signature = (rows = 5))]
    fn tail(&self, rows: usize) -> PyResult<RecordBatch> {
        let rows = rows.min(self.0.len());
        ours(|| self.0.slice(self.0.len() - rows, rows)).map(RecordBatch::new)
    }

    /// The size of the columns' buffers in bytes; see `Array.nbytes`.
    #[getter]
    fn nbytes(&self) -> usize {
        self.0.columns().iter().map(host_rows::bytes).fold(0, usize::saturating_add)
    }

    /// Return the batch as a `pyarrow.RecordBatch`; a batch on a device is copied to the host first.
    fn to_arrow<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        this.py().import("bowstring._libraries")?.call_method1("arrow", (this,))
    }

    /// Return the batch as a `pandas.DataFrame`, made by pyarrow; a batch on a device is copied to the host.
    fn to_pandas<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        this.py().import("bowstring._libraries")?.call_method1("pandas", (this,))
    }

    /// Return whether `other` is a batch of the same schema with the same rows; see `Array.equals`.
    fn equals(&self, other: &Bound<'_, PyAny>) -> PyResult<bool> {
        self.equal(other.py(), &foreign::as_batch(other, "other")?)
    }

    fn __eq__<'py>(&self, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = other.py();
        match other.cast::<RecordBatch>() {
            Ok(other) => Ok(self.equal(py, other.get())?.into_pyobject(py)?.to_owned().into_any()),
            Err(_) => Ok(py.NotImplemented().into_bound(py)),
        }
    }

    /// Copy the batch on its device, to memory that it shares with no other batch.
    fn copy(&self, py: Python<'_>) -> PyResult<RecordBatch> {
        detached(py, || {
            let columns = self.0.columns().iter().map(tensor::fresh_copy).collect::<PyResult<_>>()?;
            ours(|| DeviceBatch::try_new(self.0.schema().clone(), columns, self.0.len()))
                .map(RecordBatch::new)
        })
    }

    /// Return the batch itself, because batches are immutable.
    fn __copy__(&self) -> RecordBatch {
        self.clone()
    }

    fn __deepcopy__(&self, py: Python<'_>, _memo: &Bound<'_, PyAny>) -> PyResult<RecordBatch> {
        self.copy(py)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        pickle::reduced_batch(py, self)
    }

    /// Return the rows where a mask or an expression is true; see `bowstring.filter`.
    #[pyo3(signature = (
        mask, *, null_selection = "drop", copy = false, overflow = "error", division_by_zero = "error",
        floats = "total", stream = None
    ))]
    #[allow(clippy::too_many_arguments, reason = "they are Python's keywords")]
    fn filter<'py>(
        this: &Bound<'py, Self>,
        mask: &Bound<'py, PyAny>,
        null_selection: &str,
        copy: bool,
        overflow: &str,
        division_by_zero: &str,
        floats: &str,
        stream: Option<&Bound<'py, Stream>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        operations::filter(this, mask, null_selection, copy, overflow, division_by_zero, floats, stream)
    }

    /// Return a batch with the value of each expression for each row; see `bowstring.evaluate`.
    #[pyo3(signature = (
        exprs, *, overflow = "error", division_by_zero = "error", floats = "total", stream = None
    ))]
    fn evaluate(
        this: &Bound<'_, Self>,
        exprs: &Bound<'_, PyAny>,
        overflow: &str,
        division_by_zero: &str,
        floats: &str,
        stream: Option<&Bound<'_, Stream>>,
    ) -> PyResult<RecordBatch> {
        expressions::evaluate(this, exprs, overflow, division_by_zero, floats, stream)
    }

    /// Return a batch of one row with the result of each aggregation; see `bowstring.aggregate`.
    #[pyo3(signature = (
        aggregations, r#where = None, *, overflow = "error", division_by_zero = "error", floats = "total", stream = None
    ))]
    #[allow(clippy::too_many_arguments, reason = "they are Python's keywords")]
    fn aggregate(
        this: &Bound<'_, Self>,
        aggregations: &Bound<'_, PyAny>,
        r#where: Option<&Bound<'_, PyAny>>,
        overflow: &str,
        division_by_zero: &str,
        floats: &str,
        stream: Option<&Bound<'_, Stream>>,
    ) -> PyResult<RecordBatch> {
        expressions::aggregate(this, aggregations, r#where, overflow, division_by_zero, floats, stream)
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

    /// Return the columns as other types; see `bowstring.cast`.
    #[pyo3(signature = (to, *, strict = true, stream = None))]
    fn cast<'py>(
        this: &Bound<'py, Self>,
        to: &Bound<'py, PyAny>,
        strict: bool,
        stream: Option<&Bound<'py, Stream>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        operations::cast(this, to, strict, stream)
    }

    /// Return the rows in sorted order; see `bowstring.sort`.
    #[pyo3(signature = (by = None, *, descending = false, nulls_last = false, limit = None, stream = None))]
    fn sort_by<'py>(
        this: &Bound<'py, Self>,
        by: Option<&Bound<'py, PyAny>>,
        descending: bool,
        nulls_last: bool,
        limit: Option<usize>,
        stream: Option<&Bound<'py, Stream>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        operations::sort(this, by, descending, nulls_last, limit, stream)
    }

    /// Return the first of equal rows; see `bowstring.unique`.
    #[pyo3(signature = (*, stream = None))]
    fn unique<'py>(
        this: &Bound<'py, Self>,
        stream: Option<&Bound<'py, Stream>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        operations::unique(this, stream)
    }

    /// Group the rows by columns or expressions, given one or in a list, to aggregate each group.
    ///
    /// `sets` is a list of lists of keys, by their names or numbers: the result has the groups of the first
    /// list of keys, then those of the next, and so on. `"rollup"` are all keys, all but the last, and so on,
    /// down to none; `"cube"` is every set of keys. A key that is not in a row's set is null there, and a
    /// column `grouping_id` follows the keys, as SQL's `GROUPING` has it: a bit for each key, the lowest for
    /// the last one, which is set if the key is not in the set.
    #[pyo3(signature = (keys, *, sets = None))]
    fn group_by(
        &self,
        keys: &Bound<'_, PyAny>,
        sets: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<operations::GroupBy> {
        operations::GroupBy::of(self, keys, sets)
    }

    /// Return the rows of this batch and `right` that have equal keys; see `bowstring.join`.
    #[pyo3(signature = (
        right, keys, right_keys = None, *, join_type = "inner", nulls_equal = false, suffix = "_right",
        stream = None
    ))]
    #[allow(clippy::too_many_arguments, reason = "they are Python's keywords")]
    fn join(
        this: &Bound<'_, Self>,
        right: &Bound<'_, PyAny>,
        keys: &Bound<'_, PyAny>,
        right_keys: Option<&Bound<'_, PyAny>>,
        join_type: &str,
        nulls_equal: bool,
        suffix: &str,
        stream: Option<&Bound<'_, Stream>>,
    ) -> PyResult<RecordBatch> {
        operations::join(this, right, keys, right_keys, join_type, nulls_equal, suffix, stream)
    }

    /// Return the rows that have no nulls; see `bowstring.drop_null`.
    #[pyo3(signature = (*, how = "any", subset = None, stream = None))]
    fn drop_null<'py>(
        this: &Bound<'py, Self>,
        how: &str,
        subset: Option<&Bound<'py, PyAny>>,
        stream: Option<&Bound<'py, Stream>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        operations::drop_null(this, how, subset, stream)
    }

    /// Return the columns with nulls replaced; see `bowstring.fill_null`.
    #[pyo3(signature = (value, *, stream = None))]
    fn fill_null<'py>(
        this: &Bound<'py, Self>,
        value: &Bound<'py, PyAny>,
        stream: Option<&Bound<'py, Stream>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        operations::fill_null(this, value, stream)
    }

    fn __len__(&self) -> usize {
        self.0.len()
    }

    /// The number of rows in the batch.
    #[getter]
    fn num_rows(&self) -> usize {
        self.0.len()
    }

    /// The number of columns in the batch.
    #[getter]
    fn num_columns(&self) -> usize {
        self.0.columns().len()
    }

    /// The names of the columns, in order.
    #[getter]
    fn column_names(&self) -> Vec<String> {
        self.0.schema().fields().iter().map(|field| field.name().clone()).collect()
    }

    /// The name of the method that the batch was imported by, or `None`; see `Array.source`.
    #[getter]
    fn source(&self) -> Option<&'static str> {
        self.1
    }

    /// The device that holds the batch.
    #[getter]
    fn device(&self) -> PyResult<Device> {
        device_of(self.place().device_type as i32, self.place().device_id).map(Device)
    }

    /// Return a column by number or name, or raise `IndexError` or `KeyError`; -1 is the last column.
    fn column(&self, which: &Bound<'_, PyAny>) -> PyResult<Array> {
        let schema = self.0.schema();
        let index = place_in(schema, which, "which")?;
        Ok(Array::new(self.0.columns()[index].clone(), schema.field(index)))
    }

    /// Return a column for a number or name, a batch of columns for a list of names, or a batch of rows for a
    /// slice, booleans or an expression. A slice whose step is 1 copies nothing.
    fn __getitem__<'py>(this: &Bound<'py, Self>, which: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let (py, batch) = (this.py(), this.get());
        if let Ok(slice) = which.cast::<PySlice>() {
            return Ok(batch.rows_of(slice)?.into_pyobject(py)?.into_any());
        }
        match batch.chosen(which)? {
            Chosen::Column => Ok(batch.column(which)?.into_pyobject(py)?.into_any()),
            Chosen::Columns => Ok(batch.select(which)?.into_pyobject(py)?.into_any()),
            Chosen::Rows => operations::filter(this, which, "drop", false, "error", "error", "total", None),
        }
    }

    /// Return whether a column has this name.
    fn __contains__(&self, name: &str) -> bool {
        self.0.schema().index_of(name).is_ok()
    }

    /// Return the columns side by side in one numpy array, whose type can hold the values of every column.
    #[pyo3(signature = (dtype = None, copy = None))]
    fn __array__<'py>(
        this: &Bound<'py, Self>,
        dtype: Option<&Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        this.py().import("bowstring._numpy")?.call_method1("columns", (this, dtype, copy))
    }

    /// Return the batch on another device; see `Array.to`.
    fn to(&self, py: Python<'_>, target: &Bound<'_, PyAny>) -> PyResult<RecordBatch> {
        let target = foreign::target(target)?;
        detached(py, || {
            if self.0.columns().iter().all(|column| column.place() == target.device().place()) {
                return Ok(self.clone());
            }
            let here = self.on_the_host()?.0;
            ours(|| target.upload(&here)).map(RecordBatch::new)
        })
    }

    /// Block until the device has computed the contents; see `Array.wait`.
    fn wait(&self, py: Python<'_>) -> PyResult<()> {
        detached(py, || self.0.columns().iter().try_for_each(|column| column.wait()))
    }

    /// Raise `ValueError` if a column is not valid Arrow data, or has nulls that its field forbids; see
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

    fn __repr__<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        this.py().import("bowstring._show")?.call_method1("batch", (this,))
    }

    fn _repr_html_<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        this.py().import("bowstring._show")?.call_method1("batch_html", (this,))
    }
}
