//! Compute kernels for Apache Arrow device arrays.
//!
//! In: arrays over the Arrow C device interface, arrow-rs arrays, on CPU, CUDA or ROCm memory. Out: new device arrays.
//! See `DESIGN.md` for the layers.

#![deny(unsafe_code)]

pub mod array;
pub mod compute;
mod cpu;
pub mod device;
mod error;
pub mod exchange;
pub mod ffi;
mod gpu;
mod pass;
mod transfer;

pub use array::{Array, Batch};
pub use device::{Device, Stream};
pub use error::{Error, Result};
pub use pass::Pending;

/// Handles go to any thread, and several may use one at once; what is still to come goes to any thread.
const _: () = {
    const fn goes_to_any_thread<T: Send>() {}
    const fn used_by_any_thread<T: Send + Sync>() {}
    used_by_any_thread::<Array>();
    used_by_any_thread::<Batch>();
    used_by_any_thread::<Device>();
    used_by_any_thread::<Stream>();
    used_by_any_thread::<compute::Selection>();
    goes_to_any_thread::<Pending<Array>>();
    goes_to_any_thread::<Pending<Batch>>();
};

/// The README's example is compiled and run with the documentation's.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
