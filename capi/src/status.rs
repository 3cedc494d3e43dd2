//! The status that functions return, and the reason of the last failure.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use bowstring::{Error, Result};

use crate::interrupt::{self, BowstringInterrupted};

/// The result of a function. The failures are sorted by who must act.
#[repr(i32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BowstringStatus {
    /// The call succeeded and has written its results.
    Ok = 0,
    /// The arguments are NULL, or do not fit together.
    Invalid = 1,
    /// The arguments are valid, but this library does not support the operation on that device.
    Unsupported = 2,
    /// A producer's struct violated the Arrow C data interface. The struct has been released.
    OutOfSpec = 3,
    /// Memory ran out, or the pool's limit was reached.
    OutOfMemory = 4,
    /// An index points outside of what it indexes.
    IndexOutOfBounds = 5,
    /// A value does not fit the type it was cast to, and the cast was strict.
    Cast = 6,
    /// A call into a device runtime failed, or the runtime rejected the kernels.
    Driver = 7,
    /// The machine has no such device.
    NoDevice = 8,
    /// A foreign stream failed; bowstring_last_error has its code and message.
    Producer = 9,
    /// An error that no other status describes.
    Other = 10,
    /// A bug in this library. Objects that the call worked on may be incomplete; the library remains usable.
    Panic = 11,
    /// A row of an expression overflows or divides by zero; bowstring_last_error names the expression and the
    /// row.
    Evaluation = 12,
    /// The callback of bowstring_set_interrupt ended the call.
    Interrupted = 13,
}

thread_local! {
    static LAST: RefCell<CString> = RefCell::new(CString::default());
}

/// Returns the reason of this thread's last failed call, or an empty string if none has failed. The text is
/// valid until the thread's next failing call. Never NULL.
#[unsafe(no_mangle)]
pub extern "C" fn bowstring_last_error() -> *const c_char {
    // At the end of a thread, its variables are gone before all destructors have run.
    LAST.try_with(|last| last.borrow().as_ptr()).unwrap_or(c"".as_ptr())
}

/// Sets a callback that can end this thread's later calls: for Ctrl-C, a deadline, or a cancelled query.
/// Functions called on this thread ask `interrupted` from time to time, at most once every `milliseconds`.
/// When it returns anything but 0, work on the CPU ends on all of its threads before it begins another part
/// of about ten thousand rows. The function returns BOWSTRING_STATUS_INTERRUPTED, and its inputs are
/// unchanged, but for a stream of batches that was being read: it has ended, as after any error.
///
/// Waits for the producer of an asynchronous stream, or for another thread that reads a stream, ask as well.
/// Work on GPUs does not, and neither do the callbacks of streams that other libraries read. NULL removes the
/// callback. Each thread has its own callback.
///
/// # Safety
///
/// `interrupted` must be NULL, or a function that may be called with `data` on this thread until another
/// takes its place.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_set_interrupt(
    interrupted: BowstringInterrupted,
    data: *mut c_void,
    milliseconds: u32,
) -> BowstringStatus {
    interrupt::set(interrupted, data, Duration::from_millis(milliseconds.into()));
    BowstringStatus::Ok
}

/// Returns the library's version, such as "0.1.0". The text is static.
#[unsafe(no_mangle)]
pub extern "C" fn bowstring_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

fn remember(reason: String) {
    let reason = CString::new(reason.replace('\0', "?")).unwrap_or_default();
    let _ = LAST.try_with(|last| last.replace(reason));
}

fn status(error: &Error) -> BowstringStatus {
    match error {
        Error::Invalid { .. } | Error::NoColumn { .. } => BowstringStatus::Invalid,
        Error::Unsupported { .. } => BowstringStatus::Unsupported,
        Error::OutOfSpec { .. } => BowstringStatus::OutOfSpec,
        Error::OutOfMemory { .. } | Error::TooManyPairs { .. } => BowstringStatus::OutOfMemory,
        Error::IndexOutOfBounds { .. } => BowstringStatus::IndexOutOfBounds,
        Error::Cast { .. } => BowstringStatus::Cast,
        Error::Evaluation { .. } => BowstringStatus::Evaluation,
        Error::Driver { .. } | Error::Image { .. } => BowstringStatus::Driver,
        Error::NoDevice { .. } => BowstringStatus::NoDevice,
        Error::Producer { .. } => BowstringStatus::Producer,
        Error::Interrupted => BowstringStatus::Interrupted,
        _ => BowstringStatus::Other,
    }
}

