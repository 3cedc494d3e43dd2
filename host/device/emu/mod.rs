//! The emulator: a driver over host memory, with real asynchrony.
//!
//! A stream is a queue that a thread runs, after random delays if a test asks for them. Kernels are the host
//! build of those that GPUs run. So a forgotten wait or a too-early free gives a wrong answer, as on a GPU,
//! but never undefined behaviour: jobs that touch memory run one at a time, freed memory is overwritten and
//! kept for a while, and every access of a kernel is checked. A violation fails the kernel's stream, every
//! event recorded after it, and every stream that waits for such an event.

#![allow(unsafe_code)]

#[cfg(test)]
pub(crate) mod faulty;
mod memory;
mod queue;
pub mod testing;
#[cfg(test)]
mod tests;
mod watch;

use std::any::Any;
use std::collections::HashMap;
use std::sync::Arc;

use bowstring_kernels::target::Faults;

use super::driver::{Driver, Failure, Launch, LoadFailure, Outcome, RawEntry, RawEvent, RawStream};
use super::lock;
use super::sync::Mutex;
use crate::array::Place;
use crate::ffi::DeviceType;
use bowstring_sim::{FRESH_BYTE, Job, MemoryFault, at};
use memory::{DeviceMemory, Memory};
use queue::{INVALID_HANDLE, PANICKED, Queue, point};
use watch::{EmulatorOptions, Execution, Fault, Injector};

/// The code for memory that ran out; the same as CUDA's.
const OUT_OF_MEMORY: i64 = 2;
/// The code for a kernel or a copy that broke a rule; the same as CUDA's for an illegal address.
const FAULT: i64 = 700;

/// The driver of one emulated device.
pub(crate) struct Emulator(Arc<Shared>);

/// The state that the device's streams share.
struct Shared {
    options: EmulatorOptions,
    place: Place,
    memory: Mutex<Memory>,
    pinned: Mutex<Memory>,
    streams: Mutex<HashMap<usize, Queue>>,
    injector: Injector,
}

impl Emulator {
    fn new(options: EmulatorOptions, device_id: i64) -> Emulator {
        assert!(options.width == 32 || options.width == 64, "a wave has 32 or 64 lanes");
        Emulator(Arc::new(Shared {
            options,
            place: Place { device_type: DeviceType::Emulated, device_id },
            memory: Mutex::default(),
            pinned: Mutex::default(),
            streams: Mutex::default(),
            injector: Injector::default(),
        }))
    }

    fn queue(&self, stream: RawStream, call: &'static str) -> Outcome<Queue> {
        let found = lock(&self.0.streams).get(&stream.0).cloned();
        found.ok_or(Failure { call, code: INVALID_HANDLE, out_of_memory: false })
    }

    /// Counts the call, fails it if a test asks for that, and finds the stream.
    fn enter(&self, stream: RawStream, call: &'static str) -> Outcome<Queue> {
        self.0.injector.enter(call)?;
        self.queue(stream, call)
    }

    /// Queues work on memory; `parts` are the ranges of device memory that it touches.
    fn touch(
        &self,
        stream: RawStream,
        call: &'static str,
        parts: [(usize, usize); 2],
        work: impl FnOnce() + Send + 'static,
    ) -> Outcome {
        let (queue, shared) = (self.enter(stream, call)?, self.0.clone());
        queue.push(move || {
            let memory = lock(&shared.memory);
            for (address, bytes) in parts {
                if let Err(fault) = memory.may_touch(address, bytes) {
                    return shared.fault(Fault::Memory { call, fault });
                }
            }
            work();
            Ok(())
        });
        Ok(())
    }
}

impl Shared {
    /// Records a fault, and prints it to stderr.
    fn fault(&self, fault: Fault) -> Outcome {
        let call = fault.call();
        eprintln!("emulated device {}: {fault:?}", self.place.device_id);
        self.injector.put_down(fault);
        Err(Failure { call, code: FAULT, out_of_memory: false })
    }

    fn noted(&self, call: &'static str, result: Result<(), MemoryFault>) -> Outcome {
        result.or_else(|fault| self.fault(Fault::Memory { call, fault }))
    }

