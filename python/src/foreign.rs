//! Objects of other libraries as arrays and batches, by whatever protocol they speak.

use arrow_array::{RecordBatch as ArrowBatch, new_empty_array};
use arrow_schema::{DataType, Field, Schema};
use bowstring::{Array as Inner, Batch, Error, exchange};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::array::Array;
use crate::batch::RecordBatch;
use crate::capsule;
use crate::device::{Device, Stream, default_stream};
use crate::error::raise;
use crate::reader::Source;

/// Any object with an Arrow, DLPack or CUDA array interface as an array; `type`, if given, is what it is cast to.
#[pyfunction]
#[pyo3(signature = (obj, /, r#type = None))]
pub fn array(obj: &Bound<'_, PyAny>, r#type: Option<&Bound<'_, PyAny>>) -> PyResult<Array> {
    let array = found(obj)?;
    match r#type {
        Some(to) => crate::operations::cast_array(obj.py(), &array, to, false, None),
        None => Ok(array),
    }
}

fn found(obj: &Bound<'_, PyAny>) -> PyResult<Array> {
    if let Ok(array) = obj.cast::<Array>() {
        return Ok(array.get().clone());
    }
    if obj.hasattr("__arrow_c_device_array__")? {
        let (field, array) = capsule::import_device_array(&obj.call_method0("__arrow_c_device_array__")?)?;
        return Ok(Array::new(array, &field));
    }
    if obj.hasattr("__arrow_c_array__")? {
        let (field, array) = capsule::import_array(&obj.call_method0("__arrow_c_array__")?)?;
        return Ok(Array::new(array, &field));
    }
    if obj.hasattr("__arrow_c_stream__")? {
        let source = capsule::import_arrays(&obj.call_method0("__arrow_c_stream__")?)?;
        return obj.py().detach(|| joined(source));
    }
    if obj.hasattr("__arrow_c_device_stream__")? {
        let source = capsule::import_device_arrays(&obj.call_method0("__arrow_c_device_stream__")?, None)?;
        return obj.py().detach(|| joined(source));
    }
    if obj.hasattr("__dlpack__")? {
        return crate::tensor::from_dlpack(obj, None, None);
    }
    if obj.hasattr("__cuda_array_interface__")? {
        return crate::cuda::from_cuda_array_interface(obj, None);
    }
    Err(PyTypeError::new_err(format!("{} has no Arrow, DLPack or CUDA array interface", obj.get_type())))
}

/// All chunks of a stream as one array: copied only where there are several.
fn joined(source: Source<Field, Inner>) -> PyResult<Array> {
    let mut chunks: Vec<Inner> = source.items.collect::<Result<_, _>>().map_err(raise)?;
    let array = match chunks.len() {
        1 => chunks.remove(0),
        0 => exchange::from_arrow(&new_empty_array(source.shape.data_type())).map_err(raise)?,
        _ => concatenated(&chunks).map_err(raise)?,
    };
    Ok(Array::new(array, &source.shape))
}

fn concatenated(chunks: &[Inner]) -> bowstring::Result<Inner> {
    let chunks: Vec<_> = chunks.iter().map(exchange::to_arrow).collect::<Result<_, _>>()?;
    let chunks: Vec<&dyn arrow_array::Array> = chunks.iter().map(|chunk| chunk.as_ref()).collect();
    exchange::from_arrow(&arrow_select::concat::concat(&chunks).map_err(refused)?)
}

fn refused(error: arrow_schema::ArrowError) -> Error {
    Error::Arrow { operation: "concat", problem: error.to_string() }
}

/// Any object with an Arrow interface as a batch: arrays of structs, streams of batches.
#[pyfunction]
#[pyo3(signature = (obj, /))]
pub fn record_batch(obj: &Bound<'_, PyAny>) -> PyResult<RecordBatch> {
    if let Ok(batch) = obj.cast::<RecordBatch>() {
        return Ok(batch.get().clone());
    }
    if obj.hasattr("__arrow_c_device_array__")? {
        let capsules = obj.call_method0("__arrow_c_device_array__")?;
        return capsule::import_device_batch(&capsules).map(RecordBatch);
    }
    if obj.hasattr("__arrow_c_array__")? {
        return capsule::import_batch(&obj.call_method0("__arrow_c_array__")?).map(RecordBatch);
    }
    if obj.hasattr("__arrow_c_stream__")? {
        let source = capsule::import_batches(&obj.call_method0("__arrow_c_stream__")?)?;
        return obj.py().detach(|| one_batch(source));
    }
    if obj.hasattr("__arrow_c_device_stream__")? {
        let source = capsule::import_device_batches(&obj.call_method0("__arrow_c_device_stream__")?, None)?;
        return obj.py().detach(|| one_batch(source));
    }
    Err(PyTypeError::new_err(format!("{} has no Arrow interface", obj.get_type())))
}

