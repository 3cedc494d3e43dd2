//! Plans for dates, times, timestamps, durations and intervals.

use super::super::divide::Divisor;
use super::super::integer::{Integer, Magnitude};
use super::super::recipe::{Number, Operation, tag, with};
use super::super::scale::{Bounds, Down, Rounding, Up};
use super::super::temporal::{Days, DurationToInterval, IntervalToDuration, TimeOfDay};
use super::super::wide::{I256, U256};
use super::{Plan, Unit, Zone, convert};
use core::marker::PhantomData;

/// What Date64 counts in.
pub const DAY_IN_MILLISECONDS: i64 = 86_400_000;

/// The seconds since 1970 of the first and last second that a chrono `NaiveDateTime` can be: of the years
/// -262143 and 262142. arrow-cast asks chrono wherever a zone takes part, so what is outside does not fit.
const CALENDAR: (i128, i128) = (-8_334_601_228_800, 8_210_266_876_799);

/// Every `i64`.
const ALL: (i128, i128) = (i64::MIN as i128, i64::MAX as i128);

/// The instants of the calendar in this unit.
fn calendar(unit: Unit) -> (i128, i128) {
    let per_second = unit.per_second() as i128;
    (CALENDAR.0 * per_second, (CALENDAR.1 + 1) * per_second - 1)
}

/// What two ranges have in common.
fn common(a: (i128, i128), b: (i128, i128)) -> (i128, i128) {
    (a.0.max(b.0), a.1.min(b.1))
}

/// The part of a range that a type holds.
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
/// before the addition must be in the range, which holds 0.
fn scale(from: Number, to: Number, factor: i64, divisor: i64, range: (i128, i128), addend: i64) -> Plan {
    with!(from, A = I32 I64, with!(to, B = I32 I64, {
        let ends = (B::LEAST.widen().low as i128, B::GREATEST.widen().low as i128);
        let range = common(range, ends);
        Some(if divisor == 1 {
            let factor = factor as i128;
            // Divisions toward zero give the least and greatest input that stay in the range.
            let bounds = bounds::<A>((range.0 / factor, range.1 / factor));
            let factor = B::truncate(I256::from_i128(factor));
            convert(Operation::Up, Up { bounds, factor, addend }, excludes(&bounds))
        } else {
            // What is cut off leads no further than the next quotient.
            let wide = divisor as i128;
            let bounds = bounds::<A>(((range.0 - 1) * wide + 1, (range.1 + 1) * wide - 1));
            let divisor = <A as Integer>::Magnitude::from_wide(U256::from_low(divisor as u128));
            let conversion = Down::<A, B>::new(bounds, divisor, Rounding::TowardZero, addend);
            convert(Operation::Down, conversion, excludes(&bounds))
        })
    }))
    .unwrap_or(Plan::Never)
}

/// Whether some input is out of bounds.
fn excludes<A: Integer>(bounds: &Bounds<A>) -> bool {
    bounds.least != A::LEAST || bounds.greatest != A::GREATEST
}

/// Multiply or divide; what the target type does not hold does not fit.
pub fn rescale(from: Number, to: Number, factor: i64, divisor: i64) -> Plan {
    scale(from, to, factor, divisor, ALL, 0)
}

/// Factor and divisor between units, one of them 1.
fn ratio(from: Unit, to: Unit) -> (i64, i64) {
    let (from, to) = (from.per_second(), to.per_second());
    if to >= from { (to / from, 1) } else { (1, from / to) }
}

/// A count of one unit to a count of another.
pub fn change_unit(a: Number, from: Unit, b: Number, to: Unit) -> Plan {
    let (factor, divisor) = ratio(from, to);
    if a == b && from == to { Plan::Same } else { rescale(a, b, factor, divisor) }
}

/// A count without a zone (days or a unit of time) to a timestamp.
pub fn to_timestamp(from: Number, factor: i64, divisor: i64, unit: Unit, zone: Option<Zone>) -> Plan {
    match zone {
        None => scale(from, Number::I64, factor, divisor, ALL, 0),
        Some(Zone::Named) => Plan::NeedsZone,
        // The wall clock stays, the instant moves. The reading and the instant are both in the calendar.
        // (arrow-cast panics where the reading is and the instant is not.)
        Some(Zone::Fixed(east)) => {
            let offset = east as i64 * unit.per_second();
            let calendar = common(calendar(unit), ALL);
            let moved = (calendar.0 + offset as i128, calendar.1 + offset as i128);
            scale(from, Number::I64, factor, divisor, common(calendar, moved), -offset)
        }
    }
}

