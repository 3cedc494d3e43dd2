//! The seam to a GPU runtime: what the library needs from one, and nothing more. One implementation per runtime:
//! `emu` (host memory), `cuda`, `hip`.
//!
//! A driver validates nothing that the layer above can; it makes the call and says which call failed, with which code.
//! All of it is callable from any thread. Work is ordered by streams as in CUDA and HIP: a stream's work runs in order,
//! streams run side by side, an event is a point in one stream that others can wait for.

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
pub(crate) struct Takes {
    pub registers: u32,
    /// Memory that stands in for registers: none of our kernels asks for any.
    pub local_bytes: u32,
}

/// A call into the runtime that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    /// The runtime's function.
    pub call: &'static str,
    /// What it returned.
    pub code: i64,
    /// Whether the code says that memory ran out.
    pub out_of_memory: bool,
}

impl Failure {
    /// As the error that a call for `bytes` of memory (0 for any other call) at `place` ends with.
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
    /// The call.
    pub failure: Failure,
    /// What the runtime's compiler said; empty where there was nothing to say.
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
    /// Which device was current, where that was another one.
    pub current: Option<usize>,
    /// The thread's mode of capture, and what had set it, where they were others.
    pub capture: Option<(i32, usize)>,
}

/// What a call into the runtime gives.
pub(crate) type Outcome<T = ()> = std::result::Result<T, Failure>;

/// A kernel's arguments with their type erased: words for a GPU, the struct itself for the emulator.
pub(crate) trait Arguments {
    /// One machine word for each argument.
    fn words(&self) -> Vec<u64>;
    /// The argument struct, to be run with later.
    fn boxed(&self) -> Box<dyn Any + Send>;
    /// The memory that the arguments give: first address, bytes, and whether it is written.
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

/// One launch.
pub(crate) struct Launch<'a> {
    /// The entry, as [`Driver::entry`] gave it. The emulator runs `kernel` instead.
    pub entry: RawEntry,
    /// The entry as it was written.
    pub kernel: &'static dyn AnyEntry,
    /// How many waves, at least one.
    pub waves: u64,
    /// The arguments the entry was declared with.
    pub args: &'a dyn Arguments,
}

/// What the library needs from a GPU runtime. Each function but the first three may fail, also with the error of work
/// that was put on a stream long before.
///
/// # Safety
///
/// For every `unsafe` function: handles are live ones of this driver; addresses are memory of its device (or, where a
/// pointer is asked for, of the host), alive for the bytes given until the work queued here has passed.
pub(crate) trait Driver: Send + Sync {
    /// Which device.
    fn place(&self) -> Place;

    /// Makes the device current on the calling thread, where the runtime has such a thing and another one is,
    /// and permits the thread all calls while somebody captures a graph: so that the calls to come need not,
    /// each by itself. Says what was.
    fn enter(&self) -> Outcome<Before> {
        Ok(Before::default())
    }

    /// Puts back what was.
    fn leave(&self, _before: Before) {}

    /// Lanes in a wave: 32 or 64.
    fn width(&self) -> u32;

