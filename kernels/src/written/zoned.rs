//! Casts that a zone takes part in: from its timestamps to days and times of day, and to its timestamps from what has no zone.
//!
//! The one idea: a zone turns seconds into seconds; all else is as without one, but that both must be seconds that chrono has a date
//! for. (Where only the wall clock's are not, arrow-cast panics.) What arrow-cast lets a zone take part in is only this: a timestamp
//! that has a zone keeps its value when it gets another, or none.

use super::calendar::{self, DAY, day_and_second};
use super::unit::Unit;
use super::zone::Zone;

/// What the wall clock says at a timestamp: seconds since 1970, and nanoseconds above them.
#[inline(always)]
fn wall(value: i64, unit: Unit, zone: impl Zone) -> Option<(i64, u32)> {
    let (seconds, nanoseconds) = unit.split(value);
    if !calendar::holds(seconds) {
        return None;
    }
    Some((seconds + i64::from(zone.offset_at_utc(seconds)), nanoseconds))
}

/// A zone's timestamp to Date32.
#[inline(always)]
pub fn to_date32(value: i64, unit: Unit, zone: impl Zone) -> Option<i32> {
    let (local, _) = wall(value, unit, zone)?;
    calendar::holds(local).then(|| day_and_second(local).0)
}

/// A zone's timestamp to Date64: midnight of the day.
#[inline(always)]
pub fn to_date64(value: i64, unit: Unit, zone: impl Zone) -> Option<i64> {
    Some(i64::from(to_date32(value, unit, zone)?) * (DAY * 1000))
}

/// A zone's timestamp to the time of its day, Time32 or Time64, in a unit.
#[inline(always)]
pub fn to_time(value: i64, unit: Unit, zone: impl Zone, to: Unit) -> Option<i64> {
    let (local, nanoseconds) = wall(value, unit, zone)?;
    let (_, second) = day_and_second(local);
    Some(i64::from(second) * to.per_second() + i64::from(to.of_nanoseconds(nanoseconds)))
}

/// A timestamp without a zone, which is what a wall clock says, to a zone's timestamp.
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

/// A Date32, which is midnight of the day, to a zone's timestamp.
#[inline(always)]
pub fn from_date32(days: i32, to: Unit, zone: impl Zone) -> Option<i64> {
    from_timestamp(i64::from(days) * DAY, Unit::SECOND, to, zone)
}

/// A Date64 to a zone's timestamp.
#[inline(always)]
pub fn from_date64(milliseconds: i64, to: Unit, zone: impl Zone) -> Option<i64> {
    from_timestamp(milliseconds, Unit::MILLISECOND, to, zone)
}
