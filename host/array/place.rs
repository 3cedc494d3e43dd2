//! Where an array is, and when it may be read.

use std::any::Any;
use std::ffi::c_void;
use std::fmt;
use std::ptr::NonNull;

use crate::Result;
use crate::ffi::DeviceType;

/// Which memory of which device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// The kind of memory.
    pub device_type: DeviceType,
    /// Which device; -1 for the CPU.
    pub device_id: i64,
}

impl Place {
    /// Host memory.
    pub const CPU: Place = Place { device_type: DeviceType::Cpu, device_id: -1 };

    /// Whether a device here, or the host, can read that memory: its own, and what a runtime shares between both.
    pub(crate) fn reaches(self, memory: Place) -> bool {
        let kind = memory.device_type;
        let shared = match self.device_type {
            DeviceType::Cpu => kind.host_accessible(),
            device => device == kind.device() && kind.host_accessible(),
        };
        shared || self == memory
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.device_id {
            -1 => write!(f, "{}", self.device_type),
            id => write!(f, "{}:{id}", self.device_type),
        }
    }
}

/// When an array's contents may be read: a device's event, ours or the producer's. Arrays carry it, streams wait on it.
pub trait Ready: Any + fmt::Debug + Send + Sync {
    /// Whether that moment has passed.
    fn is_ready(&self) -> Result<bool>;
    /// Blocks the calling thread until it has.
    fn wait(&self) -> Result<()>;
    /// Where the runtime's event handle is kept, for as long as this lives: what a consumer gets as `sync_event`.
    /// `None` where there is no handle to give away; an exporter then waits on the host.
    fn sync_event(&self) -> Option<NonNull<c_void>>;
}