/// Runs the body of a C function. Errors and panics become statuses.
pub(crate) fn guard(body: impl FnOnce() -> Result<()>) -> BowstringStatus {
    match catch_unwind(AssertUnwindSafe(|| interrupt::within(body))) {
        Ok(Ok(())) => BowstringStatus::Ok,
        Ok(Err(error)) => {
            remember(error.to_string());
            status(&error)
        }
        Err(panic) => {
            let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
            let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
            remember(format!("a bug in bowstring: {}", text.unwrap_or_default()));
            BowstringStatus::Panic
        }
    }
}

/// The error for arguments that do not fit together.
pub(crate) fn invalid(problem: impl Into<String>) -> Error {
    Error::Invalid { operation: "C interface", problem: problem.into() }
}

/// The error for an argument that is NULL.
pub(crate) fn missing(argument: &str) -> Error {
    invalid(format!("{argument} is NULL"))
}

/// Reads a C string; NULL and text that is not UTF-8 are errors.
///
/// # Safety
///
/// `text` is NULL or ends with a 0.
pub(crate) unsafe fn text(text: *const c_char, argument: &str) -> Result<String> {
    if text.is_null() {
        return Err(missing(argument));
    }
    // SAFETY: the caller's promise.
    let text = unsafe { CStr::from_ptr(text) };
    let text = text.to_str().map_err(|_| invalid(format!("{argument} is not UTF-8")))?;
    Ok(text.to_owned())
}

/// Borrows an argument; NULL is an error.
///
/// # Safety
///
/// `pointer` is NULL or points to a live `T` that does not change meanwhile.
pub(crate) unsafe fn borrow<'a, T>(pointer: *const T, argument: &str) -> Result<&'a T> {
    // SAFETY: the caller's promise.
    unsafe { pointer.as_ref() }.ok_or_else(|| missing(argument))
}

/// The `count` items of the caller's array. `first` may be NULL if `count` is 0.
pub(crate) unsafe fn items<'a, T>(first: *const T, count: u64, argument: &str) -> Result<&'a [T]> {
    if count == 0 {
        return Ok(&[]);
    }
    // SAFETY: the caller's promise.
    let first = unsafe { borrow(first, argument) }?;
    let count = usize::try_from(count).ok().filter(|count| *count <= isize::MAX as usize / size_of::<T>());
    let count = count.ok_or_else(|| invalid(format!("{argument}: too many")))?;
    // SAFETY: the caller's promise: there are so many, and no allocation is larger than this.
    Ok(unsafe { std::slice::from_raw_parts(first, count) })
}

/// Borrows each of `count` handles.
///
/// # Safety
///
/// `first` is NULL or points to `count` pointers, each NULL or to a live `T`.
pub(crate) unsafe fn handles<'a, T>(
    first: *const *const T,
    count: u64,
    argument: &str,
) -> Result<Vec<&'a T>> {
    // SAFETY: the caller's promise.
    unsafe { items(first, count, argument)?.iter().map(|one| borrow(*one, argument)).collect() }
}

/// Moves a value to the heap and hands it out as a handle.
///
/// # Safety
///
/// `out` is NULL or may be written.
pub(crate) unsafe fn give<T>(value: T, out: *mut *mut T) -> Result<()> {
    // SAFETY: the caller's promise.
    let out = unsafe { out.as_mut() }.ok_or_else(|| missing("out"))?;
    *out = Box::into_raw(Box::new(value));
    Ok(())
}

/// Writes a plain result; NULL is an error.
///
/// # Safety
///
/// `out` is NULL or may be written.
pub(crate) unsafe fn put<T>(value: T, out: *mut T) -> Result<()> {
    // SAFETY: the caller's promise.
    let out = unsafe { out.as_mut() }.ok_or_else(|| missing("out"))?;
    *out = value;
    Ok(())
}

