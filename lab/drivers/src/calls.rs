//! Wraps every exported function: counts the call, times it, and makes it fail if a test wants that. All of
//! this state belongs to the calling thread, so that tests that run side by side do not affect each other.

use std::cell::{Cell, RefCell};
use std::ffi::{CStr, c_char};
use std::time::{Duration, Instant};

use bowstring_sim::Injector;

use crate::{Code, Outcome};

thread_local! {
    pub static CALLS: RefCell<Injector<Code>> = RefCell::default();
    pub static DELAY: Cell<Duration> = const { Cell::new(Duration::ZERO) };
    pub static INSIDE: Cell<Duration> = const { Cell::new(Duration::ZERO) };
    /// The code of the last call that failed, until somebody asks for it.
    pub static LAST_ERROR: Cell<Code> = const { Cell::new(0) };
}

/// The calls that read or set a thread's device or the modes of its calls. They fail only if a test names
/// them, because otherwise nothing could be freed.
const CURRENT: [&str; 6] = [
    "cuCtxGetCurrent",
    "cuCtxSetCurrent",
    "cuThreadExchangeStreamCaptureMode",
    "hipGetDevice",
    "hipSetDevice",
    "hipThreadExchangeStreamCaptureMode",
];

/// How much the streams that this thread makes are slowed down.
pub fn delay() -> Duration {
    DELAY.get()
}

/// Whether a lost device still answers a call, because the call does not use the device.
fn asks_nothing(call: &str) -> bool {
    let about = [
        "cuInit",
        "cuDriverGet",
        "cuDeviceGet",
        "cuDevicePrimary",
        "hipInit",
        "hipDriverGet",
        "hipRuntimeGet",
        "hipDeviceGet",
    ];
    let also = ["hipGetDeviceCount", "hipGetDevicePropertiesR0600"];
    CURRENT.contains(&call) || also.contains(&call) || about.iter().any(|about| call.starts_with(about))
}

/// Adds the time that `run` takes to this thread's.
fn timed(run: impl FnOnce() -> Outcome) -> Code {
    let start = Instant::now();
    let outcome = run();
    INSIDE.set(INSIDE.get() + start.elapsed());
    let code = outcome.err().unwrap_or(0);
    if code != 0 && code != crate::code::NOT_READY {
        LAST_ERROR.set(code);
    }
    code
}

/// The body of an exported function. `permitted` fails if the call may not be made here, `lost` if the
/// current device can no longer be used.
pub fn call(
    name: &'static str,
    permitted: impl FnOnce() -> Outcome,
    lost: impl FnOnce() -> Outcome,
    run: impl FnOnce() -> Outcome,
) -> Code {
    timed(|| {
        permitted()?;
        CALLS.with_borrow_mut(|calls| calls.enter(name, &CURRENT))?;
        if !asks_nothing(name) {
            lost()?;
        }
        run()
    })
}

/// Like [`call`], for a function that has its effect even if it fails: what it frees is gone.
pub fn call_anyway(
    name: &'static str,
    permitted: impl FnOnce() -> Outcome,
    lost: impl FnOnce() -> Outcome,
    run: impl FnOnce() -> Outcome,
) -> Code {
    timed(|| {
        permitted()?;
        let injected = CALLS.with_borrow_mut(|calls| calls.enter(name, &CURRENT));
        run().and(injected).and_then(|()| lost())
    })
}

/// Writes a result to the caller's memory.
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

/// Copies text that a caller passed.
///
/// # Safety
///
/// `text` must be null or end with a zero.
pub unsafe fn text(text: *const c_char) -> Option<String> {
    // SAFETY: the caller's promise.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
}
