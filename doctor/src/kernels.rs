//! Loads every kernel. NVIDIA's driver compiles each kernel at its first use, so the times here are those
//! that first uses cost.

use std::time::Instant;

use bowstring::internals::{self, Takes};
use bowstring::{Device, Error, Result};
use bowstring_kernels::every_entry;
use bowstring_kernels::target::AnyEntry;

/// The kernels loaded so far, and their costs.
#[derive(Clone, Debug, Default)]
pub(super) struct Kernels {
    pub loaded: usize,
    pub of: usize,
    /// Each image's name and the seconds that it took to load. An image is a kernel on CUDA, and a family of
    /// kernels on ROCm.
    pub images: Vec<(&'static str, f64)>,
    /// Each kernel's name, and the registers and memory that a lane of it takes.
    pub takes: Vec<(&'static str, Takes)>,
}

impl Kernels {
    pub fn seconds(&self) -> f64 {
        self.images.iter().map(|(_, seconds)| seconds).sum()
    }

    /// The kernels that had too few registers.
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

/// Loads all kernels until the time is over. `None` if a device runs kernels without loading any.
pub(super) fn load(
    device: &Device,
    until: Instant,
    note: &dyn Fn(&str, usize, usize),
) -> (Option<Kernels>, Result<(), Error>) {
    let Some(architecture) = internals::architecture(device) else { return (None, Ok(())) };
    let all: Vec<&dyn AnyEntry> =
        every_entry().filter(|entry| entry.makers().include(architecture)).collect();
    let (mut found, mut outcome) = (Kernels { of: all.len(), ..Kernels::default() }, Ok(()));
    for entry in all {
        if Instant::now() >= until {
            break;
        }
        note(entry.name(), found.loaded, found.of);
        match internals::load(device, entry.family(), entry.name()) {
            Ok(takes) => found.takes.extend(takes.map(|takes| (entry.name(), takes))),
            Err(error) => {
                outcome = Err(error);
                break;
            }
        }
        found.loaded += 1;
    }
    found.images =
        device.images_loaded().iter().map(|image| (image.name, image.time.as_secs_f64())).collect();
    (Some(found), outcome)
}
