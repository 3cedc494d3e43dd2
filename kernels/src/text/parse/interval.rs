//! Intervals as text: `1 year 2 months`.
//!
//! The one idea: a text is read once, from its first byte to its last, into months, days and nanoseconds. The
//! kind of interval only matters before (for the unit of a number without one) and after (for the range of
//! the kind). The name of a unit is one or two words of letters, compared as numbers.

use super::pieces::{push, signed, space_at};
use crate::text::bytes::{Bytes, pack};
use crate::text::digits::digit;
use crate::text::unit::IntervalKind;

/// An interval in months, days and nanoseconds.
#[derive(Clone, Copy, Default)]
struct Interval {
    months: i32,
    days: i32,
    nanoseconds: i64,
}

/// A number of units: a whole number, and a fraction of the same sign in units of 10^-15.
#[derive(Clone, Copy)]
struct Amount {
    whole: i64,
    fraction: i64,
}

/// The units, from a century to a nanosecond.
mod units {
    pub const CENTURY: u32 = 0;
    pub const DECADE: u32 = 1;
    pub const YEAR: u32 = 2;
    pub const MONTH: u32 = 3;
    pub const WEEK: u32 = 4;
    pub const DAY: u32 = 5;
    pub const HOUR: u32 = 6;
    pub const MINUTE: u32 = 7;
    pub const SECOND: u32 = 8;
    pub const MILLISECOND: u32 = 9;
    pub const MICROSECOND: u32 = 10;
    pub const NANOSECOND: u32 = 11;
}
use units::*;

/// Reads a text as an interval of a kind, in the bits of its value.
#[inline(always)]
pub fn read_interval(text: impl Bytes, kind: IntervalKind) -> Option<i128> {
    // The unit of a number without a unit, by the kind's number.
    let alone = (YEAR | DAY << 8 | MONTH << 16) >> (8 * kind as u32) & 0xff;
    let interval = read(text, alone)?;
    let Interval { months, days, nanoseconds } = interval;
    match kind {
        IntervalKind::YearMonth => (days == 0 && nanoseconds == 0).then_some(i128::from(months as u32)),
        IntervalKind::DayTime => {
            let days = months.checked_mul(30)?.checked_add(days)?;
            let milliseconds = nanoseconds / 1_000_000;
            let fits = milliseconds * 1_000_000 == nanoseconds && milliseconds == milliseconds as i32 as i64;
            fits.then_some(i128::from(milliseconds as u32) << 32 | i128::from(days as u32))
        }
        IntervalKind::MonthDayNano => {
            Some(i128::from(nanoseconds) << 64 | i128::from(days as u32) << 32 | i128::from(months as u32))
        }
    }
}

/// Reads amounts with their units. A unit follows its amount in the same word or is the next word; the last
/// amount may have none.
#[inline(always)]
fn read(text: impl Bytes, alone: u32) -> Option<Interval> {
    let (len, mut at) = (text.len(), 0);
    let mut interval = Interval::default();
    let mut seen = 0u32;
    loop {
        let amount;
        (amount, at) = read_amount(text, at)?;
        let unit;
        if at == len {
            unit = alone;
        } else {
            // Skips one space between the amount and its unit, if there is one.
            (unit, at) = read_unit(text, at + space_at(text, at))?;
        }
        if seen >> unit & 1 != 0 {
            return None;
        }
        seen |= 1 << unit;
        interval = interval.and(amount, unit)?;
        if at == len {
            return Some(interval);
        }
        // Skips one space, if there is one; another amount must follow.
        at += space_at(text, at);
    }
}

/// Reads the amount at a byte, and returns where it ends: an optional minus, digits, and perhaps a point and
/// at most fifteen digits.
#[inline(always)]
fn read_amount(text: impl Bytes, start: u64) -> Option<(Amount, u64)> {
    let (len, mut at) = (text.len(), start);
    let negative = at < len && text.at(at) == b'-';
    at += u64::from(negative);
    let (from, mut whole) = (at, 0);
    while at < len && digit(text.at(at)) < 10 {
        whole = push(whole, text.at(at))?;
        at += 1;
    }
    let whole_digits = at - from;
    let (mut fraction, mut left) = (0u64, 15);
    let pointed = at < len && text.at(at) == b'.';
    if pointed {
        at += 1;
        while at < len && digit(text.at(at)) < 10 {
            if left == 0 {
                return None;
            }
            fraction = fraction * 10 + u64::from(digit(text.at(at)));
            left -= 1;
            at += 1;
        }
    }
    let none = if pointed { left == 15 } else { whole_digits == 0 };
    // An amount cannot continue with one of the other bytes that amounts consist of.
    let more = at < len && (text.at(at) == b'-' || text.at(at) == b'.');
    if none || more {
        return None;
    }
    while left > 0 {
        fraction *= 10;
        left -= 1;
    }
    let whole = signed(whole, negative, i64::MAX as u64)?;
    let fraction = if negative { (fraction as i64).wrapping_neg() } else { fraction as i64 };
    Some((Amount { whole, fraction }, at))
}

