//! Conversion of instants to days and times of day, and of intervals.
//!
//! Days are rounded down, so that an instant just before the epoch belongs to the day before. (Larger time
//! units are rounded toward zero, see [`super::scale`].) A zone is a fixed offset here. It is added after the
//! division by the day: an instant in nanoseconds near the end of 64 bits plus an offset would overflow, and
//! arrow-cast, which counts seconds separately, does not.

use super::ValueFunction;
use super::divide::Divisor;
use super::integer::Integer;
use super::scale::Bounds;
use core::marker::PhantomData;

/// The quotient rounded down, and the remainder, at least 0.
#[inline(always)]
fn divide_down(x: i64, divisor: &Divisor<u64>) -> (i64, u64) {
    let (negative, magnitude) = x.split();
    let (quotient, remainder) = divisor.divide(magnitude);
    let short = negative & (remainder != 0);
    let quotient = if negative { (quotient as i64).wrapping_neg() } else { quotient as i64 };
    (
        quotient.wrapping_sub(short as i64),
        if short { divisor.value.wrapping_sub(remainder) } else { remainder },
    )
}

/// Converts a timestamp to the day it falls on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Days<B> {
    /// The bounds of the instants that fit.
    pub bounds: Bounds<i64>,
    /// A day in the timestamp's unit.
    pub day: Divisor<u64>,
    /// The zone's offset, modulo a day, in the timestamp's unit: at least 0.
    pub offset: u64,
    /// -1 if the zone's offset is negative, else 0.
    pub offset_days: i64,
    /// The length of a day in the target's unit: 1, or 86,400,000 milliseconds.
    pub factor: i64,
    /// The type of the result.
    pub to: PhantomData<B>,
}

impl<B: Integer> ValueFunction for Days<B> {
    type From = i64;
    type To = B;
    #[inline(always)]
    fn call(&self, x: i64) -> (B, bool) {
        let (days, within) = divide_down(x, &self.day);
        let next = (within.wrapping_add(self.offset) >= self.day.value) as i64;
        let days = days.wrapping_add(self.offset_days).wrapping_add(next);
        (B::truncate(days.wrapping_mul(self.factor).widen()), self.bounds.hold(x))
    }
}

/// Converts a timestamp to the time of its day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeOfDay<B> {
    /// The bounds of the instants that fit.
    pub bounds: Bounds<i64>,
    /// A day in the timestamp's unit.
    pub day: Divisor<u64>,
    /// The zone's offset, modulo a day, in the timestamp's unit: at least 0.
    pub offset: u64,
    /// Target units in a unit of the timestamp, or 1 if they are larger.
    pub factor: u64,
    /// Timestamp's units in a unit of the target, or 1 if they are larger.
    pub divisor: Divisor<u64>,
    /// The type of the result.
    pub to: PhantomData<B>,
}

impl<B: Integer> ValueFunction for TimeOfDay<B> {
    type From = i64;
    type To = B;
    #[inline(always)]
    fn call(&self, x: i64) -> (B, bool) {
        let (_, within) = divide_down(x, &self.day);
        let local = within.wrapping_add(self.offset);
        let local = if local >= self.day.value { local - self.day.value } else { local };
        // The product is at most 86,400 * 10^9, since one of the two is 1.
        let (time, _) = self.divisor.divide(local.wrapping_mul(self.factor));
        (B::truncate((time as i64).widen()), self.bounds.hold(x))
    }
}

/// A month-day-nano interval in memory, as one integer: months, days, 64 bits of nanoseconds, low to high.
#[inline(always)]
fn interval(months: i32, days: i32, nanoseconds: i64) -> i128 {
    (months as u32 as i128) | ((days as u32 as i128) << 32) | ((nanoseconds as i128) << 64)
}

/// Converts a duration to a month-day-nano interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DurationToInterval {
    /// The bounds of the durations that fit.
    pub bounds: Bounds<i64>,
    /// Nanoseconds in a unit.
    pub factor: i64,
}

impl ValueFunction for DurationToInterval {
    type From = i64;
    type To = i128;
    #[inline(always)]
    fn call(&self, x: i64) -> (i128, bool) {
        (interval(0, 0, x.wrapping_mul(self.factor)), self.bounds.hold(x))
    }
}

/// Converts a month-day-nano interval to a duration. Intervals with months or days do not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IntervalToDuration {
    /// Nanoseconds in a unit.
    pub divisor: Divisor<u64>,
}

impl ValueFunction for IntervalToDuration {
    type From = i128;
    type To = i64;
    #[inline(always)]
    fn call(&self, x: i128) -> (i64, bool) {
        let (negative, magnitude) = ((x >> 64) as i64).split();
        let quotient = self.divisor.divide(magnitude).0 as i64;
        (if negative { quotient.wrapping_neg() } else { quotient }, x as u64 == 0)
    }
}

/// Converts a year-month interval (months) to a month-day-nano interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MonthsToInterval;

impl ValueFunction for MonthsToInterval {
    type From = i32;
    type To = i128;
    const ALWAYS: bool = true;
    #[inline(always)]
    fn call(&self, x: i32) -> (i128, bool) {
        (interval(x, 0, 0), true)
    }
}

/// Converts a day-time interval (days, then milliseconds, low to high) to a month-day-nano interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DayTimeToInterval;

impl ValueFunction for DayTimeToInterval {
    type From = i64;
    type To = i128;
    const ALWAYS: bool = true;
    #[inline(always)]
    fn call(&self, x: i64) -> (i128, bool) {
        // The product of 32 bits and a million fits 64 bits.
        (interval(0, x as i32, (x >> 32) * 1_000_000), true)
    }
}
