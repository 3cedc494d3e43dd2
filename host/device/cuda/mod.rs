//! CUDA: the parts of the driver that are specific to NVIDIA's driver library. The rest is `native`.
//!
//! Each device works in its primary context, as the CUDA runtime and the libraries over it do, so their
//! pointers, streams and events are valid here, and ours there. Each family has one image for all GPUs, in
//! PTX. The driver receives one entry of it at a time, compiles it for the GPU the first time that an
//! operation needs it, and keeps the result on disk.

#![allow(unsafe_code)]

use std::borrow::Cow;
use std::sync::LazyLock;

use super::Device;
use super::driver::Outcome;
use super::lock::lock;
use super::native::table::{Word, functions};
use super::native::{Found, INVALID_CONTEXT, Library, Opened, Runtime, Version, outcome, refused, too_old};
use super::sync::Mutex;
use crate::Result;
use crate::ffi::DeviceType;
use crate::images;

/// The architecture for which images are compiled; every later one runs them.
const ARCHITECTURE: &str = "sm_75";
/// The oldest driver that loads them, by its usual name.
pub const DRIVER: &str = "NVIDIA's driver 470";
/// The least compute capability that runs them.
const LEAST: (i32, i32) = (7, 5);
/// The numbers of a device's attributes: its compute capability.
pub(super) const CAPABILITY_MAJOR: i32 = 75;
pub(super) const CAPABILITY_MINOR: i32 = 76;
/// The numbers of the attributes that together say that kernels reach pinned memory at its host address.
pub(super) const MAPS_HOST_MEMORY: i32 = 19;
pub(super) const UNIFIED_ADDRESSING: i32 = 41;
/// The memory type of a pointer into host memory; all other types are a device's.
pub(super) const HOST_MEMORY: u32 = 1;

/// The numbers of a kind of memory and of a kind of place: a device's own memory, which does not move.
pub(super) const PINNED: i32 = 1;
pub(super) const ON_DEVICE: i32 = 1;
/// The number of the attribute of a pool: the bytes that it keeps when the host waits for the device.
pub(super) const RELEASE_THRESHOLD: i32 = 4;

/// The description of a pool: `CUmemPoolProps`.
#[repr(C)]
pub(super) struct PoolProperties {
    allocation: i32,
    /// The handles by which other processes could open the memory: none.
    handles: i32,
    location: i32,
    device: i32,
    /// Security attributes of Windows, a maximum, and what is reserved: zero is the default of each.
    rest: [u64; 9],
}

/// The names of the library, the preferred one first.
pub(super) const LIBRARIES: &[&str] = &["libcuda.so.1", "libcuda.so", "nvcuda.dll"];

functions! {
    /// The functions that only CUDA has: devices are current by context.
    Contexts {
        current: fn(*mut Word) = "cuCtxGetCurrent";
        make_current: fn(Word) = "cuCtxSetCurrent";
        primary: fn(*mut Word, i32) = "cuDevicePrimaryCtxRetain";
        of_stream: fn(Word, *mut Word) = "cuStreamGetCtx";
        copy_from: fn(Word, Word, Word, Word, usize, Word) = "cuMemcpyPeerAsync";
        pool: fn(*mut Word, *const PoolProperties) = "cuMemPoolCreate";
        set_pool: fn(Word, i32, *const u64) = "cuMemPoolSetAttribute";
        alloc: fn(*mut Word, usize, Word, Word) = "cuMemAllocFromPoolAsync";
        trim: fn(Word, usize) = "cuMemPoolTrimTo";
    }
}

/// The texts that start and end an entry in an image. Nothing else is between entries.
const ENTRY: &str = "\n.visible .entry ";
const END: &str = "\n}\n";

/// Extracts one entry of an image into an image of its own; `None` if the image has no such entry. Entries
/// share no code and no data. The driver compiles everything it receives, used or not, so a family takes up
/// to a hundred times longer than the one entry that an operation needs.
pub(super) fn alone(image: &str, entry: &str) -> Option<String> {
    let head = &image[..image.find(ENTRY)?];
    let start = image.find(&format!("{ENTRY}{entry}("))?;
    let end = start + image[start..].find(END)? + END.len();
    Some([head, &image[start..end]].concat())
}

