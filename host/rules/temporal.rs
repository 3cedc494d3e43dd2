//! Rules for dates, times, timestamps, durations and intervals.

use std::marker::PhantomData;

use arrow_schema::TimeUnit;
use bowstring_kernels::map::function::divide::Divisor;
use bowstring_kernels::map::function::integer::{Integer, Magnitude};
use bowstring_kernels::map::function::scale::{Bounds, Down, Rounding, Up};
use bowstring_kernels::map::function::temporal::{Days, DurationToInterval, IntervalToDuration, TimeOfDay};
use bowstring_kernels::map::function::{I256, Number, U256};
use bowstring_kernels::map::functions::Function;

use super::rule::{CastRule, apply, count, with};
use crate::expr::per_second;

/// The time zone of a timestamp, by name.
pub(super) type Zone<'a> = Option<&'a str>;

/// The length of a day in Date64's unit.
pub(super) const DAY_IN_MILLISECONDS: i64 = 86_400_000;

/// The first and last second of chrono's `NaiveDateTime`, since 1970: the years -262143 to 262142. arrow-cast
/// uses chrono for every cast with a time zone, so values outside of this range do not fit.
const CALENDAR: (i128, i128) = (-8_334_601_228_800, 8_210_266_876_799);

/// The range of all `i64` values.
const ALL: (i128, i128) = (i64::MIN as i128, i64::MAX as i128);

/// The instants of the calendar in this unit.
fn calendar(unit: TimeUnit) -> (i128, i128) {
    let per_second = per_second(unit) as i128;
    (CALENDAR.0 * per_second, (CALENDAR.1 + 1) * per_second - 1)
}

/// The first and last of those instants that fit into 64 bits.
pub(crate) fn instants(unit: TimeUnit) -> [i64; 2] {
    let (first, last) = common(calendar(unit), ALL);
    [first as i64, last as i64]
}

/// The intersection of two ranges.
fn common(a: (i128, i128), b: (i128, i128)) -> (i128, i128) {
    (a.0.max(b.0), a.1.min(b.1))
}

/// The part of a range that fits into a type.
fn bounds<A: Integer>(range: (i128, i128)) -> Bounds<A> {
    let end = |limit: A, value: i128, beyond: bool| {
        if beyond { limit } else { A::truncate(I256::from_i128(value)) }
    };
    let (least, greatest) = (A::LEAST.widen(), A::GREATEST.widen());
    Bounds {
        least: end(A::LEAST, range.0, I256::from_i128(range.0) <= least),
        greatest: end(A::GREATEST, range.1, I256::from_i128(range.1) >= greatest),
    }
}

/// `x * factor + addend` or `x / divisor + addend`, one of them 1, in types of 32 or 64 bits. The result
/// before the addition must be in the range, which contains 0.
fn scale(from: Number, to: Number, factor: i64, divisor: i64, range: (i128, i128), addend: i64) -> CastRule {
    count!(
        from,
        A,
        count!(to, B, {
            let ends = (B::LEAST.widen().low as i128, B::GREATEST.widen().low as i128);
            let range = common(range, ends);
            Some(if divisor == 1 {
                let factor = factor as i128;
                // Division towards zero gives the least and greatest inputs that stay in the range.
                let bounds = bounds::<A>((range.0 / factor, range.1 / factor));
                let factor = B::truncate(I256::from_i128(factor));
                apply(Function::Up, Up { bounds, factor, addend }, excludes(&bounds))
            } else {
                // Truncated inputs reach at most the next quotient.
                let wide = divisor as i128;
                let bounds = bounds::<A>(((range.0 - 1) * wide + 1, (range.1 + 1) * wide - 1));
                let divisor = <A as Integer>::Magnitude::from_wide(U256::from_low(divisor as u128));
                let conversion = Down::<A, B>::new(bounds, divisor, Rounding::TowardZero, addend);
                apply(Function::Down, conversion, excludes(&bounds))
            })
        })
    )
    .unwrap_or(CastRule::Never)
}

