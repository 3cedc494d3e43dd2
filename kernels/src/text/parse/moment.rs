//! Reading of a date and a time of day.
//!
//! The one idea: the usual form has its digits and separators at fixed positions, so three words of eight
//! bytes hold all of it. Each word is checked and converted to numbers as a whole.

use super::pieces::{Part, byte, no_digits, padded, space_at};
use crate::text::bytes::{Bytes, pack};
use crate::text::calendar::{DAY, days_of};
use crate::text::digits::{ZEROS, digit, number, pairs};

/// The instant that a text gives.
#[derive(Clone, Copy)]
pub(super) struct Moment {
    /// Seconds since 1970, on the clock that `place` gives.
    pub seconds: i64,
    /// Nanoseconds above them. A leap second counts as the second before it, with 1,000,000,000 nanoseconds
    /// or more.
    pub nanoseconds: u32,
    /// The clock of the text.
    pub place: Place,
}

/// The clock that a text refers to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// The text does not give a clock.
    Unsaid,
    /// The clock is this many seconds ahead of UTC.
    East(i32),
    /// The text may contain the name of a zone.
    Named,
}

/// Reads the first ten bytes as a day in the form `2020-01-31`.
#[inline(always)]
pub(super) fn plain_date(text: impl Bytes) -> Option<i32> {
    let from_year = text.eight(0) ^ const { pack(b"0000-00-") };
    let to_day = text.eight(2) ^ const { pack(b"00-00-00") };
    let hyphens = from_year & 0xff00_00ff_0000_0000 | to_day & 0x0000_ff00_00ff_0000;
    if no_digits(from_year) | no_digits(to_day) | hyphens != 0 {
        return None;
    }
    let (year, month) = (pairs(from_year), pairs(from_year >> 8));
    days_of(byte(year, 0) * 100 + byte(year, 2), byte(month, 4), byte(pairs(to_day), 6))
}

/// A time of day, as seconds and nanoseconds.
#[derive(Clone, Copy)]
pub(super) struct Clock {
    /// The seconds since midnight.
    pub second: u32,
    /// The nanoseconds above them, as in [`Moment`].
    pub nanoseconds: u32,
}

impl Clock {
    /// Makes a time from fields that may be out of range. Second 60 counts as second 59 with another
    /// 1,000,000,000 nanoseconds.
    #[inline(always)]
    pub(super) fn of(hour: u32, minute: u32, second: u32, nanoseconds: u32) -> Option<Clock> {
        let leap = u32::from(second == 60);
        ((hour < 24) & (minute < 60) & (second <= 60)).then(|| Clock {
            second: hour * 3600 + minute * 60 + second - leap,
            nanoseconds: nanoseconds + leap * 1_000_000_000,
        })
    }
}

/// Reads the time at a byte in the form `12:34:56`, perhaps with a fraction, or `123456`, and returns where
/// it ends. The text has at least eight bytes, and at least one from there on. The first nine digits of a
/// fraction count.
#[inline(always)]
pub(super) fn clock(text: impl Bytes, at: u64) -> Option<(Clock, u64)> {
    let word = padded(text, at);
    let digits = word ^ const { pack(b"00:00:00") };
    if no_digits(digits) | digits & 0x0000_ff00_00ff_0000 == 0 {
        let pairs = pairs(digits);
        let (hour, minute, second) = (byte(pairs, 0), byte(pairs, 3), byte(pairs, 6));
        let end = at + 8;
        if end >= text.len() || text.at(end) != b'.' {
            return Some((Clock::of(hour, minute, second, 0)?, end));
        }
        let (nanoseconds, end) = fraction(text, end + 1)?;
        return Some((Clock::of(hour, minute, second, nanoseconds)?, end));
    }
    let digits = word ^ ZEROS;
    if no_digits(digits) != 0x8080_0000_0000_0000 {
        return None;
    }
    let pairs = pairs(digits);
    Some((Clock::of(byte(pairs, 0), byte(pairs, 2), byte(pairs, 4), 0)?, at + 6))
}

