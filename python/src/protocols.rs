//! The Arrow interfaces of other libraries' objects. All callers try them in the same order: methods that
//! leave the data on its device come before those that may copy it to the host.

use std::sync::Arc;

use arrow_schema::{Field, Schema};
use bowstring::{Device, DeviceArray as Inner, DeviceBatch};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::array::Array;
use crate::batch::RecordBatch;
use crate::capsule;
use crate::error::{detached, ours};
use crate::items::has_method;
use crate::source::{Source, batch_of, schema_of};

/// The data of an object, with the method that it was imported by.
pub enum Found {
    One(Array),
    Rows(RecordBatch),
    Several(Source<Field, Inner>, &'static str),
}

/// Calls a method without arguments, if the object has it.
fn ask<'py>(obj: &Bound<'py, PyAny>, method: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
    match obj.hasattr(method)? {
        true => obj.call_method0(method).map(Some),
        false => Ok(None),
    }
}

/// Imports an object by an Arrow protocol, if it has one. A device stream says which kind of device it is on,
/// but not which one: it is taken for the first, unless `device` is another.
pub fn by_arrow(obj: &Bound<'_, PyAny>, device: Option<&Device>) -> PyResult<Option<Found>> {
    let one = |(field, array): (Field, Inner), method| Found::One(Array::new(array, &field).came_by(method));
    if let Some(capsules) = ask(obj, "__arrow_c_device_array__")? {
        return Ok(Some(one(capsule::import_device_array(&capsules)?, "__arrow_c_device_array__")));
    }
    if let Some(source) = by_device_stream(obj, device)? {
        return Ok(Some(source));
    }
    // This name belongs to no protocol, so look for it on the class: an object may answer to every name.
    if has_method(obj, "to_pylibcudf")? {
        return of_pylibcudf(&obj.call_method0("to_pylibcudf")?).map(Some);
    }
    if let Some(capsules) = ask(obj, "__arrow_c_array__")? {
        return Ok(Some(one(capsule::import_array(&capsules)?, "__arrow_c_array__")));
    }
    by_host_stream(obj)
}

/// Imports an object by a stream protocol, if it has one.
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

/// Imports the pair that `to_pylibcudf` of cudf's frames, series and indices returns: columns on the device
/// without names, and a dictionary with the names. The Arrow stream of cudf itself is a copy in host memory.
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
    let batch = detached(pair.py(), || batch_of(&schema_of(&field)?, &array))?;
    if names.len() != batch.columns().len() {
        let problem = format!("{METHOD} gave {} columns and {} names", batch.columns().len(), names.len());
        return Err(PyValueError::new_err(problem));
    }
    let fields = batch.schema().fields().iter().zip(names);
    let fields: Vec<Field> = fields.map(|(field, name)| field.as_ref().clone().with_name(name)).collect();
    let named =
        ours(|| DeviceBatch::try_new(Arc::new(Schema::new(fields)), batch.columns().to_vec(), batch.len()))?;
    Ok(Found::Rows(RecordBatch::new(named).came_by(METHOD)))
}
