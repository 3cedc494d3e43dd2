//! The functions with which a test controls the stand-in: they make calls fail, slow down streams, and report
//! what the stand-in has seen.

use std::ffi::c_char;
use std::time::Duration;

use bowstring_sim::Injector;

use crate::calls::{CALLS, DELAY, INSIDE, text};
use crate::machine::Machine;
use crate::{Code, cuda, hip, profile};

fn machine(runtime: u32) -> &'static Machine {
    if runtime == 0 { cuda::machine() } else { hip::machine() }
}

/// From now on, this thread's call number `nth` (from 1) fails with `code`, and so do the `times - 1` calls
/// after it. If `call` is not null, only calls of that function count.
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

/// Ends what `standin_fail` began, and returns how many calls failed.
#[unsafe(no_mangle)]
pub extern "C" fn standin_stop_failing() -> u64 {
    CALLS.with_borrow_mut(Injector::stop_failing)
}

/// Returns how often this thread has called a function.
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

/// Returns the nanoseconds that this thread has spent in exported functions, waiting included.
#[unsafe(no_mangle)]
pub extern "C" fn standin_inside() -> u64 {
    INSIDE.get().as_nanos() as u64
}

/// Resets that time, and this thread's counts of calls.
#[unsafe(no_mangle)]
pub extern "C" fn standin_forget() {
    INSIDE.set(Duration::ZERO);
    CALLS.with_borrow_mut(Injector::forget_calls);
}

/// Calls `each` with the name of every function that this thread has called, and the number of calls.
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

/// Streams that this thread makes from now on sleep before each piece of work, for a random time of up to so
/// many microseconds.
#[unsafe(no_mangle)]
pub extern "C" fn standin_delay(micros: u64) {
    DELAY.set(Duration::from_micros(micros));
}

/// Sets the profiles that this thread sees from now on, and the name of every AMD GPU. Empty texts select the
/// defaults. Returns whether the profiles exist.
///
/// # Safety
///
/// Both must end with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn standin_be(profiles: *const c_char, gpu: *const c_char) -> bool {
    // SAFETY: the caller's promise.
    let [profiles, gpu] = [profiles, gpu].map(|name| unsafe { text(name) }.unwrap_or_default());
    profile::be(&profiles, &gpu)
}

/// Sets the bytes of memory of a device. Runtime 0 is CUDA, 1 is HIP.
#[unsafe(no_mangle)]
pub extern "C" fn standin_capacity(runtime: u32, device: i32, bytes: usize) {
    machine(runtime).set_capacity(device, bytes);
}

/// Returns how many objects of a device are alive: 0 allocations, 1 streams, 2 events. Runtime 0 is CUDA, 1
/// is HIP.
#[unsafe(no_mangle)]
pub extern "C" fn standin_alive(runtime: u32, device: i32, what: u32) -> u64 {
    machine(runtime).alive(device)[what as usize % 3] as u64
}

/// Returns how many illegal actions the work on a device has taken; each was written to standard error.
#[unsafe(no_mangle)]
pub extern "C" fn standin_faults(runtime: u32, device: i32) -> u64 {
    machine(runtime).faults(device)
}
