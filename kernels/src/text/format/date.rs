//! Days as text: Date32 and Date64.

use super::moment::{put_date, put_moment};
use super::sink::Sink;
use crate::text::calendar::{self, DAY};
use crate::text::unit::Unit;

/// Writes a Date32, and returns whether chrono has a date for it.
#[inline(always)]
pub fn write_date32<S: Sink>(days: i32, sink: &mut S) -> bool {
    let fits = calendar::holds(i64::from(days) * DAY);
    if fits {
        put_date(days, sink);
    }
    fits
}

/// Writes a Date64, which is an instant without a zone, and returns whether chrono has a date for it.
#[inline(always)]
pub fn write_date64<S: Sink>(milliseconds: i64, sink: &mut S) -> bool {
    let (seconds, nanoseconds) = Unit::MILLISECOND.split(milliseconds);
    let fits = calendar::holds(seconds);
    if fits {
        put_moment(seconds, nanoseconds, sink);
    }
    fits
}
