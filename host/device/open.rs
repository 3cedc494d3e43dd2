//! Devices by type and number, as the C interfaces name them.

use std::path::Path;

use super::handles::Source;
use super::native::Library;
use super::{Device, cuda, hip};
use crate::ffi::DeviceType;
use crate::{Error, Result};

/// A device of a library that is not the installed one: a file with the functions of CUDA or HIP.
pub fn open_from(library: &Path, device_type: DeviceType, device_id: i64) -> Result<Device> {
    open(Library::At(library), device_type, device_id)
}

/// The same GPU behind a handle with memory, events and counters of its own, as if it had been opened by somebody else.
pub fn separate(device: &Device) -> Result<Device> {
    let driver = device.gpu_or("separate")?.driver().clone();
    Device::behind(driver, Source::Driver, None)
}

impl Device {
    /// The device of this type and number: what an `ArrowDeviceArray` says in `device_type` and `device_id`. The CPU
    /// goes by any number.
    pub fn open(device_type: DeviceType, device_id: i64) -> Result<Device> {
        open(Library::Installed, device_type, device_id)
    }
}

fn open(library: Library<'_>, device_type: DeviceType, device_id: i64) -> Result<Device> {
    let none = |reason: &str| Err(Error::NoDevice { device: device_type, reason: reason.into() });
    match (device_type, device_id) {
        (DeviceType::Cpu, _) => Ok(Device::cpu()),
        (DeviceType::Emulated, 0) => Ok(Device::emulated()),
        (DeviceType::Emulated, _) => none("the emulated device is number 0"),
        (DeviceType::Cuda, id) => cuda::cuda(library, id),
        (DeviceType::Rocm, id) => hip::rocm(library, id),
        _ => none("it is a kind of memory, not a device: open the GPU it belongs to, or the CPU"),
    }
}