/// Overwrites a C struct without dropping its old contents. Does nothing if `out` is NULL.
///
/// # Safety
///
/// `out` is NULL or may be written.
pub(crate) unsafe fn write_out<T>(value: T, out: *mut T) {
    if !out.is_null() {
        // SAFETY: the caller's promise.
        unsafe { out.write(value) };
    }
}

/// Frees a handle. Catches panics of its destructor.
///
/// # Safety
///
/// `handle` is NULL or came from [`give`] and is not used again.
pub(crate) unsafe fn free<T>(handle: *mut T) {
    if !handle.is_null() {
        // SAFETY: the caller's promise.
        let owned = unsafe { Box::from_raw(handle) };
        let _ = catch_unwind(AssertUnwindSafe(|| drop(owned)));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::ffi::CStr;

    use arrow_schema::DataType;
    use bowstring::Failure;
    use bowstring::ffi::DeviceType;

    use super::*;

    /// An error of every kind, and the status that C gets for it.
    fn every_error() -> Vec<(Error, BowstringStatus)> {
        let (text, device) = (|| "why".to_owned(), DeviceType::Cuda);
        let (from, to) = (DataType::Int64, DataType::Int8);
        vec![
            (Error::Invalid { operation: "o", problem: text() }, BowstringStatus::Invalid),
            (
                Error::NoColumn { column: text(), number: None, columns: vec![text()] },
                BowstringStatus::Invalid,
            ),
            (
                Error::Unsupported { operation: "o", what: text().into(), device },
                BowstringStatus::Unsupported,
            ),
            (Error::OutOfSpec { at: text(), problem: text() }, BowstringStatus::OutOfSpec),
            (
                Error::Producer { code: 5, message: text(), metadata: Default::default() },
                BowstringStatus::Producer,
            ),
            (Error::OutOfMemory { bytes: 7, device }, BowstringStatus::OutOfMemory),
            (Error::TooManyPairs { pairs: 7, device }, BowstringStatus::OutOfMemory),
            (Error::IndexOutOfBounds { row: 1, index: 9, len: 2 }, BowstringStatus::IndexOutOfBounds),
            (Error::Cast { row: 1, from, to, problem: text() }, BowstringStatus::Cast),
            (
                Error::Evaluation { row: 3, expression: text(), failure: Failure::Overflow },
                BowstringStatus::Evaluation,
            ),
            (Error::Interrupted, BowstringStatus::Interrupted),
            (Error::Driver { call: "c", code: 700, device }, BowstringStatus::Driver),
            (
                Error::Image { family: "f", call: "c", code: 218, device, log: text() },
                BowstringStatus::Driver,
            ),
            (Error::NoDevice { device, reason: text() }, BowstringStatus::NoDevice),
            (Error::Arrow { operation: "o", problem: text() }, BowstringStatus::Other),
        ]
    }

    /// The name of an error's variant.
    fn name(error: &Error) -> String {
        format!("{error:?}").split([' ', '(']).next().unwrap_or_default().to_owned()
    }

    #[test]
    fn every_error_has_its_status_and_says_why() {
        for (error, expected) in every_error() {
            assert_eq!(guard(|| Err(error.clone())), expected, "{error}");
            // SAFETY: never null, and valid until this thread's next failing call.
            let said = unsafe { CStr::from_ptr(bowstring_last_error()) };
            assert_eq!(said.to_str(), Ok(error.to_string().as_str()));
        }
    }

    #[test]
    fn no_kind_of_error_is_forgotten() {
        // The enum may grow, so the compiler cannot say: its source does.
        let source = include_str!("../../host/error.rs");
        let lines =
            source.lines().skip_while(|line| *line != "pub enum Error {").take_while(|line| *line != "}");
        let variants = lines.filter_map(|line| line.strip_prefix("    "));
        let variants = variants.filter_map(|line| line.strip_suffix(" {").or(line.strip_suffix(',')));
        let variants = variants.filter(|name| name.chars().all(char::is_alphanumeric));
        let variants: BTreeSet<String> = variants.map(str::to_owned).collect();
        let known: BTreeSet<String> = every_error().iter().map(|(error, _)| name(error)).collect();
        assert_eq!(known, variants);
    }
}
