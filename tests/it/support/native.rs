//! GPUs behind a driver library: the installed ones, and those of the library that stands in for CUDA and
//! HIP. Each comes with the runtime's plain functions, for tests that act as another library in the process.

mod library;

use std::collections::HashMap;
use std::ffi::{CString, c_char, c_void};
use std::fmt;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Condvar, LazyLock, Mutex, PoisonError};

use bowstring::Device;
use bowstring::array::Place;
use bowstring::device::testing::{open_from, separate};
use bowstring::ffi::DeviceType;
use libloading::Library;

use super::witness::witnessed;
use library::{BLOCKING, Code, contexts_of_cuda, devices_of_hip, symbol};

type Callback = unsafe extern "C" fn(*mut c_void);

/// The runtime's functions that another library needs.
pub struct Raw {
    pub alloc: unsafe extern "C" fn(*mut usize, usize) -> Code,
    pub alloc_managed: unsafe extern "C" fn(*mut usize, usize, u32) -> Code,
    pub alloc_pinned: unsafe extern "C" fn(*mut usize, usize, u32) -> Code,
    pub free: unsafe extern "C" fn(usize) -> Code,
    pub free_pinned: unsafe extern "C" fn(usize) -> Code,
    pub copy_in: unsafe extern "C" fn(usize, *const u8, usize, usize) -> Code,
    pub copy_out: unsafe extern "C" fn(*mut u8, usize, usize, usize) -> Code,
    pub fill: unsafe extern "C" fn(usize, u8, usize, usize) -> Code,
    pub stream: unsafe extern "C" fn(*mut usize, u32, i32) -> Code,
    pub priority: unsafe extern "C" fn(usize, *mut i32) -> Code,
    pub destroy_stream: unsafe extern "C" fn(usize) -> Code,
    pub synchronise: unsafe extern "C" fn(usize) -> Code,
    pub event: unsafe extern "C" fn(*mut usize, u32) -> Code,
    pub destroy_event: unsafe extern "C" fn(usize) -> Code,
    pub record: unsafe extern "C" fn(usize, usize) -> Code,
    pub wait: unsafe extern "C" fn(usize, usize, u32) -> Code,
    pub call: unsafe extern "C" fn(usize, Callback, *mut c_void) -> Code,
    pub begin_capture: unsafe extern "C" fn(usize, i32) -> Code,
    pub end_capture: unsafe extern "C" fn(usize, *mut usize) -> Code,
    /// HIP's code of the thread's last call that failed.
    pub last_error: Option<unsafe extern "C" fn() -> Code>,
    current: Box<dyn Fn() -> usize + Send + Sync>,
    make_current: Box<dyn Fn(Option<i32>) + Send + Sync>,
}

/// The architectures of the stand-in's HIP devices, one after another; we know none for the fourth.
const AMD: [&str; 7] =
    ["gfx90a", "gfx11-generic", "gfx942", "none", "gfx10-3-generic", "gfx12-generic", "gfx9-4-generic"];

/// The functions that control the stand-in.
pub struct Standin {
    pub fail: unsafe extern "C" fn(*const c_char, u64, u64, Code),
    pub stop_failing: unsafe extern "C" fn() -> u64,
    alive: unsafe extern "C" fn(u32, i32, u32) -> u64,
    faults: unsafe extern "C" fn(u32, i32) -> u64,
    pub calls: unsafe extern "C" fn(*const c_char) -> u64,
    delay: unsafe extern "C" fn(u64),
}

impl Raw {
    fn load(library: &'static Library, rocm: bool) -> Raw {
        macro_rules! find {
            ($cuda:literal, $hip:literal) => {
                symbol(library, if rocm { $hip } else { $cuda })
            };
        }
        let (current, make_current) = if rocm { devices_of_hip(library) } else { contexts_of_cuda(library) };
        Raw {
            alloc: find!("cuMemAlloc_v2", "hipMalloc"),
            alloc_managed: find!("cuMemAllocManaged", "hipMallocManaged"),
            alloc_pinned: find!("cuMemHostAlloc", "hipHostMalloc"),
            free: find!("cuMemFree_v2", "hipFree"),
            free_pinned: find!("cuMemFreeHost", "hipHostFree"),
            copy_in: find!("cuMemcpyHtoDAsync_v2", "hipMemcpyHtoDAsync"),
            copy_out: find!("cuMemcpyDtoHAsync_v2", "hipMemcpyDtoHAsync"),
            fill: find!("cuMemsetD8Async", "hipMemsetD8Async"),
            stream: find!("cuStreamCreateWithPriority", "hipStreamCreateWithPriority"),
            priority: find!("cuStreamGetPriority", "hipStreamGetPriority"),
            destroy_stream: find!("cuStreamDestroy_v2", "hipStreamDestroy"),
            synchronise: find!("cuStreamSynchronize", "hipStreamSynchronize"),
            event: find!("cuEventCreate", "hipEventCreateWithFlags"),
            destroy_event: find!("cuEventDestroy_v2", "hipEventDestroy"),
            record: find!("cuEventRecord", "hipEventRecord"),
            wait: find!("cuStreamWaitEvent", "hipStreamWaitEvent"),
            call: find!("cuLaunchHostFunc", "hipLaunchHostFunc"),
            begin_capture: find!("cuStreamBeginCapture_v2", "hipStreamBeginCapture"),
            end_capture: find!("cuStreamEndCapture", "hipStreamEndCapture"),
            last_error: rocm.then(|| symbol(library, "hipGetLastError")),
            current,
            make_current,
        }
    }
}

