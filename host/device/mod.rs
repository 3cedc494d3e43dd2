//! L3: who runs. A [`Device`] is the place where arrays live and operations run; a [`Stream`] is an order of
//! work on it.
//!
//! `driver` is the seam to a GPU runtime: `emu` emulates one, `native` has the functions that CUDA and HIP
//! share, `cuda` and `hip` those that they do not. `handles` is the seam's safe side; `gpu` has the state
//! that all handles of one GPU share. `pool` and `event` reuse memory and events. Level 4, `pass`, composes
//! the work that runs on them.

mod core;
mod cuda;
pub(crate) mod driver;
#[cfg(test)]
mod driver_tests;
mod emu;
mod event;
mod foreign;
pub(crate) mod fork;
mod gpu;
mod handles;
mod hip;
mod host_pool;
pub(crate) mod interrupt;
mod lent;
mod loaded;
mod lock;
mod mark;
#[cfg(all(test, shuttle))]
pub(crate) mod model_tests;
mod native;
mod open;
mod pool;
mod released;
mod staging;
mod stream;
mod wakes;

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, OnceLock, Weak};

#[cfg(test)]
pub(crate) use emu::faulty;
#[doc(hidden)]
pub use emu::testing;
pub(crate) use event::{Check, Event};
pub(crate) use foreign::joined;
pub(crate) use gpu::{Gpu, Kept, fetch};
pub use handles::Allocator;
pub(crate) use handles::{OwnedStream, witnessed};
pub(crate) use host_pool::Reserved;
pub use host_pool::{HostMemory, HostPool, PoolUsage};
pub use interrupt::interruptible;
pub use lent::Lent;
pub(crate) use lent::let_go;
pub use loaded::LoadedImage;
pub(crate) use lock::{lock, sync};
pub use mark::Mark;
pub(crate) use pool::Memory;
pub(crate) use released::Reader;
pub(crate) use staging::Staged;
pub(crate) use stream::GpuStream;
pub use stream::Stream;
pub(crate) use wakes::Sleeper;

use self::fork::Guarded;
use crate::array::Place;
use crate::{Error, Result};

/// The part of this level that `crate::internals` shows to the doctor.
pub(crate) mod shown {
    pub use super::cuda::DRIVER as NVIDIA_DRIVER;
    pub use super::driver::Takes;
    pub use super::native::{is_absent, is_too_old, is_unknown, refusal, why_not};
    pub use super::open::{RUNTIMES, count_of, library_names, open_from};
}

/// The place where arrays live and operations run: a GPU, the CPU or the emulator. A cheap handle.
#[derive(Clone)]
pub struct Device(Handle);

/// The CPU's device is never dropped, so nothing counts its handles: a count would be one cache line for all
/// threads, which each operation changes several times.
#[derive(Clone)]
enum Handle {
    Cpu(&'static Inner),
    Other(Arc<Inner>),
}

impl Deref for Handle {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        match self {
            Handle::Cpu(inner) => inner,
            Handle::Other(inner) => inner,
        }
    }
}

struct Inner {
    place: Place,
    host_pool: HostPool,
    gpu: Option<Arc<Gpu>>,
}

impl Device {
    /// The CPU: host memory, and rayon's threads, which compute.
    pub fn cpu() -> Device {
        static CPU: OnceLock<Inner> = OnceLock::new();
        // Made under a lock that a forking thread holds, so that a child never finds it half made.
        static MAKING: Guarded<()> = Guarded::new(());
        let new = || Inner { place: Place::CPU, host_pool: HostPool::new(), gpu: None };
        Device(Handle::Cpu(CPU.get().unwrap_or_else(|| MAKING.with(|()| CPU.get_or_init(new)))))
    }

    /// Makes the device of a driver. Its pool keeps at most `keep` unused bytes.
    fn behind(driver: handles::SharedDriver, source: handles::Source, keep: Option<usize>) -> Result<Device> {
        let (place, gpu) = (driver.place(), Gpu::new(driver, source, keep)?);
        let host_pool = Device::cpu().host_pool().clone();
        Ok(Device(Handle::Other(Arc::new(Inner { place, host_pool, gpu: Some(gpu) }))))
    }

    /// A reference that does not keep the device; to the CPU's there is none.
    fn downgrade(&self) -> Weak<Inner> {
        match &self.0 {
            Handle::Cpu(_) => Weak::new(),
            Handle::Other(inner) => Arc::downgrade(inner),
        }
    }

