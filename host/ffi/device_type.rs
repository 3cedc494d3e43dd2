//! The device types of the Arrow C device interface that we know: one row of facts for each, from which everything else
//! that asks for a device type derives.

use std::fmt;

/// Which memory an array lives in: the ABI's `ArrowDeviceType`, those that we serve.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(i32)]
pub enum DeviceType {
    /// Host memory.
    Cpu = 1,
    /// CUDA device memory.
    Cuda = 2,
    /// Host memory pinned by CUDA.
    CudaHost = 3,
    /// ROCm device memory.
    Rocm = 10,
    /// Host memory pinned by ROCm.
    RocmHost = 11,
    /// `ARROW_DEVICE_EXT_DEV`, the format's escape hatch: our emulator's memory.
    Emulated = 12,
    /// CUDA managed memory, which both sides may touch.
    CudaManaged = 13,
}

use DeviceType::*;

/// What there is to know of a device type.
struct Facts {
    name: &'static str,
    /// The kind of device that works on this memory.
    device: DeviceType,
    /// Whether the host may read it, once it is ready.
    host_reads: bool,
    /// Whether it belongs to one device by number; else all of the kind reach it.
    numbered: bool,
}

const fn facts(name: &'static str, device: DeviceType, host_reads: bool, numbered: bool) -> Facts {
    Facts { name, device, host_reads, numbered }
}

impl DeviceType {
    /// Every device type that we serve.
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

    /// The device type behind an ABI number; `None` for one we do not serve.
    pub fn from_abi(value: i32) -> Option<DeviceType> {
        DeviceType::ALL.into_iter().find(|known| *known as i32 == value)
    }

    /// Whether the host may read this memory, once it is ready.
    pub fn host_accessible(self) -> bool {
        self.facts().host_reads
    }

    /// The kind of device that works on this memory: for pinned and managed memory, the GPU whose runtime made it.
    pub fn device(self) -> DeviceType {
        self.facts().device
    }

    /// Whether the memory belongs to one device by its number; pinned host memory is every device's.
    pub(crate) fn is_numbered(self) -> bool {
        self.facts().numbered
    }
}

impl fmt::Display for DeviceType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.facts().name)
    }
}
