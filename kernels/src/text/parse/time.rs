//! Times of day as text: Time32 and Time64.
//!
//! The one idea: `12:34:56` and a fraction are read a word at a time, as in a timestamp. The other forms that
//! arrow-cast accepts (hours of one digit, no seconds, AM or PM) are read byte by byte. Any other text may
//! still be an integer.

use super::moment::{Clock, clock};
use super::pieces::{Part, integer};
use crate::text::bytes::Bytes;
use crate::text::digits::digit;
use crate::text::unit::Unit;

/// Reads a text as a time in a unit; Arrow stores seconds and milliseconds in 32 bits. A bare integer is a
/// number of units.
#[inline(always)]
pub fn read_time(text: impl Bytes, unit: Unit) -> Option<i64> {
    if text.len() >= 8
        && let Some((clock, end)) = clock(text, 0)
        && end == text.len()
    {
        return Some(in_unit(clock, unit));
    }
    unusual(text, unit)
}

/// Reads a text that is not in the usual form. On a CPU, this code is kept apart from that of the usual form.
#[cfg_attr(any(target_arch = "nvptx64", target_arch = "amdgpu"), inline(always))]
#[cfg_attr(not(any(target_arch = "nvptx64", target_arch = "amdgpu")), inline(never), cold)]
fn unusual(text: impl Bytes, unit: Unit) -> Option<i64> {
    if let Some(clock) = time(Part::all(text)) {
        return Some(in_unit(clock, unit));
    }
    let limit = if unit.cuts() < 2 { i32::MAX as u64 } else { i64::MAX as u64 };
    if let Some(number) = integer(text, limit) {
        return Some(number);
    }
    let trimmed = Part::all(text).trimmed();
    if trimmed.len() == text.len() {
        return None;
    }
    Some(in_unit(time(trimmed)?, unit))
}

/// Turns a leap second into the first second of the next minute.
#[inline(always)]
fn in_unit(clock: Clock, unit: Unit) -> i64 {
    i64::from(clock.second) * unit.per_second() + i64::from(unit.of_nanoseconds(clock.nanoseconds))
}

/// Reads an hour of one or two digits, minutes, and perhaps seconds, their fraction, and AM or PM.
#[inline(always)]
fn time<B: Bytes>(text: Part<B>) -> Option<Clock> {
    let mut len = text.len();
    if len < 4 {
        return None;
    }
    let half = text.at(len - 2) | 0x20;
    let halved =
        text.at(len - 3) == b' ' && text.at(len - 1) | 0x20 == b'm' && (half == b'a' || half == b'p');
    if halved {
        len -= 3;
    }
    let text = text.first(len);
    if len < 4 {
        return None;
    }
    let (hour, at) = if text.at(1) == b':' {
        (two_digits(0, digit(text.at(0)))?, 2)
    } else if text.at(2) == b':' {
        (two_digits(digit(text.at(0)), digit(text.at(1)))?, 3)
    } else {
        return None;
    };
    if len < at + 2 {
        return None;
    }
    let minute = two_digits(digit(text.at(at)), digit(text.at(at + 1)))?;
    let (mut second, mut nanoseconds) = (0, 0);
    if len > at + 2 {
        if text.at(at + 2) != b':' || len < at + 5 {
            return None;
        }
        second = two_digits(digit(text.at(at + 3)), digit(text.at(at + 4)))?;
        if len > at + 5 {
            if text.at(at + 5) != b'.' {
                return None;
            }
            nanoseconds = fraction(text, at + 6)?;
        }
    }
    let hour = match (halved, half == b'p') {
        (false, _) => hour,
        (true, _) if hour.wrapping_sub(1) > 11 => return None,
        (true, after_noon) => hour % 12 + 12 * u32::from(after_noon),
    };
    Clock::of(hour, minute, second, nanoseconds)
}

/// Returns two digits as a number.
#[inline(always)]
fn two_digits(tens: u32, ones: u32) -> Option<u32> {
    (tens < 10 && ones < 10).then(|| tens * 10 + ones)
}

/// Reads the digits from a byte to the end, at least one, as nanoseconds; the first nine count.
#[inline(always)]
fn fraction(text: impl Bytes, mut at: u64) -> Option<u32> {
    if at == text.len() {
        return None;
    }
    let (mut nanoseconds, mut scale) = (0, 100_000_000);
    while at < text.len() {
        let digit = digit(text.at(at));
        if digit > 9 {
            return None;
        }
        nanoseconds += digit * scale;
        scale /= 10;
        at += 1;
    }
    Some(nanoseconds)
}
