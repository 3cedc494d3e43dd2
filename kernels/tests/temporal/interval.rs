use super::text;
use bowstring_kernels::text::format::interval::write_interval;
use bowstring_kernels::text::parse::interval::read_interval;
use bowstring_kernels::text::unit::IntervalKind;

/// The bits of a `MonthDayNano` interval in memory.
fn mdn(months: i32, days: i32, nanoseconds: i64) -> i128 {
    i128::from(months as u32) | i128::from(days as u32) << 32 | i128::from(nanoseconds) << 64
}

/// The bits of a `DayTime` interval in memory.
fn dt(days: i32, milliseconds: i32) -> i128 {
    i128::from(days as u32) | i128::from(milliseconds as u32) << 32
}

const HOUR: i64 = 3_600_000_000_000;

#[test]
fn months_days_and_nanoseconds_are_read() {
    for (text, expected) in [
        ("1 year 2 months", Some(mdn(14, 0, 0))),
        ("1year 2mons 3d", Some(mdn(14, 3, 0))),
        ("1.5 years", Some(mdn(18, 0, 0))),
        ("-1.5 MONTHS", Some(mdn(-1, -15, 0))),
        ("1.5 months", Some(mdn(1, 15, 0))),
        ("0.5 day", Some(mdn(0, 0, 12 * HOUR))),
        ("0.5 week", Some(mdn(0, 0, 84 * HOUR))),
        ("1 century 1 decade", Some(mdn(1320, 0, 0))),
        ("2 centuries", Some(mdn(2400, 0, 0))),
        ("0.25 cents", Some(mdn(300, 0, 0))),
        ("1", Some(mdn(1, 0, 0))),
        ("1 day 1", Some(mdn(1, 1, 0))),
        ("1 h 1 min 1 s 1 ms 1 us 1 nanosecond", Some(mdn(0, 0, HOUR + 61_001_001_001))),
        ("1 hr 1 mins 1 seconds 1 millisecond 1 microseconds", Some(mdn(0, 0, HOUR + 61_001_001_000))),
        ("1 y 1 w 1 d 1 h 1 m 1 s 1 ms 1 us", Some(mdn(12, 8, HOUR + 61_001_001_000))),
        ("-.5 seconds", Some(mdn(0, 0, -500_000_000))),
        ("0.000000000000001 hours", Some(mdn(0, 0, 0))),
        ("0.0000000000000001 hours", None),
        ("2 wee\u{212a}s", Some(mdn(0, 14, 0))),
        ("1\u{2003}day", Some(mdn(0, 1, 0))),
        ("1\u{a0}day\u{3000}1\u{85}month", Some(mdn(1, 1, 0))),
        ("1\u{200b}day", None),
        ("2147483647 months", Some(mdn(i32::MAX, 0, 0))),
        ("2147483648 months", None),
        ("-2147483648 days", Some(mdn(0, i32::MIN, 0))),
        ("9223372036854775807 nanoseconds", Some(mdn(0, 0, i64::MAX))),
        ("9223372036854775808 nanoseconds", None),
        ("-9223372036854775808 nanoseconds", Some(mdn(0, 0, i64::MIN))),
        ("178956970 years 8 months", None),
        ("2562047 hours 47 minutes 16.854775807 seconds", Some(mdn(0, 0, i64::MAX))),
        ("2562047 hours 47 minutes 16.854775808 seconds", None),
        ("1 day 1 day", None),
        ("1 day 1 d", None),
        ("1  day", None),
        ("1 day ", None),
        (" 1 day", None),
        ("1 day  1 month", None),
        ("+1 day", None),
        ("1. day", None),
        (". day", None),
        ("- day", None),
        ("--1 day", None),
        ("1.-5 day", None),
        ("1.5.5 day", None),
        ("1-1 day", None),
        ("1 ns", None),
        ("1 mss", None),
        ("1 centurys", None),
        ("1 cs", None),
        ("1 daysx", None),
        ("1 millisecondss", None),
        ("day", None),
        ("", None),
        (" ", None),
    ] {
        assert_eq!(read_interval(text.as_bytes(), IntervalKind::MonthDayNano), expected, "{text:?}");
    }
}

#[test]
fn kinds_hold_what_they_can() {
    let months = |text: &str| read_interval(text.as_bytes(), IntervalKind::YearMonth);
    assert_eq!(months("1"), Some(12));
    assert_eq!(months("-1 year 1 month"), Some(i128::from(-11i32 as u32)));
    assert_eq!(months("1 day"), None);
    assert_eq!(months("1.5 months"), None);
    let days = |text: &str| read_interval(text.as_bytes(), IntervalKind::DayTime);
    assert_eq!(days("1"), Some(dt(1, 0)));
    assert_eq!(days("1 month -1.5 days"), Some(dt(29, -43_200_000)));
    assert_eq!(days("1 us"), None);
    assert_eq!(days("2147483647 ms"), Some(dt(0, i32::MAX)));
    assert_eq!(days("2147483648 ms"), None);
    assert_eq!(days("71582789 months"), None);
}

#[test]
fn they_are_written_in_words() {
    for (value, kind, expected) in [
        (14, IntervalKind::YearMonth, "1 years 2 mons"),
        (i128::from(-1i32 as u32), IntervalKind::YearMonth, "-1 years 11 mons"),
        (i128::from(i32::MIN as u32), IntervalKind::YearMonth, "-178956971 years 4 mons"),
        (0, IntervalKind::YearMonth, "0 years 0 mons"),
        (0, IntervalKind::DayTime, "0 secs"),
        (dt(1, 0), IntervalKind::DayTime, "1 days"),
        (dt(-1, 3_661_001), IntervalKind::DayTime, "-1 days 1 hours 1 mins 1.001 secs"),
        (dt(0, -1), IntervalKind::DayTime, "-0.001 secs"),
        (dt(0, i32::MIN), IntervalKind::DayTime, "-596 hours -31 mins -23.648 secs"),
        (mdn(0, 0, 0), IntervalKind::MonthDayNano, "0 secs"),
        (mdn(1, -2, 3 * HOUR), IntervalKind::MonthDayNano, "1 mons -2 days 3 hours"),
        (mdn(0, 0, -60_000_000_000), IntervalKind::MonthDayNano, "-1 mins"),
        (mdn(5, 0, 1), IntervalKind::MonthDayNano, "5 mons 0.000000001 secs"),
        (mdn(0, 0, i64::MIN), IntervalKind::MonthDayNano, "-2562047 hours -47 mins -16.854775808 secs"),
    ] {
        assert_eq!(text(|s| write_interval(value, kind, s)).as_deref(), Some(expected));
    }
}
