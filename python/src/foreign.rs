//! Objects of other libraries as arrays and batches, by whatever protocol they speak. What does not fit is an error that names
//! the argument.

use arrow_array::new_empty_array;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use bowstring::array::Place;
use bowstring::ffi::DeviceType;
use bowstring::{Array as Inner, Batch, compute, exchange};
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

/// How often an object may name another one in its place: far more than any library does.
const REFERRALS: usize = 8;

/// By whatever protocol it speaks, or as rows of Python's; as type `to` where it has none itself.
fn found(obj: &Bound<'_, PyAny>, argument: &str, to: Option<&DataType>) -> PyResult<Found> {
    let mut obj = obj.clone();
    for _ in 0..REFERRALS {
        if let Some(found) = by_sharing(&obj, argument)? {
            return Ok(found);
        }
        // These are for pyarrow and of pandas' indices; the last is for numpy.
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

/// By a protocol that gives its memory.
fn by_sharing(obj: &Bound<'_, PyAny>, argument: &str) -> PyResult<Option<Found>> {
    if let Some(found) = by_arrow(obj, None)? {
        return Ok(Some(found));
    }
    // numpy has more than DLPack: text, days and times, and arrays with gaps between their items.
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

/// The first of these methods that an object has.
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

/// Any object as an array.
pub fn as_array(obj: &Bound<'_, PyAny>, argument: &str) -> PyResult<Array> {
    as_array_of(obj, argument, None)
}

/// Any object as an array; values of Python's as an array of type `to`, if there is one.
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

/// Whether an operation on one device takes what is in that memory.
fn reaches(here: Place, memory: Place) -> bool {
    let kind = memory.device_type;
    here == memory || kind.host_accessible() && [DeviceType::Cpu, kind.device()].contains(&here.device_type)
}

/// Any object as an array that a stream can read: copied there where it is elsewhere and `copy` says so, or where it is of
/// Python's own values, which no device has.
pub fn as_array_on(
    obj: &Bound<'_, PyAny>,
    argument: &str,
    on: &bowstring::Stream,
    copy: bool,
) -> PyResult<Array> {
    // numpy's are arrays to DLPack.
    if !plain::is_container(obj) && matches!(plain::scalar(obj), Ok(Some(_))) {
        let problem = format!("{argument}: an array is needed, not one {}", obj.get_type());
        return Err(PyTypeError::new_err(problem));
    }
    let array = as_array(obj, argument)?;
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

/// Any object as a batch.
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

/// A batch of arrays by name, as types of a schema if there is one.
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
        // In the schema's order, whatever the dictionary's is.
        let place = |field: &std::sync::Arc<Field>| {
            let place = fields.iter().position(|own| own.name() == field.name());
            place.ok_or_else(|| {
                PyKeyError::new_err(format!("no column {:?}, which the schema has", field.name()))
            })
        };
        let order = schema.fields().iter().map(place).collect::<PyResult<Vec<_>>>()?;
        arrays = order.iter().map(|at| arrays[*at].clone()).collect();
    }
    let schema = schema.cloned().unwrap_or_else(|| Schema::new(fields));
    let rows = arrays.first().map_or(0, Inner::len);
    ours(|| Batch::try_new(schema.into(), arrays, rows)).map(RecordBatch::new)
}

/// The chunks that an object comes in, as arrays.
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

/// A batch as the array of structs that it is.
fn structs(py: Python<'_>, batch: RecordBatch) -> PyResult<Array> {
    let source = batch.1;
    let capsules = batch.into_pyobject(py)?.call_method0("__arrow_c_device_array__")?;
    let (field, array) = capsule::import_device_array(&capsules)?;
    Ok(Array { source, ..Array::new(array, &field) })
}

/// An array of structs as the batch that it is.
pub fn rows(array: &Array) -> PyResult<RecordBatch> {
    let batch = ours(|| batch_of(&schema_of(&array.field)?, &array.array))?;
    Ok(RecordBatch(batch, array.source))
}

/// All chunks of a stream as one array: copied only where there are several.
fn joined(source: Source<Field, Inner>) -> PyResult<Array> {
    let (field, mut chunks) = source.all()?;
    let array = match chunks.len() {
        1 => Ok(chunks.remove(0)),
        0 => empty(field.data_type()),
        _ => concatenated(&chunks.iter().collect::<Vec<_>>()),
    };
    Ok(Array::new(array?, &field))
}

/// No rows of a type.
fn empty(data_type: &DataType) -> PyResult<Inner> {
    ours(|| exchange::from_arrow(&new_empty_array(data_type)))
}

/// Several arrays as one.
fn concatenated(chunks: &[&Inner]) -> PyResult<Inner> {
    let stream = default_stream(chunks.first().map_or(Place::CPU, |chunk| chunk.place()))?;
    ours(|| compute::concat(chunks, &stream).wait())
}

fn joined_rows(source: Source<Field, Inner>) -> PyResult<RecordBatch> {
    joined_batches(ours(|| source.batches())?)
}

/// All batches of a stream as one: copied only where there are several.
pub fn joined_batches(source: Source<SchemaRef, Batch>) -> PyResult<RecordBatch> {
    let (schema, mut batches) = source.all()?;
    if batches.len() == 1 {
        return Ok(RecordBatch::new(batches.remove(0)));
    }
    let column = |i: usize| match &batches[..] {
        [] => empty(schema.field(i).data_type()),
        _ => concatenated(&batches.iter().map(|batch| &batch.columns()[i]).collect::<Vec<_>>()),
    };
    let columns = (0..schema.fields().len()).map(column).collect::<PyResult<_>>()?;
    // Without columns, nothing else has counted them.
    let rows = batches.iter().try_fold(0usize, |rows, batch| rows.checked_add(batch.len()));
    let rows = rows.filter(|rows| isize::try_from(*rows).is_ok());
    let rows = rows.ok_or_else(|| PyOverflowError::new_err("more than 2^63 rows together"))?;
    ours(|| Batch::try_new(schema, columns, rows)).map(RecordBatch::new)
}

/// An array or a batch.
pub enum Either {
    Array(Array),
    Batch(RecordBatch),
}

/// Any object as whichever it is.
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

/// A stream, or the default one of a device or of its name: where something is to go.
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
