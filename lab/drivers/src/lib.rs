//! Stands in for `libcuda` and `libamdhip64` on machines without a GPU, so that tests run bowstring's drivers
//! unchanged.
//!
//! One library exports all functions of both that bowstring calls. Memory is host memory with red zones,
//! overwritten when it is freed; a stream is a queue with a thread of its own; an event is a point in a
//! queue. CUDA's side interprets the PTX that it is given. HIP's side lays the arguments out as the code
//! object's metadata says, and interprets its instructions. Both know every allocation; an access outside of
//! all of them fails the stream, as on a GPU.
//!
//! The legacy default stream waits for all streams except those made with the flag against it, and they wait
//! for it. A stray access is the last action of its device: from then on every call fails with the code of
//! that fault.
//!
//! It is stricter than the real libraries. No call works unless its device is current on the thread. Handles
//! that do not exist are errors. So are a stream and an event of different devices if the real libraries
//! forbid that. A call from a callback is a fault. Graphs are captured only to detect the calls that void the
//! capture. The machine has `machine::DEVICES` devices, so that every test can have one to itself. The
//! functions in `control` let a test make calls fail and read counters; they act on the calling thread, or
//! name a device.
//!
//! The versions of CUDA and HIP that it can imitate are in `profile`.

mod calls;
mod capture;
mod control;
mod cuda;
mod faults;
mod hip;
mod image;
mod machine;
mod memory;
mod ordered;
mod pools;
mod profile;
mod streams;
#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicUsize, Ordering};

use bowstring_sim::lock;

/// The code that every exported function returns.
type Code = i32;

/// The result of a call, or the code that it fails with.
type Outcome<T = ()> = Result<T, Code>;

/// Codes that both runtimes share.
mod code {
    use super::Code;

    pub const INVALID_VALUE: Code = 1;
    pub const OUT_OF_MEMORY: Code = 2;
    pub const INVALID_DEVICE: Code = 101;
    pub const INVALID_CONTEXT: Code = 201;
    pub const NO_BINARY: Code = 209;
    pub const INVALID_IMAGE: Code = 200;
    pub const INVALID_PTX: Code = 218;
    pub const PTX_TOO_NEW: Code = 222;
    pub const INVALID_HANDLE: Code = 400;
    pub const NOT_FOUND: Code = 500;
    pub const NOT_READY: Code = 600;
    pub const ILLEGAL_ADDRESS: Code = 700;
    pub const NOT_PERMITTED: Code = 800;
    pub const NOT_SUPPORTED: Code = 801;
    pub const CAPTURE_UNSUPPORTED: Code = 900;
    pub const CAPTURE_INVALIDATED: Code = 901;
    pub const CAPTURE_UNJOINED: Code = 904;
    pub const CAPTURE_IMPLICIT: Code = 906;
    pub const CAPTURED_EVENT: Code = 907;
    pub const UNKNOWN: Code = 999;
}

/// A number that no other handle has, and that is no default stream's.
fn handle() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0x1000);
    NEXT.fetch_add(1, Ordering::Relaxed)
}
