//! The Arrow PyCapsule interface: C structs in capsules that release them unless a consumer has moved them
//! out.

use std::ffi::CStr;
use std::ptr::NonNull;

use arrow_schema::{Field, Schema, SchemaRef};
use bowstring::array::{Batches, Place};
use bowstring::ffi::{
    ArrowArray, ArrowArrayStream, ArrowDeviceArray, ArrowDeviceArrayStream, DeviceType, FFI_ArrowSchema,
};
use bowstring::{Device, DeviceArray, DeviceBatch, exchange};
use pyo3::exceptions::{PyNotImplementedError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyTuple};

use crate::device::device_of;
use crate::error::{detached, ours};
use crate::source::{Raised, Source};

const SCHEMA: &CStr = c"arrow_schema";
const ARRAY: &CStr = c"arrow_array";
const DEVICE_ARRAY: &CStr = c"arrow_device_array";
const STREAM: &CStr = c"arrow_array_stream";
const DEVICE_STREAM: &CStr = c"arrow_device_array_stream";

/// The C structs that capsules hold.
pub trait Capsule: Send + Sized + 'static {
    const NAME: &'static CStr;

    /// Puts the struct in a capsule, which releases it unless it was moved out.
    fn capsule(self, py: Python<'_>) -> PyResult<Bound<'_, PyCapsule>> {
        PyCapsule::new_with_value(py, self, Self::NAME)
    }
}

impl Capsule for FFI_ArrowSchema {
    const NAME: &'static CStr = SCHEMA;
}

impl Capsule for ArrowArray {
    const NAME: &'static CStr = ARRAY;
}

impl Capsule for ArrowDeviceArray {
    const NAME: &'static CStr = DEVICE_ARRAY;
}

impl Capsule for ArrowArrayStream {
    const NAME: &'static CStr = STREAM;
}

impl Capsule for ArrowDeviceArrayStream {
    const NAME: &'static CStr = DEVICE_STREAM;
}

/// Returns the struct in a capsule of the right name. It may be read and moved out of while the capsule lives
/// and the interpreter is held. The PyCapsule interface promises that the struct is what the name says.
fn open<T: Capsule>(capsule: &Bound<'_, PyAny>) -> PyResult<NonNull<T>> {
    // SAFETY: any object may be passed; anything but a capsule of that name raises an exception.
    let pointer = unsafe { pyo3::ffi::PyCapsule_GetPointer(capsule.as_ptr(), T::NAME.as_ptr()) };
    NonNull::new(pointer.cast()).ok_or_else(|| PyErr::fetch(capsule.py()))
}

/// Reads the field that a schema capsule describes.
pub fn import_field(schema: &Bound<'_, PyAny>) -> PyResult<Field> {
    let opened = open::<FFI_ArrowSchema>(schema)?;
    // SAFETY: see `open`.
    ours(|| unsafe { exchange::import_field(opened.as_ref()) })
}

/// Reads the schema that a schema capsule describes.
pub fn import_schema(schema: &Bound<'_, PyAny>) -> PyResult<Schema> {
    let opened = open::<FFI_ArrowSchema>(schema)?;
    // SAFETY: see `open`.
    ours(|| unsafe { exchange::import_schema(opened.as_ref()) })
}

/// Extracts the schema and array capsules from a method's answer; an error if it is not such a pair.
fn both<'py>(answer: &Bound<'py, PyAny>, method: &str) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    answer.extract().map_err(|_| {
        PyTypeError::new_err(format!("{method} gives a pair of capsules, and not {}", answer.get_type()))
    })
}

/// Imports the array that `__arrow_c_device_array__` returned.
pub fn import_device_array(capsules: &Bound<'_, PyAny>) -> PyResult<(Field, DeviceArray)> {
    let (schema, array) = both(capsules, "__arrow_c_device_array__")?;
    // SAFETY: see `open`.
    unsafe {
        let (schema, array) =
            (open::<FFI_ArrowSchema>(&schema)?.as_ref(), open::<ArrowDeviceArray>(&array)?.as_mut());
        let device = device_of(array.device_type(), array.device_id())?;
        ours(|| exchange::import_array(array, schema, &device))
    }
}

/// Imports the array that `__arrow_c_array__` returned.
pub fn import_array(capsules: &Bound<'_, PyAny>) -> PyResult<(Field, DeviceArray)> {
    let (schema, array) = both(capsules, "__arrow_c_array__")?;
    // SAFETY: see `open`.
    unsafe {
        let (schema, array) =
            (open::<FFI_ArrowSchema>(&schema)?.as_ref(), open::<ArrowArray>(&array)?.as_mut());
        ours(|| exchange::import_host_array(array.take(), schema))
    }
}

