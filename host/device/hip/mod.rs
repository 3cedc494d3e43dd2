//! HIP: the parts of the driver that are specific to AMD's ROCm runtime. The rest is `native`. **Never run on
//! AMD hardware.**
//!
//! HIP differs from `cuda` in this: devices are current by number, not by context. An image is machine code
//! for one architecture, or for a generic one that covers several; the device's name for its architecture
//! selects it. The device reports how many lanes a wave has.

#![allow(unsafe_code)]

use std::borrow::Cow;
use std::ffi::CStr;
use std::sync::LazyLock;

use super::Device;
use super::driver::Outcome;
use super::native::table::{Word, functions};
use super::native::{Found, INVALID_CONTEXT, Library, Opened, Runtime, Version, outcome, refused, too_old};
use crate::Result;
use crate::ffi::DeviceType;
use crate::images::{self, ARCHITECTURES, Architecture};

/// The number of the attribute "lanes in a wave" of a device.
pub(super) const WAVE_WIDTH: i32 = 87;
/// The memory type of a pointer into host memory, since ROCm 6. 0 is memory that the runtime does not know.
pub(super) const HOST_MEMORY: u32 = 1;
/// The size of a device's properties (`hipDeviceProp_tR0600`), and the place of its architecture's name
/// (`gcnArchName`) in them.
pub(super) const PROPERTIES_BYTES: usize = 1472;
pub(super) const ARCHITECTURE_AT: usize = 1160;
pub(super) const ARCHITECTURE_BYTES: usize = 256;

/// The names of the library, the preferred one first.
pub(super) const LIBRARIES: &[&str] =
    &["libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so", "amdhip64_7.dll", "amdhip64_6.dll"];

functions! {
    /// The functions that only HIP has: devices are current by number.
    Devices {
        alloc: fn(*mut Word, usize, Word) = "hipMallocAsync";
        current: fn(*mut i32) = "hipGetDevice";
        make_current: fn(i32) = "hipSetDevice";
        of_stream: fn(Word, *mut i32) = "hipStreamGetDevice";
        copy_from: fn(Word, i32, Word, i32, usize, Word) = "hipMemcpyPeerAsync";
        properties: fn(*mut u8, i32) = "hipGetDevicePropertiesR0600";
        runtime_version: fn(*mut i32) = "hipRuntimeGetVersion";
        last_error: fn() = "hipGetLastError";
    }
}

/// A device of HIP, with the architecture whose images it runs.
pub(super) struct Hip {
    functions: &'static Devices,
    device: i32,
    width: u32,
    /// The device's own name for its architecture, without features.
    architecture: String,
    /// The architecture whose images it runs.
    images: &'static Architecture,
    /// The version of the library; `driver` is that of the driver below it.
    version: Version,
    driver: Version,
}

/// Decodes a version as HIP's functions return it.
fn version_of(number: i32) -> Version {
    (number / 10_000_000, number / 100_000 % 100)
}

/// The variable that selects `hipMallocAsync` if it is 1. In every ROCm so far, such memory may still be in
/// use on another stream, or not be usable yet (ROCm/rocm-systems issues 10943 and 11693, ROCm/clr 288). The
/// pool keeps freed memory, so plain allocation costs little.
const ASYNC_ALLOC: &str = "BOWSTRING_HIP_ASYNC_ALLOC";

/// A second handle of the default stream, which is 0 too.
const LEGACY_BY_NUMBER: Word = 1;

/// The codes with which the runtime refuses an image: hipErrorInvalidDeviceFunction, hipErrorInvalidImage,
/// hipErrorNoBinaryForGpu, hipErrorSharedObjectInitFailed.
const IMAGE_REFUSED: [i64; 4] = [98, 200, 209, 303];

static OPENED: LazyLock<Opened<Hip>> = Opened::new();

impl Device {
    /// Opens AMD GPU number `ordinal`, as HIP counts them. [`Error::NoDevice`](crate::Error::NoDevice) says
    /// why it cannot be used. This has never run on AMD hardware.
    ///
    /// It needs ROCm 6.4 or newer; for MI200 and MI300, 6.0. Memory is allocated by `hipMalloc`, kept and
    /// reused. With `BOWSTRING_HIP_ASYNC_ALLOC=1` in the environment it is allocated by `hipMallocAsync`,
    /// which in every ROCm so far may return memory that is still in use.
    pub fn rocm(ordinal: usize) -> Result<Device> {
        rocm(Library::Installed, ordinal as i64)
    }

    /// The number of AMD GPUs that HIP finds; 0 without ROCm.
    pub fn rocm_count() -> usize {
        count(Library::Installed).unwrap_or(0)
    }
}

/// The functions that were found in a library, for tests of the table.
#[cfg(test)]
pub(super) fn found_at(path: &std::path::Path) -> &'static Found<Hip> {
    OPENED.found(Library::At(path)).expect("a library with all functions")
}

/// The number of devices that a library finds.
pub(super) fn count(library: Library<'_>) -> Result<usize> {
    OPENED.count(library)
}

/// Opens a device of any library that has HIP's functions.
pub(super) fn rocm(library: Library<'_>, number: i64) -> Result<Device> {
    OPENED.device(library, number)
}

