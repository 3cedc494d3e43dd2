//! The codes that calls return, the same in both runtimes, and what they say.

use super::table::Code;
use crate::device::driver::{Failure, Outcome};

/// What every call returns where nothing is wrong.
pub(super) const SUCCESS: Code = 0;
/// A pointer or number that the runtime does not know.
pub(super) const INVALID_VALUE: Code = 1;
/// Memory ran out.
pub(super) const OUT_OF_MEMORY: Code = 2;
/// A stream or event of another device.
pub(in super::super) const INVALID_CONTEXT: Code = 201;
/// The work before an event has not passed.
pub(super) const NOT_READY: Code = 600;
/// There is no image for the device.
pub(super) const NO_IMAGE: Code = 209;

/// The legacy default stream, while a stream that waits for it is captured.
pub(super) const CAPTURE_IMPLICIT: Code = 906;

/// A call that failed.
pub(super) fn failure(call: &'static str, code: Code) -> Failure {
    Failure { call, code: code.into(), out_of_memory: code == OUT_OF_MEMORY }
}

/// What a call's code says.
pub(in super::super) fn outcome(call: &'static str, code: Code) -> Outcome {
    if code == SUCCESS { Ok(()) } else { Err(failure(call, code)) }
}

/// Why a device that a call failed for cannot be used.
pub(in super::super) fn refused(failure: Failure) -> String {
    format!("{}{FAILED}{}", failure.call, failure.code)
}

/// Which call and code that was, where a reason is one of those.
pub(crate) fn refusal(reason: &str) -> Option<(&str, i64)> {
    let (call, code) = reason.split_once(FAILED)?;
    Some((call, code.parse().ok()?))
}

const FAILED: &str = " failed with code ";

/// Why a runtime that has a version cannot be used where something needs another.
pub(in super::super) fn too_old(what: &str, needs: &str, has: &str) -> String {
    format!("{what} needs {needs}{OR_NEWER}{has}")
}

/// Whether a reason is one of those.
pub(crate) fn is_too_old(reason: &str) -> bool {
    reason.contains(OR_NEWER)
}

/// What is said of a version that has not all of what an older one has.
pub(super) const UNKNOWN: &str = "of which we do not know how it is used";

/// Whether a reason says that.
pub(crate) fn is_unknown(reason: &str) -> bool {
    reason.contains(UNKNOWN)
}

const OR_NEWER: &str = " or newer, and this is ";
