//! The rows and columns that brackets select, and the comparison of batches.

use arrow_schema::DataType as InnerType;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PySlice, PyString};

use crate::array::Array;
use crate::batch::RecordBatch;
use crate::device::default_stream;
use crate::error::{detached, ours};
use crate::expr::Expr;
use crate::types::alike;
use crate::{foreign, host_rows, operations};

/// The part of a batch that `batch[...]` selects, except for slices.
pub enum Chosen {
    Column,
    Columns,
    Rows,
}

impl RecordBatch {
    pub fn chosen(&self, which: &Bound<'_, PyAny>) -> PyResult<Chosen> {
        if which.is_instance_of::<Expr>() {
            return Ok(Chosen::Rows);
        }
        let is_text = which.is_instance_of::<PyString>() || which.is_instance_of::<PyBytes>();
        if is_text || !which.hasattr("__len__")? {
            return Ok(Chosen::Column);
        }
        let is_name =
            |item: PyResult<Bound<'_, PyAny>>| item.is_ok_and(|item| item.is_instance_of::<PyString>());
        if which.is_instance_of::<PyList>() && which.try_iter()?.all(is_name) {
            return Ok(Chosen::Columns);
        }
        match foreign::as_array(which, "which")?.array.data_type() {
            InnerType::Boolean => Ok(Chosen::Rows),
            InnerType::Utf8 | InnerType::LargeUtf8 | InnerType::Utf8View => Ok(Chosen::Columns),
            other => Err(PyTypeError::new_err(format!(
                "names choose columns and booleans choose rows, {other} neither: take(...) rows by their numbers, \
                 select(...) columns by theirs"
            ))),
        }
    }

    /// Selects the rows of a Python slice.
    pub fn rows_of(&self, slice: &Bound<'_, PySlice>) -> PyResult<RecordBatch> {
        let rows = slice.indices(isize::try_from(self.0.len()).unwrap_or(isize::MAX))?;
        if rows.step == 1 || rows.slicelength <= 1 {
            let offset = if rows.slicelength == 0 { 0 } else { rows.start };
            return ours(|| self.0.slice(offset as usize, rows.slicelength)).map(RecordBatch::new);
        }
        let on = default_stream(self.place())?;
        detached(slice.py(), || operations::strided(&self.0, &rows, &on)).map(RecordBatch::new)
    }

    pub fn equal(&self, py: Python<'_>, other: &RecordBatch) -> PyResult<bool> {
        if self.0.len() != other.0.len() || !alike(self.0.schema(), other.0.schema()) {
            return Ok(false);
        }
        for (one, other) in self.columns().iter().zip(other.columns()) {
            if !host_rows::equal(py, one, &other)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl Array {
    /// Selects the rows of a Python slice.
    pub fn rows_of(&self, slice: &Bound<'_, PySlice>) -> PyResult<Array> {
        let rows = slice.indices(isize::try_from(self.array.len()).unwrap_or(isize::MAX))?;
        if rows.step == 1 || rows.slicelength <= 1 {
            let offset = if rows.slicelength == 0 { 0 } else { rows.start };
            return host_rows::part(self, offset as usize, rows.slicelength);
        }
        let on = default_stream(self.array.place())?;
        let taken = detached(slice.py(), || operations::strided(&self.array, &rows, &on))?;
        Ok(Array::new(taken, &self.field))
    }

    /// Selects rows by an array or a list: of booleans, or of numbers.
    pub fn rows_by<'py>(
        &self,
        this: &Bound<'py, Self>,
        rows: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let on = default_stream(self.array.place())?;
        let rows = foreign::as_array_on(rows, ("rows", &InnerType::Int64), &on, false)?;
        let boolean = *rows.array.data_type() == InnerType::Boolean;
        let rows = rows.into_pyobject(this.py())?.into_any();
        match boolean {
            true => operations::filter(this, &rows, "drop", false, "error", "error", "total", None),
            false => operations::take(this, &rows, "raise", false, None),
        }
    }
}
