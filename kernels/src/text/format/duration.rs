//! Durations as text: `PT1.5S`, as chrono writes them. arrow-cast reads no durations.
//!
//! The one idea: only the sign and the magnitude count, and a fraction ends with the last digit that is not
//! 0.

use super::figures::{put_fraction, put_number};
use super::sink::Sink;
use crate::text::bytes::pack;
use crate::text::digits::eight;
use crate::text::unit::Unit;

/// Writes a duration in a unit, and returns true: even for a duration that is too long for chrono, arrow-cast
/// has a text.
#[inline(always)]
pub fn write_duration<S: Sink>(value: i64, unit: Unit, sink: &mut S) -> bool {
    let magnitude = value.unsigned_abs();
    let too_long = unit == Unit::SECOND && magnitude > i64::MAX as u64 / 1000
        || unit == Unit::MILLISECOND && magnitude > i64::MAX as u64;
    if too_long {
        sink.put_all(const { pack(b"<invalid") }, 8);
        sink.put(b'>');
        return true;
    }
    if value == 0 {
        sink.put_all(const { pack(b"P0D") }, 3);
        return true;
    }
    let cuts = unit.cuts();
    let seconds = if cuts == 0 {
        magnitude
    } else if cuts == 1 {
        magnitude / 1_000
    } else if cuts == 2 {
        magnitude / 1_000_000
    } else {
        magnitude / 1_000_000_000
    };
    let rest = magnitude.wrapping_sub(seconds.wrapping_mul(unit.per_second() as u64)) as u32;
    let nanoseconds = rest.wrapping_mul(unit.nanoseconds() as u32);
    if value < 0 {
        sink.put(b'-');
    }
    sink.put_all(const { pack(b"PT") }, 2);
    put_number(seconds, sink);
    if nanoseconds != 0 {
        let most = nanoseconds / 10;
        let last = nanoseconds - 10 * most;
        let figures = if last != 0 { 9 } else { 8 - eight(most).leading_zeros() / 8 };
        put_fraction(nanoseconds, figures, sink);
    }
    sink.put(b'S');
    true
}
