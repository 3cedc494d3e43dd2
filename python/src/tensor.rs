//! DLPack as in the array API standard: `__dlpack__` and `from_dlpack`, with versioned and unversioned
//! tensors. A capsule owns its tensor until its name says that a consumer has taken it.

use std::ffi::{CStr, c_void};
use std::ptr::NonNull;

use arrow_array::{Array as _, make_array};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer};
use arrow_data::ArrayData;
use arrow_schema::DataType;
use bowstring::array::Place;
use bowstring::compute::{self, tensors};
use bowstring::ffi::DeviceType;
use bowstring::ffi::dlpack::{DLDataType, DLManagedTensor, DLManagedTensorVersioned, ManagedTensor, Owned};
use bowstring::{DeviceArray as Inner, Stream as InnerStream, exchange};
use pyo3::exceptions::{PyBufferError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};

use crate::array::Array;
use crate::device::{Device, default_stream, device_of, wrap};
use crate::error::{detached, for_buffers, ours};

/// The two forms of a tensor, with the names that their capsules have before and after use.
trait Named: ManagedTensor {
    const NEW: &'static CStr;
    const USED: &'static CStr;
}

impl Named for DLManagedTensor {
    const NEW: &'static CStr = c"dltensor";
    const USED: &'static CStr = c"used_dltensor";
}

impl Named for DLManagedTensorVersioned {
    const NEW: &'static CStr = c"dltensor_versioned";
    const USED: &'static CStr = c"used_dltensor_versioned";
}

unsafe extern "C" fn delete_unused<T: Named>(capsule: *mut ffi::PyObject) {
    // SAFETY: Python calls this with a capsule that it destroys; while it has the first name, it owns the
    // tensor.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, T::NEW.as_ptr()) == 1
            && let Some(tensor) =
                NonNull::new(ffi::PyCapsule_GetPointer(capsule, T::NEW.as_ptr()).cast::<T>())
        {
            T::delete(tensor);
        }
    }
}

fn capsule<T: Named>(py: Python<'_>, tensor: Owned<T>) -> PyResult<Bound<'_, PyCapsule>> {
    let pointer: NonNull<c_void> = tensor.into_raw().cast();
    // SAFETY: the tensor lives until its deleter is called, by the capsule's consumer or its destructor.
    unsafe { PyCapsule::new_with_pointer_and_destructor(py, pointer, T::NEW, Some(delete_unused::<T>)) }
}

/// Takes the tensor from an unused capsule, and marks the capsule as used.
fn take<T: Named>(capsule: &Bound<'_, PyAny>) -> Option<Owned<T>> {
    // SAFETY: any object may be passed; a capsule of that name has a tensor that no consumer has taken, and
    // renaming the capsule makes it ours, as DLPack specifies. The names are static.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule.as_ptr(), T::NEW.as_ptr()) != 1 {
            return None;
        }
        let tensor = NonNull::new(ffi::PyCapsule_GetPointer(capsule.as_ptr(), T::NEW.as_ptr()).cast::<T>())?;
        ffi::PyCapsule_SetName(capsule.as_ptr(), T::USED.as_ptr());
        Some(Owned::from_raw(tensor))
    }
}

/// The error for booleans that would have to be shared without a copy.
const SHARED_BOOLEANS: &str = "booleans, of a bit here and a byte there, cannot be shared: a copy is needed";

fn is_boolean(data_type: &DataType) -> bool {
    match data_type {
        DataType::FixedSizeList(item, _) => is_boolean(item.data_type()),
        other => *other == DataType::Boolean,
    }
}

/// Exports an array as a DLPack capsule, as `__dlpack__` specifies.
pub fn export<'py>(
    py: Python<'py>,
    array: &Array,
    stream: Option<&Bound<'py, PyAny>>,
    versioned: bool,
    dl_device: Option<(i32, i32)>,
    copy: Option<bool>,
) -> PyResult<Bound<'py, PyCapsule>> {
    let place = array.array.place();
    let own = (place.device_type as i32, place.device_id.max(0) as i32);
    let to_host = dl_device.is_some_and(|device| device != own);
    if to_host && dl_device != Some((DeviceType::Cpu as i32, 0)) {
        return Err(PyBufferError::new_err(format!("cannot export to device {dl_device:?}")));
    }
    let shared = !to_host || place.device_type.host_accessible();
    if !shared && copy == Some(false) {
        return Err(PyBufferError::new_err("another device's memory cannot be shared: a copy is needed"));
    }
    if copy == Some(false) && is_boolean(array.array.data_type()) {
        return Err(PyBufferError::new_err(SHARED_BOOLEANS));
    }
    let consumer = match to_host {
        true => None,
        false => consumer(place, stream)?,
    };
    let copied = !shared || copy == Some(true);
    let given = detached(py, || {
        let there = if to_host { array.on_the_host()?.array } else { array.array.clone() };
        if shared && copied { fresh_copy(&there) } else { Ok(there) }
    })?;
    match versioned {
        true => tensor::<DLManagedTensorVersioned>(py, &given, consumer, copied),
        false => tensor::<DLManagedTensor>(py, &given, consumer, copied),
    }
}

