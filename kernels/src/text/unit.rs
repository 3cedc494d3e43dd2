//! Units of time.
//!
//! The one idea: a unit is the number of times that a second is divided by a thousand, so one entry of a
//! device serves all four units, and a caller that passes a constant gets code for it alone. Quantities that
//! depend on a unit are computed or chosen by branches, never looked up.

/// A unit of time: Arrow's `TimeUnit`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unit(u32);

impl Unit {
    /// The unit of whole seconds.
    pub const SECOND: Unit = Unit(0);
    /// The unit of 10^-3 seconds.
    pub const MILLISECOND: Unit = Unit(1);
    /// The unit of 10^-6 seconds.
    pub const MICROSECOND: Unit = Unit(2);
    /// The unit of 10^-9 seconds.
    pub const NANOSECOND: Unit = Unit(3);

    /// Returns the unit for a number: how many times a second is divided by a thousand, at most three.
    #[inline(always)]
    pub const fn new(cuts: u32) -> Unit {
        Unit(cuts)
    }

    /// Returns how many times a second is divided by a thousand.
    #[inline(always)]
    pub const fn cuts(self) -> u32 {
        self.0
    }

    /// Returns the number of units in a second.
    #[inline(always)]
    pub const fn per_second(self) -> i64 {
        let mut units = 1;
        if self.0 > 0 {
            units *= 1000;
        }
        if self.0 > 1 {
            units *= 1000;
        }
        if self.0 > 2 {
            units *= 1000;
        }
        units
    }

    /// Returns the number of nanoseconds in a unit.
    #[inline(always)]
    pub const fn nanoseconds(self) -> i64 {
        Unit(3 - self.0).per_second()
    }

    /// Splits a count into whole seconds, rounded down, and the nanoseconds above them.
    #[inline(always)]
    pub const fn split(self, value: i64) -> (i64, u32) {
        let seconds = if self.0 == 0 {
            value
        } else if self.0 == 1 {
            value.div_euclid(1_000)
        } else if self.0 == 2 {
            value.div_euclid(1_000_000)
        } else {
            value.div_euclid(1_000_000_000)
        };
        let rest = value.wrapping_sub(seconds.wrapping_mul(self.per_second()));
        (seconds, (rest as u32).wrapping_mul(self.nanoseconds() as u32))
    }

    /// Splits a count into whole seconds, rounded toward zero, and the remaining units.
    #[inline(always)]
    pub const fn split_toward_zero(self, value: i64) -> (i64, i64) {
        let seconds = if self.0 == 0 {
            value
        } else if self.0 == 1 {
            value / 1_000
        } else if self.0 == 2 {
            value / 1_000_000
        } else {
            value / 1_000_000_000
        };
        (seconds, value.wrapping_sub(seconds.wrapping_mul(self.per_second())))
    }

    /// Converts nanoseconds, which are below two seconds, to this unit, rounded down.
    #[inline(always)]
    pub const fn of_nanoseconds(self, nanoseconds: u32) -> u32 {
        if self.0 == 0 {
            nanoseconds / 1_000_000_000
        } else if self.0 == 1 {
            nanoseconds / 1_000_000
        } else if self.0 == 2 {
            nanoseconds / 1_000
        } else {
            nanoseconds
        }
    }

    /// Converts seconds of the calendar and nanoseconds to this unit, if the result fits 64 bits. A leap
    /// second has 1,000,000,000 nanoseconds or more; the unit of whole seconds has no leap seconds.
    #[inline(always)]
    pub const fn join(self, seconds: i64, nanoseconds: u32) -> Option<i64> {
        if self.0 < 3 {
            let rest = if self.0 == 0 { 0 } else { self.of_nanoseconds(nanoseconds) as i64 };
            return Some(seconds.wrapping_mul(self.per_second()).wrapping_add(rest));
        }
        // The first second that is only partly in range is computed from its end, and no second before it is
        // valid.
        let (least, greatest) = (-9_223_372_037, 9_223_372_036);
        if seconds < least || seconds > greatest {
            return None;
        }
        let negative = (seconds < 0) as i64;
        let whole = seconds.wrapping_add(negative).wrapping_mul(1_000_000_000);
        let part = (nanoseconds as i64).wrapping_sub(negative.wrapping_mul(1_000_000_000));
        let sum = whole.wrapping_add(part);
        if (part < 0) == (sum < whole) { Some(sum) } else { None }
    }

    /// Converts a count of this unit to another, rounded toward zero, if the result fits 64 bits.
    #[inline(always)]
    pub const fn rescale(self, value: i64, to: Unit) -> Option<i64> {
        if to.0 < self.0 {
            let cuts = self.0 - to.0;
            return Some(if cuts == 1 {
                value / 1_000
            } else if cuts == 2 {
                value / 1_000_000
            } else {
                value / 1_000_000_000
            });
        }
        value.checked_mul(Unit(to.0.wrapping_sub(self.0)).per_second())
    }
}

/// A kind of interval: Arrow's `IntervalUnit`. Fields of a value are listed as in memory, the lowest bits
/// first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntervalKind {
    /// The kind of 32 bits, which count months.
    YearMonth,
    /// The kind of 32 bits of days and 32 of milliseconds.
    DayTime,
    /// The kind of 32 bits of months, 32 of days and 64 of nanoseconds.
    MonthDayNano,
}

impl IntervalKind {
    /// Returns the kind with a number, in Arrow's order.
    #[inline(always)]
    pub const fn new(number: u64) -> IntervalKind {
        if number == 0 {
            IntervalKind::YearMonth
        } else if number == 1 {
            IntervalKind::DayTime
        } else {
            IntervalKind::MonthDayNano
        }
    }
}