/// Whether some input is out of bounds.
fn excludes<A: Integer>(bounds: &Bounds<A>) -> bool {
    bounds.least != A::LEAST || bounds.greatest != A::GREATEST
}

/// The rule for multiplication or division; results outside of the target type do not fit.
pub(super) fn rescale(from: Number, to: Number, factor: i64, divisor: i64) -> CastRule {
    scale(from, to, factor, divisor, ALL, 0)
}

/// The factor and divisor between two units; one of them is 1.
fn ratio(from: TimeUnit, to: TimeUnit) -> (i64, i64) {
    let (from, to) = (per_second(from), per_second(to));
    if to >= from { (to / from, 1) } else { (1, from / to) }
}

/// The rule for a count in one unit to a count in another.
pub(super) fn change_unit(a: Number, from: TimeUnit, b: Number, to: TimeUnit) -> CastRule {
    let (factor, divisor) = ratio(from, to);
    if a == b && from == to { CastRule::Same } else { rescale(a, b, factor, divisor) }
}

/// The rule for a count without a zone (days or a time unit) to a timestamp.
pub(super) fn to_timestamp(
    from: Number,
    factor: i64,
    divisor: i64,
    unit: TimeUnit,
    zone: Zone<'_>,
) -> CastRule {
    let whole = |range, addend| scale(from, Number::I64, factor, divisor, range, addend);
    match (zone, seconds_east(zone)) {
        (None, _) => whole(ALL, 0),
        (Some(_), None) => CastRule::NeedsZone,
        // The wall clock time stays and the instant changes. Both must be in the calendar. (arrow-cast panics
        // if only the wall clock time is.)
        (Some(_), Some(east)) => {
            let offset = i64::from(east) * per_second(unit);
            let calendar = common(calendar(unit), ALL);
            let moved = (calendar.0 + offset as i128, calendar.1 + offset as i128);
            whole(common(calendar, moved), -offset)
        }
    }
}

/// The rule for a timestamp to a timestamp.
pub(super) fn between_timestamps(
    from: TimeUnit,
    from_zone: Zone<'_>,
    to: TimeUnit,
    to_zone: Zone<'_>,
) -> CastRule {
    let (factor, divisor) = ratio(from, to);
    match (from_zone, to_zone) {
        (None, Some(_)) => to_timestamp(Number::I64, factor, divisor, to, to_zone),
        _ => change_unit(Number::I64, from, Number::I64, to),
    }
}

/// The offset of a zone in a unit, as days (0 or -1) and a part of a day.
fn offset(unit: TimeUnit, east: i32) -> (i64, u64) {
    let (offset, day) = (east as i64 * per_second(unit), 86_400 * per_second(unit));
    (offset.div_euclid(day), offset.rem_euclid(day) as u64)
}

/// The offset from UTC in seconds, positive to the east; 0 without a zone. `None` if only the time zone
/// database knows it.
///
/// Offsets of the forms `+hh:mm`, `+hhmm` and `+hh` are fixed and below a day, and UTC has offset 0. All
/// other names, including invalid ones (such as `Z`), are left to arrow-cast and its database.
pub(super) fn seconds_east(zone: Zone<'_>) -> Option<i32> {
    let Some(name) = zone else { return Some(0) };
    if matches!(name, "UTC" | "Etc/UTC") {
        return Some(0);
    }
    let (sign, digits) = match name.as_bytes() {
        [sign, h, hh, b':', m, mm] | [sign, h, hh, m, mm] => (sign, [*h, *hh, *m, *mm]),
        [sign, h, hh] => (sign, [*h, *hh, b'0', b'0']),
        _ => return None,
    };
    if !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let [h, hh, m, mm] = digits.map(|digit| i32::from(digit - b'0'));
    let seconds = (h * 10 + hh) * 3600 + (m * 10 + mm) * 60;
    match sign {
        b'+' if seconds < 86_400 => Some(seconds),
        b'-' if seconds < 86_400 => Some(-seconds),
        _ => None,
    }
}

