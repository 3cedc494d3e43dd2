//! How an emulated device behaves, and what is seen of it: its options, the calls that fail and are counted, the faults that
//! were put down, what is alive.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bowstring_kernels::target::Fault as Access;
use bowstring_sim::{MemoryFault, lock};

use super::super::driver::{Failure, Outcome};
use super::super::sync::Mutex;
use super::super::sync::atomic::{AtomicUsize, Ordering};
use super::memory::DeviceMemory;

/// How an emulated device behaves.
#[derive(Clone, Debug)]
pub struct EmulatorOptions {
    /// Lanes in a wave: 32 or 64.
    pub width: u32,
    /// Before each piece of work a stream sleeps for a random time below this.
    pub delay: Duration,
    /// Where the random times start from.
    pub seed: u64,
    /// How many bytes of memory the device has.
    pub memory: usize,
    /// How many unused bytes the device's pool keeps; `Some(0)` makes every use after free show.
    pub keep: Option<usize>,
    /// What runs kernels in place of their host build, as waves of 32: an interpreter of the images.
    pub executor: Option<Arc<dyn Executor>>,
}

/// Runs kernels on host memory.
pub trait Executor: fmt::Debug + Send + Sync {
    /// Runs one launch; an error says what the kernel may not do.
    fn run(&self, launch: &Execution<'_>, memory: &mut DeviceMemory<'_>) -> std::result::Result<(), String>;
}

/// One launch for an [`Executor`].
#[derive(Clone, Copy, Debug)]
pub struct Execution<'a> {
    /// The image.
    pub family: &'a str,
    /// The entry in it.
    pub entry: &'a str,
    /// The arguments, eight bytes each.
    pub words: &'a [u64],
    /// How many waves, in blocks of 256 threads.
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

/// The code of a call that failed because a test wanted it.
pub const INJECTED: i64 = 999;

/// What of a device is alive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Alive {
    /// Allocations of device memory.
    pub allocations: usize,
    /// Their bytes.
    pub bytes: usize,
    /// Allocations of pinned host memory.
    pub pinned: usize,
    /// Events.
    pub events: usize,
    /// Streams.
    pub streams: usize,
    /// Threads that run streams, also those of destroyed ones that still have work.
    pub threads: usize,
}

/// Something that was done on an emulated device and must not be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A kernel accessed what it may not; it read zero, or did not write.
    Kernel {
        /// The kernel's entry.
        entry: &'static str,
        /// Through which argument.
        argument: &'static str,
        /// Where.
        fault: Access,
    },
    /// An [`Executor`] refused to go on.
    Executor {
        /// The kernel's entry.
        entry: &'static str,
        /// Why.
        reason: String,
    },
    /// Memory was misused.
    Memory {
        /// In which call, or by which entry.
        call: &'static str,
        /// How.
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

/// What a test does to a device, and sees of it.
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
