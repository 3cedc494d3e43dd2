//! L3: who runs. A [`Device`] is where arrays live and operations run; a [`Stream`] is an order of work on it.

mod host_pool;

use std::fmt;
use std::sync::{Arc, LazyLock};

pub use host_pool::{HostMemory, HostPool, PoolUsage};

use crate::array::Place;

/// Where arrays live and operations run. A cheap handle.
#[derive(Clone)]
pub struct Device(Arc<Inner>);

struct Inner {
    place: Place,
    pool: HostPool,
}

impl Device {
    /// Host memory, computed on by rayon's threads.
    pub fn cpu() -> Device {
        static CPU: LazyLock<Device> =
            LazyLock::new(|| Device(Arc::new(Inner { place: Place::CPU, pool: HostPool::new() })));
        CPU.clone()
    }

    /// Which memory of which device.
    pub fn place(&self) -> Place {
        self.0.place
    }

    /// Where host memory for results comes from.
    pub fn host_pool(&self) -> &HostPool {
        &self.0.pool
    }

    /// A new order of work on this device.
    pub fn stream(&self) -> Stream {
        Stream { device: self.clone() }
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Device({})", self.place())
    }
}

/// An order of work on a device: what is put on it runs one after another. On the CPU everything runs at once,
/// in the call.
#[derive(Clone, Debug)]
pub struct Stream {
    device: Device,
}

impl Stream {
    /// The CPU's.
    pub fn cpu() -> Stream {
        Device::cpu().stream()
    }

    /// Whose.
    pub fn device(&self) -> &Device {
        &self.device
    }
}