fn tensor<'py, T: Named>(
    py: Python<'py>,
    array: &Inner,
    consumer: Option<InnerStream>,
    copied: bool,
) -> PyResult<Bound<'py, PyCapsule>> {
    let stream = default_stream(array.place())?;
    let tensor =
        detached(py, || tensors::export_tensor::<T>(array, &stream, consumer.as_ref()).map_err(for_buffers))?;
    capsule(py, if copied { tensor.copied() } else { tensor })
}

/// Copies an array on its own device, to memory that it does not share.
pub fn fresh_copy(array: &Inner) -> PyResult<Inner> {
    if !array.place().device_type.host_accessible() {
        let stream = default_stream(array.place())?;
        return ours(|| stream.copy(array));
    }
    // `concat` of several parts leaves out other rows, but shares the text of views, dictionaries, and runs.
    let none = ours(|| array.slice(0, 0))?;
    let rows = ours(|| compute::concat(&[array, &none], &InnerStream::cpu()).wait().map_err(for_buffers))?;
    let views = matches!(rows.data_type(), DataType::Utf8View | DataType::BinaryView);
    match views || rows.dictionary().is_some() || !rows.children().is_empty() {
        true => ours(|| exchange::from_arrow(&make_array(copied(&exchange::to_arrow(&rows)?.to_data())))),
        false => Ok(rows),
    }
}

/// Copies the buffers of valid data.
fn copied(data: &ArrayData) -> ArrayData {
    let bytes = |buffer: &Buffer| Buffer::from(buffer.as_slice());
    let nulls = data.nulls().map(|nulls| {
        let bits = nulls.inner();
        NullBuffer::new(BooleanBuffer::new(bytes(bits.inner()), bits.offset(), bits.len()))
    });
    let parts = data.child_data().iter().map(copied).collect();
    let buffers = data.buffers().iter().map(bytes).collect();
    let copy = data.clone().into_builder().buffers(buffers).child_data(parts).nulls(nulls);
    copy.build().unwrap_or_else(|_| data.clone())
}

/// Returns the consumer's stream by its number in the array API. With `None`, the host waits for the array.
/// It also waits with -1, although -1 asks for no synchronisation.
fn consumer(place: Place, stream: Option<&Bound<'_, PyAny>>) -> PyResult<Option<InnerStream>> {
    use DeviceType::*;
    let number = match stream {
        Some(stream) => {
            Some(stream.extract::<i64>().map_err(|_| PyTypeError::new_err("stream is a number or None"))?)
        }
        None => None,
    };
    let native = match (place.device_type, number) {
        (_, Some(-1)) => return Ok(None),
        (Cpu | CudaHost | RocmHost, None) | (Emulated, None) => return Ok(None),
        (Cpu | CudaHost | RocmHost, Some(_)) => {
            return Err(PyBufferError::new_err("host memory has no streams: stream must be None"));
        }
        // None means the legacy default stream: 1 for CUDA, 0 for ROCm.
        (Cuda | CudaManaged, None) => 1,
        (Rocm, None) => 0,
        (Cuda | CudaManaged, Some(0)) => {
            return Err(PyValueError::new_err("stream 0 is ambiguous for CUDA: say 1 or 2"));
        }
        (Rocm, Some(1 | 2)) => return Err(PyValueError::new_err("streams 1 and 2 do not exist for ROCm")),
        (_, Some(number)) => {
            usize::try_from(number).map_err(|_| PyValueError::new_err(format!("no stream {number}")))?
        }
    };
    wrap(&device_of(place.device_type as i32, place.device_id)?, native).map(Some)
}

