//! The kernels that a device has loaded, and the time that took.

use std::time::Duration;

/// An image that a GPU's runtime has loaded, once in the life of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadedImage {
    /// The family of its kernels.
    pub family: &'static str,
    /// Its name: on CUDA the one kernel in it, which the driver compiles or finds in its cache on disk; on
    /// ROCm the family, all of which is machine code already.
    pub name: &'static str,
    /// The time that the runtime took to load it.
    pub time: Duration,
}
