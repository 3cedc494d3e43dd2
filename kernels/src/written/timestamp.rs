//! Timestamps as text.
//!
//! The one idea: an instant is seconds and nanoseconds, whatever its unit, and a zone only adds to the
//! seconds. So one reader and one writer are enough, with the unit and the zone as arguments.

use super::calendar;
use super::moment::{Moment, Place, moment, put_moment, put_offset};
use super::unit::Unit;
use super::zone::{Fixed, Zone};
use super::{Bytes, Said, Sink};

/// Reads a text as a timestamp; `zone` is that of the type, or UTC for a type without a zone. A time that a
/// wall clock shows twice, or never, gives no value.
#[inline(always)]
pub fn read_timestamp(text: impl Bytes, unit: Unit, zone: impl Zone) -> Said<i64> {
    let Some(Moment { seconds, nanoseconds, place }) = moment(text) else { return Said::Nothing };
    let east = match place {
        Place::East(east) => east,
        Place::Named => return Said::Elsewhere,
        Place::Unsaid => match zone.offset_of_local(seconds) {
            Some(east) => east,
            None => return Said::Nothing,
        },
    };
    Said::from(unit.join(seconds - i64::from(east), nanoseconds))
}

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
