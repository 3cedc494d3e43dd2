//! Days as text: Date32 and Date64.
//!
//! The one idea: the usual form is tried first, in two words. All other forms are read from a mask of the
//! bytes that are digits, which is how arrow-cast reads them, so both accept the same texts.

use super::moment::{Moment, Place, moment, plain_date};
use super::pieces::{Part, byte, no_digits, push, signed};
use super::said::Said;
use crate::text::bytes::Bytes;
use crate::text::calendar::{DAY, ERA, day_and_second, days_of};
use crate::text::digits::{ZEROS, digit, pairs};

/// The number of milliseconds in a day, the unit of Date64.
const MILLISECONDS: i64 = DAY * 1000;

/// Reads a text as a Date32. Whitespace around it is ignored; an instant gives its day in UTC.
#[inline(always)]
pub fn read_date32(text: impl Bytes) -> Said<i32> {
    read_date(text, false).map(|days| days as i32)
}

/// Reads a text as a Date64. Whitespace around it is not ignored; an instant counts to the millisecond.
#[inline(always)]
pub fn read_date64(text: impl Bytes) -> Said<i64> {
    read_date(text, true)
}

/// Reads a text as a Date64 if `is_64`, otherwise as a Date32.
#[inline(always)]
pub fn read_date(text: impl Bytes, is_64: bool) -> Said<i64> {
    if text.len() == 10
        && let Some(days) = plain_date(text)
    {
        return Said::Value(i64::from(days) * if is_64 { MILLISECONDS } else { 1 });
    }
    unusual(text, is_64)
}

/// Reads a text that is not in the usual form. On a CPU, this code is kept apart from that of the usual form.
#[cfg_attr(any(target_arch = "nvptx64", target_arch = "amdgpu"), inline(always))]
#[cfg_attr(not(any(target_arch = "nvptx64", target_arch = "amdgpu")), inline(never), cold)]
fn unusual(text: impl Bytes, is_64: bool) -> Said<i64> {
    let mut part = Part::all(text);
    loop {
        let reading = date(part, is_64);
        if is_64 || reading != Said::Nothing {
            return reading;
        }
        let trimmed = part.trimmed();
        if trimmed.len() == part.len() {
            return reading;
        }
        part = trimmed;
    }
}

/// Reads a text that is not in the usual form, without ignoring whitespace.
#[inline(always)]
fn date(text: impl Bytes, is_64: bool) -> Said<i64> {
    let len = text.len();
    if len < 8 {
        return Said::Nothing;
    }
    let first = text.at(0);
    let signed = first == b'+' || first == b'-';
    if len <= 10 || signed && !is_64 {
        let days = if signed { extended(text) } else { short(text) };
        return Said::from(days.map(|days| i64::from(days) * if is_64 { MILLISECONDS } else { 1 }));
    }
    let Some(Moment { seconds, nanoseconds, place }) = moment(text) else { return Said::Nothing };
    let utc = match place {
        Place::Unsaid => seconds,
        Place::East(east) => seconds - i64::from(east),
        Place::Named => return Said::Elsewhere,
    };
    Said::Value(if is_64 {
        utc * 1000 + i64::from(nanoseconds / 1_000_000)
    } else {
        i64::from(day_and_second(utc).0)
    })
}

/// Reads eight to ten bytes: `20200131`, or year, month and day with hyphens, where the latter two may have
/// one digit.
///
/// arrow-cast looks at which of ten bytes are digits. A byte after a day of one digit is ignored if it is not
/// a digit.
#[inline(always)]
fn short(text: impl Bytes) -> Option<i32> {
    const HYPHEN: u32 = (b'-' ^ b'0') as u32;
    let len = text.len();
    let digits = text.eight(0) ^ ZEROS;
    // Moves the flag of byte `i` to bit `i`.
    let mask = (!no_digits(digits) >> 7 & 0x0101_0101_0101_0101).wrapping_mul(0x0102_0408_1020_4080) >> 56;
    let (ninth, tenth) = (
        if len > 8 { digit(text.at(8)) } else { u32::MAX },
        if len > 9 { digit(text.at(9)) } else { u32::MAX },
    );
    let mask = mask as u32 | u32::from(ninth < 10) << 8 | u32::from(tenth < 10) << 9;
    let two = pairs(digits);
    let year = byte(two, 0) * 100 + byte(two, 2);
    if byte(digits, 4) != HYPHEN {
        let plain = mask == 0xff && len == 8;
        return if plain { days_of(year, byte(two, 4), byte(two, 6)) } else { None };
    }
    let long_month = byte(digits, 7) == HYPHEN;
    if !long_month && byte(digits, 6) != HYPHEN {
        return None;
    }
    let month = byte(digits, 5);
    let month = if long_month { month * 10 + byte(digits, 6) } else { month };
    let day = match (long_month, mask) {
        (true, 0b11_0110_1111) => ninth * 10 + tenth,
        (true, 0b01_0110_1111) => ninth,
        (false, 0b01_1010_1111) => byte(digits, 7) * 10 + ninth,
        (false, 0b00_1010_1111) => byte(digits, 7),
        _ => return None,
    };
    days_of(year, month, day)
}

/// Reads a sign, a year of four digits or more, a month and a day: any date that a Date32 can hold.
#[inline(always)]
fn extended(text: impl Bytes) -> Option<i32> {
    let (len, mut at) = (text.len(), 1);
    let mut year = 0;
    while at < len && text.at(at) != b'-' {
        year = push(year, text.at(at))?;
        at += 1;
    }
    if at < 5 {
        return None;
    }
    let year = signed(year, text.at(0) == b'-', i32::MAX as u64)?;
    let (month, at) = field(text, at + 1)?;
    if at >= len {
        return None;
    }
    let (day, at) = field(text, at + 1)?;
    if at < len {
        return None;
    }
    let (era, year) = (year.div_euclid(400), year.rem_euclid(400));
    let days = era * ERA + i64::from(days_of(year as u32, month, day)?);
    (days as i32 as i64 == days).then_some(days as i32)
}

/// Reads digits, perhaps after a plus, up to a hyphen or the end, and returns the position of that, too. A
/// number that is too large for a month or a day is returned as some number that is too large.
#[inline(always)]
fn field(text: impl Bytes, mut at: u64) -> Option<(u32, u64)> {
    let (len, mut number, mut any) = (text.len(), 0, false);
    if at < len && text.at(at) == b'+' {
        at += 1;
    }
    while at < len && text.at(at) != b'-' {
        let digit = digit(text.at(at));
        if digit > 9 {
            return None;
        }
        number = if number > 99 { 100 } else { number * 10 + digit };
        any = true;
        at += 1;
    }
    any.then_some((number, at))
}
