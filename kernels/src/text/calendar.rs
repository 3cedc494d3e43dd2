//! Conversion of days to years, months and days of the month, and back: the Gregorian calendar, extended in
//! both directions.
//!
//! The one idea: years begin in March, so that a leap day is a year's last day, and a day's year and month
//! are quotients of linear functions of the day. The multipliers are those of Neri and Schneider (Euclidean
//! affine functions and their application to calendar algorithms, 2022). All divisors are constants, and no
//! division has 64 bits.

/// The seconds since 1970 of the first and the last second that chrono has a date for, in the years -262143
/// and 262142. arrow-cast asks chrono, so a second outside these has no text, no time of day in a zone, and
/// no reading as a wall clock.
pub const SECONDS: (i64, i64) = (-8_334_601_228_800, 8_210_266_876_799);

/// The number of seconds in a day.
pub const DAY: i64 = 86_400;

/// The number of days in 400 years, after which the calendar repeats.
pub const ERA: i64 = 146_097;

/// The number of periods of 400 years between the year 0 and the origin of the calculation, so that all
/// numbers are positive.
const ERAS_BEFORE: u32 = 656;

/// The number of days from March of the year 0 to 1970.
const EPOCH: u32 = 719_468;

/// A date of the Gregorian calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Date {
    /// The year; the year 0 precedes the year 1.
    pub year: i32,
    /// The month, from 1.
    pub month: u32,
    /// The day of the month, from 1.
    pub day: u32,
}

/// Returns whether chrono has a date for a second.
#[inline(always)]
pub const fn holds(seconds: i64) -> bool {
    seconds >= SECONDS.0 && seconds <= SECONDS.1
}

/// Returns the day and the second of the day of a second that chrono has a date for.
#[inline(always)]
pub const fn day_and_second(seconds: i64) -> (i32, u32) {
    // A number of whole days that makes all numbers positive, so that a plain division is enough.
    const MORE: i64 = 100_000_000;
    const { assert!(SECONDS.0 + MORE * DAY > 0) };
    let seconds = seconds.wrapping_add(MORE * DAY) as u64;
    let days = seconds / DAY as u64;
    (days.wrapping_sub(MORE as u64) as i32, seconds.wrapping_sub(days.wrapping_mul(DAY as u64)) as u32)
}

/// Returns the date of a day since 1970; chrono MUST have a date for it.
#[inline(always)]
pub const fn date_of(days: i32) -> Date {
    let day = (days as u32).wrapping_add(EPOCH + ERAS_BEFORE * ERA as u32);
    // Centuries, then years of the century, then days of the year. The unit is a quarter day, in which leap
    // years are regular.
    let quarters = 4 * day + 3;
    let century = quarters / ERA as u32;
    let quarters = (quarters % ERA as u32) | 3;
    let years = quarters as u64 * 2_939_745;
    let year = (100 * century).wrapping_add((years >> 32) as u32);
    let day = years as u32 / 2_939_745 / 4;
    let months = 2141 * day + 197_913;
    let (month, day) = (months >> 16, (months & 0xffff) / 2141);
    let next = month > 12;
    Date {
        year: year.wrapping_sub(400 * ERAS_BEFORE).wrapping_add(next as u32) as i32,
        month: if next { month - 12 } else { month },
        day: day + 1,
    }
}

/// Returns the days since 1970 of a date in a year from 0 to 9999; the date may be invalid.
#[inline(always)]
pub const fn days_of(year: u32, month: u32, day: u32) -> Option<i32> {
    let is_month = month.wrapping_sub(1) < 12;
    // A year that 25 divides is a leap year if 16 does too; any other year is one if 4 divides it.
    let leap = year & (if year % 25 == 0 { 15 } else { 3 }) == 0;
    let last = if month == 2 { 28 + leap as u32 } else { 30 | (month ^ month >> 3) };
    if !is_month | (day.wrapping_sub(1) >= last) {
        return None;
    }
    let before_march = month < 3;
    let (year, month) = (year + 400 - before_march as u32, if before_march { month + 12 } else { month });
    let century = year / 100;
    let days = year * 365 + year / 4 - century + century / 4 + (979 * month - 2919) / 32 + day;
    Some((days as i32).wrapping_sub((EPOCH + ERA as u32 + 1) as i32))
}
