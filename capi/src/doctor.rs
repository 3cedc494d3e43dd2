//! The doctor, which examines the devices of the machine, and its reports.

use std::ffi::{CString, c_char, c_void};
use std::time::Duration;

use bowstring_doctor::{Options, Report, examine};

use crate::status::{BowstringStatus, borrow, free, give, guard, invalid, missing, put};

/// The results of an examination by the doctor.
pub struct BowstringReport {
    page: CString,
    json: CString,
    is_well: bool,
}

/// Reports the progress of an examination, on the thread that called bowstring_doctor. `what` names the
/// current step and is valid during the call only; `done` of the step's `of` parts are complete.
pub type BowstringProgress =
    Option<unsafe extern "C" fn(what: *const c_char, done: usize, of: usize, data: *mut c_void)>;

/// Makes a C string; zeros in the text become question marks.
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

/// Finds devices, and examines the CPU and each GPU, at most 8 of a kind: loads every kernel, runs tests,
/// compares results with the CPU, and measures. The examination takes about `seconds` at most; 100 are enough
/// for one GPU. `progress` may be NULL. Synchronises.
///
/// Everything runs in this process, because a library does not start other processes by itself. If a driver's
/// library crashes, the process ends; ROCm ends it as well when its GPU faults. `python -m bowstring` and the
/// doctor among the Rust examples examine each GPU in a process of its own.
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

/// Returns the report as readable text. The report owns the text, which is valid until the report is freed.
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

/// Returns the report as JSON, including the time of each kernel. The report owns the text, which is valid
/// until the report is freed.
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

/// Writes 1 if every device that was found passed the examination, else 0.
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

/// Frees a report. NULL is ignored.
///
/// # Safety
///
/// `report` must be NULL or a handle from this library that is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_report_free(report: *mut BowstringReport) {
    // SAFETY: the caller's promise.
    unsafe { free(report) }
}
