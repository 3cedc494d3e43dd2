//! The doctor.

use std::ffi::{CString, c_char, c_void};
use std::time::Duration;

use bowstring::doctor::{Options, Report, examine};

use crate::status::{BowstringStatus, borrow, free, give, guard, invalid, missing, put};

/// What the doctor found.
pub struct BowstringReport {
    page: CString,
    json: CString,
    is_well: bool,
}

/// Called as an examination goes on, on the thread that asked for it: what is being done, how much of that has been done, and how
/// much there is. The text is the caller's for the call only.
pub type BowstringProgress =
    Option<unsafe extern "C" fn(what: *const c_char, done: usize, of: usize, data: *mut c_void)>;

/// Text without the zeros that C's ends with.
fn c_text(text: String) -> CString {
    CString::new(text.replace('\0', "?")).unwrap_or_default()
}

fn report(found: &Report) -> BowstringReport {
    BowstringReport {
        page: c_text(found.to_string()),
        json: c_text(found.to_json()),
        is_well: found.is_well(),
    }
}

/// Looks for devices, and examines the CPU and each GPU that it finds, 8 of a kind at most: loads every kernel, tests, compares
/// with the CPU, measures. Takes so many seconds at most, nearly; 100 are enough for one GPU. Synchronises.
///
/// All of it is done in this process, for a library does not start others by itself: a driver's library
/// that crashes ends it, and so does ROCm at a fault of its GPU. `python -m bowstring` and the doctor among
/// the Rust examples examine each GPU in a process of its own.
///
/// # Safety
///
/// `progress` must be NULL, or a function that may be called with `data`; `out` NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_doctor(
    seconds: f64,
    progress: BowstringProgress,
    data: *mut c_void,
    out: *mut *mut BowstringReport,
) -> BowstringStatus {
    guard(|| {
        if out.is_null() {
            return Err(missing("out"));
        }
        let budget = Duration::try_from_secs_f64(seconds);
        let budget = budget.map_err(|_| invalid("seconds is no number of seconds"))?;
        let found = examine(&Options { budget, ..Options::default() }, &mut |at| {
            if let Some(progress) = progress {
                let what = c_text(at.to_string());
                // SAFETY: the caller's promise.
                unsafe { progress(what.as_ptr(), at.done, at.of, data) };
            }
        });
        // SAFETY: the caller's promise.
        unsafe { give(report(&found), out) }
    })
}

/// A report as a page for people. It lives as long as the report.
///
/// # Safety
///
/// `report` must be NULL or a live handle, `out` NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_report_page(
    report: *const BowstringReport,
    out: *mut *const c_char,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe { put(borrow(report, "report")?.page.as_ptr(), out) })
}

/// A report as JSON, with each kernel's time. It lives as long as the report.
///
/// # Safety
///
/// `report` must be NULL or a live handle, `out` NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_report_json(
    report: *const BowstringReport,
    out: *mut *const c_char,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe { put(borrow(report, "report")?.json.as_ptr(), out) })
}

/// 1 where every device that is here did what it should, else 0.
///
/// # Safety
///
/// `report` must be NULL or a live handle, `out` NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_report_is_well(
    report: *const BowstringReport,
    out: *mut i32,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe { put(borrow(report, "report")?.is_well.into(), out) })
}

/// Frees a report.
///
/// # Safety
///
/// `report` must be NULL or a handle from this library that is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_report_free(report: *mut BowstringReport) {
    // SAFETY: the caller's promise.
    unsafe { free(report) }
}