/// A device of CUDA, with its primary context.
pub(super) struct Cuda {
    functions: &'static Contexts,
    device: i32,
    context: Word,
    capability: (i32, i32),
    version: Version,
    maps_host_memory: bool,
    /// The pool of our memory in stream order; `None` before its first use. The device's default pool is
    /// everybody's: what it keeps is not ours to decide.
    pool: Mutex<Option<Word>>,
}

static OPENED: LazyLock<Opened<Cuda>> = Opened::new();

impl Device {
    /// Opens NVIDIA GPU number `ordinal`, as CUDA counts them. [`Error::NoDevice`](crate::Error::NoDevice)
    /// says why it cannot be used.
    ///
    /// The driver compiles each kernel for the GPU the first time that an operation needs it, and keeps the
    /// result on disk.
    pub fn cuda(ordinal: usize) -> Result<Device> {
        cuda(Library::Installed, ordinal as i64)
    }

    /// The number of NVIDIA GPUs that CUDA finds; 0 without CUDA.
    pub fn cuda_count() -> usize {
        count(Library::Installed).unwrap_or(0)
    }
}

/// The functions that were found in a library, for tests of the table.
#[cfg(test)]
pub(super) fn found_at(path: &std::path::Path) -> &'static Found<Cuda> {
    OPENED.found(Library::At(path)).expect("a library with all functions")
}

/// The number of devices that a library finds.
pub(super) fn count(library: Library<'_>) -> Result<usize> {
    OPENED.count(library)
}

/// Opens a device of any library that has CUDA's functions.
pub(super) fn cuda(library: Library<'_>, number: i64) -> Result<Device> {
    OPENED.device(library, number)
}

/// The context that the CUDA runtime uses for the device. It is never released: arrays, and the libraries
/// that share it with us, may live as long as the process.
///
/// # Safety
///
/// The device must be one of the library's.
unsafe fn primary(functions: &Contexts, device: i32) -> Outcome<Word> {
    let mut context = 0;
    // SAFETY: the function writes a handle.
    outcome(functions.primary.name, unsafe { (functions.primary.call)(&mut context, device) })?;
    Ok(context)
}

impl Cuda {
    /// The pool of our memory in stream order, which is made at its first use and stays as long as the
    /// process.
    fn pool(&self) -> Outcome<Word> {
        let mut pool = lock(&self.pool);
        if let Some(pool) = *pool {
            return Ok(pool);
        }
        let (function, mut made) = (&self.functions.pool, 0);
        let (allocation, location) = (PINNED, ON_DEVICE);
        let properties =
            PoolProperties { allocation, handles: 0, location, device: self.device, rest: [0; 9] };
        // SAFETY: the function reads the properties, and writes a handle.
        outcome(function.name, unsafe { (function.call)(&mut made, &properties) })?;
        Ok(*pool.insert(made))
    }
}

