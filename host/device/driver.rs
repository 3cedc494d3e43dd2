//! The seam to a GPU runtime: the functions that the library needs, and nothing more. Each runtime has one
//! implementation: `emu` (host memory), `cuda`, `hip`.
//!
//! A driver validates nothing that the layer above can; it makes the call and says which call failed, with
//! which code. Any thread may call any function. Work is ordered by streams as in CUDA and HIP: a stream's
//! work runs in order, streams run side by side, an event is a point in one stream that others can wait for.

#![allow(unsafe_code)]

use std::any::Any;

use bowstring_kernels::target::{AnyEntry, Args};

use super::loaded::LoadedImage;
use crate::Error;
use crate::array::Place;

/// A stream as the runtime knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct RawStream(pub usize);

/// An event as the runtime knows it: what a `sync_event` points to.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct RawEvent(pub usize);

/// An entry of a loaded image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RawEntry(pub usize);

/// The resources of an entry, as the runtime's compiler has allotted them to each lane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Takes {
    /// The registers that a lane has.
    pub registers: u32,
    /// Memory that the compiler added in place of registers, per lane. None of our kernels declares any.
    pub local_bytes: u32,
}

/// A call into the runtime that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    /// The runtime's function that failed, by its name.
    pub call: &'static str,
    /// The code that the function returned.
    pub code: i64,
    /// Whether the code says that memory ran out.
    pub out_of_memory: bool,
}

impl Failure {
    /// Converts the failure of a call for `bytes` of memory (0 for any other call) at `place`.
    pub fn error(self, bytes: usize, place: Place) -> Error {
        let device = place.device_type;
        match self.out_of_memory {
            true => Error::OutOfMemory { bytes, device },
            false => Error::Driver { call: self.call, code: self.code, device },
        }
    }
}

/// An image that could not be loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LoadFailure {
    /// The call that failed, and its code.
    pub failure: Failure,
    /// The runtime's compiler's message; empty if it wrote none.
    pub log: String,
}

impl From<Failure> for LoadFailure {
    fn from(failure: Failure) -> LoadFailure {
        LoadFailure { failure, log: String::new() }
    }
}

/// A thread's state before [`Driver::enter`].
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Before {
    /// The device that was current, if it was another one.
    pub current: Option<usize>,
    /// The thread's capture mode and the address of the library that had set it, if they were others.
    pub capture: Option<(i32, usize)>,
}

/// The result of a call into the runtime.
pub(crate) type Outcome<T = ()> = std::result::Result<T, Failure>;

/// A kernel's arguments with their type erased: words for a GPU, the struct itself for the emulator.
pub(crate) trait Arguments {
    /// One machine word for each argument.
    fn words(&self) -> Vec<u64>;
    /// The argument struct, to be run with later.
    fn boxed(&self) -> Box<dyn Any + Send>;
    /// The memory that the arguments describe: first address, bytes, and whether the kernel writes it.
    fn extents(&self) -> Vec<(u64, u64, bool)>;
}

impl<A: Args> Arguments for A {
    fn words(&self) -> Vec<u64> {
        let mut words = vec![0; A::ARGUMENTS.len()];
        self.pack(&mut words);
        words
    }

    fn boxed(&self) -> Box<dyn Any + Send> {
        Box::new(*self)
    }

    fn extents(&self) -> Vec<(u64, u64, bool)> {
        let mut all = vec![];
        Args::extents(self, &mut |start, bytes, written| all.push((start, bytes, written)));
        all
    }
}

/// A kernel's entry with its arguments and its number of waves.
pub(crate) struct Launch<'a> {
    /// The entry, as [`Driver::entry`] gave it. The emulator runs `kernel` instead.
    pub entry: RawEntry,
    /// The entry as the kernels' source declares it.
    pub kernel: &'static dyn AnyEntry,
    /// How many waves, at least one.
    pub waves: u64,
    /// The arguments the entry was declared with.
    pub args: &'a dyn Arguments,
}

/// The functions that the library needs from a GPU runtime. A function that can fail may also report the
/// failure of work that was queued on a stream long before.
///
/// # Safety
///
/// For every `unsafe` function: handles are live ones of this driver; addresses are memory of its device (or,
/// where a pointer is asked for, of the host), alive for the bytes given until the work queued here has
/// passed.
pub(crate) trait Driver: Send + Sync {
    /// The device's type and number.
    fn place(&self) -> Place;

    /// Makes the device current on the calling thread, and permits the thread all calls while another thread
    /// captures a graph. The calls that follow then need not do so one by one. Returns the thread's previous
    /// state.
    fn enter(&self) -> Outcome<Before> {
        Ok(Before::default())
    }

    /// Restores the state that [`Driver::enter`] returned.
    fn leave(&self, _before: Before) {}

    /// Lanes in a wave: 32 or 64.
    fn width(&self) -> u32;

