//! Measures a GPU's own time, and its copy rate: by events with timing around work on a stream of the
//! library's, whose own events have no timing. CUDA's and HIP's functions are found by name at run time, as
//! the library finds them, so one clock serves both, and the benches start without either.

use std::time::Duration;

use bowstring::Stream;
use bowstring::ffi::DeviceType;
use libloading::Library;

type Code = i32;

/// The work queued before the timed work: while it runs, the host gets ahead of the device.
const HEAD_START: usize = 16 << 20;
const HEAD_START_TIMES: usize = 8;

struct Functions {
    create: unsafe extern "C" fn(*mut usize, u32) -> Code,
    record: unsafe extern "C" fn(usize, usize) -> Code,
    synchronise: unsafe extern "C" fn(usize) -> Code,
    elapsed: unsafe extern "C" fn(*mut f32, usize, usize) -> Code,
    fill: unsafe extern "C" fn(usize, u8, usize, usize) -> Code,
    copy: unsafe extern "C" fn(usize, usize, usize, usize) -> Code,
    alloc: unsafe extern "C" fn(*mut usize, usize) -> Code,
    free: unsafe extern "C" fn(usize) -> Code,
}

/// A GPU's clock, for work on one stream from one thread. It lives as long as the process.
pub struct Clock {
    functions: Functions,
    stream: usize,
    start: usize,
    stop: usize,
    /// The memory to fill for the head start, and its size.
    head_start: (usize, usize),
}

fn library(names: &[&str]) -> &'static Library {
    // SAFETY: a GPU's driver, which the library has loaded already.
    let found = names.iter().find_map(|name| unsafe { Library::new(*name) }.ok());
    Box::leak(Box::new(found.expect("a GPU's driver that was found before")))
}

