//! The driver over a GPU runtime's own library, found on the user's machine at run time. This module has the
//! code that CUDA and HIP share, which is nearly all of it; their differences are in an implementation of
//! [`Runtime`] each, in `cuda` and `hip`.
//!
//! The one idea: each call makes the device current on its thread, and afterwards restores the device that
//! was current. So we leave no trace in the caller's threads, not even in the mode that says which calls are
//! allowed while a graph is captured, nor in HIP's last error. Nor do the caller's other libraries, which
//! share the device's primary context, disturb us.

#![allow(unsafe_code)]

mod codes;
mod modules;
mod open;
mod runtime;
pub(super) mod table;
#[cfg(test)]
mod tests;

use std::cell::Cell;
use std::ffi::{CStr, CString, c_void};
use std::ptr::null_mut;

use bowstring_kernels::target::BLOCK;

use super::driver::{Before, Driver, Launch, LoadFailure, Outcome, RawEntry, RawEvent, RawStream, Takes};
use super::loaded::LoadedImage;
use crate::array::Place;
use codes::{CAPTURE_IMPLICIT, INVALID_VALUE, NO_IMAGE, NOT_READY, SUCCESS, failure};
pub(super) use codes::{INVALID_CONTEXT, outcome, refused, too_old};
pub use codes::{is_too_old, is_unknown, refusal};
use modules::Modules;
pub(super) use open::{Library, Opened};
pub use open::{is_absent, why_not};
pub(super) use runtime::{Found, Runtime, Version};
use table::{Code, Common, Function, Word};

/// The flag for pinned memory that all devices share: `CU_MEMHOSTALLOC_PORTABLE`, `hipHostMallocPortable`.
const PORTABLE: u32 = 1;
/// The flag for a stream that does not wait for the legacy default stream.
const NON_BLOCKING: u32 = 1;
/// The default stream that synchronises with all blocking streams.
const LEGACY: RawStream = RawStream(0);
/// The default stream of the calling thread: `CU_STREAM_PER_THREAD`, `hipStreamPerThread`.
const PER_THREAD: RawStream = RawStream(2);
/// The flag for an event without a time, which is cheaper.
const NO_TIMING: u32 = 2;
/// The capture mode in which a thread may make any call while other threads capture graphs. Our calls are
/// never part of a graph. In the usual mode, an allocation or a query of an event fails then, and invalidates
/// the capture.
const RELAXED: i32 = 2;

thread_local! {
    /// The address of the library for which this thread is in the mode `RELAXED`, or 0.
    static RELAXED_FOR: Cell<usize> = const { Cell::new(0) };
}

/// The numbers of a pointer's attributes.
const MEMORY_TYPE: i32 = 2;
const IS_MANAGED: i32 = 8;
const DEVICE_ORDINAL: i32 = 9;
/// The numbers of an entry's attributes: registers per lane, and bytes of memory per lane that its compiler
/// had to add.
const REGISTERS: i32 = 4;
const LOCAL_BYTES: i32 = 3;
/// The numbers of the options of loading: the buffer for the compiler's error messages, and its size.
const ERROR_LOG: i32 = 5;
const ERROR_LOG_BYTES: i32 = 6;

/// A runtime's device: its library, its place among the library's devices, and the images it has loaded.
pub(super) struct Native<R: Runtime> {
    found: &'static Found<R>,
    runtime: R,
    ordinal: i32,
    name: String,
    ordered_memory: bool,
    modules: Modules,
}

