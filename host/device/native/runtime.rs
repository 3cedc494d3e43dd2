//! What tells one GPU runtime from another, and its library.

use std::borrow::Cow;

use super::table::{Common, Table, Word};
use crate::device::driver::Outcome;
use crate::ffi::DeviceType;

/// A runtime's version: major and minor.
pub(in super::super) type Version = (i32, i32);

/// What one runtime does its own way.
///
/// # Safety
///
/// Every `unsafe` function may assume that the device is one of the library's, that it is current where a call needs that,
/// and that handles are live.
pub(in super::super) trait Runtime: Sized + Send + Sync + 'static {
    /// Its device memory's type; in an error, its name.
    const DEVICE: DeviceType;
    /// Its column of names in the table of functions.
    const COLUMN: usize;
    /// What its library is called, the preferred first.
    const LIBRARIES: &'static [&'static str];
    /// The number of the attribute "memory is allocated in stream order".
    const ORDERED_MEMORY: i32;
    /// What only it has.
    type Own: Table;

    /// Its name, for people.
    const NAME: &'static str;
    /// The name of the function that says its version, before it is initialised.
    const VERSION: &'static str;
    /// The first version of which everything that we call is there.
    const LEAST: Version;

    /// The version that such a number is.
    fn version_of(number: i32) -> Version;

    /// Whether memory in stream order is used where a device has it.
    fn trusts_ordered_memory(version: Version) -> bool;

    /// The version of what loads images.
    fn version(found: &Found<Self>) -> Outcome<Version>;

    /// Looks at a device of a runtime of this version; the error says why it cannot be used.
    unsafe fn open(found: &'static Found<Self>, device: i32, version: Version) -> Result<Self, String>;

    /// Lanes in a wave.
    fn width(&self) -> u32;

    /// The architecture whose images it runs.
    fn architecture(&self) -> &'static str;

    /// The architecture and the runtime's version, for people.
    fn describe(&self) -> String;

    /// Why the runtime may have refused an image, where it says so with nothing but a code; empty where we do
    /// not know.
    fn why_refused(&self, code: i64) -> String;

    /// What is to be current on a thread that calls.
    fn own(&self) -> Word;

    /// What is current on this thread.
    unsafe fn current(&self) -> Outcome<Word>;

    /// Makes it current on this thread.
    unsafe fn make_current(&self, what: Word) -> Outcome;

    /// Whether the stream is this device's.
    unsafe fn check_stream(&self, stream: Word) -> Outcome;

    /// A copy from another device's memory.
    unsafe fn copy_from(&self, other: i32, to: Word, from: Word, bytes: usize, stream: Word) -> Outcome;

    /// Gives the system back what the runtime keeps of memory in stream order.
    unsafe fn trim(&self) -> Outcome;

    /// What the image that has an entry is called: what has the same name is the same image.
    fn image_name(&self, family: &'static str, entry: &'static str) -> &'static str;

    /// That image, where there is one for this device, as the library wants it.
    fn image(&self, family: &'static str, entry: &'static str) -> Option<Cow<'static, [u8]>>;

    /// Which memory it is, where the runtime knows it.
    fn memory(memory_type: u32, managed: bool) -> Option<DeviceType>;
}

/// A library that was loaded, and is never unloaded.
pub(in super::super) struct Found<R: Runtime> {
    /// The functions that all runtimes have.
    pub common: Common,
    /// Those that only this one has.
    pub own: R::Own,
    /// Keeps the functions where they are.
    pub(super) _library: libloading::Library,
}
