//! How objects of other libraries are asked for their Arrow data. One order holds for every caller: methods that leave
//! the data on its device come before those that may have copied it to the host.

use std::sync::Arc;

use arrow_schema::{Field, Schema};
use bowstring::{Array as Inner, Batch, Device};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::array::Array;
use crate::batch::RecordBatch;
use crate::capsule;
use crate::error::ours;
use crate::items::has_method;
use crate::source::{Source, batch_of, schema_of};

/// The data of an object, and by which of its methods it came.
pub enum Found {
    One(Array),
    Rows(RecordBatch),
    Several(Source<Field, Inner>, &'static str),
}

/// The result of a method without arguments, where an object has it.
fn ask<'py>(obj: &Bound<'py, PyAny>, method: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
    match obj.hasattr(method)? {
        true => obj.call_method0(method).map(Some),
        false => Ok(None),
    }
}

/// By an Arrow protocol, if it speaks one. A device stream says which kind of device it is of, not which one: the
/// first, unless `device` says another.
pub fn by_arrow(obj: &Bound<'_, PyAny>, device: Option<&Device>) -> PyResult<Option<Found>> {
    let one = |(field, array): (Field, Inner), method| Found::One(Array::new(array, &field).came_by(method));
    if let Some(capsules) = ask(obj, "__arrow_c_device_array__")? {
        return Ok(Some(one(capsule::import_device_array(&capsules)?, "__arrow_c_device_array__")));
    }
    if let Some(source) = by_device_stream(obj, device)? {
        return Ok(Some(source));
    }
    // No protocol's name: an object with every attribute has none.
    if has_method(obj, "to_pylibcudf")? {
        return of_pylibcudf(&obj.call_method0("to_pylibcudf")?).map(Some);
    }
    if let Some(capsules) = ask(obj, "__arrow_c_array__")? {
        return Ok(Some(one(capsule::import_array(&capsules)?, "__arrow_c_array__")));
    }
    by_host_stream(obj)
}

/// By a stream, if it speaks one.
pub fn by_stream(obj: &Bound<'_, PyAny>) -> PyResult<Option<Source<Field, Inner>>> {
    let found = match by_device_stream(obj, None)? {
        None => by_host_stream(obj)?,
        found => found,
    };
    Ok(found.and_then(|found| match found {
        Found::Several(source, _) => Some(source),
        Found::One(_) | Found::Rows(_) => None,
    }))
}

fn by_device_stream(obj: &Bound<'_, PyAny>, device: Option<&Device>) -> PyResult<Option<Found>> {
    let Some(capsule) = ask(obj, "__arrow_c_device_stream__")? else { return Ok(None) };
    let source = capsule::import_device_arrays(&capsule, device)?;
    Ok(Some(Found::Several(source, "__arrow_c_device_stream__")))
}

fn by_host_stream(obj: &Bound<'_, PyAny>) -> PyResult<Option<Found>> {
    let Some(capsule) = ask(obj, "__arrow_c_stream__")? else { return Ok(None) };
    Ok(Some(Found::Several(capsule::import_arrays(&capsule)?, "__arrow_c_stream__")))
}

/// The pair that frames, series and indices of cudf have for pylibcudf: columns on the device without names, and the
/// names. The Arrow stream of cudf itself is a copy in host memory.
fn of_pylibcudf(pair: &Bound<'_, PyAny>) -> PyResult<Found> {
    const METHOD: &str = "to_pylibcudf";
    let (held, said): (Bound<'_, PyAny>, Bound<'_, PyDict>) = pair.extract().map_err(|_| {
        PyTypeError::new_err(format!("{METHOD} gave {}, not data and what is said of it", pair.get_type()))
    })?;
    let (field, array) = capsule::import_device_array(&held.call_method0("__arrow_c_device_array__")?)?;
    let text = |name: Bound<'_, PyAny>| Ok::<_, PyErr>(name.str()?.to_string());
    let Some(columns) = said.get_item("columns")? else {
        let name = said.get_item("name")?.filter(|name| !name.is_none()).map(text).transpose()?;
        let field = field.with_name(name.unwrap_or_default());
        return Ok(Found::One(Array::new(array, &field).came_by(METHOD)));
    };
    let names = columns.try_iter()?.map(|name| text(name?)).collect::<PyResult<Vec<_>>>()?;
    let batch = ours(|| batch_of(&schema_of(&field)?, &array))?;
    if names.len() != batch.columns().len() {
        let problem = format!("{METHOD} gave {} columns and {} names", batch.columns().len(), names.len());
        return Err(PyValueError::new_err(problem));
    }
    let fields = batch.schema().fields().iter().zip(names);
    let fields: Vec<Field> = fields.map(|(field, name)| field.as_ref().clone().with_name(name)).collect();
    let named =
        ours(|| Batch::try_new(Arc::new(Schema::new(fields)), batch.columns().to_vec(), batch.len()))?;
    Ok(Found::Rows(RecordBatch::new(named).came_by(METHOD)))
}