/// Reads the digits at a byte as nanoseconds, and returns where they end; `None` if there are none.
#[inline(always)]
fn fraction(text: impl Bytes, at: u64) -> Option<(u32, u64)> {
    if at == text.len() {
        return None;
    }
    let digits = padded(text, at) ^ ZEROS;
    let others = no_digits(digits);
    if others == 0 {
        let (mut nanoseconds, mut end) = (number(digits) * 10, at + 8);
        if end < text.len() && digit(text.at(end)) < 10 {
            nanoseconds += digit(text.at(end));
            end += 1;
            while end < text.len() && digit(text.at(end)) < 10 {
                end += 1;
            }
        }
        return Some((nanoseconds, end));
    }
    let bits = others.trailing_zeros() - 7;
    let those = digits & (1u64 << bits).wrapping_sub(1);
    (bits != 0).then(|| (number(those) * 10, at + u64::from(bits / 8)))
}

/// Reads a text in one of the forms that arrow-cast accepts: a date, then perhaps `T` or a space and a time,
/// then perhaps a zone.
#[inline(always)]
pub(super) fn moment(text: impl Bytes) -> Option<Moment> {
    let len = text.len();
    if len < 10 {
        return None;
    }
    let midnight = i64::from(plain_date(text)?) * DAY;
    if len == 10 {
        return Some(Moment { seconds: midnight, nanoseconds: 0, place: Place::Unsaid });
    }
    let separator = text.at(10);
    if separator | 0x20 != b't' && separator != b' ' || len < 17 {
        return None;
    }
    let (clock, end) = clock(text, 11)?;
    let place = if end == len {
        Place::Unsaid
    } else if end + 1 == len && text.at(end) | 0x20 == b'z' {
        Place::East(0)
    } else {
        place(Part::after(text, end))?
    };
    Some(Moment { seconds: midnight + i64::from(clock.second), nanoseconds: clock.nanoseconds, place })
}

/// Reads the part of a text after a time: white space, and then an offset or a name.
#[inline(always)]
fn place<B: Bytes>(text: Part<B>) -> Option<Place> {
    let mut start = 0;
    while start < text.len() {
        let space = space_at(text, start);
        if space == 0 {
            break;
        }
        start += space;
    }
    let len = text.len() - start;
    if len < 2 {
        return None;
    }
    let sign = text.at(start);
    if sign != b'+' && sign != b'-' {
        return name(text, start);
    }
    let colon = len == 6 && text.at(start + 3) == b':';
    if !colon && len != 5 && len != 3 {
        return None;
    }
    let (h, hh) = (digit(text.at(start + 1)), digit(text.at(start + 2)));
    let (mut m, mut mm) = (0, 0);
    if len != 3 {
        let minutes = start + 3 + u64::from(colon);
        (m, mm) = (digit(text.at(minutes)), digit(text.at(minutes + 1)));
    }
    let seconds = (h * 10 + hh) * 3600 + (m * 10 + mm) * 60;
    if (h > 9) | (hh > 9) | (m > 9) | (mm > 9) | (i64::from(seconds) >= DAY) {
        return None;
    }
    Some(Place::East(if sign == b'-' { -(seconds as i32) } else { seconds as i32 }))
}

/// Reads what may be the name of a zone. The names of UTC and Greenwich give an offset; others need a
/// database.
#[inline(always)]
fn name(text: impl Bytes, start: u64) -> Option<Place> {
    let len = text.len() - start;
    let (mut at, mut letters) = (start, 0);
    while at < text.len() {
        let byte = text.at(at);
        let letter = (byte | 0x20).wrapping_sub(b'a') < 26;
        let other = digit(byte) < 10 || byte == b'/' || byte == b'_' || byte == b'-' || byte == b'+';
        if !letter && (at == start || !other) {
            return None;
        }
        letters = letters << 8 | u32::from(byte);
        at += 1;
    }
    let utc = len == 3 && (letters == 0x55_5443 || letters == 0x47_4d54);
    Some(if utc { Place::East(0) } else { Place::Named })
}
