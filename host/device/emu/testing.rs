//! For tests, ours and those of libraries that build on this one: emulated devices with random delays, calls
//! that fail on demand, and counts of live objects. **Not part of the public API**: hidden from the
//! documentation, and anything here may change in any release.

use std::collections::BTreeMap;
use std::sync::Arc;

pub use bowstring_kernels::target::Fault as Access;
pub use bowstring_sim::MemoryFault;

use super::super::Device;
use super::super::fork::Guarded;
use super::super::handles::Source;
pub use super::super::handles::{Witness, Witnessed};
use super::super::lock;
pub use super::super::open::{open_from, separate};
use super::super::sync::atomic::{AtomicI64, Ordering};
use super::super::sync::thread;
use super::queue::{end_point, new_point, point};
use super::{Emulator, Shared};
pub use crate::array::layout::{Slot, any_part, children, layout};
use crate::array::{DeviceArray, Place};
use crate::ffi::DeviceType;
use crate::{Error, Result};

pub use super::memory::DeviceMemory;
pub use super::watch::{Alive, EmulatorOptions, Execution, Executor, Fault, INJECTED};

/// An emulated device of a test's own, with access to its internals.
pub struct EmulatedDevice {
    device: Device,
    shared: Arc<Shared>,
}

/// Turns a host array into one of an emulated device, whose memory is host memory. Copies and moves nothing,
/// so an array at odd addresses and bit offsets stays there.
pub fn adopt(array: &DeviceArray, device: &Device) -> Result<DeviceArray> {
    if device.place().device_type != DeviceType::Emulated || array.place() != Place::CPU {
        return Err(Error::invalid("adopt", "takes a host array and an emulated device"));
    }
    let mut parts = array.clone().into_parts();
    parts.place = device.place();
    parts.children = parts.children.iter().map(|child| adopt(child, device)).collect::<Result<_>>()?;
    parts.dictionary = parts.dictionary.map(|values| adopt(&values, device)).transpose()?;
    DeviceArray::try_new(parts)
}

/// Drops inputs whose work on the device has passed, without blocking. Every operation does so too.
pub fn retire(device: &Device) {
    device.as_gpu().into_iter().for_each(|gpu| gpu.retire());
}

/// Shows every launch on a GPU through this handle and its clones to a witness, for diagnosis. The host then
/// waits for each launch. Only the first witness of a device is set.
pub fn set_witness(device: &Device, witness: Arc<dyn Witness>) {
    device.as_gpu().into_iter().for_each(|gpu| gpu.set_witness(witness.clone()));
}

/// Blocks until all work on the device for which inputs are kept has passed, and drops the inputs.
pub fn drain(device: &Device) {
    device.as_gpu().into_iter().for_each(|gpu| {
        gpu.drain();
    });
}

/// The number of the next emulated device; 0 is [`Device::emulated`].
static NEXT_ID: AtomicI64 = AtomicI64::new(1);

fn emulated(emulator: Emulator, keep: Option<usize>) -> Result<Device> {
    Device::behind(Arc::new(emulator), Source::Driver, keep)
}

impl Device {
    /// An emulated GPU with waves of 32 lanes, for programs that must run without one: kernels run on the
    /// host, a lane at a time. Its arrays export as `ARROW_DEVICE_EXT_DEV` with a `sync_event` that points to
    /// a `uint64_t`: the number of an emulated event of this process.
    ///
    /// # Panics
    ///
    /// If no thread can be started; [`Device::open`] of [`DeviceType::Emulated`] returns an error instead.
    pub fn emulated() -> Device {
        Device::try_emulated().expect("an emulated device has all it needs but threads")
    }

    /// The same device; an error if no thread can be started now.
    pub(in crate::device) fn try_emulated() -> Result<Device> {
        static DEVICE: Guarded<Option<Device>> = Guarded::new(None);
        if let Some(device) = DEVICE.with(|device| device.clone()) {
            return Ok(device);
        }
        // Not under the lock: if two threads make one, both use the first.
        let made = emulated(Emulator::new(EmulatorOptions::default(), 0), None)?;
        Ok(DEVICE.with(|device| device.get_or_insert_with(|| made.clone()).clone()))
    }
}

