//! The codes that calls return, the same in both runtimes, and their meaning.

use super::table::Code;
use crate::device::driver::{Failure, Outcome};

/// The code of a call that succeeded.
pub(super) const SUCCESS: Code = 0;
/// The code for a pointer or number that the runtime does not know.
pub(super) const INVALID_VALUE: Code = 1;
/// The code for memory that ran out.
pub(super) const OUT_OF_MEMORY: Code = 2;
/// The code for a stream or event of another device.
pub(in super::super) const INVALID_CONTEXT: Code = 201;
/// The code for an event whose work has not passed.
pub(super) const NOT_READY: Code = 600;
/// The code for a missing image for the device.
pub(super) const NO_IMAGE: Code = 209;

/// The code for the legacy default stream, while a stream that waits for it is captured.
pub(super) const CAPTURE_IMPLICIT: Code = 906;

/// Makes the failure of a call that returned this code.
pub(super) fn failure(call: &'static str, code: Code) -> Failure {
    Failure { call, code: code.into(), out_of_memory: code == OUT_OF_MEMORY }
}

/// Turns a call's code into an outcome.
pub(in super::super) fn outcome(call: &'static str, code: Code) -> Outcome {
    if code == SUCCESS { Ok(()) } else { Err(failure(call, code)) }
}

/// The reason why a device cannot be used, if a call for it failed. [`refusal`] parses it.
pub(in super::super) fn refused(failure: Failure) -> String {
    format!("{}{FAILED}{}", failure.call, failure.code)
}

/// Parses a reason made by `refused` into the call and its code; `None` for any other reason.
pub fn refusal(reason: &str) -> Option<(&str, i64)> {
    let (call, code) = reason.split_once(FAILED)?;
    Some((call, code.parse().ok()?))
}

const FAILED: &str = " failed with code ";

/// The reason why a runtime's version is too old for something. [`is_too_old`] recognises it.
pub(in super::super) fn too_old(what: &str, needs: &str, has: &str) -> String {
    format!("{what} needs {needs}{OR_NEWER}{has}")
}

/// Whether a reason was made by `too_old`.
pub fn is_too_old(reason: &str) -> bool {
    reason.contains(OR_NEWER)
}

/// The reason for a version that lacks a function which an older one has.
pub(super) const UNKNOWN: &str = "of which we do not know how it is used";

/// Whether a reason contains `UNKNOWN`.
pub fn is_unknown(reason: &str) -> bool {
    reason.contains(UNKNOWN)
}

const OR_NEWER: &str = " or newer, and this is ";
