//! Selects the function for a cast between a pair of Arrow types. This table covers casts between types of
//! fixed width, text included.

use arrow_schema::{DataType, IntervalUnit, TimeUnit};
use bowstring_kernels::map::function::Number;
use bowstring_kernels::map::function::temporal::{DayTimeToInterval, MonthsToInterval};
use bowstring_kernels::map::functions::Function;

use super::rule::{CastRule, apply, apply_plain};
use super::{decimal, temporal, text};
use crate::expr::per_second;

/// The rule for casting values of one type to another.
pub(crate) fn cast_rule(from: &DataType, to: &DataType) -> CastRule {
    if from == to {
        return CastRule::Same;
    }
    match (decimal::of(from), decimal::of(to), plain(from), plain(to)) {
        (Some(a), Some(b), ..) => decimal::rescale(a, b),
        (Some((a, _, scale)), _, _, Some(b)) => decimal::to_plain(a, scale, b),
        (_, Some(b), Some(a), _) => decimal::from_plain(a, b),
        (_, _, Some(a), Some(b)) => direct(a, b),
        _ => text::rule(from, to).unwrap_or_else(|| between_others(from, to)),
    }
}

/// The rule if at least one of the types is neither a decimal nor a plain number.
fn between_others(from: &DataType, to: &DataType) -> CastRule {
    use DataType::*;
    use Number::{I32, I64};
    match (from, to) {
        // Text is valid as bytes, but bytes need not be text.
        (Utf8, Binary) | (LargeUtf8, LargeBinary) | (Utf8View, BinaryView) => CastRule::Same,

        (Boolean, to) => {
            plain(to).map_or(CastRule::Never, |to| apply_plain(Function::FromBool, Number::Bit, to.signed()))
        }
        (from, Boolean) => plain(from)
            .map_or(CastRule::Never, |from| apply_plain(Function::ToBool, from.signed(), Number::Bit)),

        (Int32, Date32 | Time32(_) | Interval(IntervalUnit::YearMonth)) | (Date32 | Time32(_), Int32) => {
            CastRule::Same
        }
        (Int64, Date64 | Time64(_)) | (Date64 | Time64(_), Int64) => CastRule::Same,
        (Int64, Date32) | (Date64, Int32) => direct(I64, I32),
        (Date32 | Time32(_), Int64) => direct(I32, I64),
        (Timestamp(..) | Duration(_), to) if is_number(to) => cast_rule(&Int64, to),
        (from, Timestamp(..) | Duration(_)) if is_number(from) => cast_rule(from, &Int64),

        (Int32 | Date32, Date64) => temporal::rescale(I32, I64, temporal::DAY_IN_MILLISECONDS, 1),
        (Date64, Date32) => temporal::rescale(I64, I32, 1, temporal::DAY_IN_MILLISECONDS),
        (Time32(a) | Time64(a), Time32(b) | Time64(b)) => {
            let width = |data_type: &DataType| if matches!(data_type, Time32(_)) { I32 } else { I64 };
            temporal::change_unit(width(from), *a, width(to), *b)
        }
        (Duration(a), Duration(b)) => temporal::change_unit(I64, *a, I64, *b),
        (Date32, Timestamp(unit, zone)) => {
            let day = 86_400 * per_second(*unit);
            temporal::to_timestamp(I32, day, 1, *unit, zone.as_deref())
        }
        (Date64, Timestamp(unit, zone)) => {
            temporal::between_timestamps(TimeUnit::Millisecond, None, *unit, zone.as_deref())
        }
        (Timestamp(a, from_zone), Timestamp(b, to_zone)) => {
            temporal::between_timestamps(*a, from_zone.as_deref(), *b, to_zone.as_deref())
        }
        (Timestamp(unit, zone), Date32) => temporal::days(*unit, zone.as_deref(), I32),
        (Timestamp(unit, zone), Date64) => temporal::days(*unit, zone.as_deref(), I64),
        (Timestamp(unit, zone), Time32(target)) => {
            temporal::time_of_day(*unit, zone.as_deref(), I32, *target)
        }
        (Timestamp(unit, zone), Time64(target)) => {
            temporal::time_of_day(*unit, zone.as_deref(), I64, *target)
        }

        (Duration(unit), Interval(IntervalUnit::MonthDayNano)) => temporal::duration_to_interval(*unit),
        (Interval(IntervalUnit::MonthDayNano), Duration(unit)) => temporal::interval_to_duration(*unit),
        (Interval(IntervalUnit::YearMonth), Interval(IntervalUnit::MonthDayNano)) => {
            apply(Function::MonthsToInterval, MonthsToInterval, false)
        }
        (Interval(IntervalUnit::DayTime), Interval(IntervalUnit::MonthDayNano)) => {
            apply(Function::DayTimeToInterval, DayTimeToInterval, false)
        }
        _ => CastRule::Never,
    }
}

/// The native type of integers up to 64 bits and of floats.
fn plain(data_type: &DataType) -> Option<Number> {
    Some(match data_type {
        DataType::Int8 => Number::I8,
        DataType::Int16 => Number::I16,
        DataType::Int32 => Number::I32,
        DataType::Int64 => Number::I64,
        DataType::UInt8 => Number::U8,
        DataType::UInt16 => Number::U16,
        DataType::UInt32 => Number::U32,
        DataType::UInt64 => Number::U64,
        DataType::Float16 => Number::F16,
        DataType::Float32 => Number::F32,
        DataType::Float64 => Number::F64,
        _ => return None,
    })
}

fn is_number(data_type: &DataType) -> bool {
    plain(data_type).is_some() || decimal::of(data_type).is_some()
}

/// The rule between integers and floats.
fn direct(from: Number, to: Number) -> CastRule {
    let unsigned = |number: Number| number.signed() != number;
    // Zero extension gives the same bits, whether or not the wider type is signed.
    let widens = unsigned(from) && unsigned(to) && from.width() < to.width();
    match from == to {
        true => CastRule::Same,
        false => apply_plain(Function::Direct, from, if widens { to.signed() } else { to }),
    }
}
