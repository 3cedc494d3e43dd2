//! What a device was given to run, and how long that took.

use std::time::Duration;

/// An image that a GPU's runtime has loaded, once in the life of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadedImage {
    /// The family of its kernels.
    pub family: &'static str,
    /// What it is called: on CUDA the one kernel in it, which the driver compiles now or finds in its cache on disk; on ROCm
    /// the family, all of which is machine code already.
    pub name: &'static str,
    /// How long the runtime took to load it.
    pub time: Duration,
}