/// The library that stands in for CUDA's and HIP's; cargo puts it next to the tests.
pub fn standin_path() -> PathBuf {
    let tests = std::env::current_exe().expect("tests are somewhere");
    let name = format!("{}bowstring_standin{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    tests.parent().expect("tests are somewhere").join(name)
}

fn library(path: &Path) -> &'static Library {
    // SAFETY: the stand-in, or a GPU's driver.
    let opened = unsafe { Library::new(path) };
    Box::leak(Box::new(opened.unwrap_or_else(|error| panic!("{}: {error}", path.display()))))
}

static STANDIN_LIBRARY: LazyLock<&'static Library> = LazyLock::new(|| library(&standin_path()));
static STANDIN: LazyLock<Standin> = LazyLock::new(|| Standin {
    fail: symbol(&STANDIN_LIBRARY, "standin_fail"),
    stop_failing: symbol(&STANDIN_LIBRARY, "standin_stop_failing"),
    alive: symbol(&STANDIN_LIBRARY, "standin_alive"),
    faults: symbol(&STANDIN_LIBRARY, "standin_faults"),
    calls: symbol(&STANDIN_LIBRARY, "standin_calls"),
    delay: symbol(&STANDIN_LIBRARY, "standin_delay"),
});
static RAW_STANDINS: LazyLock<[Raw; 2]> =
    LazyLock::new(|| [false, true].map(|rocm| Raw::load(&STANDIN_LIBRARY, rocm)));

/// A GPU behind a driver library.
pub struct Native {
    pub name: String,
    pub device: Device,
    pub raw: &'static Raw,
    /// Set if it is a device of the stand-in.
    pub standin: Option<&'static Standin>,
}

impl fmt::Debug for Native {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl Native {
    /// A device of the stand-in that no other test uses. `of`, modulo 8, chooses among the different ones.
    pub fn standin(device_type: DeviceType, of: i64) -> Native {
        // Far from the numbers in the library's own tests, although these are another process.
        static NEXT: AtomicI64 = AtomicI64::new(1000);
        let number = NEXT.fetch_add(8, Ordering::Relaxed);
        let rocm = device_type == DeviceType::Rocm;
        let open = |of| open_from(&standin_path(), device_type, number + of);
        // A version of HIP that a run asks for may not support every GPU; each supports MI200.
        let (of, opened) = match open(of) {
            Err(_) if rocm && std::env::var_os("BOWSTRING_STANDIN").is_some() => (0, open(0)),
            opened => (of, opened),
        };
        let device = witnessed(opened.expect("the stand-in has devices"));
        let name = match (rocm, of) {
            (false, _) => "cuda:standin".into(),
            (true, of) => format!("amd:{}", AMD[of as usize]),
        };
        Native { name, device, raw: &RAW_STANDINS[usize::from(rocm)], standin: Some(&STANDIN) }
    }

    /// The stand-in's device that runs an architecture's code objects, with a handle of its own, because
    /// suites ask for more devices than there are numbers. A device on which work has strayed is not used
    /// again.
    pub fn of_amd(architecture: &'static str) -> Native {
        static OPENED: LazyLock<Mutex<HashMap<&str, Native>>> = LazyLock::new(Mutex::default);
        let mut opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
        let of = AMD.iter().position(|known| *known == architecture).expect("the stand-in has each");
        let known = opened.get(architecture).filter(|native| native.faults() == 0);
        if known.is_none() {
            opened.insert(architecture, Native::standin(DeviceType::Rocm, of as i64));
        }
        let Native { name, device, raw, standin } = &opened[architecture];
        let device = witnessed(separate(device).expect("a handle more"));
        Native { name: name.clone(), device, raw, standin: *standin }
    }

