//! HIP: what AMD's ROCm runtime does its own way. The rest is `native`. **Never run on AMD hardware.**
//!
//! In the order of `cuda`: devices are current by number, not by context; an image is machine code for one architecture,
//! or for a generic one that stands for a family, and is chosen by the name that the device gives itself; waves have as
//! many lanes as the device says.

#![allow(unsafe_code)]

use std::borrow::Cow;
use std::ffi::CStr;
use std::sync::LazyLock;

use bowstring_images as images;

use super::Device;
use super::driver::Outcome;
use super::native::table::{Word, functions};
use super::native::{Found, INVALID_CONTEXT, Library, Opened, Runtime, outcome, refused};
use crate::Result;
use crate::ffi::DeviceType;

/// Lanes in a wave, as an attribute of a device.
pub(super) const WAVE_WIDTH: i32 = 87;
/// Kinds of a pointer's memory, since ROCm 6; 0 is memory that the runtime does not know.
pub(super) const HOST_MEMORY: u32 = 1;
/// The properties of a device, and where in them its architecture's name is: `hipDeviceProp_tR0600`, `gcnArchName`.
pub(super) const PROPERTIES_BYTES: usize = 1472;
pub(super) const ARCHITECTURE_AT: usize = 1160;
pub(super) const ARCHITECTURE_BYTES: usize = 256;

/// What the library is called, the preferred name first.
pub(super) const LIBRARIES: &[&str] =
    &["libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so", "amdhip64_7.dll", "amdhip64_6.dll"];

functions! {
    /// What only HIP has: devices that are current by number.
    Devices {
        current: fn(*mut i32) = "hipGetDevice";
        make_current: fn(i32) = "hipSetDevice";
        of_stream: fn(Word, *mut i32) = "hipStreamGetDevice";
        copy_from: fn(Word, i32, Word, i32, usize, Word) = "hipMemcpyPeerAsync";
        properties: fn(*mut u8, i32) = "hipGetDevicePropertiesR0600";
    }
}

/// A HIP device.
pub(super) struct Hip {
    functions: &'static Devices,
    device: i32,
    width: u32,
    /// What the device calls itself, features aside.
    architecture: String,
    /// Those of the images that it runs.
    images: &'static str,
}

static OPENED: LazyLock<Opened<Hip>> = Opened::new();

impl Device {
    /// AMD GPU number `ordinal`, as HIP counts them. [`Error::NoDevice`](crate::Error::NoDevice) says why there is none.
    /// This has never run on AMD hardware.
    pub fn rocm(ordinal: usize) -> Result<Device> {
        rocm(Library::Installed, ordinal as i64)
    }

    /// How many AMD GPUs HIP finds here; none where there is no ROCm.
    pub fn rocm_count() -> usize {
        count(Library::Installed).unwrap_or(0)
    }
}

/// What a library has, for tests of the table.
#[cfg(test)]
pub(super) fn found_at(path: &std::path::Path) -> &'static Found<Hip> {
    OPENED.found(Library::At(path)).expect("a library with all functions")
}

/// How many devices a library finds.
pub(super) fn count(library: Library<'_>) -> Result<usize> {
    OPENED.count(library)
}

/// A device of any library that has HIP's functions.
pub(super) fn rocm(library: Library<'_>, number: i64) -> Result<Device> {
    OPENED.device(library, number)
}

// SAFETY of every block: as the trait's functions ask; results are written to locals of the type that the table says.
#[allow(clippy::undocumented_unsafe_blocks)]
impl Runtime for Hip {
    const DEVICE: DeviceType = DeviceType::Rocm;
    const COLUMN: usize = 1;
    const LIBRARIES: &'static [&'static str] = LIBRARIES;
    const ORDERED_MEMORY: i32 = 88;
    type Own = Devices;

    unsafe fn open(found: &'static Found<Hip>, device: i32) -> Result<Hip, String> {
        let (attribute, mut width) = (&found.common.attribute, 0);
        let made = unsafe { (attribute.call)(&mut width, WAVE_WIDTH, device) };
        outcome(attribute.name, made).map_err(refused)?;
        let width = u32::try_from(width).ok().filter(|width| [32, 64].contains(width));
        let width = width.ok_or("its waves have neither 32 nor 64 lanes")?;
        // Room for what later versions may put behind.
        let (functions, mut properties) = (&found.own, vec![0u64; PROPERTIES_BYTES / 2]);
        let made = unsafe { (functions.properties.call)(properties.as_mut_ptr().cast(), device) };
        outcome(functions.properties.name, made).map_err(refused)?;
        let bytes: Vec<u8> = properties.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let name = CStr::from_bytes_until_nul(&bytes[ARCHITECTURE_AT..][..ARCHITECTURE_BYTES]);
        let name = name.unwrap_or_default().to_string_lossy();
        // Behind a colon are features, which our images do not depend on.
        let architecture = name.split(':').next().unwrap_or_default().to_owned();
        let images = images::architecture_of(&architecture)
            .map(|images| images.name)
            .ok_or_else(|| format!("there are no kernels for {name:?}"))?;
        Ok(Hip { functions, device, width, architecture, images })
    }

    fn width(&self) -> u32 {
        self.width
    }

    fn architecture(&self) -> &'static str {
        self.images
    }

    fn describe(&self, version: i32) -> String {
        let (major, minor) = (version / 10_000_000, version / 100_000 % 100);
        format!("{}, images for {}, HIP {major}.{minor}", self.architecture, self.images)
    }

    fn own(&self) -> Word {
        self.device as Word
    }

    unsafe fn current(&self) -> Outcome<Word> {
        let (function, mut device) = (&self.functions.current, 0);
        outcome(function.name, unsafe { (function.call)(&mut device) })?;
        Ok(device as Word)
    }

    unsafe fn make_current(&self, what: Word) -> Outcome {
        let function = &self.functions.make_current;
        outcome(function.name, unsafe { (function.call)(what as i32) })
    }

    unsafe fn check_stream(&self, stream: Word) -> Outcome {
        let (function, mut device) = (&self.functions.of_stream, 0);
        outcome(function.name, unsafe { (function.call)(stream, &mut device) })?;
        outcome(function.name, if device == self.device { 0 } else { INVALID_CONTEXT })
    }

    unsafe fn copy_from(&self, other: i32, to: Word, from: Word, bytes: usize, stream: Word) -> Outcome {
        let function = &self.functions.copy_from;
        unsafe { outcome(function.name, (function.call)(to, self.device, from, other, bytes, stream)) }
    }

    fn image_name(&self, family: &'static str, _: &'static str) -> &'static str {
        family
    }

    fn image(&self, family: &'static str, _: &'static str) -> Option<Cow<'static, [u8]>> {
        images::find(family, self.images).map(Cow::Borrowed)
    }

    fn memory(memory_type: u32, managed: bool) -> Option<DeviceType> {
        match memory_type {
            0 => None,
            // The format has no type for memory that ROCm manages; the device can use it as its own.
            HOST_MEMORY if !managed => Some(DeviceType::RocmHost),
            _ => Some(DeviceType::Rocm),
        }
    }
}
