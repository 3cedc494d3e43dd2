//! From a pair of Arrow types to the conversion between them: the table of casts, and the answer to
//! "supported?".
//!
//! arrow-cast decides by `match` on pairs of types, and often casts twice (Int64 to Date32 is Int64 to Int32
//! to Date32). Here each pair becomes one [`Recipe`], and all bounds are worked out once, exactly.

use super::recipe::{Number, Operation, Recipe};
use super::temporal::{DayTimeToInterval, MonthsToInterval};
use super::words::Parameter;
use super::{Conversion, Native};

mod decimal;
mod temporal;

/// A unit of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the names say it all")]
pub enum Unit {
    Second,
    Millisecond,
    Microsecond,
    Nanosecond,
}

impl Unit {
    /// How many make a second.
    pub const fn per_second(self) -> i64 {
        match self {
            Unit::Second => 1,
            Unit::Millisecond => 1_000,
            Unit::Microsecond => 1_000_000,
            Unit::Nanosecond => 1_000_000_000,
        }
    }
}

/// The zone of a timestamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Zone {
    /// Always this many seconds east of UTC, less than a day.
    Fixed(i32),
    /// From the time zone database: most casts do not ask it, those that do are not for us.
    Named,
}

/// A fixed-width Arrow type, as far as casts care.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Bits.
    Boolean,
    /// Integers to 64 bits and floats.
    Plain(Number),
    /// A decimal: the native type (I32, I64, I128 or I256), precision and scale.
    Decimal(Number, u8, i8),
    /// Days.
    Date32,
    /// Milliseconds.
    Date64,
    /// Seconds or milliseconds of the day.
    Time32(Unit),
    /// Microseconds or nanoseconds of the day.
    Time64(Unit),
    /// An instant, or a date and time on the wall where there is no zone.
    Timestamp(Unit, Option<Zone>),
    /// A length of time.
    Duration(Unit),
    /// Months.
    YearMonth,
    /// Days and milliseconds.
    DayTime,
    /// Months, days and nanoseconds.
    MonthDayNano,
}

/// How to cast.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Plan {
    /// The bits do not change.
    Same,
    /// Convert every value.
    Convert(Recipe),
    /// Every value becomes zero: the scale falls by more digits than there are.
    Zero,
    /// An error whatever the values and whatever is asked for values that do not fit: the power of ten
    /// between the scales does not fit the type.
    Overflow,
    /// The target type itself is wrong: precision and scale do not go together.
    InvalidTarget,
    /// The time zone database decides.
    NeedsZone,
    /// There is no such cast.
    Never,
}

/// How to cast values of one type to another.
pub fn plan(from: Kind, to: Kind) -> Plan {
    use Kind::*;
    use Number::{I32, I64};
    if from == to {
        return Plan::Same;
    }
    match (from, to) {
        (Plain(a), Plain(b)) => plain(a, b),
        (Boolean, Plain(number)) => Plan::Convert(Recipe::bits(Operation::FromBits, number)),
        (Plain(number), Boolean) => Plan::Convert(Recipe::bits(Operation::ToBits, number)),
        (Decimal(a, p, s), Decimal(b, q, t)) => decimal::rescale((a, p, s), (b, q, t)),
        (Decimal(a, _, s), Plain(b)) => decimal::to_plain(a, s, b),
        (Plain(a), Decimal(b, p, s)) => decimal::from_plain(a, (b, p, s)),

        (Plain(I32), Date32 | Time32(_) | YearMonth) | (Date32 | Time32(_), Plain(I32)) => Plan::Same,
        (Plain(I64), Date64 | Time64(_)) | (Date64 | Time64(_), Plain(I64)) => Plan::Same,
        (Plain(I64), Date32) | (Date64, Plain(I32)) => plain(I64, I32),
        (Date32 | Time32(_), Plain(I64)) => plain(I32, I64),
        (Timestamp(..) | Duration(_), Plain(_) | Decimal(..)) => plan(Plain(I64), to),
        (Plain(_) | Decimal(..), Timestamp(..) | Duration(_)) => plan(from, Plain(I64)),

        (Plain(I32) | Date32, Date64) => temporal::rescale(I32, I64, temporal::DAY_IN_MILLISECONDS, 1),
        (Date64, Date32) => temporal::rescale(I64, I32, 1, temporal::DAY_IN_MILLISECONDS),
        (Time32(a) | Time64(a), Time32(b) | Time64(b)) => {
            let width = |kind| if matches!(kind, Time32(_)) { I32 } else { I64 };
            temporal::change_unit(width(from), a, width(to), b)
        }
        (Duration(a), Duration(b)) => temporal::change_unit(I64, a, I64, b),
        (Date32, Timestamp(unit, zone)) => {
            temporal::to_timestamp(I32, 86_400 * unit.per_second(), 1, unit, zone)
        }
        (Date64, Timestamp(unit, zone)) => temporal::between_timestamps(Unit::Millisecond, None, unit, zone),
        (Timestamp(a, from_zone), Timestamp(b, to_zone)) => {
            temporal::between_timestamps(a, from_zone, b, to_zone)
        }
        (Timestamp(unit, zone), Date32) => temporal::days(unit, zone, I32),
        (Timestamp(unit, zone), Date64) => temporal::days(unit, zone, I64),
        (Timestamp(unit, zone), Time32(target)) => temporal::time_of_day(unit, zone, I32, target),
        (Timestamp(unit, zone), Time64(target)) => temporal::time_of_day(unit, zone, I64, target),

        (Duration(unit), MonthDayNano) => temporal::duration_to_interval(unit),
        (MonthDayNano, Duration(unit)) => temporal::interval_to_duration(unit),
        (YearMonth, MonthDayNano) => convert(Operation::MonthsToInterval, MonthsToInterval, false),
        (DayTime, MonthDayNano) => convert(Operation::DayTimeToInterval, DayTimeToInterval, false),
        _ => Plan::Never,
    }
}

/// The plan of a conversion.
fn convert<C>(operation: Operation, conversion: C, fallible: bool) -> Plan
where
    C: Conversion<From: Native, To: Native> + Parameter,
{
    Plan::Convert(Recipe::new(operation, conversion, fallible))
}

/// Between integers and floats.
fn plain(from: Number, to: Number) -> Plan {
    if from == to { Plan::Same } else { Plan::Convert(Recipe::direct(from, to)) }
}