    /// Runs a kernel with the memory locked: streams run in random order, but never race.
    fn run(&self, launch: &Queued) -> Outcome {
        let memory = lock(&self.memory);
        let kernel = launch.kernel;
        for (argument, word) in kernel.arguments().iter().zip(&launch.words) {
            let is_memory = argument.kind != bowstring_kernels::target::Kind::Word;
            if is_memory && memory.was_freed(*word as usize) {
                let fault = MemoryFault::OutsideAllocation;
                return self.fault(Fault::Memory { call: kernel.name(), fault });
            }
        }
        if let Some(executor) = &self.options.executor {
            let execution = Execution {
                family: kernel.family(),
                entry: kernel.name(),
                words: &launch.words,
                waves: launch.waves,
            };
            let run = executor.run(&execution, &mut DeviceMemory::new(&memory, &launch.extents));
            return run.or_else(|reason| self.fault(Fault::Executor { entry: kernel.name(), reason }));
        }
        let faults = Faults::new();
        // SAFETY: the driver's caller keeps the memory that the arguments point to alive until the stream has
        // passed this job, `Memory` initialises and exposes all of it, and the lock keeps every other job
        // away.
        unsafe {
            let (width, waves) = (self.options.width, 0..launch.waves);
            kernel.emulate_in_order(&*launch.args, width, waves, self.options.seed, &faults);
        }
        match faults.first() {
            None => Ok(()),
            Some(fault) => {
                let argument = kernel.arguments().get(fault.argument).map_or("?", |argument| argument.name);
                self.fault(Fault::Kernel { entry: kernel.name(), argument, fault })
            }
        }
    }
}

struct Queued {
    kernel: &'static dyn bowstring_kernels::target::AnyEntry,
    waves: u64,
    words: Vec<u64>,
    args: Box<dyn Any + Send>,
    extents: Vec<(u64, u64, bool)>,
}

impl Driver for Emulator {
    fn place(&self) -> Place {
        self.0.place
    }

    fn width(&self) -> u32 {
        self.0.options.width
    }

    fn kernels_write_pinned(&self) -> bool {
        true
    }

    fn name(&self) -> String {
        format!("emulator, waves of {}", self.width())
    }

    unsafe fn alloc(&self, bytes: usize, stream: RawStream) -> Outcome<usize> {
        let out_of_memory = Failure { call: "alloc", code: OUT_OF_MEMORY, out_of_memory: true };
        self.enter(stream, "alloc")?;
        let mut memory = lock(&self.0.memory);
        if memory.bytes().saturating_add(bytes) > self.0.options.memory {
            return Err(out_of_memory);
        }
        memory.alloc(bytes, ()).ok_or(out_of_memory)
    }

    unsafe fn free(&self, address: usize, stream: RawStream) -> Outcome {
        let injected = self.0.injector.enter("free");
        let shared = self.0.clone();
        let free: Job<Failure> = Box::new(move || shared.noted("free", lock(&shared.memory).free(address)));
        match self.queue(stream, "free") {
            Ok(queue) => queue.push(free),
            Err(failure) => return free().and(Err(failure)),
        }
        injected
    }

    unsafe fn alloc_pinned(&self, bytes: usize) -> Outcome<*mut u8> {
        self.0.injector.enter("alloc_pinned")?;
        let address = lock(&self.0.pinned).alloc(bytes, ());
        let out_of_memory = Failure { call: "alloc_pinned", code: OUT_OF_MEMORY, out_of_memory: true };
        address.map(at).ok_or(out_of_memory)
    }

    unsafe fn free_pinned(&self, pointer: *mut u8) -> Outcome {
        let injected = self.0.injector.enter("free_pinned");
        self.0.noted("free_pinned", lock(&self.0.pinned).free(pointer.addr())).and(injected)
    }

    unsafe fn copy_in(&self, to: usize, from: *const u8, bytes: usize, stream: RawStream) -> Outcome {
        let from = from.expose_provenance();
        self.touch(stream, "copy_in", [(to, bytes), (to, 0)], move || {
            // SAFETY: the caller keeps both alive until the stream has passed this.
            unsafe { std::ptr::copy_nonoverlapping(at(from).cast_const(), at(to), bytes) }
        })
    }

    unsafe fn copy_out(&self, to: *mut u8, from: usize, bytes: usize, stream: RawStream) -> Outcome {
        let to = to.expose_provenance();
        self.touch(stream, "copy_out", [(from, bytes), (from, 0)], move || {
            // SAFETY: the caller keeps both alive until the stream has passed this.
            unsafe { std::ptr::copy_nonoverlapping(at(from).cast_const(), at(to), bytes) }
        })
    }

    // Another emulated device's memory is host memory too.
    unsafe fn copy(&self, to: usize, from: usize, _: i64, bytes: usize, stream: RawStream) -> Outcome {
        self.touch(stream, "copy", [(from, bytes), (to, bytes)], move || {
            // SAFETY: the caller keeps both alive until the stream has passed this; `copy` allows overlap.
            unsafe { std::ptr::copy(at(from).cast_const(), at(to), bytes) }
        })
    }