    /// Opens the stand-in's device that is too old.
    pub fn oldest() -> bowstring::Result<Device> {
        open_from(&standin_path(), DeviceType::Cuda, 99_999)
    }

    /// One device of each kind that the stand-in has.
    pub fn standins() -> Vec<Native> {
        [(DeviceType::Cuda, 0), (DeviceType::Rocm, 0), (DeviceType::Rocm, 1)]
            .map(|(device_type, of)| Native::standin(device_type, of))
            .into()
    }

    /// The GPUs that the installed drivers find, at most eight of each kind.
    pub fn installed() -> Vec<Native> {
        static LIBRARIES: LazyLock<[Option<Raw>; 2]> = LazyLock::new(|| {
            let load = |count: usize, rocm: bool, names: [&str; 2]| {
                // SAFETY: a GPU's driver, which the library has found before.
                let found = |name: &&str| unsafe { Library::new(*name) }.ok();
                (count > 0).then(|| {
                    let library = names.iter().find_map(found).expect("the driver's library");
                    Raw::load(Box::leak(Box::new(library)), rocm)
                })
            };
            [
                load(Device::cuda_count(), false, ["libcuda.so.1", "libcuda.so"]),
                load(Device::rocm_count(), true, ["libamdhip64.so.7", "libamdhip64.so.6"]),
            ]
        });
        let [cuda, rocm] = &*LIBRARIES;
        let of =
            |kind: &str, raw: &'static Option<Raw>, open: fn(usize) -> bowstring::Result<Device>, count| {
                let device = |i: usize| {
                    let shared = open(i).expect("the runtime has counted it");
                    // Tests look at limits and counters, and run side by side, so each gets a handle of its
                    // own.
                    let device = witnessed(separate(&shared).expect("a handle more"));
                    let raw = raw.as_ref().expect("where there are devices");
                    Native { name: format!("{kind}:{i}"), device, raw, standin: None }
                };
                // Eight devices suffice; an installed stand-in reports very many.
                (0..usize::min(count, 8)).map(device).collect::<Vec<_>>()
            };
        let mut all = of("cuda", cuda, Device::cuda, Device::cuda_count());
        all.extend(of("rocm", rocm, Device::rocm, Device::rocm_count()));
        all
    }

    /// The stand-in's devices, and the installed ones.
    pub fn all() -> Vec<Native> {
        Native::standins().into_iter().chain(Native::installed()).collect()
    }

    /// Whether the functions are HIP's, not CUDA's.
    pub fn is_rocm(&self) -> bool {
        self.device.place().device_type == DeviceType::Rocm
    }

    fn ordinal(&self) -> i32 {
        self.device.place().device_id as i32
    }

    /// The context or device that is current on this thread.
    pub fn current(&self) -> usize {
        (self.raw.current)()
    }

    /// Makes a call as another library would, with the device current.
    pub fn raw<T>(&self, call: impl FnOnce(&Raw) -> T) -> T {
        (self.raw.make_current)(Some(self.ordinal()));
        let made = call(self.raw);
        (self.raw.make_current)(None);
        made
    }

    /// Returns the handle or address that a function of the runtime writes.
    pub fn made(&self, make: impl FnOnce(&Raw, *mut usize) -> Code) -> usize {
        let mut made = 0;
        assert_eq!(self.raw(|raw| make(raw, &mut made)), 0);
        made
    }

    /// A stream of another library, which does not wait for the legacy default stream.
    pub fn stranger(&self) -> usize {
        self.stranger_with(1)
    }

    /// A stream of another library with these flags.
    pub fn stranger_with(&self, flags: u32) -> usize {
        // SAFETY: the function writes a handle.
        self.made(|raw, stream| unsafe { (raw.stream)(stream, flags, 0) })
    }

    /// Calls `then` once, when another library's stream comes to it.
    pub fn call(&self, stream: usize, then: impl FnOnce() + Send + 'static) {
        let data = Box::into_raw(Box::new(Box::new(then) as Box<dyn FnOnce() + Send>)).cast();
        // SAFETY: `call_once` takes the box back, once.
        assert_eq!(self.raw(|raw| unsafe { (raw.call)(stream, call_once, data) }), 0);
    }

    /// An event of another library, recorded on its stream.
    pub fn recorded(&self, stream: usize) -> usize {
        // SAFETY: the functions write and take live handles.
        let event = self.made(|raw, event| unsafe { (raw.event)(event, 2) });
        // SAFETY: as above.
        assert_eq!(self.raw(|raw| unsafe { (raw.record)(event, stream) }), 0);
        event
    }