impl EmulatedDevice {
    /// Makes a device that shares nothing with other emulated devices.
    pub fn new(options: EmulatorOptions) -> Result<EmulatedDevice> {
        let keep = options.keep;
        let emulator = Emulator::new(options, NEXT_ID.fetch_add(1, Ordering::Relaxed));
        let shared = emulator.0.clone();
        Ok(EmulatedDevice { device: emulated(emulator, keep)?, shared })
    }

    /// Makes a device whose driver breaks a promise.
    #[cfg(test)]
    pub(crate) fn faulty(options: EmulatorOptions, breaks: super::faulty::Break) -> Result<Self> {
        let keep = options.keep;
        let emulator = Emulator::new(options, NEXT_ID.fetch_add(1, Ordering::Relaxed));
        let shared = emulator.0.clone();
        let driver = Arc::new(super::faulty::Faulty::new(Arc::new(emulator), breaks));
        Ok(EmulatedDevice { device: Device::behind(driver, Source::Driver, keep)?, shared })
    }

    /// The device, as a program sees it.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Makes call number `nth` (from 1, counted from now on) of the runtime's functions fail, and the
    /// `times - 1` calls after it. With `call`, only calls of that function count.
    pub fn fail(&self, call: Option<&'static str>, nth: u64, times: u64) {
        lock(&self.shared.injector.calls).fail(call.map(str::to_owned), nth, times, ());
    }

    /// Stops failing calls, and returns how many failed.
    pub fn stop_failing(&self) -> u64 {
        lock(&self.shared.injector.calls).stop_failing()
    }

    /// The number of calls of each of the runtime's functions so far.
    pub fn calls(&self) -> BTreeMap<&'static str, u64> {
        lock(&self.shared.injector.calls).calls().clone()
    }

    /// The numbers of live allocations, events, streams and threads of the device now.
    pub fn alive(&self) -> Alive {
        self.shared.alive()
    }

    /// The violations by kernels, copies and frees so far. Checks red zones and freed memory as well.
    pub fn faults(&self) -> Vec<Fault> {
        let mut faults = self.shared.injector.put_down_so_far();
        for memory in [&self.shared.memory, &self.shared.pinned] {
            if let Err(fault) = lock(memory).check() {
                faults.push(Fault::Memory { call: "check", fault });
            }
        }
        faults
    }

    /// Drops the device as its user would, and keeps its counters.
    pub fn close(self) -> Closed {
        Closed(self.shared)
    }
}

/// The counters of an [`EmulatedDevice`] that was closed.
pub struct Closed(Arc<Shared>);

impl Closed {
    /// Waits until the streams' threads have ended, and counts the objects that are still alive.
    pub fn alive(self) -> Alive {
        while Arc::strong_count(&self.0.injector.threads) > 1 && lock(&self.0.streams).is_empty() {
            thread::yield_now();
        }
        self.0.alive()
    }
}

impl Shared {
    pub(super) fn alive(&self) -> Alive {
        let memory = lock(&self.memory);
        Alive {
            allocations: memory.count(),
            bytes: memory.bytes(),
            pinned: lock(&self.pinned).count(),
            events: self.injector.events.load(Ordering::Relaxed),
            streams: lock(&self.streams).len(),
            threads: Arc::strong_count(&self.injector.threads) - 1,
        }
    }
}

/// An emulated event that a test, acting as a foreign producer or consumer, fires by hand.
pub struct ManualEvent {
    number: Box<u64>,
    fire: Arc<super::queue::Recording>,
}

impl ManualEvent {
    /// Makes an event that is recorded and has not passed.
    pub fn pending() -> ManualEvent {
        let number = new_point();
        let fire = point(number, "event").expect("just made").record();
        ManualEvent { number: Box::new(number as u64), fire }
    }

    /// The pointer for a `sync_event`; valid as long as `self` lives.
    pub fn pointer(&self) -> *mut std::ffi::c_void {
        std::ptr::from_ref(&*self.number).cast_mut().cast()
    }

    /// Makes the event pass, with success.
    pub fn fire(&self) {
        self.fire.pass(Ok(()));
    }
}

impl Drop for ManualEvent {
    fn drop(&mut self) {
        self.fire.pass(Ok(()));
        end_point(*self.number as usize);
    }
}