/// Reads the unit whose name begins at a byte and ends before white space or the end, and returns that
/// position, too.
#[inline(always)]
fn read_unit(text: impl Bytes, start: u64) -> Option<(u32, u64)> {
    let (len, mut at) = (text.len(), start);
    let (mut name, mut count) = (0u128, 0);
    while at < len && space_at(text, at) == 0 {
        let mut letter = text.at(at);
        at += 1;
        if letter == 0xe2 && at + 1 < len && text.at(at) == 0x84 && text.at(at + 1) == 0xaa {
            // The sign of kelvins counts as a capital K, too.
            letter = b'k';
            at += 2;
        }
        letter |= 0x20;
        if letter.wrapping_sub(b'a') > 25 || count == 12 {
            return None;
        }
        name |= u128::from(letter) << (8 * count);
        count += 1;
    }
    Some((unit(name as u64, (name >> 64) as u32, count)?, at))
}

/// Returns the unit with a name in lower case, given by its first eight letters, the next four, and their
/// number.
#[inline(always)]
fn unit(mut name: u64, mut rest: u32, count: u32) -> Option<u32> {
    /// Compares the name with a list of names.
    macro_rules! is {
        ($($text:literal)*) => { $((name == const { pack($text) }))|* };
    }
    if count < 8 && is!(b"c" b"century") || name == const { pack(b"centurie") } && rest == b's' as u32 {
        return Some(CENTURY);
    }
    if count < 3 {
        return if is!(b"y" b"yr") {
            Some(YEAR)
        } else if is!(b"w") {
            Some(WEEK)
        } else if is!(b"d") {
            Some(DAY)
        } else if is!(b"h" b"hr") {
            Some(HOUR)
        } else if is!(b"m") {
            Some(MINUTE)
        } else if is!(b"s") {
            Some(SECOND)
        } else if is!(b"ms") {
            Some(MILLISECOND)
        } else if is!(b"us") {
            Some(MICROSECOND)
        } else {
            None
        };
    }
    // The other names may be plural.
    let last = count - 1;
    let shift = 8 * (last & 7);
    if last < 8 && (name >> shift) as u8 == b's' {
        name &= !(0xff << shift);
    } else if last >= 8 && (rest >> shift) as u8 == b's' {
        rest &= !(0xff << shift);
    }
    let is_second = rest == const { pack(b"ond") as u32 };
    if rest != 0 {
        return if is_second && is!(b"millisec") {
            Some(MILLISECOND)
        } else if is_second && is!(b"microsec") {
            Some(MICROSECOND)
        } else if rest == const { pack(b"nd") as u32 } && is!(b"nanoseco") {
            Some(NANOSECOND)
        } else {
            None
        };
    }
    if is!(b"cent") {
        Some(CENTURY)
    } else if is!(b"dec" b"decade") {
        Some(DECADE)
    } else if is!(b"yr" b"year") {
        Some(YEAR)
    } else if is!(b"mon" b"month") {
        Some(MONTH)
    } else if is!(b"week") {
        Some(WEEK)
    } else if is!(b"day") {
        Some(DAY)
    } else if is!(b"hr" b"hour") {
        Some(HOUR)
    } else if is!(b"min" b"minute") {
        Some(MINUTE)
    } else if is!(b"sec" b"second") {
        Some(SECOND)
    } else if is!(b"msec" b"msecond") {
        Some(MILLISECOND)
    } else if is!(b"usec" b"usecond") {
        Some(MICROSECOND)
    } else {
        None
    }
}

impl Interval {
    /// Adds an amount of a unit. A fraction of a unit above a month counts as months, a fraction of a month
    /// as days, and a fraction of a shorter unit as nanoseconds.
    #[inline(always)]
    fn and(self, Amount { whole, fraction }: Amount, unit: u32) -> Option<Interval> {
        let Interval { mut months, mut days, mut nanoseconds } = self;
        if unit <= DAY {
            // A count that does not fit 32 bits before it is multiplied does not fit afterwards, either.
            let count = whole as i32 as i64;
            if count != whole {
                return None;
            }
            if unit <= YEAR {
                let (count, more) = if unit == CENTURY {
                    (count * 1200, fraction * 12 / 10_000_000_000_000)
                } else if unit == DECADE {
                    (count * 120, fraction * 12 / 100_000_000_000_000)
                } else {
                    (count * 12, fraction * 12 / 1_000_000_000_000_000)
                };
                months = months.checked_add(narrow(count + more)?)?;
            } else if unit == MONTH {
                months = months.checked_add(narrow(count)?)?;
                days = days.checked_add((fraction * 3 / 100_000_000_000_000) as i32)?;
            } else {
                let length = if unit == WEEK { 7 } else { 1 };
                days = days.checked_add(narrow(count * length)?)?;
                nanoseconds = nanoseconds.checked_add(fraction * length * 864 / 10_000)?;
            }
            return Some(Interval { months, days, nanoseconds });
        }
        let (length, part) = if unit == HOUR {
            (3_600_000_000_000, fraction * 36 / 10_000)
        } else if unit == MINUTE {
            (60_000_000_000, fraction * 6 / 100_000)
        } else if unit == SECOND {
            (1_000_000_000, fraction / 1_000_000)
        } else if unit == MILLISECOND {
            (1_000_000, fraction / 1_000_000_000)
        } else if unit == MICROSECOND {
            (1_000, fraction / 1_000_000_000_000)
        } else {
            (1, 0)
        };
        let more = whole.checked_mul(length)?.checked_add(part)?;
        Some(Interval { months, days, nanoseconds: nanoseconds.checked_add(more)? })
    }
}

/// Returns the number in 32 bits, if it fits.
#[inline(always)]
fn narrow(value: i64) -> Option<i32> {
    (value == value as i32 as i64).then_some(value as i32)
}