    /// Blocks another library's stream until the gate is opened.
    pub fn gate(&self, stream: usize) -> Gate {
        let gate = Gate::default();
        let data = Arc::into_raw(gate.0.clone()).cast_mut().cast();
        // SAFETY: `pass` takes the reference back, once.
        assert_eq!(self.raw(|raw| unsafe { (raw.call)(stream, pass, data) }), 0);
        gate
    }

    /// How many illegal actions the work on it has taken; 0 if only the stand-in could tell.
    pub fn faults(&self) -> u64 {
        // SAFETY: the function takes numbers.
        self.standin.map_or(0, |standin| unsafe { (standin.faults)(self.is_rocm().into(), self.ordinal()) })
    }

    /// Drops the device; fails if it leaves anything behind, or if work on it took an illegal action.
    pub fn close(self) {
        let Native { name, device, standin, .. } = self;
        let (rocm, ordinal) =
            (device.place().device_type == DeviceType::Rocm, device.place().device_id as i32);
        drop(device);
        let Some(standin) = standin else { return };
        for what in 0..3 {
            // Memory is freed later, on a stream's thread.
            // SAFETY: the function takes numbers.
            let alive = || unsafe { (standin.alive)(rocm.into(), ordinal, what) };
            let patience = std::time::Instant::now();
            while alive() > 0 && patience.elapsed().as_secs() < 60 {
                std::thread::yield_now();
            }
            assert_eq!(alive(), 0, "{name}: {}", ["allocations", "streams", "events"][what as usize]);
        }
        // SAFETY: the function takes numbers.
        assert_eq!(unsafe { (standin.faults)(rocm.into(), ordinal) }, 0, "{name}: see above");
    }
}

impl Standin {
    /// How many allocations, streams and events of a device are alive.
    pub fn alive(&self, place: Place) -> [u64; 3] {
        let rocm = place.device_type == DeviceType::Rocm;
        // SAFETY: the function takes numbers.
        [0, 1, 2].map(|what| unsafe { (self.alive)(rocm.into(), place.device_id as i32, what) })
    }

    /// How many illegal actions the work on a device has taken.
    pub fn faults(&self, place: Place) -> u64 {
        let rocm = place.device_type == DeviceType::Rocm;
        // SAFETY: the function takes numbers.
        unsafe { (self.faults)(rocm.into(), place.device_id as i32) }
    }

    /// How often this thread has called functions that wait for a device.
    pub fn blocking_calls(&self) -> u64 {
        // SAFETY: text that ends with a zero.
        BLOCKING.iter().map(|call| unsafe { (self.calls)(call.as_ptr()) }).sum()
    }

    /// Runs `make`. The streams that it makes sleep before each piece of work, for up to `micros`.
    pub fn slowed<T>(&self, micros: u64, make: impl FnOnce() -> T) -> T {
        // SAFETY: the function takes a number.
        unsafe { (self.delay)(micros) };
        let made = make();
        // SAFETY: as above.
        unsafe { (self.delay)(0) };
        made
    }

    /// From now on, this thread's `nth` call fails: of this function, or of any if `call` is `None`.
    pub fn fail_call(&self, call: Option<&str>, nth: u64, code: Code) {
        let call = call.map(|call| CString::new(call).expect("a name"));
        let call = call.as_ref().map_or(std::ptr::null(), |call| call.as_ptr());
        // SAFETY: text that ends with a zero, or none.
        unsafe { (self.fail)(call, nth, 1, code) }
    }

    /// Ends that; returns whether a call failed.
    pub fn stop(&self) -> bool {
        // SAFETY: the function takes nothing.
        unsafe { (self.stop_failing)() > 0 }
    }
}

/// Holds a stream back until it is opened or dropped.
#[derive(Default)]
pub struct Gate(Arc<(Mutex<bool>, Condvar)>);

impl Gate {
    pub fn open(&self) {
        *self.0.0.lock().unwrap() = true;
        self.0.1.notify_all();
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.open();
    }
}

unsafe extern "C" fn call_once(data: *mut c_void) {
    // SAFETY: from `Native::call`, once.
    let call = unsafe { Box::from_raw(data.cast::<Box<dyn FnOnce() + Send>>()) };
    call();
}

unsafe extern "C" fn pass(data: *mut c_void) {
    // SAFETY: from `Native::gate`, once.
    let gate = unsafe { Arc::from_raw(data.cast_const().cast::<(Mutex<bool>, Condvar)>()) };
    let (open, opened) = gate.deref();
    let mut is_open = open.lock().unwrap();
    while !*is_open {
        is_open = opened.wait(is_open).unwrap();
    }
}
