//! Every kernel, loaded: on NVIDIA's GPUs the driver compiles each at its first use, so this is what first uses will cost.

use std::time::Instant;

use bowstring_kernels::every_entry;
use bowstring_kernels::target::AnyEntry;

use crate::device::Takes;
use crate::{Device, Error, Result};

/// What came of it.
#[derive(Clone, Debug, Default)]
pub(super) struct Kernels {
    pub loaded: usize,
    pub of: usize,
    /// Each image's name, and how many seconds it took: an image is a kernel on CUDA, a family of them on ROCm.
    pub images: Vec<(&'static str, f64)>,
    /// Each kernel's name, and what a lane of it takes.
    pub takes: Vec<(&'static str, Takes)>,
}

impl Kernels {
    pub fn seconds(&self) -> f64 {
        self.images.iter().map(|(_, seconds)| seconds).sum()
    }

    /// The kernels for which there were too few registers.
    pub fn spilled(&self) -> impl Iterator<Item = &(&'static str, Takes)> {
        self.takes.iter().filter(|(_, takes)| takes.local_bytes > 0)
    }

    pub fn most_registers(&self) -> Option<&(&'static str, Takes)> {
        self.takes.iter().max_by_key(|(_, takes)| takes.registers)
    }

    pub fn slowest(&self) -> Option<&(&'static str, f64)> {
        self.images.iter().max_by(|a, b| a.1.total_cmp(&b.1))
    }
}

/// Loads all of them until the time is over. `None` where a device runs kernels without loading any.
pub(super) fn load(
    device: &Device,
    until: Instant,
    note: &dyn Fn(&str, usize, usize),
) -> (Option<Kernels>, Result<(), Error>) {
    let Some(gpu) = device.as_gpu() else { return (None, Ok(())) };
    let Some(architecture) = gpu.driver().architecture() else { return (None, Ok(())) };
    let all: Vec<&dyn AnyEntry> =
        every_entry().filter(|entry| entry.makers().include(architecture)).collect();
    let (mut found, mut outcome) = (Kernels { of: all.len(), ..Kernels::default() }, Ok(()));
    for entry in all {
        if Instant::now() >= until {
            break;
        }
        note(entry.name(), found.loaded, found.of);
        if let Err(error) = gpu.entry(entry.family(), entry.name()) {
            outcome = Err(error);
            break;
        }
        // A runtime that does not say it can still run the kernel.
        let takes = gpu.takes(entry.family(), entry.name()).ok().flatten();
        found.takes.extend(takes.map(|takes| (entry.name(), takes)));
        found.loaded += 1;
    }
    found.images =
        device.images_loaded().iter().map(|image| (image.name, image.time.as_secs_f64())).collect();
    (Some(found), outcome)
}
