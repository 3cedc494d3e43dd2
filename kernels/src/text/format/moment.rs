//! Writing of a date and a time of day.

use super::figures::{four, put_significant, two};
use super::sink::Sink;
use crate::text::calendar::{date_of, day_and_second};
use crate::text::digits::eight_of_number;

/// Writes a year of more than four digits, or before the year 0, with its sign and at least four digits, as
/// chrono does.
#[inline(always)]
fn put_strange_year<S: Sink>(year: i32, sink: &mut S) {
    sink.put(if year < 0 { b'-' } else { b'+' });
    let year = year.unsigned_abs();
    if year < 10_000 {
        sink.put_all(four(year), 4);
    } else {
        put_significant(year, sink);
    }
}

/// Writes a day that chrono has a date for, and `rest` in the same word as the day of the month.
#[inline(always)]
fn put_day<S: Sink>(days: i32, rest: u64, len: u32, sink: &mut S) {
    let date = date_of(days);
    let month = u64::from(b'-') | two(date.month) << 8 | u64::from(b'-') << 24;
    if (date.year as u32) < 10_000 {
        sink.put_all(four(date.year as u32) | month << 32, 8);
    } else {
        put_strange_year(date.year, sink);
        sink.put_all(month, 4);
    }
    sink.put_all(two(date.day) | rest << 16, 2 + len);
}

/// Writes a day that chrono has a date for.
#[inline(always)]
pub(super) fn put_date<S: Sink>(days: i32, sink: &mut S) {
    put_day(days, 0, 0, sink);
}

/// Writes a colon, the seconds of a minute, and their fraction.
#[inline(always)]
fn put_rest<S: Sink>(second: u32, nanoseconds: u32, sink: &mut S) {
    let colon = u64::from(b':') | two(second) << 8;
    if nanoseconds == 0 {
        return sink.put_all(colon, 3);
    }
    let thousand = nanoseconds / 1_000;
    let most = eight_of_number(nanoseconds / 10);
    let point = colon | u64::from(b'.') << 24;
    if thousand * 1_000 != nanoseconds {
        sink.put_all(point, 4);
        sink.put_all(most, 8);
        sink.put(b'0' + (nanoseconds % 10) as u8);
    } else if thousand % 1_000 != 0 {
        sink.put_all(point, 4);
        sink.put_all(most, 6);
    } else {
        sink.put_all(point | most << 32, 7);
    }
}

/// Writes a time of day, with its nanoseconds in the least sufficient number of digits among 0, 3, 6 and 9.
#[inline(always)]
pub(super) fn put_clock<S: Sink>(second: u32, nanoseconds: u32, sink: &mut S) {
    let (minute, second) = (second / 60, second % 60);
    let (hour, minute) = (minute / 60, minute % 60);
    sink.put_all(two(hour) | u64::from(b':') << 16 | two(minute) << 24, 5);
    put_rest(second, nanoseconds, sink);
}

/// Writes a date, a `T` and a time of day, for a second that chrono has a date for.
#[inline(always)]
pub(super) fn put_moment<S: Sink>(seconds: i64, nanoseconds: u32, sink: &mut S) {
    let (days, second) = day_and_second(seconds);
    let (minute, second) = (second / 60, second % 60);
    let (hour, minute) = (minute / 60, minute % 60);
    let clock = u64::from(b'T') | two(hour) << 8 | u64::from(b':') << 24 | two(minute) << 32;
    put_day(days, clock, 6, sink);
    put_rest(second, nanoseconds, sink);
}

/// Writes `Z` for a clock on UTC, or the offset of one that is `east` seconds ahead of it, rounded to a
/// minute.
#[inline(always)]
pub(super) fn put_offset<S: Sink>(east: i32, sink: &mut S) {
    if east == 0 {
        return sink.put(b'Z');
    }
    let minutes = (east.unsigned_abs() + 30) / 60;
    let sign = if east < 0 { b'-' } else { b'+' };
    let (hours, minutes) = (minutes / 60, minutes % 60);
    sink.put_all(u64::from(sign) | two(hours) << 8 | u64::from(b':') << 24 | two(minutes) << 32, 6);
}
