//! The callback by which a caller ends work that it no longer wants.

use std::cell::Cell;
use std::ffi::c_void;
use std::time::Duration;

use bowstring::{Result, interruptible};

/// Says whether the thread's current work must end: 0 lets it continue, any other value ends it. It is called
/// on that thread, in the middle of a function of this library, and must not leave by `longjmp` or an
/// exception. Functions of this library that the callback calls do not ask it.
pub type BowstringInterrupted = Option<unsafe extern "C" fn(data: *mut c_void) -> i32>;

/// The callback that a thread's functions ask.
#[derive(Clone, Copy)]
struct Asked {
    interrupted: unsafe extern "C" fn(data: *mut c_void) -> i32,
    data: *mut c_void,
    every: Duration,
}

thread_local! {
    static ASKED: Cell<Option<Asked>> = const { Cell::new(None) };
    /// Whether the callback is running now on this thread.
    static ASKING: Cell<bool> = const { Cell::new(false) };
}

/// Replaces the callback that this thread's functions ask; `None` removes it.
pub(crate) fn set(interrupted: BowstringInterrupted, data: *mut c_void, every: Duration) {
    ASKED.set(interrupted.map(|interrupted| Asked { interrupted, data, every }));
}

/// Runs a function's body, and asks this thread's callback meanwhile.
pub(crate) fn within(body: impl FnOnce() -> Result<()>) -> Result<()> {
    let Some(Asked { every, .. }) = ASKED.get().filter(|_| !ASKING.get()) else { return body() };
    let ask = || {
        // It may have been replaced or removed meanwhile, by itself or by a producer.
        let Some(asked) = ASKED.get() else { return false };
        ASKING.set(true);
        // SAFETY: what the caller promised where it was set.
        let ends = unsafe { (asked.interrupted)(asked.data) } != 0;
        ASKING.set(false);
        ends
    };
    interruptible(every, ask, body)
}
