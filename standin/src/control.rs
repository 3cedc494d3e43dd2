//! What a test can ask of the stand-in: to fail calls, to be slow, and what it has seen. Failures and counts are of the
//! calling thread, so that tests that run side by side do not meet.

use std::cell::{Cell, RefCell};
use std::ffi::{CStr, c_char};
use std::time::{Duration, Instant};

use bowstring_sim::Injector;

use crate::machine::Machine;
use crate::{Code, Outcome, cuda, hip};

thread_local! {
    static CALLS: RefCell<Injector<Code>> = RefCell::default();
    static DELAY: Cell<Duration> = const { Cell::new(Duration::ZERO) };
    static INSIDE: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// What says which device a thread is at: it fails only where it is named, for what is to be freed then cannot be.
const CURRENT: [&str; 4] = ["cuCtxGetCurrent", "cuCtxSetCurrent", "hipGetDevice", "hipSetDevice"];

/// How slow a stream is that this thread makes.
pub fn delay() -> Duration {
    DELAY.get()
}

/// Whether a call is one that a device that is lost still answers: those that ask nothing of it.
fn asks_nothing(call: &str) -> bool {
    let about = [
        "cuInit",
        "cuDriverGet",
        "cuDeviceGet",
        "cuDevicePrimary",
        "hipInit",
        "hipDriverGet",
        "hipDeviceGet",
    ];
    let also = ["hipGetDeviceCount", "hipGetDevicePropertiesR0600"];
    CURRENT.contains(&call) || also.contains(&call) || about.iter().any(|about| call.starts_with(about))
}

/// Counts the time that this thread spends in here.
fn timed(run: impl FnOnce() -> Outcome) -> Code {
    let start = Instant::now();
    let outcome = run();
    INSIDE.set(INSIDE.get() + start.elapsed());
    outcome.err().unwrap_or(0)
}

/// An exported function's body. `lost` says whether the device that is current is.
pub fn call(name: &'static str, lost: impl FnOnce() -> Outcome, run: impl FnOnce() -> Outcome) -> Code {
    timed(|| {
        CALLS.with_borrow_mut(|calls| calls.enter(name, &CURRENT))?;
        if !asks_nothing(name) {
            lost()?;
        }
        run()
    })
}

/// The same, of one that does what it does also where it fails: what is freed is gone.
pub fn call_anyway(
    name: &'static str,
    lost: impl FnOnce() -> Outcome,
    run: impl FnOnce() -> Outcome,
) -> Code {
    timed(|| {
        let injected = CALLS.with_borrow_mut(|calls| calls.enter(name, &CURRENT));
        run().and(injected).and_then(|()| lost())
    })
}

/// Writes a result where the caller wants it.
///
/// # Safety
///
/// `to` must be null or writable.
pub unsafe fn give<T>(to: *mut T, value: T) -> Outcome {
    if to.is_null() {
        return Err(crate::code::INVALID_VALUE);
    }
    // SAFETY: the caller's promise.
    unsafe { to.write(value) };
    Ok(())
}

/// Text that a caller passed.
///
/// # Safety
///
/// `text` must be null or end with a zero.
pub unsafe fn text(text: *const c_char) -> Option<String> {
    // SAFETY: the caller's promise.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
}

fn machine(runtime: u32) -> &'static Machine {
    if runtime == 0 { cuda::machine() } else { hip::machine() }
}

/// From now on, call number `nth` (from 1) that this thread makes fails with `code`, and `times - 1` more after it; with
/// `call`, only calls of that function count.
///
/// # Safety
///
/// `call` must be null or end with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn standin_fail(call: *const c_char, nth: u64, times: u64, code: Code) {
    // SAFETY: the caller's promise.
    let call = unsafe { text(call) };
    CALLS.with_borrow_mut(|calls| calls.fail(call, nth, times, code));
}

/// Ends that, and says how many calls failed.
#[unsafe(no_mangle)]
pub extern "C" fn standin_stop_failing() -> u64 {
    CALLS.with_borrow_mut(Injector::stop_failing)
}

/// How often this thread has called a function.
///
/// # Safety
///
/// `call` must end with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn standin_calls(call: *const c_char) -> u64 {
    // SAFETY: the caller's promise.
    let call = unsafe { text(call) }.unwrap_or_default();
    CALLS.with_borrow(|calls| calls.calls().get(call.as_str()).copied().unwrap_or(0))
}

/// How many nanoseconds this thread has spent in exported functions, waiting included.
#[unsafe(no_mangle)]
pub extern "C" fn standin_inside() -> u64 {
    INSIDE.get().as_nanos() as u64
}

/// Forgets how long that was, and what this thread has called.
#[unsafe(no_mangle)]
pub extern "C" fn standin_forget() {
    INSIDE.set(Duration::ZERO);
    CALLS.with_borrow_mut(Injector::forget_calls);
}

/// Tells `each` the name of every function that this thread has called, and how often.
///
/// # Safety
///
/// `each` must take what is in `data`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn standin_each_call(
    each: unsafe extern "C" fn(*const u8, usize, u64, *mut std::ffi::c_void),
    data: *mut std::ffi::c_void,
) {
    for (name, times) in CALLS.with_borrow(|calls| calls.calls().clone()) {
        // SAFETY: the caller's promise.
        unsafe { each(name.as_ptr(), name.len(), times, data) };
    }
}

/// Streams that this thread makes from now on sleep before each piece of work, up to so many microseconds.
#[unsafe(no_mangle)]
pub extern "C" fn standin_delay(micros: u64) {
    DELAY.set(Duration::from_micros(micros));
}

/// How much of a device is alive: 0 allocations, 1 streams, 2 events. Runtime 0 is CUDA, 1 is HIP.
#[unsafe(no_mangle)]
pub extern "C" fn standin_alive(runtime: u32, device: i32, what: u32) -> u64 {
    machine(runtime).alive(device)[what as usize % 3] as u64
}

/// How many things work on a device did that it may not; each was written to standard error.
#[unsafe(no_mangle)]
pub extern "C" fn standin_faults(runtime: u32, device: i32) -> u64 {
    machine(runtime).faults(device)
}
