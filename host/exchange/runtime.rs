//! What the border asks of the device that foreign memory is on.

use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::Arc;

use crate::Result;
use crate::array::{Owner, Place, Ready};
use crate::device::Device;

/// What the border asks of a device; see the implementation for [`Device`].
pub(crate) trait Runtime {
    /// Which device.
    fn place(&self) -> Place;

    /// When the event behind a `sync_event` has passed. `owner` keeps the event alive.
    ///
    /// # Safety
    ///
    /// `event` points to a handle of this device's runtime, and does so for as long as `owner` lives.
    unsafe fn ready(&self, event: NonNull<c_void>, owner: Owner) -> Result<Arc<dyn Ready>>;

    /// Whether the host may read at this address, which comes with an array of this device: some producers keep a
    /// view array's buffer sizes in host memory, some on the device.
    fn host_reads(&self, address: usize) -> Result<bool>;
}

impl Runtime for Device {
    fn place(&self) -> Place {
        Device::place(self)
    }

    unsafe fn ready(&self, event: NonNull<c_void>, owner: Owner) -> Result<Arc<dyn Ready>> {
        // SAFETY: the caller's promise.
        unsafe { self.import_event(event, owner) }
    }

    fn host_reads(&self, address: usize) -> Result<bool> {
        match self.place() {
            Place::CPU => Ok(true),
            _ => Ok(self.classify(address)?.is_none_or(|place| place.device_type.host_accessible())),
        }
    }
}
