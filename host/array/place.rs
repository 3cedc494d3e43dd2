//! The memory that holds an array, and the event after which it may be read.

use std::any::Any;
use std::ffi::c_void;
use std::fmt;
use std::ptr::NonNull;

use crate::Result;
use crate::ffi::DeviceType;

/// A kind of memory on one device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// The kind of memory.
    pub device_type: DeviceType,
    /// The index of the device among those of its type; -1 for the CPU.
    pub device_id: i64,
}

impl Place {
    /// Ordinary host memory, not pinned by a device runtime.
    pub const CPU: Place = Place { device_type: DeviceType::Cpu, device_id: -1 };

    /// Whether a device at this place, or the host, can read the given memory: its own, and memory that a
    /// runtime shares between both.
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

/// An event after which an array's contents may be read: a device's event, from this library or the producer.
/// Arrays carry it, and streams wait on it.
pub trait Ready: Any + fmt::Debug + Send + Sync {
    /// Whether the event has occurred. Does not block.
    fn is_ready(&self) -> Result<bool>;
    /// Blocks the calling thread until the event has occurred.
    fn wait(&self) -> Result<()>;
    /// The address of the runtime's event handle, for a consumer's `sync_event`. It stays valid for as long
    /// as this value lives. `None` if no handle can be shared; an exporter then waits on the host.
    fn sync_event(&self) -> Option<NonNull<c_void>>;
}