/// The length of a day in this unit, as a divisor.
fn day(unit: TimeUnit) -> Divisor<u64> {
    Divisor::new(86_400 * per_second(unit) as u64)
}

/// The rule for a timestamp to Date32 (I32) or Date64 (I64).
pub(super) fn days(unit: TimeUnit, zone: Zone<'_>, to: Number) -> CastRule {
    let Some(east) = seconds_east(zone) else { return CastRule::NeedsZone };
    let (offset_days, offset) = offset(unit, east);
    let day_length = 86_400 * per_second(unit) as i128;
    let (factor, least, greatest) = match to {
        Number::I32 => (1, i32::MIN as i128, i32::MAX as i128),
        _ => (DAY_IN_MILLISECONDS, ALL.0 / DAY_IN_MILLISECONDS as i128, ALL.1 / DAY_IN_MILLISECONDS as i128),
    };
    let range = match zone {
        None => (least * day_length, (greatest + 1) * day_length - 1),
        // Both the instant and the wall clock time must be in the calendar; then the day fits. (arrow-cast
        // panics if only the instant is.)
        Some(_) => {
            let (calendar, east) = (calendar(unit), east as i128 * per_second(unit) as i128);
            common(calendar, (calendar.0 - east, calendar.1 - east))
        }
    };
    let bounds = bounds::<i64>(range);
    count!(to, B, {
        let to = PhantomData::<B>;
        let conversion = Days { bounds, day: day(unit), offset, offset_days, factor, to };
        Some(apply(Function::Days, conversion, excludes(&bounds)))
    })
    .unwrap_or(CastRule::Never)
}

/// The rule for a timestamp to Time32 (I32) or Time64 (I64) of this unit.
pub(super) fn time_of_day(unit: TimeUnit, zone: Zone<'_>, to: Number, target: TimeUnit) -> CastRule {
    let Some(east) = seconds_east(zone) else { return CastRule::NeedsZone };
    let (_, offset) = offset(unit, east);
    let bounds = bounds::<i64>(if zone.is_some() { calendar(unit) } else { ALL });
    let (factor, divisor) = ratio(unit, target);
    let (factor, divisor) = (factor as u64, Divisor::new(divisor as u64));
    count!(to, B, {
        let to = PhantomData::<B>;
        let conversion = TimeOfDay { bounds, day: day(unit), offset, factor, divisor, to };
        Some(apply(Function::TimeOfDay, conversion, excludes(&bounds)))
    })
    .unwrap_or(CastRule::Never)
}

/// The rule for a duration to months, days and nanoseconds.
pub(super) fn duration_to_interval(unit: TimeUnit) -> CastRule {
    let factor = ratio(unit, TimeUnit::Nanosecond).0;
    let bounds = bounds::<i64>((ALL.0 / factor as i128, ALL.1 / factor as i128));
    apply(Function::DurationToInterval, DurationToInterval { bounds, factor }, excludes(&bounds))
}

/// The rule for months, days and nanoseconds to a duration.
pub(super) fn interval_to_duration(unit: TimeUnit) -> CastRule {
    let divisor = Divisor::new(ratio(unit, TimeUnit::Nanosecond).0 as u64);
    apply(Function::IntervalToDuration, IntervalToDuration { divisor }, true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_are_fixed_where_arrow_says_so() {
        let east = |name| seconds_east(Some(name));
        assert_eq!(east("+02:00"), Some(7200));
        assert_eq!(east("-0930"), Some(-34_200));
        assert_eq!(east("+09"), Some(32_400));
        assert_eq!(east("+00:75"), Some(4500));
        assert_eq!((east("UTC"), east("Etc/UTC"), seconds_east(None)), (Some(0), Some(0), Some(0)));
        for name in
            ["", "Z", "utc", "+9", "+24:00", "02:00", "+0:200", "+aa:bb", "é2:00", "+02-00", "Etc/GMT+2"]
        {
            assert_eq!(east(name), None, "{name}");
        }
    }
}
