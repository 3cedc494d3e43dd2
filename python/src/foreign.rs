//! Conversion of other libraries' objects to arrays and batches, by any protocol that they support. Errors
//! name the argument.

use arrow_array::{new_empty_array, new_null_array};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use bowstring::array::Place;
use bowstring::ffi::DeviceType;
use bowstring::{DeviceArray as Inner, DeviceBatch, compute, exchange};
use pyo3::exceptions::{PyKeyError, PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use crate::array::Array;
use crate::batch::RecordBatch;
use crate::capsule;
use crate::device::{Device, Stream, default_stream, device_named};
use crate::error::{detached, ours};
use crate::items::{entries, has_method};
use crate::listed;
use crate::plain;
use crate::protocols::{Found, by_arrow};
use crate::source::{Source, are_batches, batch_of, schema_of};

/// The limit on objects that refer to another object in their place: far more than any library needs.
const REFERRALS: usize = 8;

/// Reads an object by any protocol that it supports, or as an iterable of Python values, which become type
/// `to`.
fn found(obj: &Bound<'_, PyAny>, argument: &str, to: Option<&DataType>) -> PyResult<Found> {
    let mut obj = obj.clone();
    for _ in 0..REFERRALS {
        if let Some(found) = by_sharing(&obj, argument)? {
            return Ok(found);
        }
        // pyarrow defines `__arrow_array__`, pandas' indices have `to_series`, and `__array__` is for numpy.
        match first_of(&obj, &["__arrow_array__", "to_series"])? {
            Some(method) => obj = obj.call_method0(method)?,
            None if obj.hasattr("__array__")? => return of_numpy(&obj, argument, "__array__"),
            None => {
                return match listed::rows(&obj, argument, to)? {
                    Some(rows) => Ok(Found::One(Array::nameless(rows))),
                    None => Err(no_array(&obj, argument, "Arrow, DLPack or CUDA array interface")),
                };
            }
        }
    }
    let problem = format!("{argument}: __arrow_array__ of {} never gives an array", obj.get_type());
    Err(PyTypeError::new_err(problem))
}

/// Reads an object by a protocol that shares its memory, if it has one.
fn by_sharing(obj: &Bound<'_, PyAny>, argument: &str) -> PyResult<Option<Found>> {
    if let Some(found) = by_arrow(obj, None)? {
        return Ok(Some(found));
    }
    // numpy's interface describes more than DLPack: text, dates and times, and arrays with gaps between
    // items.
    if obj.hasattr("__array_interface__")? && has_method(obj, "__len__")? {
        return of_numpy(obj, argument, "__array_interface__").map(Some);
    }
    if obj.hasattr("__dlpack__")? {
        return crate::tensor::from_dlpack(obj, None, None).map(|array| Some(Found::One(array)));
    }
    if obj.hasattr("__cuda_array_interface__")? {
        return crate::cuda::from_cuda_array_interface(obj, None).map(|array| Some(Found::One(array)));
    }
    Ok(None)
}

/// Returns the name of the first of these methods that an object has; `None` if it has none of them.
fn first_of<'a>(obj: &Bound<'_, PyAny>, methods: &[&'a str]) -> PyResult<Option<&'a str>> {
    for method in methods {
        if has_method(obj, method)? {
            return Ok(Some(method));
        }
    }
    Ok(None)
}

fn of_numpy(obj: &Bound<'_, PyAny>, argument: &str, method: &'static str) -> PyResult<Found> {
    let given = obj.py().import("bowstring._numpy")?.call_method1("given", (obj, argument))?;
    let array = match given.cast::<Array>() {
        Ok(array) => array.get().clone(),
        Err(_) => crate::tensor::from_dlpack(&given, None, None)?,
    };
    Ok(Found::One(array.came_by(method)))
}

fn no_array(obj: &Bound<'_, PyAny>, argument: &str, interface: &str) -> PyErr {
    let class = obj.get_type();
    let advice = match class.name().map(|name| name.to_string()).unwrap_or_default().as_str() {
        "LazyFrame" => ": call its collect() first",
        "dict" => ": an array is needed, not a dictionary of columns",
        _ => "",
    };
    PyTypeError::new_err(format!("{argument}: {class} has no {interface}{advice}"))
}

/// Reads any object as an array.
pub fn as_array(obj: &Bound<'_, PyAny>, argument: &str) -> PyResult<Array> {
    as_array_of(obj, argument, None)
}

/// Reads any object as an array; Python values become an array of type `to`, if given.
pub fn as_array_of(obj: &Bound<'_, PyAny>, argument: &str, to: Option<&DataType>) -> PyResult<Array> {
    if let Ok(array) = obj.cast::<Array>() {
        return Ok(array.get().clone());
    }
    match found(obj, argument, to)? {
        Found::One(array) => Ok(array),
        Found::Rows(batch) => structs(obj.py(), batch),
        Found::Several(source, method) => Ok(detached(obj.py(), || joined(source))?.came_by(method)),
    }
}

/// Whether operations of the device `here` can access that memory.
fn reaches(here: Place, memory: Place) -> bool {
    let kind = memory.device_type;
    here == memory || kind.host_accessible() && [DeviceType::Cpu, kind.device()].contains(&here.device_type)
}

/// Reads any object as an array in memory that a stream can access. An array elsewhere is copied if `copy`
/// says so; Python's own values are always copied, because no device has them. If these are only nulls, or
/// none at all, nothing but the argument says their type, which is then `to`.
pub fn as_array_on(
    obj: &Bound<'_, PyAny>,
    (argument, to): (&str, &DataType),
    on: &bowstring::Stream,
    copy: bool,
) -> PyResult<Array> {
    // numpy's scalars are arrays to DLPack.
    if !plain::is_container(obj) && matches!(plain::scalar(obj), Ok(Some(_))) {
        let problem = format!("{argument}: an array is needed, not one {}", obj.get_type());
        return Err(PyTypeError::new_err(problem));
    }
    let mut array = as_array(obj, argument)?;
    if plain::is_container(obj) && *array.array.data_type() == DataType::Null {
        let nulls = new_null_array(to, array.array.len());
        array = Array::nameless(ours(|| exchange::from_arrow(&nulls))?);
    }
    if are_batches(&array.field) {
        return Err(PyTypeError::new_err(format!(
            "{argument}: an array is needed, not a batch: pass a column"
        )));
    }
    let (here, there) = (on.device().place(), array.array.place());
    if reaches(here, there) {
        return Ok(array);
    }
    if !copy && !plain::is_container(obj) {
        return Err(PyValueError::new_err(format!(
            "{argument}: it is on {there}, and the work is done on {here}: move it by {argument}.to(...) of a \
             bowstring.Array, or pass copy=True (an array on {there} and a stream on {here})"
        )));
    }
    detached(obj.py(), || {
        let host = array.on_the_host()?.array;
        Ok::<_, PyErr>(Array::new(ours(|| on.upload(&host))?, &array.field))
    })
}

/// Reads any object as a batch.
pub fn as_batch(obj: &Bound<'_, PyAny>, argument: &str) -> PyResult<RecordBatch> {
    if let Ok(batch) = obj.cast::<RecordBatch>() {
        return Ok(batch.get().clone());
    }
    match by_arrow(obj, None)? {
        Some(Found::One(array)) => return rows(&array),
        Some(Found::Rows(batch)) => return Ok(batch),
        Some(Found::Several(source, method)) => {
            return Ok(detached(obj.py(), || joined_rows(source))?.came_by(method));
        }
        None => {}
    }
    if let Ok(columns) = obj.cast::<PyDict>() {
        return of_columns(columns, argument, None);
    }
    match plain::is_container(obj) {
        true => rows(&as_array(obj, argument)?),
        false => Err(no_array(obj, argument, "Arrow interface")),
    }
}

/// Makes a batch of columns by name, cast to the types of a schema if given.
pub fn of_columns(
    columns: &Bound<'_, PyDict>,
    argument: &str,
    schema: Option<&Schema>,
) -> PyResult<RecordBatch> {
    let (mut fields, mut arrays) = (vec![], vec![]);
    for entry in entries(columns)? {
        let (name, column) = entry?;
        let name: String = name.extract().map_err(|_| {
            PyTypeError::new_err(format!("{argument}: names are str, not {}", name.get_type()))
        })?;
        let at = format!("{argument}[{name:?}]");
        let field = schema.map(|schema| schema.field_with_name(&name)).transpose();
        let field = field.map_err(|_| PyKeyError::new_err(format!("no column {name:?} in the schema")))?;
        let column = as_array_of(&column, &at, field.map(|field| field.data_type()))?;
        fields
            .push(field.cloned().unwrap_or_else(|| column.field.clone().with_name(name).with_nullable(true)));
        arrays.push(match field {
            Some(field) => detached(columns.py(), || column.as_type(field))?.array,
            None => column.array,
        });
    }
    if let Some(schema) = schema {
        // The columns come in the schema's order, not the dictionary's.
        let place = |field: &std::sync::Arc<Field>| {
            let place = fields.iter().position(|own| own.name() == field.name());
            place.ok_or_else(|| {
                PyKeyError::new_err(format!("no column {:?}, which the schema has", field.name()))
            })
        };
        let order = schema.fields().iter().map(place).collect::<PyResult<Vec<_>>>()?;
        arrays = order.iter().map(|at| arrays[*at].clone()).collect();
    }
    let rows = arrays.first().map_or(0, Inner::len);
    let batch =
        |schema: Schema| ours(|| DeviceBatch::try_new(schema.into(), arrays, rows)).map(RecordBatch::new);
    match schema {
        Some(schema) if schema.fields().iter().any(|field| !field.is_nullable()) => {
            // A cast has nulls where the schema has them, or fails.
            let nullable = schema.fields().iter().map(|field| field.as_ref().clone().with_nullable(true));
            let loose = batch(Schema::new(nullable.collect::<Vec<_>>()))?;
            detached(columns.py(), || loose.as_schema(schema.clone()))
        }
        Some(schema) => batch(schema.clone()),
        None => batch(Schema::new(fields)),
    }
}

/// Reads the chunks of an object as arrays.
pub fn chunks(obj: &Bound<'_, PyAny>, argument: &str) -> PyResult<Vec<Array>> {
    if let Ok(array) = obj.cast::<Array>() {
        return Ok(vec![array.get().clone()]);
    }
    match found(obj, argument, None)? {
        Found::One(array) => Ok(vec![array]),
        Found::Rows(batch) => Ok(vec![structs(obj.py(), batch)?]),
        Found::Several(source, method) => {
            let (field, chunks) = detached(obj.py(), || source.all())?;
            Ok(chunks.into_iter().map(|chunk| Array::new(chunk, &field).came_by(method)).collect())
        }
    }
}

/// Converts a batch to an array of structs.
fn structs(py: Python<'_>, batch: RecordBatch) -> PyResult<Array> {
    let source = batch.1;
    let capsules = batch.into_pyobject(py)?.call_method0("__arrow_c_device_array__")?;
    let (field, array) = capsule::import_device_array(&capsules)?;
    Ok(Array { source, ..Array::new(array, &field) })
}

/// Converts an array of structs to a batch.
pub fn rows(array: &Array) -> PyResult<RecordBatch> {
    // In memory that a device writes, the host waits for the nulls of the rows.
    let batch = Python::attach(|py| detached(py, || batch_of(&schema_of(&array.field)?, &array.array)))?;
    Ok(RecordBatch(batch, array.source))
}

/// Joins the chunks of a stream to one array; a single chunk is not copied.
fn joined(source: Source<Field, Inner>) -> PyResult<Array> {
    let (field, mut chunks) = source.all()?;
    let array = match chunks.len() {
        1 => Ok(chunks.remove(0)),
        0 => empty(field.data_type()),
        _ => concatenated(&chunks.iter().collect::<Vec<_>>()),
    };
    Ok(Array::new(array?, &field))
}

/// Makes an array of a type, with no rows.
fn empty(data_type: &DataType) -> PyResult<Inner> {
    ours(|| exchange::from_arrow(&new_empty_array(data_type)))
}

/// Concatenates arrays on the default stream of the first one's memory.
fn concatenated(chunks: &[&Inner]) -> PyResult<Inner> {
    let stream = default_stream(chunks.first().map_or(Place::CPU, |chunk| chunk.place()))?;
    ours(|| compute::concat(chunks, &stream).wait())
}

fn joined_rows(source: Source<Field, Inner>) -> PyResult<RecordBatch> {
    joined_batches(ours(|| source.batches())?)
}

/// Joins the batches of a stream to one; a single batch is not copied.
pub fn joined_batches(source: Source<SchemaRef, DeviceBatch>) -> PyResult<RecordBatch> {
    let (schema, mut batches) = source.all()?;
    if batches.len() == 1 {
        return Ok(RecordBatch::new(batches.remove(0)));
    }
    let column = |i: usize| match &batches[..] {
        [] => empty(schema.field(i).data_type()),
        _ => concatenated(&batches.iter().map(|batch| &batch.columns()[i]).collect::<Vec<_>>()),
    };
    let columns = (0..schema.fields().len()).map(column).collect::<PyResult<_>>()?;
    // Batches without columns are not concatenated, so nothing has checked that the sum fits.
    let rows = batches.iter().try_fold(0usize, |rows, batch| rows.checked_add(batch.len()));
    let rows = rows.filter(|rows| isize::try_from(*rows).is_ok());
    let rows = rows.ok_or_else(|| PyOverflowError::new_err("more than 2^63 rows together"))?;
    ours(|| DeviceBatch::try_new(schema, columns, rows)).map(RecordBatch::new)
}

/// An array or a batch.
pub enum Either {
    Array(Array),
    Batch(RecordBatch),
}

/// Reads any object as an array or a batch, whichever it is.
pub fn either(obj: &Bound<'_, PyAny>, argument: &str) -> PyResult<Either> {
    if let Ok(batch) = obj.cast::<RecordBatch>() {
        return Ok(Either::Batch(batch.get().clone()));
    }
    if let Ok(array) = obj.cast::<Array>() {
        return Ok(Either::Array(array.get().clone()));
    }
    if let Ok(columns) = obj.cast::<PyDict>() {
        return of_columns(columns, argument, None).map(Either::Batch);
    }
    match found(obj, argument, None)? {
        Found::One(array) if are_batches(&array.field) => rows(&array).map(Either::Batch),
        Found::One(array) => Ok(Either::Array(array)),
        Found::Rows(batch) => Ok(Either::Batch(batch)),
        Found::Several(source, method) if are_batches(&source.shape) => {
            Ok(Either::Batch(detached(obj.py(), || joined_rows(source))?.came_by(method)))
        }
        Found::Several(source, method) => {
            Ok(Either::Array(detached(obj.py(), || joined(source))?.came_by(method)))
        }
    }
}

/// Reads the target of a transfer: a stream, or a device or its name, which stand for its default stream.
pub fn target(obj: &Bound<'_, PyAny>) -> PyResult<bowstring::Stream> {
    if let Ok(stream) = obj.cast::<Stream>() {
        return Ok(stream.get().0.clone());
    }
    if let Ok(name) = obj.cast::<PyString>() {
        return default_stream(device_named(name.to_str()?)?.place());
    }
    match obj.cast::<Device>() {
        Ok(device) => default_stream(device.get().0.place()),
        Err(_) => Err(PyTypeError::new_err(format!(
            "target: a Device, its name such as \"cuda:0\", or a Stream is needed, not {}",
            obj.get_type()
        ))),
    }
}
