//! Objects of other libraries as arrays and batches, by whatever protocol they speak. What does not fit is an error that names
//! the argument.

use arrow_array::new_empty_array;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use bowstring::array::Place;
use bowstring::{Array as Inner, Batch, compute, exchange};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::array::Array;
use crate::batch::RecordBatch;
use crate::capsule;
use crate::device::{Device, Stream, default_stream};
use crate::error::{detached, ours};
use crate::source::{Source, are_batches, batch_of, schema_of};

/// What an object has behind its protocols.
enum Found {
    One(Array),
    Several(Source<Field, Inner>),
}

/// By an Arrow protocol, if it speaks one.
fn by_arrow(obj: &Bound<'_, PyAny>) -> PyResult<Option<Found>> {
    let ask = |method: &str| match obj.hasattr(method)? {
        true => obj.call_method0(method).map(Some),
        false => Ok(None),
    };
    let one = |(field, array): (Field, Inner)| Found::One(Array::new(array, &field));
    Ok(if let Some(capsules) = ask("__arrow_c_device_array__")? {
        Some(one(capsule::import_device_array(&capsules)?))
    } else if let Some(capsules) = ask("__arrow_c_array__")? {
        Some(one(capsule::import_array(&capsules)?))
    } else if let Some(capsule) = ask("__arrow_c_stream__")? {
        Some(Found::Several(capsule::import_arrays(&capsule)?))
    } else if let Some(capsule) = ask("__arrow_c_device_stream__")? {
        Some(Found::Several(capsule::import_device_arrays(&capsule, None)?))
    } else {
        None
    })
}

/// By whatever protocol it speaks.
fn found(obj: &Bound<'_, PyAny>, argument: &str) -> PyResult<Found> {
    if let Some(found) = by_arrow(obj)? {
        return Ok(found);
    }
    if obj.hasattr("__dlpack__")? {
        return crate::tensor::from_dlpack(obj, None, None).map(Found::One);
    }
    if obj.hasattr("__cuda_array_interface__")? {
        return crate::cuda::from_cuda_array_interface(obj, None).map(Found::One);
    }
    Err(PyTypeError::new_err(format!(
        "{argument}: {} has no Arrow, DLPack or CUDA array interface",
        obj.get_type()
    )))
}

/// Any object as an array.
pub fn as_array(obj: &Bound<'_, PyAny>, argument: &str) -> PyResult<Array> {
    if let Ok(array) = obj.cast::<Array>() {
        return Ok(array.get().clone());
    }
    match found(obj, argument)? {
        Found::One(array) => Ok(array),
        Found::Several(source) => detached(obj.py(), || joined(source)),
    }
}

/// Any object as a batch.
pub fn as_batch(obj: &Bound<'_, PyAny>, argument: &str) -> PyResult<RecordBatch> {
    if let Ok(batch) = obj.cast::<RecordBatch>() {
        return Ok(batch.get().clone());
    }
    match by_arrow(obj)? {
        Some(Found::One(array)) => rows(&array),
        Some(Found::Several(source)) => detached(obj.py(), || one_batch(source)),
        None => Err(PyTypeError::new_err(format!("{argument}: {} has no Arrow interface", obj.get_type()))),
    }
}

/// An array of structs as the batch that it is.
fn rows(array: &Array) -> PyResult<RecordBatch> {
    ours(|| batch_of(&schema_of(&array.field)?, &array.array)).map(RecordBatch)
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

/// All batches of a stream as one: copied only where there are several.
fn one_batch(source: Source<Field, Inner>) -> PyResult<RecordBatch> {
    let source: Source<SchemaRef, Batch> = ours(|| source.batches())?;
    let (schema, mut batches) = source.all()?;
    if batches.len() == 1 {
        return Ok(RecordBatch(batches.remove(0)));
    }
    let column = |i: usize| match &batches[..] {
        [] => empty(schema.field(i).data_type()),
        _ => concatenated(&batches.iter().map(|batch| &batch.columns()[i]).collect::<Vec<_>>()),
    };
    let columns = (0..schema.fields().len()).map(column).collect::<PyResult<_>>()?;
    let rows = batches.iter().map(Batch::len).sum();
    ours(|| Batch::try_new(schema, columns, rows)).map(RecordBatch)
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
    match found(obj, argument)? {
        Found::One(array) if are_batches(&array.field) => rows(&array).map(Either::Batch),
        Found::One(array) => Ok(Either::Array(array)),
        Found::Several(source) if are_batches(&source.shape) => {
            detached(obj.py(), || one_batch(source)).map(Either::Batch)
        }
        Found::Several(source) => detached(obj.py(), || joined(source)).map(Either::Array),
    }
}

/// A stream, or the default one of a device: where something is to go.
pub fn target(obj: &Bound<'_, PyAny>) -> PyResult<bowstring::Stream> {
    if let Ok(stream) = obj.cast::<Stream>() {
        return Ok(stream.get().0.clone());
    }
    match obj.cast::<Device>() {
        Ok(device) => default_stream(device.get().0.place()),
        Err(_) => Err(PyTypeError::new_err("target: a Device or a Stream is needed")),
    }
}

/// The schema of any object with `__arrow_c_schema__`.
pub fn schema(obj: &Bound<'_, PyAny>, argument: &str) -> PyResult<Schema> {
    if !obj.hasattr("__arrow_c_schema__")? {
        let problem = format!("{argument}: a schema is needed, which {} is not", obj.get_type());
        return Err(PyTypeError::new_err(problem));
    }
    let field = capsule::import_field(&obj.call_method0("__arrow_c_schema__")?)?;
    match field.data_type() {
        DataType::Struct(fields) => Ok(Schema::new_with_metadata(fields.clone(), field.metadata().clone())),
        other => Err(PyTypeError::new_err(format!("{argument}: a schema is needed, which {other} is not"))),
    }
}

/// A type and what is said of it: any object with `__arrow_c_schema__`, or arrow-rs' name of a type.
pub fn field(obj: &Bound<'_, PyAny>, argument: &str) -> PyResult<Field> {
    if let Ok(name) = obj.extract::<String>() {
        let named =
            ours(|| name.parse().map_err(|_| PyValueError::new_err(format!("{argument}: no type {name:?}"))));
        return Ok(Field::new("", named?, true));
    }
    if obj.hasattr("__arrow_c_schema__")? {
        return capsule::import_field(&obj.call_method0("__arrow_c_schema__")?);
    }
    Err(PyTypeError::new_err(format!("{argument}: {} has no __arrow_c_schema__", obj.get_type())))
}