/// A timestamp to a timestamp.
pub fn between_timestamps(from: Unit, from_zone: Option<Zone>, to: Unit, to_zone: Option<Zone>) -> Plan {
    let (factor, divisor) = ratio(from, to);
    match (from_zone, to_zone) {
        (None, Some(_)) => to_timestamp(Number::I64, factor, divisor, to, to_zone),
        _ => change_unit(Number::I64, from, Number::I64, to),
    }
}

/// The offset of a zone in a unit, as days (0 or -1) and a part of a day.
fn offset(unit: Unit, east: i32) -> (i64, u64) {
    let (offset, day) = (east as i64 * unit.per_second(), 86_400 * unit.per_second());
    (offset.div_euclid(day), offset.rem_euclid(day) as u64)
}

/// The seconds east of UTC, none being none, or nothing if only the database knows.
fn seconds_east(zone: Option<Zone>) -> Option<i32> {
    match zone {
        None => Some(0),
        Some(Zone::Fixed(east)) => Some(east),
        Some(Zone::Named) => None,
    }
}

/// A day in this unit.
fn day(unit: Unit) -> Divisor<u64> {
    Divisor::new(86_400 * unit.per_second() as u64)
}

/// A timestamp to Date32 (I32) or Date64 (I64).
pub fn days(unit: Unit, zone: Option<Zone>, to: Number) -> Plan {
    let Some(east) = seconds_east(zone) else { return Plan::NeedsZone };
    let (offset_days, offset) = offset(unit, east);
    let day_length = 86_400 * unit.per_second() as i128;
    let (factor, least, greatest) = match to {
        Number::I32 => (1, i32::MIN as i128, i32::MAX as i128),
        _ => (DAY_IN_MILLISECONDS, ALL.0 / DAY_IN_MILLISECONDS as i128, ALL.1 / DAY_IN_MILLISECONDS as i128),
    };
    let range = match zone {
        None => (least * day_length, (greatest + 1) * day_length - 1),
        // Both the instant and the time on the wall are in the calendar; then the day fits. (arrow-cast
        // panics where only the instant is.)
        Some(_) => {
            let (calendar, east) = (calendar(unit), east as i128 * unit.per_second() as i128);
            common(calendar, (calendar.0 - east, calendar.1 - east))
        }
    };
    let bounds = bounds::<i64>(range);
    with!(to, B = I32 I64, {
        let to = PhantomData::<B>;
        let conversion = Days { bounds, day: day(unit), offset, offset_days, factor, to };
        Some(convert(Operation::Days, conversion, excludes(&bounds)))
    })
    .unwrap_or(Plan::Never)
}

/// A timestamp to Time32 (I32) or Time64 (I64) of this unit.
pub fn time_of_day(unit: Unit, zone: Option<Zone>, to: Number, target: Unit) -> Plan {
    let Some(east) = seconds_east(zone) else { return Plan::NeedsZone };
    let (_, offset) = offset(unit, east);
    let bounds = bounds::<i64>(if zone.is_some() { calendar(unit) } else { ALL });
    let (factor, divisor) = ratio(unit, target);
    let (factor, divisor) = (factor as u64, Divisor::new(divisor as u64));
    with!(to, B = I32 I64, {
        let to = PhantomData::<B>;
        let conversion = TimeOfDay { bounds, day: day(unit), offset, factor, divisor, to };
        Some(convert(Operation::TimeOfDay, conversion, excludes(&bounds)))
    })
    .unwrap_or(Plan::Never)
}

/// A duration to months, days and nanoseconds.
pub fn duration_to_interval(unit: Unit) -> Plan {
    let factor = ratio(unit, Unit::Nanosecond).0;
    let bounds = bounds::<i64>((ALL.0 / factor as i128, ALL.1 / factor as i128));
    convert(Operation::DurationToInterval, DurationToInterval { bounds, factor }, excludes(&bounds))
}

/// Months, days and nanoseconds to a duration.
pub fn interval_to_duration(unit: Unit) -> Plan {
    let divisor = Divisor::new(ratio(unit, Unit::Nanosecond).0 as u64);
    convert(Operation::IntervalToDuration, IntervalToDuration { divisor }, true)
}
