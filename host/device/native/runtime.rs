//! The differences between GPU runtimes, and a runtime's library.

use std::borrow::Cow;

use super::table::{Common, Table, Word};
use crate::device::driver::Outcome;
use crate::ffi::DeviceType;

/// A runtime's version: major and minor.
pub(in super::super) type Version = (i32, i32);

/// The parts of a driver that differ between CUDA and HIP.
///
/// # Safety
///
/// Every `unsafe` function may assume that the device is one of the library's, that it is current where a
/// call needs that, and that handles are live.
pub(in super::super) trait Runtime: Sized + Send + Sync + 'static {
    /// The type of its device memory, which also names the runtime in errors.
    const DEVICE: DeviceType;
    /// Its column of names in the table of functions.
    const COLUMN: usize;
    /// The names of its library, the preferred one first.
    const LIBRARIES: &'static [&'static str];
    /// The number of the attribute "memory is allocated in stream order".
    const ORDERED_MEMORY: i32;
    /// Whether a thread that waits for an event keeps others from asking for it meanwhile.
    const WAITS_LOCK_EVENTS: bool;
    /// The functions that only this runtime has.
    type Own: Table;

    /// Its name, for people.
    const NAME: &'static str;
    /// The name of the function that says its version, before it is initialised.
    const VERSION: &'static str;
    /// The first version of which everything that we call is there.
    const LEAST: Version;

    /// The version that such a number is.
    fn version_of(number: i32) -> Version;

    /// Whether to use memory in stream order on devices that have it.
    fn trusts_ordered_memory(version: Version) -> bool;

    /// The version of the component that loads images.
    fn version(found: &Found<Self>) -> Outcome<Version>;

    /// Opens a device of a runtime of this version; the error says why it cannot be used.
    unsafe fn open(found: &'static Found<Self>, device: i32, version: Version) -> Result<Self, String>;

    /// The number of lanes in a wave: 32 or 64.
    fn width(&self) -> u32;

    /// The architecture whose images it runs.
    fn architecture(&self) -> &'static str;

    /// Whether kernels may write pinned memory, also by atomics.
    fn kernels_write_pinned(&self) -> bool;

    /// The architecture and the runtime's version, for people.
    fn describe(&self) -> String;

    /// The likely reason why the runtime refused an image with a code and no message; empty if we do not
    /// know.
    fn why_refused(&self, code: i64) -> String;

    /// The device or context that must be current on a thread that makes calls.
    fn own(&self) -> Word;

    /// The device or context that is current on this thread.
    unsafe fn current(&self) -> Outcome<Word>;

    /// Makes a device or context current on this thread.
    unsafe fn make_current(&self, what: Word) -> Outcome;

    /// Whether the stream is this device's.
    unsafe fn check_stream(&self, stream: Word) -> Outcome;

    /// Queues a copy from the memory of device `other`.
    unsafe fn copy_from(&self, other: i32, to: Word, from: Word, bytes: usize, stream: Word) -> Outcome;

    /// Forgets that a call has failed on this thread. Since ROCm 7, HIP keeps the code of the last failed
    /// call until a program asks for it, and other libraries would take it for one of theirs.
    fn forget_error(_found: &Found<Self>) {}

    /// Allocates memory in stream order.
    unsafe fn alloc_ordered(&self, bytes: usize, stream: Word) -> Outcome<Word>;

    /// Keeps at most so many bytes of memory in stream order that is not in use. HIP keeps none.
    unsafe fn keep(&self, _bytes: usize) -> Outcome {
        Ok(())
    }

    /// Releases all memory in stream order that is not in use to the system.
    unsafe fn trim(&self) -> Outcome {
        Ok(())
    }

    /// The name of the image that contains an entry. Entries with the same image name share the image.
    fn image_name(&self, family: &'static str, entry: &'static str) -> &'static str;

    /// The image that contains an entry, in the library's format; `None` if none exists for this device.
    fn image(&self, family: &'static str, entry: &'static str) -> Option<Cow<'static, [u8]>>;

    /// The type of memory that the runtime's attributes describe; `None` if the runtime does not know the
    /// memory.
    fn memory(memory_type: u32, managed: bool) -> Option<DeviceType>;
}

/// A library that was loaded, and is never unloaded.
pub(in super::super) struct Found<R: Runtime> {
    /// The functions that both runtimes have.
    pub common: Common,
    /// The functions that only this runtime has.
    pub own: R::Own,
    /// Keeps the library loaded, so that the functions stay valid.
    pub(super) _library: libloading::Library,
}