impl<R: Runtime> Native<R> {
    fn functions(&self) -> &'static Common {
        &self.found.common
    }

    /// Runs a closure with the device current on this thread.
    ///
    /// # Safety
    ///
    /// As for the calls that `run` makes.
    unsafe fn current<T>(&self, run: impl FnOnce() -> Outcome<T>) -> Outcome<T> {
        let before = self.enter()?;
        let made = run();
        if made.is_err() {
            R::forget_error(self.found);
        }
        self.leave(before);
        made
    }

    /// Permits this thread all calls, and returns the previous mode if it must be restored. If the runtime
    /// refuses, the calls that follow report it.
    fn relax(&self) -> Option<(i32, usize)> {
        let own = std::ptr::from_ref(self.found).addr();
        let other = RELAXED_FOR.replace(own);
        if other == own {
            return None;
        }
        let mut mode = RELAXED;
        // SAFETY: the function exchanges a number.
        let made = unsafe { (self.functions().exchange_mode.call)(&mut mode) };
        if made != SUCCESS {
            R::forget_error(self.found);
            RELAXED_FOR.set(other);
            return None;
        }
        Some((mode, other))
    }

    fn put_back(&self, capture: Option<(i32, usize)>) {
        let Some((mut mode, other)) = capture else { return };
        // SAFETY: as in `relax`.
        let _ = unsafe { (self.functions().exchange_mode.call)(&mut mode) };
        RELAXED_FOR.set(other);
    }

    /// Makes the device current on this thread. Returns the previous one, if it was another.
    fn make_current(&self) -> Outcome<Option<usize>> {
        // SAFETY: the device is one of the library's.
        unsafe {
            let (own, before) = (self.runtime.own(), self.runtime.current()?);
            if own == before {
                return Ok(None);
            }
            self.runtime.make_current(own).map(|()| Some(before))
        }
    }

    /// Makes a call, and returns its code.
    ///
    /// # Safety
    ///
    /// As for the function that is called.
    unsafe fn code<F: Copy>(&self, function: &Function<F>, call: impl FnOnce(F) -> Code) -> Outcome<Code> {
        // SAFETY: the caller's promise.
        let code = unsafe { self.current(|| Ok(call(function.call))) }?;
        if ![SUCCESS, NOT_READY].contains(&code) {
            R::forget_error(self.found);
        }
        Ok(code)
    }

    /// Makes a call, and turns its code into an [`Outcome`].
    ///
    /// # Safety
    ///
    /// As for the function that is called.
    unsafe fn make<F: Copy>(&self, function: &Function<F>, call: impl FnOnce(F) -> Code) -> Outcome {
        // SAFETY: the caller's promise.
        unsafe { outcome(function.name, self.code(function, call)?) }
    }

    /// An attribute of an address; `None` if the runtime does not know the address.
    fn attribute_of(&self, address: usize, attribute: i32) -> Outcome<Option<u32>> {
        let (function, mut value) = (&self.functions().pointer, 0u32);
        // SAFETY: the attributes asked for are at most as wide as `value`; any address will do.
        match unsafe { self.code(function, |f| f((&raw mut value).cast(), attribute, address)) }? {
            INVALID_VALUE => Ok(None),
            code => outcome(function.name, code).map(|()| Some(value)),
        }
    }

    /// The image that contains an entry, loaded at its first use.
    ///
    /// # Safety
    ///
    /// The images that are built in must be whole.
    unsafe fn module(&self, family: &'static str, entry: &'static str) -> Result<Word, LoadFailure> {
        self.modules.get(family, self.runtime.image_name(family, entry), || {
            let image = self.runtime.image(family, entry);
            let image = image.ok_or_else(|| failure(self.functions().load.name, NO_IMAGE))?;
            // SAFETY: the caller's promise.
            unsafe { self.load(&image) }
        })
    }

    /// Loads an image. The failure's log is the runtime's own message, or ours if it wrote none.
    ///
    /// # Safety
    ///
    /// It must be whole: the library reads as far as the image itself says.
    unsafe fn load(&self, image: &[u8]) -> Result<Word, LoadFailure> {
        let (mut module, mut log) = (0, vec![0u8; 4096]);
        let mut options = [ERROR_LOG, ERROR_LOG_BYTES];
        let mut values = [log.as_mut_ptr().cast(), std::ptr::without_provenance_mut(log.len())];
        // SAFETY: the log has the bytes that the second option says; the rest is the caller's promise.
        let made = unsafe {
            self.make(&self.functions().load, |f| {
                f(&mut module, image.as_ptr().cast(), 2, options.as_mut_ptr(), values.as_mut_ptr())
            })
        };
        made.map(|()| module).map_err(|failure| {
            let said = CStr::from_bytes_until_nul(&log).unwrap_or_default();
            let said = said.to_string_lossy().trim().to_owned();
            let log = if said.is_empty() { self.runtime.why_refused(failure.code) } else { said };
            LoadFailure { failure, log }
        })
    }
}

