//! What every exported function goes through: its call is counted, timed, and fails where a test wants it to. All of that
//! is of the calling thread, so that tests that run side by side do not meet.

use std::cell::{Cell, RefCell};
use std::ffi::{CStr, c_char};
use std::time::{Duration, Instant};

use bowstring_sim::Injector;

use crate::{Code, Outcome};

thread_local! {
    pub static CALLS: RefCell<Injector<Code>> = RefCell::default();
    pub static DELAY: Cell<Duration> = const { Cell::new(Duration::ZERO) };
    pub static INSIDE: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// The calls that say which device a thread is at, and what it may call. They fail only if a test names them:
/// otherwise nothing could be freed then.
const CURRENT: [&str; 6] = [
    "cuCtxGetCurrent",
    "cuCtxSetCurrent",
    "cuThreadExchangeStreamCaptureMode",
    "hipGetDevice",
    "hipSetDevice",
    "hipThreadExchangeStreamCaptureMode",
];

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
        "hipRuntimeGet",
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

/// An exported function's body. `permitted` says whether it may be called here, `lost` whether the device
/// that is current is.
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

/// The same, of one that does what it does also where it fails: what is freed is gone.
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
