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

/// The README's example is compiled and run with the documentation's.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
