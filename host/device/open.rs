//! Devices by type and number, as the C interfaces name them.

use std::path::Path;

use super::handles::Source;
use super::native::Library;
use super::{Device, cuda, hip};
use crate::ffi::DeviceType;
use crate::{Error, Result};

/// Opens a device of a library other than the installed one: a file with the functions of CUDA or HIP.
pub fn open_from(library: &Path, device_type: DeviceType, device_id: i64) -> Result<Device> {
    open(Library::At(library), device_type, device_id)
}

/// Opens the same GPU with memory, events and counters of its own, as another user of it would.
pub fn separate(device: &Device) -> Result<Device> {
    let driver = device.gpu_or("separate")?.driver().clone();
    Device::behind(driver, Source::Driver, None)
}

/// The kinds of GPU that have drivers.
pub const RUNTIMES: [DeviceType; 2] = [DeviceType::Cuda, DeviceType::Rocm];

/// The names of the library of a kind of GPU, the preferred one first.
pub fn library_names(runtime: DeviceType) -> &'static [&'static str] {
    if runtime == DeviceType::Rocm { hip::LIBRARIES } else { cuda::LIBRARIES }
}

/// The number of GPUs of a kind that its library finds: the installed one, or one in a file. The error says
/// why it cannot.
pub fn count_of(library: Option<&Path>, runtime: DeviceType) -> Result<usize> {
    let library = library.map_or(Library::Installed, Library::At);
    if runtime == DeviceType::Rocm { hip::count(library) } else { cuda::count(library) }
}

impl Device {
    /// Opens the device of this type and number, as in an `ArrowDeviceArray`'s `device_type` and `device_id`.
    /// Any number means the CPU if the type is the CPU's.
    pub fn open(device_type: DeviceType, device_id: i64) -> Result<Device> {
        open(Library::Installed, device_type, device_id)
    }
}

fn open(library: Library<'_>, device_type: DeviceType, device_id: i64) -> Result<Device> {
    let none = |reason: &str| Err(Error::NoDevice { device: device_type, reason: reason.into() });
    match (device_type, device_id) {
        (DeviceType::Cpu, _) => Ok(Device::cpu()),
        (DeviceType::Emulated, 0) => Device::try_emulated(),
        (DeviceType::Emulated, _) => none("the emulated device is number 0"),
        (DeviceType::Cuda, id) => cuda::cuda(library, id),
        (DeviceType::Rocm, id) => hip::rocm(library, id),
        _ => none("it is a kind of memory, not a device: open the GPU it belongs to, or the CPU"),
    }
}
