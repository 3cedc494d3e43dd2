//! The supported device types of the Arrow C device interface. One table row describes each type; all other
//! code derives from it.

use std::fmt;

/// The kind of memory that an array lives in: the supported subset of the ABI's `ArrowDeviceType`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(i32)]
pub enum DeviceType {
    /// Ordinary host memory, not pinned by a device runtime.
    Cpu = 1,
    /// Device memory allocated by CUDA.
    Cuda = 2,
    /// Host memory pinned by CUDA.
    CudaHost = 3,
    /// Device memory allocated by ROCm.
    Rocm = 10,
    /// Host memory pinned by ROCm.
    RocmHost = 11,
    /// The memory of this crate's emulator. Uses `ARROW_DEVICE_EXT_DEV`, which the format reserves for
    /// extensions.
    Emulated = 12,
    /// CUDA managed memory, which both the host and the device can access.
    CudaManaged = 13,
}

use DeviceType::*;

/// The properties of a device type.
struct Facts {
    name: &'static str,
    /// The kind of device that works on this memory.
    device: DeviceType,
    /// Whether the host can read it once it is ready.
    host_reads: bool,
    /// Whether it belongs to one device, identified by number. Otherwise all devices of the kind can access
    /// it.
    numbered: bool,
}

const fn facts(name: &'static str, device: DeviceType, host_reads: bool, numbered: bool) -> Facts {
    Facts { name, device, host_reads, numbered }
}

impl DeviceType {
    /// All supported device types.
    pub const ALL: [DeviceType; 7] = [Cpu, Cuda, CudaHost, Rocm, RocmHost, Emulated, CudaManaged];

    const fn facts(self) -> Facts {
        match self {
            Cpu => facts("CPU", Cpu, true, false),
            Cuda => facts("CUDA", Cuda, false, true),
            CudaHost => facts("CUDA_HOST", Cuda, true, false),
            CudaManaged => facts("CUDA_MANAGED", Cuda, true, true),
            Rocm => facts("ROCM", Rocm, false, true),
            RocmHost => facts("ROCM_HOST", Rocm, true, false),
            Emulated => facts("EMULATED", Emulated, false, true),
        }
    }

    /// Converts an ABI number; `None` if the type is not supported.
    pub fn from_abi(value: i32) -> Option<DeviceType> {
        DeviceType::ALL.into_iter().find(|known| *known as i32 == value)
    }

    /// Whether the host can read this memory once it is ready.
    pub fn host_accessible(self) -> bool {
        self.facts().host_reads
    }

    /// The kind of device that works on this memory. For pinned and managed memory, this is the GPU whose
    /// runtime allocated it.
    pub fn device(self) -> DeviceType {
        self.facts().device
    }

    /// Whether the memory belongs to one device, identified by its number. Pinned host memory belongs to all
    /// devices.
    pub(crate) fn is_numbered(self) -> bool {
        self.facts().numbered
    }
}

impl fmt::Display for DeviceType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.facts().name)
    }
}