// SAFETY of every block: as the trait's functions ask; results are written to locals of the type that the
// table says.
#[allow(clippy::undocumented_unsafe_blocks)]
impl Runtime for Cuda {
    const DEVICE: DeviceType = DeviceType::Cuda;
    const COLUMN: usize = 0;
    const LIBRARIES: &'static [&'static str] = LIBRARIES;
    const ORDERED_MEMORY: i32 = 115;
    const WAITS_LOCK_EVENTS: bool = false;
    type Own = Contexts;

    const NAME: &'static str = "CUDA";
    const VERSION: &'static str = "cuDriverGetVersion";
    const LEAST: Version = (11, 4);

    fn version_of(number: i32) -> Version {
        (number / 1000, number % 1000 / 10)
    }

    /// Before CUDA 11.5 a pool may hand out memory while its last use still runs on another stream
    /// (rapidsai/rmm pull request 993).
    fn trusts_ordered_memory(version: Version) -> bool {
        version >= (11, 5)
    }

    fn version(found: &Found<Cuda>) -> Outcome<Version> {
        let (function, mut version) = (&found.common.version, 0);
        outcome(function.name, unsafe { (function.call)(&mut version) })?;
        Ok(Cuda::version_of(version))
    }

    unsafe fn open(found: &'static Found<Cuda>, device: i32, version: Version) -> Result<Cuda, String> {
        let needed = images::architecture(ARCHITECTURE).map_or(version, |images| images.since);
        if version < needed {
            let needs = format!("CUDA {}.{} ({DRIVER})", needed.0, needed.1);
            return Err(too_old("the kernels' PTX", &needs, &format!("CUDA {}.{}", version.0, version.1)));
        }
        let attribute = |which| {
            let (function, mut value) = (&found.common.attribute, 0);
            let made = outcome(function.name, unsafe { (function.call)(&mut value, which, device) });
            made.map(|()| value).map_err(refused)
        };
        let capability = (attribute(CAPABILITY_MAJOR)?, attribute(CAPABILITY_MINOR)?);
        if capability < LEAST {
            let (major, minor) = capability;
            return Err(format!("compute capability {major}.{minor} is below {}.{}", LEAST.0, LEAST.1));
        }
        let maps_host_memory = attribute(MAPS_HOST_MEMORY)? != 0 && attribute(UNIFIED_ADDRESSING)? != 0;
        let context = unsafe { primary(&found.own, device) }.map_err(refused)?;
        let (functions, pool) = (&found.own, Mutex::new(None));
        Ok(Cuda { functions, device, context, capability, version, maps_host_memory, pool })
    }

    fn width(&self) -> u32 {
        32
    }

    fn architecture(&self) -> &'static str {
        ARCHITECTURE
    }

    /// "Atomic functions operating on mapped page-locked memory are not atomic from the point of view of the
    /// host or other devices" (CUDA's programming guide): they are for the device's own threads.
    fn kernels_write_pinned(&self) -> bool {
        self.maps_host_memory
    }

    fn describe(&self) -> String {
        let (capability, version) = (self.capability, self.version);
        format!("compute capability {}.{}, CUDA {}.{}", capability.0, capability.1, version.0, version.1)
    }

    fn why_refused(&self, _: i64) -> String {
        String::new()
    }

    fn own(&self) -> Word {
        self.context
    }

    unsafe fn current(&self) -> Outcome<Word> {
        let (function, mut context) = (&self.functions.current, 0);
        outcome(function.name, unsafe { (function.call)(&mut context) })?;
        Ok(context)
    }

    unsafe fn make_current(&self, what: Word) -> Outcome {
        let function = &self.functions.make_current;
        outcome(function.name, unsafe { (function.call)(what) })
    }

    unsafe fn check_stream(&self, stream: Word) -> Outcome {
        let (function, mut context) = (&self.functions.of_stream, 0);
        outcome(function.name, unsafe { (function.call)(stream, &mut context) })?;
        outcome(function.name, if context == self.context { 0 } else { INVALID_CONTEXT })
    }

    unsafe fn copy_from(&self, other: i32, to: Word, from: Word, bytes: usize, stream: Word) -> Outcome {
        let function = &self.functions.copy_from;
        unsafe {
            let theirs = primary(self.functions, other)?;
            outcome(function.name, (function.call)(to, self.context, from, theirs, bytes, stream))
        }
    }

    unsafe fn alloc_ordered(&self, bytes: usize, stream: Word) -> Outcome<Word> {
        let (function, pool, mut address) = (&self.functions.alloc, self.pool()?, 0);
        outcome(function.name, unsafe { (function.call)(&mut address, bytes, pool, stream) })?;
        Ok(address)
    }

    unsafe fn keep(&self, bytes: usize) -> Outcome {
        let (set, trim, pool) = (&self.functions.set_pool, &self.functions.trim, self.pool()?);
        unsafe {
            outcome(set.name, (set.call)(pool, RELEASE_THRESHOLD, &(bytes as u64)))?;
            outcome(trim.name, (trim.call)(pool, bytes))
        }
    }

    unsafe fn trim(&self) -> Outcome {
        let (function, pool) = (&self.functions.trim, self.pool()?);
        outcome(function.name, unsafe { (function.call)(pool, 0) })
    }

    fn image_name(&self, _: &'static str, entry: &'static str) -> &'static str {
        entry
    }

    fn image(&self, family: &'static str, entry: &'static str) -> Option<Cow<'static, [u8]>> {
        let text = std::str::from_utf8(images::find(family, ARCHITECTURE)?).ok()?;
        // CUDA expects a zero after the text.
        Some(Cow::Owned(format!("{}\0", alone(text, entry)?).into_bytes()))
    }

    fn memory(memory_type: u32, managed: bool) -> Option<DeviceType> {
        Some(match memory_type {
            _ if managed => DeviceType::CudaManaged,
            HOST_MEMORY => DeviceType::CudaHost,
            _ => DeviceType::Cuda,
        })
    }
}
