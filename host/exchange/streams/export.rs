//! Exports iterators as C streams. Errors are reported as a code and, on request, as a message. A panic is an
//! error that ends the stream. A recursive call from inside an answer is also an error: an iterator may not
//! read the stream that is made of it.

use std::any::Any;
use std::cell::UnsafeCell;
use std::ffi::{CString, c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::{NonNull, null, null_mut};

use arrow_schema::{Field, Fields};

use crate::array::{Batches, DeviceArray, DeviceBatch, Place, nesting};
use crate::device::sync::atomic::{AtomicU8, Ordering};
use crate::exchange::export::{device_array, host_array, host_rows, rows, unwritable};
use crate::ffi::{
    ArrowArray, ArrowArrayStream, ArrowDeviceArray, ArrowDeviceArrayStream, DeviceType, FFI_ArrowSchema,
};
use crate::{Error, Result};

pub(in crate::exchange) const EIO: c_int = 5;
const ENOMEM: c_int = 12;
pub(in crate::exchange) const EINVAL: c_int = 22;
const ENOSYS: c_int = 38;

/// The target of a stream's `private_data`.
struct Exported {
    /// [`IDLE`], [`ANSWERING`] or [`RELEASED`].
    state: AtomicU8,
    /// Exclusively owned by the thread that set the state to [`ANSWERING`].
    source: UnsafeCell<Source>,
}

const IDLE: u8 = 0;
const ANSWERING: u8 = 1;
/// Released during an answer, which frees the stream when it ends.
const RELEASED: u8 = 2;

/// The source of a stream's arrays, and its last error.
struct Source {
    schema: Box<dyn Fn() -> Result<FFI_ArrowSchema> + Send>,
    /// The next array, which must be of the stream's type; `None` at the end.
    next: Box<dyn FnMut() -> Result<Option<DeviceArray>> + Send>,
    /// The memory of all arrays; `None` for a plain stream, which says nothing of it: the host must read it.
    place: Option<Place>,
    /// The stream has ended, or its source has panicked.
    ended: bool,
    last_error: Option<CString>,
}

/// Exports arrays as a device stream. All arrays must have the field's type and be in one kind of memory. The
/// iterator is asked for the next array when the consumer asks, on the consumer's thread.
pub fn export_stream(
    field: Field,
    device_type: DeviceType,
    arrays: impl Iterator<Item = Result<DeviceArray>> + Send + 'static,
) -> ArrowDeviceArrayStream {
    device_stream(Source::of_arrays(field, Some(anywhere(device_type)), arrays), device_type)
}

/// Exports batches as a device stream; otherwise like [`export_stream`]. A batch with another schema, or in
/// other memory, is an error.
pub fn export_batches(batches: Batches) -> ArrowDeviceArrayStream {
    let place = batches.place();
    device_stream(Source::of_batches(batches, Some(place)), place.device_type)
}

/// Exports arrays in memory that the host can read as a plain stream; otherwise like [`export_stream`].
pub fn export_host_stream(
    field: Field,
    arrays: impl Iterator<Item = Result<DeviceArray>> + Send + 'static,
) -> ArrowArrayStream {
    host_stream(Source::of_arrays(field, None, arrays))
}

/// Exports batches in memory that the host can read as a plain stream; otherwise like [`export_batches`].
pub fn export_host_batches(batches: Batches) -> ArrowArrayStream {
    host_stream(Source::of_batches(batches, None))
}

impl Source {
    fn of_arrays(
        field: Field,
        place: Option<Place>,
        mut arrays: impl Iterator<Item = Result<DeviceArray>> + Send + 'static,
    ) -> Source {
        let data_type = field.data_type().clone();
        let next = move || match arrays.next().transpose()? {
            Some(array) if *array.data_type() != data_type => {
                Err(Error::invalid("export", format!("{} in a stream of {data_type}", array.data_type())))
            }
            array => Ok(array),
        };
        let schema = move || FFI_ArrowSchema::try_from(&field).map_err(unwritable);
        Source::new(Box::new(schema), Box::new(next), place)
    }

    fn of_batches(mut batches: Batches, place: Option<Place>) -> Source {
        let schema = batches.schema().clone();
        let fields = schema.fields().clone();
        let next = move || match batches.next().transpose()? {
            Some(batch) => rows_of(&batch, &fields, place.unwrap_or(Place::CPU)).map(Some),
            None => Ok(None),
        };
        let schema = move || FFI_ArrowSchema::try_from(schema.as_ref()).map_err(unwritable);
        Source::new(Box::new(schema), Box::new(next), place)
    }

    fn new(
        schema: Box<dyn Fn() -> Result<FFI_ArrowSchema> + Send>,
        next: Box<dyn FnMut() -> Result<Option<DeviceArray>> + Send>,
        place: Option<Place>,
    ) -> Source {
        Source { schema, next, place, ended: false, last_error: None }
    }

    fn pull(&mut self) -> Result<Option<DeviceArray>> {
        if self.ended {
            return Ok(None);
        }
        // Stays set if the source panics.
        self.ended = true;
        let array = nesting::read(|| (self.next)()).and_then(|array| array);
        self.ended = matches!(array, Ok(None));
        match (array?, self.place) {
            (Some(array), None) if array.place().device_type.host_accessible() => Ok(Some(array)),
            (Some(array), declared) => placed(array, declared.unwrap_or(Place::CPU)).map(Some),
            (None, _) => Ok(None),
        }
    }

    /// Runs a callback's body. Returns its result as a code, and keeps its error for `get_last_error`.
    fn answer(&mut self, body: impl FnOnce(&mut Source) -> Result<()>) -> c_int {
        let result = catch_unwind(AssertUnwindSafe(|| body(self)));
        let (code, message) = match result {
            Ok(Ok(())) => {
                self.last_error = None;
                return 0;
            }
            Ok(Err(error)) => (code(&error), error.to_string()),
            Err(panic) => (EIO, format!("panicked: {}", words(panic.as_ref()))),
        };
        self.last_error = CString::new(message.replace('\0', "\u{fffd}")).ok();
        code
    }
}

/// The place of a stream that declares only a kind of memory.
pub(in crate::exchange) fn anywhere(device_type: DeviceType) -> Place {
    Place { device_type, ..Place::CPU }
}

/// Converts a batch of a stream into a struct array. The batch must have these fields.
pub(in crate::exchange) fn rows_of(
    batch: &DeviceBatch,
    fields: &Fields,
    declared: Place,
) -> Result<DeviceArray> {
    if batch.schema().fields() != fields {
        let problem = format!("a batch of {} in a stream of {fields:?}", batch.schema());
        return Err(Error::invalid("export", problem));
    }
    match declared.device_type {
        DeviceType::Cpu => host_rows(batch),
        _ => rows(batch, numbered(declared, 0)),
    }
}

/// Returns an array in the kind of memory that the stream declares, or in memory that is reached from there.
pub(in crate::exchange) fn placed(array: DeviceArray, declared: Place) -> Result<DeviceArray> {
    let there = array.place();
    if there.device_type == declared.device_type {
        return Ok(array);
    }
    let here = numbered(declared, there.device_id.max(0));
    if !here.reaches(there) {
        let problem = format!("an array on {there} in a stream of {}", declared.device_type);
        return Err(Error::invalid("export", problem));
    }
    Ok(array.seen_from(here))
}

/// A stream's place, with a device's number if the stream declares none.
fn numbered(declared: Place, number: i64) -> Place {
    match declared {
        Place { device_type, device_id: -1 } if device_type != DeviceType::Cpu => {
            Place { device_type, device_id: number }
        }
        declared => declared,
    }
}

/// The closest `errno` value.
pub(in crate::exchange) fn code(error: &Error) -> c_int {
    match error {
        Error::OutOfMemory { .. } | Error::TooManyPairs { .. } => ENOMEM,
        Error::Unsupported { .. } => ENOSYS,
        Error::Driver { .. } | Error::NoDevice { .. } => EIO,
        Error::Producer { code, .. } if *code != 0 => *code,
        _ => EINVAL,
    }
}

/// The message of a panic.
pub(in crate::exchange) fn words(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}

fn boxed(source: Source) -> *mut c_void {
    let exported = Exported { state: AtomicU8::new(IDLE), source: UnsafeCell::new(source) };
    Box::into_raw(Box::new(exported)).cast()
}

fn device_stream(source: Source, device_type: DeviceType) -> ArrowDeviceArrayStream {
    ArrowDeviceArrayStream {
        device_type: device_type as i32,
        get_schema: Some(device_schema),
        get_next: Some(device_next),
        get_last_error: Some(device_last_error),
        release: Some(device_release),
        private_data: boxed(source),
    }
}

fn host_stream(source: Source) -> ArrowArrayStream {
    ArrowArrayStream {
        get_schema: Some(host_schema),
        get_next: Some(host_next),
        get_last_error: Some(host_last_error),
        release: Some(host_release),
        private_data: boxed(source),
    }
}

/// Runs `body` on the source of a stream. Returns `None` if the stream is released or is answering another
/// call.
///
/// # Safety
///
/// `private_data` is null or came from [`boxed`], and is not released by another thread meanwhile.
unsafe fn with_source<R>(private_data: *mut c_void, body: impl FnOnce(&mut Source) -> R) -> Option<R> {
    let exported = NonNull::new(private_data.cast::<Exported>())?;
    // SAFETY: the caller's promise: it is freed by `release`, and not while it is answering.
    let Exported { state, source } = unsafe { exported.as_ref() };
    state.compare_exchange(IDLE, ANSWERING, Ordering::Acquire, Ordering::Relaxed).ok()?;
    // SAFETY: no other thread gets here until the state changes.
    let answer = body(unsafe { &mut *source.get() });
    if state.compare_exchange(ANSWERING, IDLE, Ordering::Release, Ordering::Acquire).is_err() {
        // SAFETY: released meanwhile, which left it to this call.
        unsafe { free(exported) };
    }
    Some(answer)
}

/// # Safety
///
/// It came from [`boxed`] and is not used again.
unsafe fn free(exported: NonNull<Exported>) {
    // SAFETY: the caller's promise.
    let exported = unsafe { Box::from_raw(exported.as_ptr()) };
    // A panic must not unwind into C, and this function cannot report it.
    let _ = catch_unwind(AssertUnwindSafe(|| nesting::let_go(exported)));
}

unsafe fn get_schema(private_data: *mut c_void, out: *mut FFI_ArrowSchema) -> c_int {
    let answer = |source: &mut Source| {
        source.answer(|source| {
            let schema = (source.schema)()?;
            // SAFETY: the interface asks for room for a schema, of whatever contents.
            unsafe { out.write(schema) };
            Ok(())
        })
    };
    // SAFETY: the callbacks' contract.
    unsafe { with_source(private_data, answer) }.unwrap_or(EINVAL)
}

unsafe fn get_next<T>(
    private_data: *mut c_void,
    out: *mut T,
    end: T,
    give: fn(&DeviceArray) -> Result<T>,
) -> c_int {
    let answer = |source: &mut Source| {
        source.answer(|source| {
            let array = source.pull()?.map_or(Ok(end), |array| give(&array))?;
            // SAFETY: the interface asks for room for an array, of whatever contents.
            unsafe { out.write(array) };
            Ok(())
        })
    };
    // SAFETY: the callbacks' contract.
    unsafe { with_source(private_data, answer) }.unwrap_or(EINVAL)
}

unsafe fn get_last_error(private_data: *mut c_void) -> *const c_char {
    if private_data.is_null() {
        return null();
    }
    let answer = |source: &mut Source| source.last_error.as_ref().map_or(null(), |error| error.as_ptr());
    // SAFETY: the callbacks' contract.
    unsafe { with_source(private_data, answer) }
        .unwrap_or(c"the stream is being read: its producer may not ask for it".as_ptr())
}

unsafe fn release(private_data: &mut *mut c_void) {
    let Some(exported) = NonNull::new(std::mem::replace(private_data, null_mut()).cast::<Exported>()) else {
        return;
    };
    // SAFETY: from `boxed`, and freed below or by the call that it is answering, once.
    let before = unsafe { exported.as_ref() }.state.swap(RELEASED, Ordering::AcqRel);
    if before == IDLE {
        // SAFETY: as above.
        unsafe { free(exported) };
    }
}

unsafe extern "C" fn device_schema(stream: *mut ArrowDeviceArrayStream, out: *mut FFI_ArrowSchema) -> c_int {
    // SAFETY: the interface asks for a valid stream, here and below.
    unsafe { get_schema((*stream).private_data, out) }
}

unsafe extern "C" fn host_schema(stream: *mut ArrowArrayStream, out: *mut FFI_ArrowSchema) -> c_int {
    // SAFETY: as above.
    unsafe { get_schema((*stream).private_data, out) }
}

unsafe extern "C" fn device_next(stream: *mut ArrowDeviceArrayStream, out: *mut ArrowDeviceArray) -> c_int {
    // SAFETY: as above.
    unsafe { get_next((*stream).private_data, out, ArrowDeviceArray::empty(), device_array) }
}

unsafe extern "C" fn host_next(stream: *mut ArrowArrayStream, out: *mut ArrowArray) -> c_int {
    // SAFETY: as above.
    unsafe { get_next((*stream).private_data, out, ArrowArray::empty(), host_array) }
}

unsafe extern "C" fn device_last_error(stream: *mut ArrowDeviceArrayStream) -> *const c_char {
    // SAFETY: as above.
    unsafe { get_last_error((*stream).private_data) }
}

unsafe extern "C" fn host_last_error(stream: *mut ArrowArrayStream) -> *const c_char {
    // SAFETY: as above.
    unsafe { get_last_error((*stream).private_data) }
}

unsafe extern "C" fn device_release(stream: *mut ArrowDeviceArrayStream) {
    // SAFETY: the interface asks for null or a valid stream, here and below.
    if let Some(stream) = unsafe { stream.as_mut() } {
        stream.release = None;
        // SAFETY: as above.
        unsafe { release(&mut stream.private_data) };
    }
}

unsafe extern "C" fn host_release(stream: *mut ArrowArrayStream) {
    // SAFETY: as above.
    if let Some(stream) = unsafe { stream.as_mut() } {
        stream.release = None;
        // SAFETY: as above.
        unsafe { release(&mut stream.private_data) };
    }
}