    unsafe fn fill(&self, to: usize, byte: u8, bytes: usize, stream: RawStream) -> Outcome {
        self.touch(stream, "fill", [(to, bytes), (to, 0)], move || {
            // SAFETY: the caller keeps it alive until the stream has passed this.
            unsafe { at(to).write_bytes(byte, bytes) }
        })
    }

    unsafe fn discard(&self, address: usize, bytes: usize, stream: RawStream) -> Outcome {
        self.touch(stream, "discard", [(address, bytes), (address, 0)], move || {
            // SAFETY: as for `fill`.
            unsafe { at(address).write_bytes(FRESH_BYTE, bytes) }
        })
    }

    unsafe fn stream(&self, _priority: i32) -> Outcome<RawStream> {
        self.0.injector.enter("stream")?;
        let number = queue::fresh_number();
        let running = self.0.injector.thread_started();
        let options = &self.0.options;
        let seed = options.seed ^ (number as u64) << 32;
        let queue =
            Queue::start("emulated stream".into(), options.delay, seed, PANICKED, move || drop(running));
        let queue = queue.ok_or(Failure { call: "stream", code: OUT_OF_MEMORY, out_of_memory: false })?;
        lock(&self.0.streams).insert(number, queue);
        Ok(RawStream(number))
    }

    unsafe fn destroy_stream(&self, stream: RawStream) -> Outcome {
        let injected = self.0.injector.enter("destroy_stream");
        match lock(&self.0.streams).remove(&stream.0) {
            Some(_) => injected,
            None => Err(Failure { call: "destroy_stream", code: INVALID_HANDLE, out_of_memory: false }),
        }
    }

    unsafe fn check_stream(&self, stream: RawStream) -> Outcome {
        self.enter(stream, "check_stream").map(drop)
    }

    unsafe fn synchronise(&self, stream: RawStream) -> Outcome {
        let injected = self.0.injector.enter("synchronise");
        self.queue(stream, "synchronise")?.synchronise().and(injected)
    }

    unsafe fn event(&self) -> Outcome<RawEvent> {
        self.0.injector.enter("event")?;
        self.0.injector.event_made();
        Ok(RawEvent(queue::new_point()))
    }

    unsafe fn destroy_event(&self, event: RawEvent) -> Outcome {
        let injected = self.0.injector.enter("destroy_event");
        if !queue::end_point(event.0) {
            return Err(Failure { call: "destroy_event", code: INVALID_HANDLE, out_of_memory: false });
        }
        self.0.injector.event_ended();
        injected
    }

    unsafe fn record(&self, event: RawEvent, stream: RawStream) -> Outcome {
        let queue = self.enter(stream, "record")?;
        queue.record(point(event.0, "record")?.record());
        Ok(())
    }

    unsafe fn wait(&self, stream: RawStream, event: RawEvent) -> Outcome {
        let queue = self.enter(stream, "wait")?;
        queue.wait(point(event.0, "wait")?.latest());
        Ok(())
    }

    unsafe fn query(&self, event: RawEvent) -> Outcome<bool> {
        self.0.injector.enter("query")?;
        point(event.0, "query")?.latest().passed().map_or(Ok(false), |(outcome, _)| outcome.map(|()| true))
    }

    unsafe fn synchronise_event(&self, event: RawEvent) -> Outcome {
        let injected = self.0.injector.enter("synchronise_event");
        point(event.0, "synchronise_event")?.latest().wait().and(injected)
    }

    unsafe fn call(&self, stream: RawStream, then: Box<dyn FnOnce() + Send>) -> Outcome {
        self.enter(stream, "call")?.push(move || {
            then();
            Ok(())
        });
        Ok(())
    }

    unsafe fn entry(&self, _family: &'static str, _name: &'static str) -> Result<RawEntry, LoadFailure> {
        self.0.injector.enter("entry")?;
        Ok(RawEntry(1))
    }

    unsafe fn launch(&self, launch: &Launch<'_>, stream: RawStream) -> Outcome {
        let (queue, shared) = (self.enter(stream, "launch")?, self.0.clone());
        let (words, args) = (launch.args.words(), launch.args.boxed());
        let extents = launch.args.extents();
        let queued = Queued { kernel: launch.kernel, waves: launch.waves, words, args, extents };
        queue.push(move || shared.run(&queued));
        Ok(())
    }

    unsafe fn classify(&self, address: usize) -> Outcome<Option<Place>> {
        self.0.injector.enter("classify")?;
        Ok(lock(&self.0.memory).block(address).map(|_| self.0.place))
    }
}