/// Returns an array in memory that a device shares with the host as one in plain host memory, which every
/// consumer on the host takes. Waits for the array; copies nothing.
pub fn as_plain(array: &DeviceArray, field: &Field) -> bowstring::Result<DeviceArray> {
    let (array, schema) = exchange::export_host_array(array, field)?;
    // SAFETY: both are our own export.
    unsafe { exchange::import_host_array(array, &schema) }.map(|(_, array)| array)
}

/// Imports the stream of arrays that `__arrow_c_stream__` returned.
pub fn import_arrays(capsule: &Bound<'_, PyAny>) -> PyResult<Source<Field, DeviceArray>> {
    // SAFETY: see `open`.
    let stream = unsafe { open::<ArrowArrayStream>(capsule)?.as_mut() }.take();
    // SAFETY: see `open`. The producer may take long, and need the interpreter.
    let reader = detached(capsule.py(), || unsafe { exchange::import_host_stream(stream) })?;
    let (shape, raised) = (reader.field().clone(), Raised::default());
    Ok(Source { shape, place: Place::CPU, items: Box::new(reader), raised })
}

/// Takes a device stream from its capsule, with the device and memory of its arrays. A stream does not say on
/// which of several GPUs it is: it is taken for the first, unless `device` is another.
fn take_device_stream(
    capsule: &Bound<'_, PyAny>,
    device: Option<&Device>,
) -> PyResult<(ArrowDeviceArrayStream, Device, Place)> {
    // SAFETY: see `open`.
    let stream = unsafe { open::<ArrowDeviceArrayStream>(capsule)?.as_mut() };
    let its = device_of(stream.device_type(), device.map_or(0, |device| device.place().device_id))?;
    let device = device.cloned().unwrap_or(its);
    let device_type = DeviceType::from_abi(stream.device_type()).unwrap_or(DeviceType::Cpu);
    let place =
        if device_type == DeviceType::Cpu { Place::CPU } else { Place { device_type, ..device.place() } };
    Ok((stream.take(), device, place))
}

/// Imports the stream of arrays that `__arrow_c_device_stream__` returned.
pub fn import_device_arrays(
    capsule: &Bound<'_, PyAny>,
    device: Option<&Device>,
) -> PyResult<Source<Field, DeviceArray>> {
    let (mut stream, device, place) = take_device_stream(capsule, device)?;
    // SAFETY: see `open`.
    let reader = detached(capsule.py(), || unsafe { exchange::import_stream(&mut stream, &device) })?;
    let (shape, raised) = (reader.field().clone(), Raised::default());
    Ok(Source { shape, place, items: Box::new(reader), raised })
}

/// Puts an exported schema in a capsule, and converts an error of the export to `ValueError`.
pub fn export_schema<'py>(
    py: Python<'py>,
    schema: Result<FFI_ArrowSchema, arrow_schema::ArrowError>,
) -> PyResult<Bound<'py, PyCapsule>> {
    schema.map_err(|error| pyo3::exceptions::PyValueError::new_err(error.to_string()))?.capsule(py)
}

/// Makes the tuple that the array methods return: the capsules of the schema and of the array.
pub fn pair<'py, T: Capsule>(
    py: Python<'py>,
    array: T,
    schema: FFI_ArrowSchema,
) -> PyResult<Bound<'py, PyTuple>> {
    PyTuple::new(py, [schema.capsule(py)?, array.capsule(py)?])
}

/// Refuses keywords that are not `None`: the device methods accept any keyword, and the protocol tells a
/// producer to refuse those that it does not know.
pub fn refuse_unknown(kwargs: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
    for (name, value) in kwargs.into_iter().flatten() {
        if !value.is_none() {
            return Err(PyNotImplementedError::new_err(format!("unknown argument {name}")));
        }
    }
    Ok(())
}

/// Exports batches as a capsule of a device stream.
pub fn device_capsule(
    source: Source<SchemaRef, DeviceBatch>,
    py: Python<'_>,
) -> PyResult<Bound<'_, PyCapsule>> {
    exchange::export_batches(source.take_apart().0).capsule(py)
}

/// Exports batches as a capsule of a host stream; batches on a device are copied to the host as they are
/// read.
pub fn host_capsule(
    source: Source<SchemaRef, DeviceBatch>,
    py: Python<'_>,
) -> PyResult<Bound<'_, PyCapsule>> {
    if source.place.device_type.host_accessible() {
        return exchange::export_host_batches(source.take_apart().0).capsule(py);
    }
    let stream = source.stream()?;
    let here = source.items.map(move |batch| stream.download(&batch?));
    exchange::export_host_batches(Batches::new(source.shape, Place::CPU, here)).capsule(py)
}
