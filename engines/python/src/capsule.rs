//! The Arrow PyCapsule interface: streams in capsules that release them unless a consumer has moved them out.

#![allow(unsafe_code)]

use std::ffi::CStr;

use bowstring::array::Batches;
use bowstring::ffi::{ArrowArrayStream, ArrowDeviceArrayStream, DeviceType};
use bowstring::{Device, exchange};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::run::{exception, ours};

const STREAM: &CStr = c"arrow_array_stream";
const DEVICE_STREAM: &CStr = c"arrow_device_array_stream";

/// Takes the stream that `__arrow_c_stream__` returned. A producer may take long, and need the interpreter.
pub fn take_stream(capsule: &Bound<'_, PyAny>) -> PyResult<Batches> {
    let pointer = capsule.cast::<PyCapsule>()?.pointer_checked(Some(STREAM))?;
    // SAFETY: the PyCapsule interface promises that the struct is what the name says.
    let stream = unsafe { pointer.cast::<ArrowArrayStream>().as_mut() }.take();
    // SAFETY: as above.
    capsule.py().detach(|| unsafe { exchange::import_host_batches(stream) }).map_err(|error| ours(&error))
}

/// Takes the stream that `__arrow_c_device_stream__` returned, with its device. A stream does not say on
/// which of several GPUs it is: it is taken for the first.
pub fn take_device_stream(capsule: &Bound<'_, PyAny>) -> PyResult<(Device, Batches)> {
    let pointer = capsule.cast::<PyCapsule>()?.pointer_checked(Some(DEVICE_STREAM))?;
    // SAFETY: see above.
    let mut stream = unsafe { pointer.cast::<ArrowDeviceArrayStream>().as_mut() }.take();
    let name = match DeviceType::from_abi(stream.device_type()) {
        Some(DeviceType::Cpu) => "cpu",
        Some(DeviceType::Cuda | DeviceType::CudaHost | DeviceType::CudaManaged) => "cuda:0",
        Some(DeviceType::Rocm | DeviceType::RocmHost) => "rocm:0",
        _ => {
            let kind = stream.device_type();
            return Err(PyValueError::new_err(format!("arrays on a device of type {kind}")));
        }
    };
    let device = bowstring_datafusion::open(name).map_err(exception)?.unwrap_or_else(Device::cpu);
    // SAFETY: see above.
    let import = || unsafe { exchange::import_batches(&mut stream, &device) };
    let batches = capsule.py().detach(import).map_err(|error| ours(&error))?;
    Ok((device, batches))
}

/// A capsule of a stream.
pub fn stream_capsule(py: Python<'_>, batches: Batches) -> PyResult<Bound<'_, PyCapsule>> {
    PyCapsule::new_with_value(py, exchange::export_host_batches(batches), STREAM)
}
