//! An order of work on a device.

#![allow(unsafe_code)]

use std::ffi::c_void;
use std::fmt;
use std::sync::Arc;

use super::Device;
use super::core::{Core, Entered};
use super::driver::RawStream;
use super::event::Event;
use super::foreign::hold_back;
use super::gpu::Gpu;
use super::handles::OwnedStream;
use super::lock::lock;
use super::pool::Memory;
use super::released::{Reader, note_wrapped};
use super::sync::atomic::{AtomicU64, Ordering};
use super::sync::{Mutex, MutexGuard};
use crate::Result;
use crate::array::Ready;

/// An order of work on a device: work on one stream runs in order, concurrently with the work of other
/// streams. On the CPU all work runs at once, in the call. A cheap handle.
#[derive(Clone)]
pub struct Stream {
    device: Device,
    gpu: Option<Arc<GpuStream>>,
}

/// The stream's handle on a GPU, its number, and the state of its operations.
pub(crate) struct GpuStream {
    owned: Arc<OwnedStream>,
    number: u64,
    /// Set for the default stream of "the calling thread", which differs from thread to thread. Operations
    /// then run on `owned`, after the work that the calling thread's stream has now and before the work that
    /// it is given later.
    callers: Option<OwnedStream>,
    /// A second stream for callbacks after this one's work, because a callback holds its stream back until it
    /// has run.
    beside: Mutex<Option<OwnedStream>>,
    sink: Mutex<Option<Arc<Memory>>>,
    ending: Mutex<()>,
    launches: AtomicU64,
}

impl GpuStream {
    pub fn owned(&self) -> &OwnedStream {
        &self.owned
    }

    /// A number that no other stream of this process ever has, even one with the same native handle.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Words in which kernels of this stream count and which no code reads; `None` until a kernel needs them.
    pub fn sink(&self) -> MutexGuard<'_, Option<Arc<Memory>>> {
        lock(&self.sink)
    }

    /// Locked from recording an event until the memory has noted that event as its last use. So if operations
    /// of two threads end on this stream at the same time, the memory keeps the later event.
    pub fn ending(&self) -> MutexGuard<'_, ()> {
        lock(&self.ending)
    }

    /// Counts a kernel launch on this stream.
    pub fn count_launch(&self) {
        self.launches.fetch_add(1, Ordering::Relaxed);
    }

    /// Begins an operation: its work waits for the work that the caller has put on the stream so far. An
    /// error if the stream is being captured into a graph.
    pub fn enter(&self, core: &Core, operation: &'static str) -> Result<()> {
        core.refuse_fork()?;
        self.refuse_capture(operation)?;
        let Some(callers) = &self.callers else { return Ok(()) };
        let event = core.take_event()?;
        callers.record(&event)?;
        let waits = self.owned.wait(&event);
        core.give_event(event);
        waits
    }

    /// Returns an error if the stream that the caller named is being captured into a graph.
    pub fn refuse_capture(&self, operation: &'static str) -> Result<()> {
        self.owned.refuse_capture(operation)?;
        self.callers.as_ref().map_or(Ok(()), |callers| callers.refuse_capture(operation))
    }

    /// Ends an operation: work that the caller puts on the stream from now on waits for it.
    pub fn leave(&self, done: &Event) -> Result<()> {
        let Some(callers) = &self.callers else { return Ok(()) };
        callers.refuse_capture("wait")?;
        done.hold_back(callers)
    }

    /// Calls `then` once an event of this stream has passed or failed, or drops it. `then` runs on a thread
    /// of the runtime's, so it must be short, must not call the driver and must not run foreign code. Nothing
    /// waits for it.
    pub fn call_behind(&self, event: &Event, then: Box<dyn FnOnce() + Send>) -> Result<()> {
        let mut beside = lock(&self.beside);
        let beside = match &mut *beside {
            Some(beside) => beside,
            none => none.insert(OwnedStream::create(event.core().streams(), 0)?),
        };
        event.hold_back(beside)?;
        beside.call(then)
    }

    /// This stream as a consumer's. A wrapped stream is the caller's, and may be gone when the memory is
    /// released.
    pub fn reader(&self) -> Reader {
        match (&self.callers, self.owned.is_wrapped()) {
            (Some(_), _) => Reader::Unnamed,
            (None, true) => Reader::Wrapped(self.owned.raw()),
            (None, false) => Reader::Own(self.owned.clone()),
        }
    }

    /// Makes work that the caller queues directly from now on wait until `ready`. A graph that is being
    /// captured cannot wait for what is outside of it.
    pub fn hold_caller_back(&self, core: &Core, operation: &'static str, ready: &dyn Ready) -> Result<()> {
        core.refuse_fork()?;
        match self.refuse_capture(operation) {
            Err(refused) => {
                if ready.is_ready()? {
                    Ok(())
                } else {
                    Err(refused)
                }
            }
            Ok(()) => hold_back(self.callers.as_ref().unwrap_or(&*self.owned), core.place(), ready),
        }
    }

    /// Makes further work wait until `ready`. For another runtime's events, the host waits.
    pub fn wait(&self, core: &Core, ready: &dyn Ready) -> Result<()> {
        hold_back(&self.owned, core.place(), ready)
    }
}