    /// Which architecture's images it runs; `None` where it runs kernels without any.
    fn architecture(&self) -> Option<&'static str> {
        None
    }

    /// The device's name, for people.
    fn name(&self) -> String;

    /// How many bytes of the device's memory are free now, and how many there are; `None` where nobody counts.
    fn memory(&self) -> Outcome<Option<(usize, usize)>> {
        Ok(None)
    }

    /// At least `bytes` (not zero) of device memory, aligned to 256, usable by work put on `stream` from now on.
    unsafe fn alloc(&self, bytes: usize, stream: RawStream) -> Outcome<usize>;

    /// Gives memory back once the work that is on `stream` now has passed. It is gone whatever this returns.
    unsafe fn free(&self, address: usize, stream: RawStream) -> Outcome;

    /// Gives the system back what the runtime keeps of memory that was freed.
    fn trim(&self) -> Outcome {
        Ok(())
    }

    /// Host memory that copies run from and to without blocking, all bytes initialised.
    unsafe fn alloc_pinned(&self, bytes: usize) -> Outcome<*mut u8>;

    /// Gives pinned memory back, now. It is gone whatever this returns.
    unsafe fn free_pinned(&self, pointer: *mut u8) -> Outcome;

    /// Host to device.
    unsafe fn copy_in(&self, to: usize, from: *const u8, bytes: usize, stream: RawStream) -> Outcome;

    /// Device to host.
    unsafe fn copy_out(&self, to: *mut u8, from: usize, bytes: usize, stream: RawStream) -> Outcome;

    /// Device to device; what is read is memory of device `device_id` of the same runtime, which may be this one.
    unsafe fn copy(&self, to: usize, from: usize, device_id: i64, bytes: usize, stream: RawStream)
    -> Outcome;

    /// Sets every byte.
    unsafe fn fill(&self, to: usize, byte: u8, bytes: usize, stream: RawStream) -> Outcome;

    /// Says that what these bytes hold is not wanted from here on; where use after free shall show, they are spoilt.
    unsafe fn discard(&self, _address: usize, _bytes: usize, _stream: RawStream) -> Outcome {
        Ok(())
    }

    /// A new stream that does not wait for the legacy default stream. Lower numbers are more urgent, 0 is usual; out of
    /// range means the nearest.
    unsafe fn stream(&self, priority: i32) -> Outcome<RawStream>;

    /// Ends a stream; what is on it still runs. It is gone whatever this returns.
    unsafe fn destroy_stream(&self, stream: RawStream) -> Outcome;

    /// Whether the handle, which may be anything, looks like a stream of this device.
    unsafe fn check_stream(&self, stream: RawStream) -> Outcome;

    /// Whether the handle means another stream in each thread.
    fn is_per_thread(&self, _stream: RawStream) -> bool {
        false
    }

    /// The default stream that other libraries' usual streams wait for, and it for them; `None` where there
    /// is no such.
    fn legacy_stream(&self) -> Option<RawStream> {
        None
    }

    /// Whether what is put on the stream now becomes part of somebody's graph instead of being run.
    unsafe fn is_captured(&self, _stream: RawStream) -> Outcome<bool> {
        Ok(false)
    }

    /// Blocks until the stream's work has passed. Whatever this returns, none of it runs any more.
    unsafe fn synchronise(&self, stream: RawStream) -> Outcome;

    /// A new event, without timing. It counts as passed until recorded.
    unsafe fn event(&self) -> Outcome<RawEvent>;

    /// Ends an event; who waits for it still does. It is gone whatever this returns.
    unsafe fn destroy_event(&self, event: RawEvent) -> Outcome;

    /// Makes the event the point that the stream's work has reached.
    unsafe fn record(&self, event: RawEvent, stream: RawStream) -> Outcome;

    /// Holds back the stream's further work until the event, as recorded now, has passed. The event may be another
    /// device's of the same runtime.
    unsafe fn wait(&self, stream: RawStream, event: RawEvent) -> Outcome;

    /// Whether the event has passed.
    unsafe fn query(&self, event: RawEvent) -> Outcome<bool>;

    /// Blocks until the event has passed. Whatever this returns, the work before it runs no more.
    unsafe fn synchronise_event(&self, event: RawEvent) -> Outcome;

    /// Runs `then` on some thread once the stream's work has passed, also where that has failed, or drops it.
    /// The stream's further work waits until it has returned. It must be short and must not call the driver.
    unsafe fn call(&self, stream: RawStream, then: Box<dyn FnOnce() + Send>) -> Outcome;

    /// Loads an entry of a kernel family, from the image that fits the device. Entries are never unloaded.
    unsafe fn entry(&self, family: &'static str, name: &'static str) -> Result<RawEntry, LoadFailure>;

    /// What a lane of an entry takes; `None` where entries are not compiled.
    unsafe fn takes(&self, _entry: RawEntry) -> Outcome<Option<Takes>> {
        Ok(None)
    }

    /// The images that were loaded so far, with how long each took.
    fn loaded(&self) -> Vec<LoadedImage> {
        vec![]
    }

    /// Launches waves. What the arguments point to is in the caller's hands.
    unsafe fn launch(&self, launch: &Launch<'_>, stream: RawStream) -> Outcome;

    /// Which memory an address, which may be anything, is in; `None` for memory the runtime does not know.
    unsafe fn classify(&self, address: usize) -> Outcome<Option<Place>>;
}