/// Make an array that shares the memory of a tensor from any library with DLPack.
///
/// The tensor must be dense, and hold numbers or booleans. Booleans are copied, because DLPack stores them as
/// bytes. The first dimension becomes the rows, and further dimensions become lists of a fixed size.
/// Writing to the tensor later changes the array. It must not be written while an operation reads it: the
/// operation checks values such as indices before it follows them, so it could then read out of bounds.
///
/// `device` and `copy` are passed to the producer, as in the array API. A capsule has no producer to ask:
/// with `copy=True` its memory is copied, and `BufferError` is raised if it is not on `device`.
#[pyfunction]
#[pyo3(signature = (x, /, *, device = None, copy = None))]
pub fn from_dlpack(
    x: &Bound<'_, PyAny>,
    device: Option<&Bound<'_, Device>>,
    copy: Option<bool>,
) -> PyResult<Array> {
    let py = x.py();
    let given = x.cast::<PyCapsule>().is_ok();
    let capsule = if given { x.clone() } else { ask(x, device, copy)? };
    let only = device.filter(|_| given).map(|device| device.get().0.place());
    let array = if let Some(tensor) = take::<DLManagedTensorVersioned>(&capsule) {
        detached(py, || import(tensor, copy, only))?
    } else if let Some(tensor) = take::<DLManagedTensor>(&capsule) {
        detached(py, || import(tensor, copy, only))?
    } else {
        return Err(PyValueError::new_err("not a DLPack capsule, or a used one"));
    };
    let array = if given && copy == Some(true) { detached(py, || fresh_copy(&array))? } else { array };
    Ok(Array::nameless(array).came_by("__dlpack__"))
}

/// Imports a tensor, which must be on a device, if one is given.
fn import<T: Named>(tensor: Owned<T>, copy: Option<bool>, only: Option<Place>) -> PyResult<Inner> {
    // The layout of another major version is unknown, so its device cannot be read.
    let host = tensor.managed().version().is_some_and(|version| version.major != 1);
    if !host && copy == Some(false) && tensor.managed().tensor().dtype.code == DLDataType::BOOL {
        return Err(PyBufferError::new_err(SHARED_BOOLEANS));
    }
    let stream = match host {
        true => InnerStream::cpu(),
        false => {
            let memory = tensor.managed().tensor().device;
            let there = device_of(memory.device_type, memory.device_id.into())?.place();
            // Pinned memory belongs to a GPU, and is the host's as well.
            let of_host = DeviceType::from_abi(memory.device_type).is_some_and(|kind| kind.host_accessible());
            if let Some(only) = only.filter(|only| *only != there && !(*only == Place::CPU && of_host)) {
                return Err(PyBufferError::new_err(format!("the tensor is on {there}, not on {only}")));
            }
            default_stream(there)?
        }
    };
    tensors::import_tensor(tensor, &stream).map_err(for_buffers)
}

/// Asks the producer for a capsule, with the keywords of DLPack 1 first, then with the older ones.
fn ask<'py>(
    x: &Bound<'py, PyAny>,
    device: Option<&Bound<'py, Device>>,
    copy: Option<bool>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = x.py();
    if !x.hasattr("__dlpack__")? || !x.hasattr("__dlpack_device__")? {
        return Err(PyTypeError::new_err(format!("{} does not speak DLPack", x.get_type())));
    }
    let (there, id): (i32, i64) = x.call_method0("__dlpack_device__")?.extract()?;
    let device_type = DeviceType::from_abi(there).unwrap_or(DeviceType::Cpu);
    // Opened, so that a device that is not here is reported. Pinned memory is the host's, and has no stream.
    let stream = default_stream(Place { device_type, ..device_of(there, id)?.place() })?;
    let old = PyDict::new(py);
    if let Some(native) = stream.native_handle() {
        old.set_item("stream", native.addr())?;
    }
    let new = old.copy()?;
    new.set_item("max_version", (1, 1))?;
    if let Some(device) = device {
        let place = device.get().0.place();
        new.set_item("dl_device", (place.device_type as i32, place.device_id.max(0)))?;
        if place == Place::CPU && new.contains("stream")? {
            // The host uses no stream, so the producer must wait until the data is ready.
            new.del_item("stream")?;
        }
    }
    if let Some(copy) = copy {
        new.set_item("copy", copy)?;
    }
    match x.call_method("__dlpack__", (), Some(&new)) {
        Err(error) if error.is_instance_of::<PyTypeError>(py) && device.is_none() && copy.is_none() => {
            x.call_method("__dlpack__", (), Some(&old))
        }
        answer => answer,
    }
}
