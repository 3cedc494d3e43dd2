//! Timestamps as text.
//!
//! The one idea: as in reading, an instant is seconds and nanoseconds, whatever its unit.

use super::moment::{put_moment, put_offset};
use super::sink::Sink;
use crate::text::calendar;
use crate::text::unit::Unit;
use crate::text::zone::table::{Fixed, Zone};

/// Writes a timestamp of a type without a zone, and returns whether chrono has a date for it.
#[inline(always)]
pub fn write_timestamp<S: Sink>(value: i64, unit: Unit, sink: &mut S) -> bool {
    write_instant(value, unit, Fixed::UTC, false, sink)
}

/// Writes a timestamp as a zone's wall clock and its offset, and returns whether chrono has a date for the
/// instant and for the time on that clock. (arrow-cast panics if it only lacks the latter.)
#[inline(always)]
pub fn write_zoned<S: Sink>(value: i64, unit: Unit, zone: impl Zone, sink: &mut S) -> bool {
    write_instant(value, unit, zone, true, sink)
}

/// Writes a timestamp as a zone's wall clock, with its offset if `says` is true. Without a zone, the clock is
/// UTC.
#[inline(always)]
pub fn write_instant<S: Sink>(value: i64, unit: Unit, zone: impl Zone, says: bool, sink: &mut S) -> bool {
    let (seconds, nanoseconds) = unit.split(value);
    if !calendar::holds(seconds) {
        return false;
    }
    let east = zone.offset_at_utc(seconds);
    let local = seconds + i64::from(east);
    let fits = calendar::holds(local);
    if fits {
        put_moment(local, nanoseconds, sink);
        if says {
            put_offset(east, sink);
        }
    }
    fits
}