fn function<F: Copy>(library: &Library, name: &str) -> F {
    // SAFETY: the callers below name the functions that have these types.
    *unsafe { library.get::<F>(name.as_bytes()) }.unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Fails if a call failed: a bench cannot continue on such a device.
fn good(code: Code, call: &str) {
    assert_eq!(code, 0, "{call} failed");
}

impl Clock {
    /// The clock of a GPU's stream, whose device becomes the thread's current one; `None` on the CPU.
    pub fn new(stream: &Stream, tiny: bool) -> Option<Clock> {
        let handle = stream.native_handle()? as usize;
        let place = stream.device().place();
        let ordinal = place.device_id as i32;
        let functions = match place.device_type {
            DeviceType::Cuda => {
                let library = library(&["libcuda.so.1", "libcuda.so", "nvcuda.dll"]);
                let retain: unsafe extern "C" fn(*mut usize, i32) -> Code =
                    function(library, "cuDevicePrimaryCtxRetain");
                let set: unsafe extern "C" fn(usize) -> Code = function(library, "cuCtxSetCurrent");
                let mut context = 0;
                // SAFETY: the device was opened; its context, which the library shares, is kept as long as
                // the process lives.
                good(unsafe { retain(&mut context, ordinal) }, "cuDevicePrimaryCtxRetain");
                // SAFETY: as above.
                good(unsafe { set(context) }, "cuCtxSetCurrent");
                Functions {
                    create: function(library, "cuEventCreate"),
                    record: function(library, "cuEventRecord"),
                    synchronise: function(library, "cuEventSynchronize"),
                    elapsed: function(library, "cuEventElapsedTime"),
                    fill: function(library, "cuMemsetD8Async"),
                    copy: function(library, "cuMemcpyDtoDAsync_v2"),
                    alloc: function(library, "cuMemAlloc_v2"),
                    free: function(library, "cuMemFree_v2"),
                }
            }
            DeviceType::Rocm => {
                let library = library(&["libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so"]);
                let set: unsafe extern "C" fn(i32) -> Code = function(library, "hipSetDevice");
                // SAFETY: the function takes a number.
                good(unsafe { set(ordinal) }, "hipSetDevice");
                Functions {
                    create: function(library, "hipEventCreateWithFlags"),
                    record: function(library, "hipEventRecord"),
                    synchronise: function(library, "hipEventSynchronize"),
                    elapsed: function(library, "hipEventElapsedTime"),
                    fill: function(library, "hipMemsetD8Async"),
                    copy: function(library, "hipMemcpyDtoDAsync"),
                    alloc: function(library, "hipMalloc"),
                    free: function(library, "hipFree"),
                }
            }
            _ => return None,
        };
        let head_start = if tiny { 4096 } else { HEAD_START };
        let mut clock = Clock { functions, stream: handle, start: 0, stop: 0, head_start: (0, head_start) };
        clock.head_start.0 = clock.alloc(head_start).expect("a device has some memory");
        for event in [&mut clock.start, &mut clock.stop] {
            // SAFETY: the function writes a handle. No flags: this event keeps time.
            good(unsafe { (clock.functions.create)(event, 0) }, "creating an event");
        }
        Some(clock)
    }

    /// The device's time for the work that a call puts on the stream. If the call itself waits for the
    /// device, the time that the device waits for the host counts too.
    pub fn time<R>(&self, run: impl FnOnce() -> R) -> Duration {
        let (fill, bytes) = self.head_start;
        for _ in 0..HEAD_START_TIMES {
            // SAFETY: `fill` is the address of `bytes` bytes of the device's memory, which no code reads.
            good(unsafe { (self.functions.fill)(fill, 0, bytes, self.stream) }, "filling memory");
        }
        // SAFETY: both handles are live.
        good(unsafe { (self.functions.record)(self.start, self.stream) }, "recording an event");
        let result = run();
        // SAFETY: as above.
        good(unsafe { (self.functions.record)(self.stop, self.stream) }, "recording an event");
        drop(result);
        // SAFETY: as above.
        good(unsafe { (self.functions.synchronise)(self.stop) }, "the work that was timed");
        let mut milliseconds = 0.0;
        // SAFETY: as above, and both events have passed.
        good(
            unsafe { (self.functions.elapsed)(&mut milliseconds, self.start, self.stop) },
            "reading the time",
        );
        Duration::from_secs_f64(f64::from(milliseconds) / 1e3)
    }

    /// Allocates two pieces of device memory of this size, to copy from one to the other; `None` if the
    /// device has no room.
    pub fn copies(&self, bytes: usize) -> Option<Copies<'_>> {
        let mut copies = Copies { clock: self, bytes, from: self.alloc(bytes)?, to: 0 };
        copies.to = self.alloc(bytes)?;
        // SAFETY: the memory is ours and has this size. Memory that was never written might copy faster, so
        // it is filled.
        good(unsafe { (self.functions.fill)(copies.from, 1, bytes, self.stream) }, "filling memory");
        Some(copies)
    }

    fn alloc(&self, bytes: usize) -> Option<usize> {
        let mut address = 0;
        // SAFETY: the function writes an address.
        (unsafe { (self.functions.alloc)(&mut address, bytes) } == 0).then_some(address)
    }
}

/// Two pieces of device memory to copy between.
pub struct Copies<'a> {
    clock: &'a Clock,
    bytes: usize,
    from: usize,
    to: usize,
}

impl Copies<'_> {
    /// The time of one copy.
    pub fn time(&self) -> Duration {
        self.clock.time(|| {
            // SAFETY: both pieces have this size, and live until the timed work has passed.
            let code =
                unsafe { (self.clock.functions.copy)(self.to, self.from, self.bytes, self.clock.stream) };
            good(code, "copying");
        })
    }
}

impl Drop for Copies<'_> {
    fn drop(&mut self) {
        for address in [self.from, self.to].into_iter().filter(|address| *address != 0) {
            // SAFETY: the memory was allocated in `copies`, and every copy was waited for.
            good(unsafe { (self.clock.functions.free)(address) }, "freeing memory");
        }
    }
}
