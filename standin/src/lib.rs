//! Stands in for `libcuda` and `libamdhip64` where there is no GPU, so that tests run bowstring's drivers as they are.
//!
//! One library exports the functions of both that bowstring calls. Memory is host memory with red zones, spoilt when it is
//! freed; a stream is a queue with a thread of its own; an event is a point in one. CUDA's side runs the very PTX that it is
//! given, instruction by instruction; HIP's lays the arguments out as the code object's metadata says, and runs its very
//! instructions. Both know every allocation, and an access outside of all of them fails the stream, as on a GPU.
//!
//! The legacy default stream waits for all streams but those that were made not to, and they for it. Work that strays is the
//! last that its device does: from then on every call fails with the code of that.
//!
//! It is stricter than the real ones: no call works without its device being current on the thread, handles
//! that do not exist are errors, so are a stream and an event of different devices where the real ones forbid
//! it, and a call from a callback is a fault. Graphs are captured for no other purpose than to see who voids
//! the capture. There are `machine::DEVICES` devices, so that every test can have one to itself. What a test
//! wants to fail, or to know, it says with the functions in `control`; they act on the calling thread, or
//! name a device.
//!
//! The versions of CUDA and HIP that it can be taken for are in `profile`.

mod calls;
mod capture;
mod control;
mod cuda;
mod hip;
mod machine;
mod memory;
mod ordered;
mod profile;
mod streams;
#[cfg(test)]
mod tests;

use bowstring_sim::lock;

/// What every exported function returns.
type Code = i32;

/// What a call does, or the code that it fails with.
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
    pub const CAPTURE_IMPLICIT: Code = 906;
    pub const UNKNOWN: Code = 999;
}