    /// The architecture whose images it runs; `None` if it runs kernels without images.
    fn architecture(&self) -> Option<&'static str> {
        None
    }

    /// Whether kernels may read and write pinned memory at its address on the host, also by atomics. Those
    /// are atomic for the kernels, not for the host.
    fn kernels_write_pinned(&self) -> bool {
        false
    }

    /// The device's name, for people.
    fn name(&self) -> String;

    /// The bytes of the device's memory that are free now, and all of them; `None` if the runtime does not
    /// count.
    fn memory(&self) -> Outcome<Option<(usize, usize)>> {
        Ok(None)
    }

    /// Allocates at least `bytes` (not zero) of device memory, aligned to 256. Work queued on `stream` from
    /// now on may use it.
    unsafe fn alloc(&self, bytes: usize, stream: RawStream) -> Outcome<usize>;

    /// Frees memory once the work that is on `stream` now has passed. The memory is gone even if this fails.
    unsafe fn free(&self, address: usize, stream: RawStream) -> Outcome;

    /// Whether [`Driver::free`] blocks until the work on the stream has passed.
    fn free_waits(&self) -> bool {
        false
    }

    /// Bounds the freed memory that the runtime keeps from now on, where it keeps any: it releases the rest
    /// to the system by the host's next wait for the device.
    fn keep(&self, _bytes: usize) -> Outcome {
        Ok(())
    }

    /// Releases all freed memory that the runtime keeps to the system now.
    fn trim(&self) -> Outcome {
        Ok(())
    }

    /// Allocates host memory that copies run from and to without blocking. All bytes are initialised.
    unsafe fn alloc_pinned(&self, bytes: usize) -> Outcome<*mut u8>;

    /// Frees pinned memory now. The memory is gone even if this fails.
    unsafe fn free_pinned(&self, pointer: *mut u8) -> Outcome;

    /// Queues a copy from host to device.
    unsafe fn copy_in(&self, to: usize, from: *const u8, bytes: usize, stream: RawStream) -> Outcome;

    /// Queues a copy from device to host.
    unsafe fn copy_out(&self, to: *mut u8, from: usize, bytes: usize, stream: RawStream) -> Outcome;

    /// Queues a copy from device to device. The source is memory of device `device_id` of the same runtime,
    /// which may be this device.
    unsafe fn copy(&self, to: usize, from: usize, device_id: i64, bytes: usize, stream: RawStream)
    -> Outcome;

    /// Queues work that sets every byte to `byte`.
    unsafe fn fill(&self, to: usize, byte: u8, bytes: usize, stream: RawStream) -> Outcome;

    /// Declares the contents of these bytes unused from here on. A driver that detects use after free
    /// overwrites them.
    unsafe fn discard(&self, _address: usize, _bytes: usize, _stream: RawStream) -> Outcome {
        Ok(())
    }

    /// Creates a stream that does not wait for the legacy default stream. Lower priorities are more urgent, 0
    /// is usual; a priority out of range becomes the nearest one in range.
    unsafe fn stream(&self, priority: i32) -> Outcome<RawStream>;

    /// Destroys a stream; work that is on it still runs. The stream is gone even if this fails.
    unsafe fn destroy_stream(&self, stream: RawStream) -> Outcome;

    /// Whether the handle, which may be anything, looks like a stream of this device.
    unsafe fn check_stream(&self, stream: RawStream) -> Outcome;

    /// Whether the handle means another stream in each thread.
    fn is_per_thread(&self, _stream: RawStream) -> bool {
        false
    }

    /// The default stream that synchronises with other libraries' blocking streams; `None` if the runtime has
    /// none.
    fn legacy_stream(&self) -> Option<RawStream> {
        None
    }

    /// Whether work queued on the stream now becomes part of a graph instead of running.
    unsafe fn is_captured(&self, _stream: RawStream) -> Outcome<bool> {
        Ok(false)
    }

    /// Blocks until the stream's work has passed. None of it runs any more, even if this fails.
    unsafe fn synchronise(&self, stream: RawStream) -> Outcome;

    /// Creates an event without timing. It counts as passed until it is recorded.
    unsafe fn event(&self) -> Outcome<RawEvent>;

    /// Destroys an event; waits that have begun go on. The event is gone even if this fails.
    unsafe fn destroy_event(&self, event: RawEvent) -> Outcome;

    /// Makes the event the point that the stream's work has reached.
    unsafe fn record(&self, event: RawEvent, stream: RawStream) -> Outcome;

    /// Holds back the stream's further work until the event's latest recording has passed. The event may
    /// belong to another device of the same runtime.
    unsafe fn wait(&self, stream: RawStream, event: RawEvent) -> Outcome;

    /// Whether the event has passed.
    unsafe fn query(&self, event: RawEvent) -> Outcome<bool>;

    /// Blocks until the event has passed. The work before it runs no more, even if this fails.
    unsafe fn synchronise_event(&self, event: RawEvent) -> Outcome;

    /// Runs `then` on some thread once the stream's work has passed or failed, or drops it. The stream's
    /// further work waits until `then` has returned. `then` must be short and must not call the driver.
    unsafe fn call(&self, stream: RawStream, then: Box<dyn FnOnce() + Send>) -> Outcome;

    /// Loads an entry of a kernel family, from the image that fits the device. Entries are never unloaded.
    unsafe fn entry(&self, family: &'static str, name: &'static str) -> Result<RawEntry, LoadFailure>;

    /// The resources that an entry takes per lane; `None` if entries are not compiled.
    unsafe fn takes(&self, _entry: RawEntry) -> Outcome<Option<Takes>> {
        Ok(None)
    }

    /// The images loaded so far, in order, with the time that each took.
    fn loaded(&self) -> Vec<LoadedImage> {
        vec![]
    }

    /// Launches waves. The caller ensures that the memory the arguments point to is valid.
    unsafe fn launch(&self, launch: &Launch<'_>, stream: RawStream) -> Outcome;

    /// The memory that contains an address, which may be any number; `None` for memory that the runtime does
    /// not know.
    unsafe fn classify(&self, address: usize) -> Outcome<Option<Place>>;
}
