//! Cast rules between text and values, casts that depend on a time zone, and the parameters for their
//! parsers, formatters and casts.

use arrow_schema::{DataType, IntervalUnit, TimeUnit};
use bowstring_kernels::map::function::U256;
use bowstring_kernels::text::format::formatters::Writing;
use bowstring_kernels::text::parse::decimal::Form;
use bowstring_kernels::text::parse::parsers::{Reading, decimal_words};
use bowstring_kernels::text::powers::POWERS;
use bowstring_kernels::text::zone::kernels::Zoning;

use super::decimal::{self, is_valid, power_of_ten};
use super::rule::CastRule;
use super::zones;

/// Whether a type is text.
fn is_text(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}

/// The rule if one of the types is text and the other a plain value.
pub(super) fn rule(from: &DataType, to: &DataType) -> Option<CastRule> {
    let (of_text, to_text) = (is_text(from), is_text(to));
    let value = if of_text { to } else { from };
    let invalid = match value {
        DataType::Timestamp(_, zone) => zones::table(zone.as_deref()).is_none(),
        _ => of_text && decimal::of(to).is_some_and(|to| !is_valid(to)),
    };
    match (of_text, to_text) {
        (true, true) | (false, false) => None,
        _ if invalid => Some(CastRule::InvalidTarget),
        (true, _) => reading(to).map(CastRule::Read),
        (_, true) => writing(from).map(CastRule::Write),
    }
}

fn reading(to: &DataType) -> Option<Reading> {
    use DataType::*;
    Some(match to {
        Boolean => Reading::Booleans,
        to if to.is_integer() => Reading::Integers,
        Decimal32(..) | Decimal64(..) | Decimal128(..) => Reading::Decimals,
        Decimal256(..) => Reading::WideDecimals,
        Float16 | Float32 => Reading::Singles,
        Float64 => Reading::Doubles,
        Date32 | Date64 => Reading::Days,
        Time32(_) | Time64(_) => Reading::Times,
        Timestamp(..) => Reading::Timestamps,
        Interval(_) => Reading::Intervals,
        _ => return None,
    })
}

fn writing(from: &DataType) -> Option<Writing> {
    use DataType::*;
    Some(match from {
        Boolean => Writing::Booleans,
        from if from.is_integer() => Writing::Integers,
        Decimal32(..) | Decimal64(..) | Decimal128(..) => Writing::Decimals,
        Decimal256(..) => Writing::WideDecimals,
        Float16 => Writing::Halves,
        Float32 => Writing::Singles,
        Float64 => Writing::Doubles,
        Date32 | Date64 => Writing::Days,
        Time32(_) | Time64(_) => Writing::Times,
        Duration(_) => Writing::Durations,
        Timestamp(..) => Writing::Timestamps,
        Interval(_) => Writing::Intervals,
        _ => return None,
    })
}

/// The parameters of the parser for a type.
pub(crate) fn reading_words(to: &DataType) -> Vec<u64> {
    use DataType::*;
    match to {
        Timestamp(unit, zone) => with_zone(&[cuts(*unit)], zone.as_deref()),
        Boolean => vec![],
        Float16 | Float32 => [&[u64::from(to == &Float16)], POWERS].concat(),
        to if to.is_decimal() => decimals(to),
        to if to.is_unsigned_integer() => vec![!0 >> (64 - bits(to)), 0],
        to if to.is_integer() => vec![!0 >> (65 - bits(to)), 1 << (bits(to) - 1)],
        other => told(other),
    }
}

/// The parameters of the formatter for a type.
pub(crate) fn writing_words(from: &DataType) -> Vec<u64> {
    use DataType::*;
    match from {
        Timestamp(unit, zone) => with_zone(&[cuts(*unit), u64::from(zone.is_some())], zone.as_deref()),
        Boolean => vec![],
        from if from.is_integer() => vec![u64::from(from.is_signed_integer())],
        from => match decimal::of(from) {
            Some((_, _, scale)) => vec![i64::from(scale) as u64],
            None => told(from),
        },
    }
}

/// The parameters that parser and formatter of a type share.
fn told(data_type: &DataType) -> Vec<u64> {
    use DataType::*;
    match data_type {
        Float16 | Float32 | Float64 => POWERS.to_vec(),
        Date64 => vec![1],
        Time32(unit) | Time64(unit) | Duration(unit) => vec![cuts(*unit)],
        Interval(IntervalUnit::DayTime) => vec![1],
        Interval(IntervalUnit::MonthDayNano) => vec![2],
        _ => vec![0],
    }
}

fn decimals(to: &DataType) -> Vec<u64> {
    let Some((_, precision, scale)) = decimal::of(to) else { return vec![] };
    let power = |digits: u8| power_of_ten(u32::from(digits)).unwrap_or(U256::MAX);
    let greatest = power(precision).wrapping_sub(U256::ONE);
    let form = Form { scale: i32::from(scale), tenth: power(precision.saturating_sub(1)), greatest };
    decimal_words(form).to_vec()
}

/// The width of an integer type in bits.
fn bits(data_type: &DataType) -> u32 {
    data_type.primitive_width().map_or(64, |bytes| 8 * bytes as u32)
}

/// The power of 1000 by which a unit divides a second.
fn cuts(unit: TimeUnit) -> u64 {
    match unit {
        TimeUnit::Second => 0,
        TimeUnit::Millisecond => 1,
        TimeUnit::Microsecond => 2,
        TimeUnit::Nanosecond => 3,
    }
}

fn with_zone(first: &[u64], zone: Option<&str>) -> Vec<u64> {
    let zone = zones::table(zone);
    first.iter().chain(zone.iter().flat_map(|zone| zone.iter())).copied().collect()
}

/// The parameters of a cast that depends on a time zone; `None` if the zone is unknown.
pub(crate) fn zoned_words(from: &DataType, to: &DataType) -> Option<Vec<u64>> {
    use DataType::*;
    let (zoning, units, zone) = match (from, to) {
        (Timestamp(unit, zone), Date32) => (Zoning::ToDate32, [*unit; 2], zone),
        (Timestamp(unit, zone), Date64) => (Zoning::ToDate64, [*unit; 2], zone),
        (Timestamp(unit, zone), Time32(to) | Time64(to)) => (Zoning::ToTime, [*unit, *to], zone),
        (Timestamp(unit, None), Timestamp(to, zone)) => (Zoning::FromTimestamp, [*unit, *to], zone),
        (Date64, Timestamp(to, zone)) => (Zoning::FromTimestamp, [TimeUnit::Millisecond, *to], zone),
        (Date32, Timestamp(to, zone)) => (Zoning::FromDate32, [*to; 2], zone),
        _ => return None,
    };
    zones::table(zone.as_deref())?;
    Some(with_zone(&[zoning as u64, cuts(units[0]), cuts(units[1])], zone.as_deref()))
}
