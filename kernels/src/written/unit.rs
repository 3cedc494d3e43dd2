//! Units of time.
//!
//! The one idea: a unit is a number, how many times a second is cut into a thousand, so that one entry of a device serves all four and
//! a caller that passes a constant gets code for it alone. What depends on it is computed or branched on, never looked up.

/// A unit of time: what Arrow calls `TimeUnit`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unit(u32);

impl Unit {
    /// Seconds.
    pub const SECOND: Unit = Unit(0);
    /// Milliseconds.
    pub const MILLISECOND: Unit = Unit(1);
    /// Microseconds.
    pub const MICROSECOND: Unit = Unit(2);
    /// Nanoseconds.
    pub const NANOSECOND: Unit = Unit(3);

    /// By its number: how many times a second is cut into a thousand, at most three.
    #[inline(always)]
    pub const fn new(cuts: u32) -> Unit {
        Unit(cuts)
    }

    /// How many times a second is cut into a thousand.
    #[inline(always)]
    pub const fn cuts(self) -> u32 {
        self.0
    }

    /// How many make a second.
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

    /// How many nanoseconds one has.
    #[inline(always)]
    pub const fn nanoseconds(self) -> i64 {
        Unit(3 - self.0).per_second()
    }

    /// Whole seconds, rounded down, and the nanoseconds above them.
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

    /// Whole seconds, rounded toward zero, and what is left of the unit.
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

    /// Nanoseconds below two seconds, in this unit, rounded down.
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

    /// Seconds of the calendar and nanoseconds (a leap second's are a thousand million or more), if 64 bits hold them. Whole seconds
    /// know no leap seconds.
    #[inline(always)]
    pub const fn join(self, seconds: i64, nanoseconds: u32) -> Option<i64> {
        if self.0 < 3 {
            let rest = if self.0 == 0 { 0 } else { self.of_nanoseconds(nanoseconds) as i64 };
            return Some(seconds.wrapping_mul(self.per_second()).wrapping_add(rest));
        }
        // The first second that is not wholly in range is begun from its end, and none before it.
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

    /// A count of this unit as one of another, toward zero, if 64 bits hold it.
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
