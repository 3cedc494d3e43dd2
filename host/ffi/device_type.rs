//! The device types of the Arrow C device interface that we know.

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

impl DeviceType {
    /// The device type behind an ABI number; `None` for one we do not serve.
    pub fn from_abi(value: i32) -> Option<DeviceType> {
        use DeviceType::*;
        [Cpu, Cuda, CudaHost, Rocm, RocmHost, Emulated, CudaManaged].into_iter().find(|d| *d as i32 == value)
    }

    /// Whether the host may read this memory, once it is ready.
    pub fn host_accessible(self) -> bool {
        use DeviceType::*;
        matches!(self, Cpu | CudaHost | RocmHost | CudaManaged)
    }
}

impl fmt::Display for DeviceType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DeviceType::Cpu => "CPU",
            DeviceType::Cuda => "CUDA",
            DeviceType::CudaHost => "CUDA_HOST",
            DeviceType::Rocm => "ROCM",
            DeviceType::RocmHost => "ROCM_HOST",
            DeviceType::Emulated => "EMULATED",
            DeviceType::CudaManaged => "CUDA_MANAGED",
        })
    }
}