// SAFETY of every block: as the trait's functions ask; results are written to locals of the type that the
// table says.
#[allow(clippy::undocumented_unsafe_blocks)]
impl Runtime for Hip {
    const DEVICE: DeviceType = DeviceType::Rocm;
    const COLUMN: usize = 1;
    const LIBRARIES: &'static [&'static str] = LIBRARIES;
    const ORDERED_MEMORY: i32 = 88;
    /// `hipEventSynchronize` holds the lock that `hipEventQuery` takes.
    const WAITS_LOCK_EVENTS: bool = true;
    type Own = Devices;

    const NAME: &'static str = "HIP";
    const VERSION: &'static str = "hipRuntimeGetVersion";
    const LEAST: Version = (6, 0);

    fn version_of(number: i32) -> Version {
        version_of(number)
    }

    fn trusts_ordered_memory(_: Version) -> bool {
        std::env::var_os(ASYNC_ALLOC).is_some_and(|value| value == "1")
    }

    fn version(found: &Found<Hip>) -> Outcome<Version> {
        let (function, mut version) = (&found.own.runtime_version, 0);
        outcome(function.name, unsafe { (function.call)(&mut version) })?;
        Ok(version_of(version))
    }

    unsafe fn open(found: &'static Found<Hip>, device: i32, version: Version) -> Result<Hip, String> {
        let (function, mut driver) = (&found.common.version, 0);
        outcome(function.name, unsafe { (function.call)(&mut driver) }).map_err(refused)?;
        let (attribute, mut width) = (&found.common.attribute, 0);
        let made = unsafe { (attribute.call)(&mut width, WAVE_WIDTH, device) };
        outcome(attribute.name, made).map_err(refused)?;
        let width = u32::try_from(width).ok().filter(|width| [32, 64].contains(width));
        let width = width.ok_or("its waves have neither 32 nor 64 lanes")?;
        // With room for fields that later versions may add at the end.
        let (functions, mut properties) = (&found.own, vec![0u64; PROPERTIES_BYTES / 2]);
        let made = unsafe { (functions.properties.call)(properties.as_mut_ptr().cast(), device) };
        outcome(functions.properties.name, made).map_err(refused)?;
        let bytes: Vec<u8> = properties.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let name = CStr::from_bytes_until_nul(&bytes[ARCHITECTURE_AT..][..ARCHITECTURE_BYTES]);
        let name = name.unwrap_or_default().to_string_lossy();
        // After a colon come features, which our images do not depend on.
        let architecture = name.split(':').next().unwrap_or_default().to_owned();
        let known =
            || ARCHITECTURES.iter().flat_map(|images| images.gpus).copied().collect::<Vec<_>>().join(", ");
        let images = images::architecture_of(&architecture)
            .ok_or_else(|| format!("there are no kernels for {name:?}, only for {}", known()))?;
        if version < images.since {
            let (what, needed) = (format!("code for {}", images.name), images.since);
            let (needs, has) =
                (format!("ROCm {}.{}", needed.0, needed.1), format!("{}.{}", version.0, version.1));
            return Err(too_old(&what, &needs, &has));
        }
        Ok(Hip { functions, device, width, architecture, images, version, driver: version_of(driver) })
    }

    fn width(&self) -> u32 {
        self.width
    }

    fn architecture(&self) -> &'static str {
        self.images.name
    }

    /// PCIe has no atomics but addition, exchange and compare-exchange, and not every machine has those:
    /// others on memory of the host have no effect, and no error.
    fn kernels_write_pinned(&self) -> bool {
        false
    }

    fn describe(&self) -> String {
        let (version, driver) = (self.version, self.driver);
        let said = format!(
            "{}, images for {}, HIP {}.{}",
            self.architecture, self.images.name, version.0, version.1
        );
        match driver == version {
            true => said,
            false => format!("{said}, driver {}.{}", driver.0, driver.1),
        }
    }

    fn why_refused(&self, code: i64) -> String {
        if !IMAGE_REFUSED.contains(&code) {
            return String::new();
        }
        let ((major, minor), (first, second)) = (self.version, self.images.since);
        let mut said = format!(
            "HIP {major}.{minor} takes no code for {}; ROCm does from {first}.{second} on",
            self.images.name
        );
        if self.images.name.ends_with("-generic") {
            said += ", and AMD's drivers for Windows from June 2026 on";
        }
        said
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
        if stream <= LEGACY_BY_NUMBER {
            // It is any device's, and HIP 6.2 and later read the device through the number 1 as an address.
            return Ok(());
        }
        let (function, mut device) = (&self.functions.of_stream, 0);
        outcome(function.name, unsafe { (function.call)(stream, &mut device) })?;
        outcome(function.name, if device == self.device { 0 } else { INVALID_CONTEXT })
    }

    unsafe fn alloc_ordered(&self, bytes: usize, stream: Word) -> Outcome<Word> {
        let (function, mut address) = (&self.functions.alloc, 0);
        outcome(function.name, unsafe { (function.call)(&mut address, bytes, stream) })?;
        Ok(address)
    }

    unsafe fn copy_from(&self, other: i32, to: Word, from: Word, bytes: usize, stream: Word) -> Outcome {
        let function = &self.functions.copy_from;
        unsafe { outcome(function.name, (function.call)(to, self.device, from, other, bytes, stream)) }
    }

    fn forget_error(found: &Found<Hip>) {
        let _ = unsafe { (found.own.last_error.call)() };
    }

    fn image_name(&self, family: &'static str, _: &'static str) -> &'static str {
        family
    }

    fn image(&self, family: &'static str, _: &'static str) -> Option<Cow<'static, [u8]>> {
        images::find(family, self.images.name).map(Cow::Borrowed)
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
