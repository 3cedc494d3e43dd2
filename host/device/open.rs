//! Devices by type and number, as the C interfaces name them.

use super::Device;
use crate::ffi::DeviceType;
use crate::{Error, Result};

impl Device {
    /// The device of this type and number: what an `ArrowDeviceArray` says in `device_type` and `device_id`. The CPU
    /// goes by any number.
    pub fn open(device_type: DeviceType, device_id: i64) -> Result<Device> {
        let none = |reason: &str| Err(Error::NoDevice { device: device_type, reason: reason.into() });
        match (device_type, device_id) {
            (DeviceType::Cpu, _) => Ok(Device::cpu()),
            (DeviceType::Emulated, 0) => Ok(Device::emulated()),
            (DeviceType::Emulated, _) => none("the emulated device is number 0"),
            (DeviceType::Cuda | DeviceType::Rocm, _) => none("this version has no driver for it"),
            (DeviceType::CudaHost | DeviceType::CudaManaged | DeviceType::RocmHost, _) => {
                none("it is a kind of memory, not a device: open the GPU it belongs to, or the CPU")
            }
        }
    }
}
