//! Casts that involve a zone: from its timestamps to days and times of day, and from types without a zone to
//! its timestamps.
//!
//! The one idea: a zone maps seconds to seconds, and everything else is as without a zone, except that chrono
//! must have a date for both seconds. (If it only lacks one for the wall clock, arrow-cast panics.) In
//! arrow-cast, a zone affects only these casts: a timestamp with a zone keeps its value when it gets another
//! zone, or none.

use super::table::Zone;
use crate::text::calendar::{self, DAY, day_and_second};
use crate::text::unit::Unit;

/// Returns the time on the wall clock at a timestamp: seconds since 1970, and the nanoseconds above them.
#[inline(always)]
fn wall(value: i64, unit: Unit, zone: impl Zone) -> Option<(i64, u32)> {
    let (seconds, nanoseconds) = unit.split(value);
    if !calendar::holds(seconds) {
        return None;
    }
    Some((seconds + i64::from(zone.offset_at_utc(seconds)), nanoseconds))
}

/// Casts a zone's timestamp to Date32.
#[inline(always)]
pub fn to_date32(value: i64, unit: Unit, zone: impl Zone) -> Option<i32> {
    let (local, _) = wall(value, unit, zone)?;
    calendar::holds(local).then(|| day_and_second(local).0)
}

/// Casts a zone's timestamp to Date64: midnight of the day.
#[inline(always)]
pub fn to_date64(value: i64, unit: Unit, zone: impl Zone) -> Option<i64> {
    Some(i64::from(to_date32(value, unit, zone)?) * (DAY * 1000))
}

/// Casts a zone's timestamp to the time of its day, Time32 or Time64, in a unit.
#[inline(always)]
pub fn to_time(value: i64, unit: Unit, zone: impl Zone, to: Unit) -> Option<i64> {
    let (local, nanoseconds) = wall(value, unit, zone)?;
    let (_, second) = day_and_second(local);
    Some(i64::from(second) * to.per_second() + i64::from(to.of_nanoseconds(nanoseconds)))
}

/// Casts a timestamp without a zone, which is the time on a wall clock, to a zone's timestamp.
#[inline(always)]
pub fn from_timestamp(value: i64, unit: Unit, to: Unit, zone: impl Zone) -> Option<i64> {
    let (local, nanoseconds) = to.split(unit.rescale(value, to)?);
    if !calendar::holds(local) {
        return None;
    }
    let seconds = local - i64::from(zone.offset_for_local(local));
    if !calendar::holds(seconds) {
        return None;
    }
    to.join(seconds, nanoseconds)
}

/// Casts a Date32, which is midnight of the day, to a zone's timestamp.
#[inline(always)]
pub fn from_date32(days: i32, to: Unit, zone: impl Zone) -> Option<i64> {
    from_timestamp(i64::from(days) * DAY, Unit::SECOND, to, zone)
}

/// Casts a Date64 to a zone's timestamp.
#[inline(always)]
pub fn from_date64(milliseconds: i64, to: Unit, zone: impl Zone) -> Option<i64> {
    from_timestamp(milliseconds, Unit::MILLISECOND, to, zone)
}