impl Stream {
    /// The CPU's stream, on which every operation has finished when its call returns.
    pub fn cpu() -> Stream {
        Stream { device: Device::cpu(), gpu: None }
    }

    pub(super) fn create(device: &Device, priority: i32) -> Result<Stream> {
        match device.as_gpu() {
            None => Ok(Stream { device: device.clone(), gpu: None }),
            Some(gpu) => Ok(Stream::over(device, OwnedStream::create(gpu.streams(), priority)?, None)),
        }
    }

    pub(super) fn over(device: &Device, owned: OwnedStream, callers: Option<OwnedStream>) -> Stream {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let stream = GpuStream {
            owned: Arc::new(owned),
            number,
            callers,
            beside: Mutex::default(),
            sink: Mutex::default(),
            ending: Mutex::default(),
            launches: AtomicU64::new(0),
        };
        Stream { device: device.clone(), gpu: Some(Arc::new(stream)) }
    }

    /// The device on which the stream's work runs.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The runtime's handle (a `CUstream`, a `hipStream_t`); `None` on the CPU. While others capture the
    /// stream into a graph, operations on it are [`Error::Invalid`](crate::Error::Invalid).
    pub fn native_handle(&self) -> Option<*mut c_void> {
        let stream = self.gpu.as_ref()?;
        let named = stream.callers.as_ref().unwrap_or(&stream.owned);
        named.set_known();
        let RawStream(handle) = named.raw();
        Some(std::ptr::without_provenance_mut(handle))
    }

    /// The number of kernels launched on it so far; 0 on the CPU.
    pub fn launches(&self) -> u64 {
        self.gpu.as_ref().map_or(0, |stream| stream.launches.load(Ordering::Relaxed))
    }

    /// Blocks until all work on it has passed, which no operation does. To wait for one result, wait for its
    /// array.
    pub fn synchronise(&self) -> Result<()> {
        let (Some(stream), Some(gpu)) = (&self.gpu, self.device.as_gpu()) else { return Ok(()) };
        gpu.count_synchronisation();
        let passed = stream.enter(gpu, "synchronise").and_then(|()| stream.owned.synchronise());
        gpu.retire();
        passed
    }

    /// Makes its GPU, if it has one, current on this thread until the result is dropped.
    pub(crate) fn enter(&self) -> Result<Option<Entered<'_>>> {
        self.device.as_gpu().map(|gpu| gpu.enter()).transpose()
    }

    /// The GPU and its side of the stream; `None` on the CPU.
    pub(crate) fn as_gpu(&self) -> Option<(&Arc<Gpu>, &Arc<GpuStream>)> {
        Some((self.device.as_gpu()?, self.gpu.as_ref()?))
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.gpu {
            Some(stream) => write!(f, "Stream({}, {:#x})", self.device.place(), stream.owned.raw().0),
            None => write!(f, "Stream({})", self.device.place()),
        }
    }
}

impl Device {
    /// Creates a stream on this device, with the usual priority.
    pub fn stream(&self) -> Result<Stream> {
        self.stream_with_priority(0)
    }

    /// Creates a stream on this device. Lower priorities are more urgent, 0 is usual; a priority that the
    /// device does not have becomes the nearest one that it has.
    pub fn stream_with_priority(&self, priority: i32) -> Result<Stream> {
        Stream::create(self, priority)
    }

    /// Wraps a native stream of the caller's (a `CUstream`, a `hipStream_t`): operations run on that stream
    /// and on no other. The handle may be the legacy default stream (`0` or `1`) or the default stream of the
    /// calling thread (`2`). The latter means the stream of the thread that calls an operation; the operation
    /// runs after the work that is on it then, and before later work. A stream that is being captured into a
    /// graph is [`Error::Invalid`](crate::Error::Invalid), here and when an operation begins.
    ///
    /// # Safety
    ///
    /// The handle must be a stream of this device, and stay one until the last clone of the [`Stream`] and
    /// every operation put on it is gone. On ROCm, whose events read their stream, this includes the results
    /// of these operations.
    pub unsafe fn wrap_stream(&self, handle: *mut c_void) -> Result<Stream> {
        let gpu = self.gpu_or("wrap_stream")?;
        let raw = RawStream(handle.addr());
        // SAFETY: the caller's promise.
        let given = unsafe { OwnedStream::wrap(gpu.driver(), raw) }?;
        if !gpu.driver().is_per_thread(raw) {
            let stream = Stream::over(self, given, None);
            stream.gpu.iter().for_each(|stream| note_wrapped(&stream.owned));
            return Ok(stream);
        }
        Ok(Stream::over(self, OwnedStream::create(gpu.streams(), 0)?, Some(given)))
    }
}
