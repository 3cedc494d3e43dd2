//! The options of an emulated device, and the observations of it: calls that fail or are counted, recorded
//! faults, live objects.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bowstring_kernels::target::Fault as Access;
use bowstring_sim::{MemoryFault, lock};

use super::super::driver::{Failure, Outcome};
use super::super::sync::Mutex;
use super::super::sync::atomic::{AtomicUsize, Ordering};
use super::memory::DeviceMemory;

/// The options of an emulated device.
#[derive(Clone, Debug)]
pub struct EmulatorOptions {
    /// Lanes in a wave: 32 or 64.
    pub width: u32,
    /// The bound on the random time that a stream sleeps before each piece of work.
    pub delay: Duration,
    /// The seed of the random times, and of the order in which waves and lanes run.
    pub seed: u64,
    /// The bytes of memory that the device has.
    pub memory: usize,
    /// The most unused bytes that the device's pool keeps; `Some(0)` exposes every use after free.
    pub keep: Option<usize>,
    /// An interpreter of the images, which runs kernels in place of their host build, as waves of 32.
    pub executor: Option<Arc<dyn Executor>>,
}

/// Runs kernels from their images, on host memory.
pub trait Executor: fmt::Debug + Send + Sync {
    /// Runs one launch; the error says which rule the kernel broke.
    fn run(&self, launch: &Execution<'_>, memory: &mut DeviceMemory<'_>) -> std::result::Result<(), String>;
}

/// One launch for an [`Executor`].
#[derive(Clone, Copy, Debug)]
pub struct Execution<'a> {
    /// The family, which names the kernel's image.
    pub family: &'a str,
    /// The entry in it.
    pub entry: &'a str,
    /// The arguments, eight bytes each.
    pub words: &'a [u64],
    /// The number of waves, in blocks of 256 threads.
    pub waves: u64,
}

impl Default for EmulatorOptions {
    fn default() -> Self {
        EmulatorOptions {
            width: 32,
            delay: Duration::ZERO,
            seed: 0,
            memory: 8 << 30,
            keep: None,
            executor: None,
        }
    }
}

/// The code of a call that failed because a test asked for it.
pub const INJECTED: i64 = 999;

/// The numbers of a device's live objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Alive {
    /// Allocations of device memory.
    pub allocations: usize,
    /// The sum of their bytes.
    pub bytes: usize,
    /// Allocations of pinned host memory.
    pub pinned: usize,
    /// Events that were made and not destroyed.
    pub events: usize,
    /// Streams that were made and not destroyed.
    pub streams: usize,
    /// Threads that run streams, also those of destroyed ones that still have work.
    pub threads: usize,
}

/// A violation on an emulated device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A kernel accessed memory outside its arguments. The read gave zero, or the write was dropped.
    Kernel {
        /// The name of the kernel's entry.
        entry: &'static str,
        /// The name of the argument through which it accessed the memory.
        argument: &'static str,
        /// The access: its argument's number, place and kind.
        fault: Access,
    },
    /// An [`Executor`] refused to go on.
    Executor {
        /// The name of the kernel's entry.
        entry: &'static str,
        /// The executor's message, which says which rule was broken.
        reason: String,
    },
    /// A call or kernel used memory that it must not use.
    Memory {
        /// The name of the call, or of the kernel's entry.
        call: &'static str,
        /// The kind of misuse that the memory's checks found.
        fault: MemoryFault,
    },
}

impl Fault {
    pub(super) fn call(&self) -> &'static str {
        match self {
            Fault::Kernel { entry, .. } | Fault::Executor { entry, .. } => entry,
            Fault::Memory { call, .. } => call,
        }
    }
}

/// The state through which a test makes a device's calls fail and observes them.
#[derive(Default)]
pub(super) struct Injector {
    pub calls: Mutex<bowstring_sim::Injector<()>>,
    faults: Mutex<Vec<Fault>>,
    pub events: AtomicUsize,
    pub threads: Arc<()>,
}

impl Injector {
    pub fn enter(&self, call: &'static str) -> Outcome {
        let out_of_memory = call.starts_with("alloc");
        lock(&self.calls).enter(call, &[]).map_err(|()| Failure { call, code: INJECTED, out_of_memory })
    }

    pub fn put_down_so_far(&self) -> Vec<Fault> {
        lock(&self.faults).clone()
    }

    pub fn put_down(&self, fault: Fault) {
        lock(&self.faults).push(fault);
    }

    pub fn thread_started(&self) -> Arc<()> {
        self.threads.clone()
    }

    pub fn event_made(&self) {
        self.events.fetch_add(1, Ordering::Relaxed);
    }

    pub fn event_ended(&self) {
        self.events.fetch_sub(1, Ordering::Relaxed);
    }
}