type Then = Box<dyn FnOnce() + Send>;

unsafe extern "C" fn call_back(_stream: Word, _came_of_it: Code, data: *mut c_void) {
    // SAFETY: boxed in `Driver::call`, and a runtime calls this once.
    let then = unsafe { Box::from_raw(data.cast::<Then>()) };
    // A panic must not cross the runtime. Code that waits for the closure's effect sees that it did not
    // happen.
    let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(then));
}

// SAFETY of every block in this implementation: handles and memory are good by `Driver`'s own contract, which
// the caller keeps; results are written to locals of the type that the table says.
#[allow(clippy::undocumented_unsafe_blocks)]
impl<R: Runtime> Driver for Native<R> {
    fn place(&self) -> Place {
        Place { device_type: R::DEVICE, device_id: self.ordinal.into() }
    }

    fn enter(&self) -> Outcome<Before> {
        let capture = self.relax();
        match self.make_current() {
            Ok(current) => Ok(Before { current, capture }),
            Err(failure) => {
                R::forget_error(self.found);
                self.put_back(capture);
                Err(failure)
            }
        }
    }

    fn leave(&self, before: Before) {
        if let Some(current) = before.current {
            // The result of the call must reach its caller. A context that cannot be restored no longer
            // exists.
            let _ = unsafe { self.runtime.make_current(current) };
        }
        self.put_back(before.capture);
    }

    fn width(&self) -> u32 {
        self.runtime.width()
    }