fn one_batch(source: Source<arrow_schema::SchemaRef, Batch>) -> PyResult<RecordBatch> {
    let mut batches: Vec<Batch> = source.items.collect::<Result<_, _>>().map_err(raise)?;
    if batches.len() == 1 {
        return Ok(RecordBatch(batches.remove(0)));
    }
    let theirs: Vec<ArrowBatch> =
        batches.iter().map(exchange::batch_to_arrow).collect::<Result<_, _>>().map_err(raise)?;
    let all = arrow_select::concat::concat_batches(&source.shape, &theirs).map_err(refused).map_err(raise)?;
    exchange::batch_from_arrow(&all).map(RecordBatch).map_err(raise)
}

/// An array or a batch.
pub enum Either {
    Array(Array),
    Batch(RecordBatch),
}

/// Any object as whichever it is: what has rows of named columns is a batch.
pub fn either(obj: &Bound<'_, PyAny>) -> PyResult<Either> {
    if let Ok(batch) = obj.cast::<RecordBatch>() {
        return Ok(Either::Batch(batch.get().clone()));
    }
    let [array, stream] = [
        ["__arrow_c_array__", "__arrow_c_device_array__"],
        ["__arrow_c_stream__", "__arrow_c_device_stream__"],
    ]
    .map(|names| names.iter().any(|name| obj.hasattr(*name).unwrap_or(false)));
    if array && stream {
        return record_batch(obj).map(Either::Batch);
    }
    if stream && !array {
        // Tables and frames are streams of structs, single columns are not.
        let source = match obj.hasattr("__arrow_c_stream__")? {
            true => capsule::import_arrays(&obj.call_method0("__arrow_c_stream__")?)?,
            false => capsule::import_device_arrays(&obj.call_method0("__arrow_c_device_stream__")?, None)?,
        };
        if let DataType::Struct(fields) = source.shape.data_type() {
            let schema = Schema::new(fields.clone()).with_metadata(source.shape.metadata().clone());
            return obj.py().detach(|| one_batch(as_batches(source, schema.into()))).map(Either::Batch);
        }
        return obj.py().detach(|| joined(source)).map(Either::Array);
    }
    found(obj).map(Either::Array)
}

/// Struct arrays as the batches that they are.
fn as_batches(
    source: Source<Field, Inner>,
    schema: arrow_schema::SchemaRef,
) -> Source<arrow_schema::SchemaRef, Batch> {
    let shape = schema.clone();
    let items = source.items.map(move |rows| {
        let rows = rows?;
        let columns = (0..rows.children().len()).map(|i| rows.child_rows(i)).collect::<Result<_, _>>()?;
        Batch::try_new(schema.clone(), columns, rows.len())
    });
    Source { shape, place: source.place, items: Box::new(items) }
}

/// A stream, or the default one of a device: where something is to go.
pub fn target(obj: &Bound<'_, PyAny>) -> PyResult<bowstring::Stream> {
    if let Ok(stream) = obj.cast::<Stream>() {
        return Ok(stream.get().0.clone());
    }
    match obj.cast::<Device>() {
        Ok(device) => default_stream(device.get().0.place()),
        Err(_) => Err(PyTypeError::new_err("a Device or a Stream is needed")),
    }
}

/// The schema of any object with `__arrow_c_schema__`.
pub fn schema(obj: &Bound<'_, PyAny>) -> PyResult<Schema> {
    capsule::import_schema(&obj.call_method0("__arrow_c_schema__")?)
}

/// A type: any object with `__arrow_c_schema__`, or arrow-rs' name of it.
pub fn data_type(obj: &Bound<'_, PyAny>) -> PyResult<DataType> {
    if let Ok(name) = obj.extract::<String>() {
        return name.parse().map_err(|_| PyValueError::new_err(format!("no type {name:?}")));
    }
    if obj.hasattr("__arrow_c_schema__")? {
        return Ok(capsule::import_field(&obj.call_method0("__arrow_c_schema__")?)?.data_type().clone());
    }
    Err(PyTypeError::new_err(format!("{} has no __arrow_c_schema__", obj.get_type())))
}