    fn upgrade(inner: &Weak<Inner>) -> Option<Device> {
        inner.upgrade().map(|inner| Device(Handle::Other(inner)))
    }

    /// The same device, with memory for results and scratch from the caller's allocator instead of our pool.
    /// Arrays made with either handle work with both.
    pub fn with_allocator(&self, allocator: Arc<dyn Allocator>) -> Result<Device> {
        let driver = self.gpu_or("with_allocator")?.driver().clone();
        Device::behind(driver, handles::Source::User(allocator), None)
    }

    /// The kind of memory, and the device's number.
    pub fn place(&self) -> Place {
        self.0.place
    }

    /// The device's name, for people.
    pub fn name(&self) -> String {
        self.0.gpu.as_ref().map_or_else(|| "CPU".into(), |gpu| gpu.driver().name())
    }

    /// The pool from which results in host memory come.
    pub fn host_pool(&self) -> &HostPool {
        &self.0.host_pool
    }

    /// Bounds the device memory taken from the runtime, in use or kept; an operation that needs more is
    /// [`Error::OutOfMemory`].
    pub fn set_memory_limit(&self, bytes: usize) {
        match &self.0.gpu {
            Some(gpu) => gpu.pool().set_limit(bytes),
            None => self.0.host_pool.set_limit(bytes),
        }
    }

    /// Bounds the unused memory that is kept for later; kept memory beyond it is freed now. By default, a
    /// quarter of a GPU's memory may be kept, and 4 GiB of host memory.
    pub fn set_memory_kept(&self, bytes: usize) {
        match &self.0.gpu {
            Some(gpu) => gpu.pool().set_keep(bytes),
            None => self.0.host_pool.set_keep(bytes),
        }
    }

    /// Sets whether exported memory of this device, once its consumer has released it, stays untouched until
    /// the work that the consumer had put on its stream has passed. It does by default: a DLPack deleter or
    /// an Arrow release says only that the program is done, and kernels may still be reading.
    ///
    /// The stream is the one that the consumer named, if that is a stream of this library or a wrapped one of
    /// which a handle is still held. Otherwise it is the legacy default stream, which does not wait for
    /// non-blocking streams: a consumer that reads on such a stream must release the memory only once its
    /// work has passed. The next operation on the device records one event on that stream, for all memory
    /// released so far; the memory is free again when that event has passed. The emulator has no default
    /// stream, so it protects only memory read on named streams.
    pub fn set_export_fence(&self, kept: bool) {
        if let Some(gpu) = &self.0.gpu {
            gpu.set_export_fence(kept);
        }
    }

    /// The device memory in use and kept.
    pub fn memory_usage(&self) -> PoolUsage {
        self.0.gpu.as_ref().map_or_else(|| self.0.host_pool.usage(), |gpu| gpu.pool().usage())
    }

    /// How often a call of this library blocked the host to wait for this device. With it, a program can
    /// check what each operation's documentation says about synchronising.
    pub fn host_synchronisations(&self) -> u64 {
        self.0.gpu.as_ref().map_or(0, |gpu| gpu.synchronisations())
    }

    /// The kernels that its runtime has loaded in this process so far, in order, with the time that each
    /// took. The first call of an operation waits for that on the host; later calls do not. The emulator and
    /// the CPU have none.
    pub fn images_loaded(&self) -> Vec<LoadedImage> {
        self.0.gpu.as_ref().map_or_else(Vec::new, |gpu| gpu.driver().loaded())
    }

    /// The GPU; `None` for the CPU.
    pub(crate) fn as_gpu(&self) -> Option<&Arc<Gpu>> {
        self.0.gpu.as_ref()
    }

    /// The GPU, for an operation that needs one; an error for the CPU.
    pub(crate) fn gpu_or(&self, operation: &'static str) -> Result<&Arc<Gpu>> {
        self.as_gpu().ok_or_else(|| Error::invalid(operation, "the CPU has no streams or events of its own"))
    }
}

impl Drop for Inner {
    /// Waits for the device's work when the last handle is dropped, and drops its inputs. Memory that comes
    /// back later is not kept.
    fn drop(&mut self) {
        let Some(gpu) = self.gpu.take() else { return };
        if gpu.is_parents() {
            // The parent may have held any of its locks while it forked.
            return std::mem::forget(gpu);
        }
        gpu.drain();
        gpu.close();
        // Another thread may have fenced released memory in between.
        gpu.drain();
        gpu.pool().set_keep(0);
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Device({})", self.place())
    }
}