    fn architecture(&self) -> Option<&'static str> {
        Some(self.runtime.architecture())
    }

    fn kernels_write_pinned(&self) -> bool {
        self.runtime.kernels_write_pinned()
    }

    fn name(&self) -> String {
        self.name.clone()
    }

    fn memory(&self) -> Outcome<Option<(usize, usize)>> {
        let (mut free, mut all) = (0, 0);
        unsafe { self.make(&self.functions().memory, |f| f(&mut free, &mut all)) }?;
        Ok(Some((free, all)))
    }

    unsafe fn alloc(&self, bytes: usize, stream: RawStream) -> Outcome<usize> {
        if self.ordered_memory {
            return unsafe { self.current(|| self.runtime.alloc_ordered(bytes, stream.0)) };
        }
        let mut address = 0;
        unsafe { self.make(&self.functions().alloc_now, |f| f(&mut address, bytes)) }?;
        Ok(address)
    }

    unsafe fn free(&self, address: usize, stream: RawStream) -> Outcome {
        if self.ordered_memory {
            return unsafe { self.make(&self.functions().free, |f| f(address, stream.0)) };
        }
        let passed = unsafe { self.synchronise(stream) };
        unsafe { self.make(&self.functions().free_now, |f| f(address)) }.and(passed)
    }

    fn free_waits(&self) -> bool {
        !self.ordered_memory
    }

    fn keep(&self, bytes: usize) -> Outcome {
        if !self.ordered_memory {
            return Ok(());
        }
        unsafe { self.current(|| self.runtime.keep(bytes)) }
    }

    fn trim(&self) -> Outcome {
        let trim = || unsafe { self.current(|| self.runtime.trim()) };
        self.ordered_memory.then(trim).unwrap_or(Ok(()))
    }

    unsafe fn alloc_pinned(&self, bytes: usize) -> Outcome<*mut u8> {
        let mut pointer = null_mut();
        unsafe {
            self.make(&self.functions().alloc_pinned, |f| f(&mut pointer, bytes, PORTABLE))?;
            // The runtime does not define the contents of fresh memory.
            pointer.cast::<u8>().write_bytes(0, bytes);
        }
        Ok(pointer.cast())
    }

    unsafe fn free_pinned(&self, pointer: *mut u8) -> Outcome {
        unsafe { self.make(&self.functions().free_pinned, |f| f(pointer.cast())) }
    }

    unsafe fn copy_in(&self, to: usize, from: *const u8, bytes: usize, stream: RawStream) -> Outcome {
        unsafe { self.make(&self.functions().copy_in, |f| f(to, from.cast(), bytes, stream.0)) }
    }

    unsafe fn copy_out(&self, to: *mut u8, from: usize, bytes: usize, stream: RawStream) -> Outcome {
        unsafe { self.make(&self.functions().copy_out, |f| f(to.cast(), from, bytes, stream.0)) }
    }

    unsafe fn copy(
        &self,
        to: usize,
        from: usize,
        device_id: i64,
        bytes: usize,
        stream: RawStream,
    ) -> Outcome {
        let same = device_id == i64::from(self.ordinal);
        match i32::try_from(device_id) {
            Ok(other) if !same => unsafe {
                self.current(|| self.runtime.copy_from(other, to, from, bytes, stream.0))
            },
            _ => unsafe { self.make(&self.functions().copy, |f| f(to, from, bytes, stream.0)) },
        }
    }

    unsafe fn fill(&self, to: usize, byte: u8, bytes: usize, stream: RawStream) -> Outcome {
        unsafe { self.make(&self.functions().fill, |f| f(to, byte, bytes, stream.0)) }
    }

    unsafe fn stream(&self, priority: i32) -> Outcome<RawStream> {
        let (functions, mut least, mut greatest, mut stream) = (self.functions(), 0, 0, 0);
        unsafe {
            self.make(&functions.priorities, |f| f(&mut least, &mut greatest))?;
            // More urgent priorities are lower numbers: the range runs from `greatest` up to `least`.
            let priority = priority.max(greatest).min(least);
            self.make(&functions.stream, |f| f(&mut stream, NON_BLOCKING, priority))?;
        }
        Ok(RawStream(stream))
    }

    unsafe fn destroy_stream(&self, stream: RawStream) -> Outcome {
        unsafe { self.make(&self.functions().destroy_stream, |f| f(stream.0)) }
    }

    unsafe fn check_stream(&self, stream: RawStream) -> Outcome {
        unsafe { self.current(|| self.runtime.check_stream(stream.0)) }
    }

    fn is_per_thread(&self, stream: RawStream) -> bool {
        stream == PER_THREAD
    }

    fn legacy_stream(&self) -> Option<RawStream> {
        Some(LEGACY)
    }

    unsafe fn is_captured(&self, stream: RawStream) -> Outcome<bool> {
        let (function, mut status) = (&self.functions().is_captured, 0);
        match unsafe { self.code(function, |f| f(stream.0, &mut status)) }? {
            CAPTURE_IMPLICIT => Ok(true),
            // A capture that was invalidated also lasts until it is ended.
            code => outcome(function.name, code).map(|()| status != 0),
        }
    }

    unsafe fn synchronise(&self, stream: RawStream) -> Outcome {
        unsafe { self.make(&self.functions().synchronise, |f| f(stream.0)) }
    }

    unsafe fn event(&self) -> Outcome<RawEvent> {
        let mut event = 0;
        unsafe { self.make(&self.functions().event, |f| f(&mut event, NO_TIMING))? };
        Ok(RawEvent(event))
    }

    unsafe fn destroy_event(&self, event: RawEvent) -> Outcome {
        unsafe { self.make(&self.functions().destroy_event, |f| f(event.0)) }
    }

    unsafe fn record(&self, event: RawEvent, stream: RawStream) -> Outcome {
        unsafe { self.make(&self.functions().record, |f| f(event.0, stream.0)) }
    }

    unsafe fn wait(&self, stream: RawStream, event: RawEvent) -> Outcome {
        unsafe { self.make(&self.functions().wait, |f| f(stream.0, event.0, 0)) }
    }

    unsafe fn query(&self, event: RawEvent) -> Outcome<bool> {
        let function = &self.functions().query;
        match unsafe { self.code(function, |f| f(event.0)) }? {
            NOT_READY => Ok(false),
            code => outcome(function.name, code).map(|()| true),
        }
    }

    unsafe fn synchronise_event(&self, event: RawEvent) -> Outcome {
        if R::WAITS_LOCK_EVENTS {
            // If there is no answer, the runtime waits.
            while let Ok(passed) = unsafe { self.query(event) } {
                if passed {
                    return Ok(());
                }
                std::thread::sleep(std::time::Duration::from_micros(20));
            }
        }
        unsafe { self.make(&self.functions().synchronise_event, |f| f(event.0)) }
    }

    unsafe fn call(&self, stream: RawStream, then: Then) -> Outcome {
        let data = Box::into_raw(Box::new(then));
        unsafe {
            let queued = self.make(&self.functions().call, |f| f(stream.0, call_back, data.cast(), 0));
            if queued.is_err() {
                drop(Box::from_raw(data));
            }
            queued
        }
    }

    unsafe fn entry(&self, family: &'static str, name: &'static str) -> Result<RawEntry, LoadFailure> {
        let module = unsafe { self.module(family, name) }?;
        let function = &self.functions().entry;
        let c_name = CString::new(name).map_err(|_| failure(function.name, INVALID_VALUE))?;
        let mut entry = 0;
        unsafe { self.make(function, |f| f(&mut entry, module, c_name.as_ptr()))? };
        Ok(RawEntry(entry))
    }

    unsafe fn takes(&self, entry: RawEntry) -> Outcome<Option<Takes>> {
        let attribute = |which| {
            let mut value = 0;
            unsafe { self.make(&self.functions().entry_attribute, |f| f(&mut value, which, entry.0)) }?;
            Ok(value as u32)
        };
        Ok(Some(Takes { registers: attribute(REGISTERS)?, local_bytes: attribute(LOCAL_BYTES)? }))
    }

    fn loaded(&self) -> Vec<LoadedImage> {
        self.modules.loaded()
    }

    unsafe fn launch(&self, launch: &Launch<'_>, stream: RawStream) -> Outcome {
        let mut words = launch.args.words();
        let mut arguments: Vec<*mut c_void> = words.iter_mut().map(|word| (&raw mut *word).cast()).collect();
        let arguments = arguments.as_mut_ptr();
        // `Pass` refuses more waves than fit.
        let blocks = launch.waves.div_ceil(u64::from(BLOCK / self.width())) as u32;
        unsafe {
            self.make(&self.functions().launch, |f| {
                f(launch.entry.0, blocks, 1, 1, BLOCK, 1, 1, 0, stream.0, arguments, null_mut())
            })
        }
    }

    unsafe fn classify(&self, address: usize) -> Outcome<Option<Place>> {
        let Some(memory_type) = self.attribute_of(address, MEMORY_TYPE)? else { return Ok(None) };
        let managed = self.attribute_of(address, IS_MANAGED)?.is_some_and(|managed| managed & 0xff != 0);
        let ordinal = self.attribute_of(address, DEVICE_ORDINAL)?.map_or(self.ordinal, |id| id as i32);
        let place = |device_type| Place { device_type, device_id: ordinal.into() };
        Ok(R::memory(memory_type, managed).map(place))
    }
}
