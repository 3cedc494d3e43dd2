//! Work that the caller no longer wants.

use std::cell::Cell;
use std::ffi::c_void;
use std::time::Duration;

use bowstring::{Result, interruptible};

/// Says whether the work that a thread is at shall end: 0 where it goes on. It is called on that thread, in the
/// middle of a function of this library, and must not leave it by `longjmp` or an exception. Functions of this
/// library that it calls itself ask nothing.
pub type BowstringInterrupted = Option<unsafe extern "C" fn(data: *mut c_void) -> i32>;

/// Whom a thread's functions ask.
#[derive(Clone, Copy)]
struct Asked {
    interrupted: unsafe extern "C" fn(data: *mut c_void) -> i32,
    data: *mut c_void,
    every: Duration,
}

thread_local! {
    static ASKED: Cell<Option<Asked>> = const { Cell::new(None) };
    /// Whether it is being asked now.
    static ASKING: Cell<bool> = const { Cell::new(false) };
}

/// Replaces the callback that this thread's functions ask; without one they ask nothing.
pub(crate) fn set(interrupted: BowstringInterrupted, data: *mut c_void, every: Duration) {
    ASKED.set(interrupted.map(|interrupted| Asked { interrupted, data, every }));
}

/// Runs a function's body, and asks meanwhile the callback that this thread has set.
pub(crate) fn within(body: impl FnOnce() -> Result<()>) -> Result<()> {
    let Some(asked) = ASKED.get().filter(|_| !ASKING.get()) else { return body() };
    let ask = move || {
        ASKING.set(true);
        // SAFETY: what the caller promised where it was set.
        let ends = unsafe { (asked.interrupted)(asked.data) } != 0;
        ASKING.set(false);
        ends
    };
    interruptible(asked.every, ask, body)
}
