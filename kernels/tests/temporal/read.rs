use bowstring_kernels::text::parse::date::{read_date32, read_date64};
use bowstring_kernels::text::parse::interval::read_interval;
use bowstring_kernels::text::parse::said::Said::{self, Elsewhere, Nothing, Value};
use bowstring_kernels::text::parse::time::read_time;
use bowstring_kernels::text::parse::timestamp::read_timestamp;
use bowstring_kernels::text::unit::{IntervalKind, Unit};
use bowstring_kernels::text::zone::table::Fixed;

#[test]
fn dates() {
    let days = |text: &str| read_date32(text.as_bytes());
    for (text, expected) in [
        ("1970-01-01", Value(0)),
        ("2020-01-31", Value(18_292)),
        ("2020-1-1", Value(18_262)),
        ("2020-01-1", Value(18_262)),
        ("2020-1-01", Value(18_262)),
        ("20200101", Value(18_262)),
        (" 2020-01-01 ", Value(18_262)),
        ("\t\n2020-1-1\r", Value(18_262)),
        ("\u{b}2020-01-01", Nothing),
        // Other characters than digits may follow a day of one digit.
        ("2020-01-1x", Value(18_262)),
        ("2020-1-1xx", Value(18_262)),
        ("2020-1-1é", Value(18_262)),
        ("2020-1-1x5", Nothing),
        ("2020-01-01x", Nothing),
        ("2020-02-30", Nothing),
        ("2020-00-01", Nothing),
        ("0000-01-01", Value(-719_528)),
        ("9999-12-31", Value(2_932_896)),
        ("+10000-01-01", Value(2_932_897)),
        ("-0001-01-01", Value(-719_893)),
        ("+2020-+1-+001", Value(18_262)),
        ("+2020-1-", Nothing),
        ("+020-01-01", Nothing),
        ("+5881580-07-11", Value(i32::MAX)),
        ("+5881580-07-12", Nothing),
        ("-5877641-06-23", Value(i32::MIN)),
        ("-5877641-06-22", Nothing),
        ("+2147483648-01-01", Nothing),
        // The day of an instant is its day in UTC.
        ("2020-01-01 00:00:00+01:00", Value(18_261)),
        ("2020-01-01T23:59:60Z", Value(18_262)),
        ("2020-01-01T23:59:59 -01:00", Value(18_263)),
        ("2020-01-01T00:00:00 Europe/Berlin", Elsewhere),
        (" 2020-01-01T00:00:00 Europe/Berlin ", Elsewhere),
        ("2020-01-01T00:00:00 Z", Nothing),
        ("", Nothing),
        ("-", Nothing),
        ("          ", Nothing),
    ] {
        assert_eq!(days(text), expected, "{text:?}");
    }
    let milliseconds = |text: &str| read_date64(text.as_bytes());
    for (text, expected) in [
        ("2020-01-31", Value(18_292 * 86_400_000)),
        ("2020-1-1", Value(18_262 * 86_400_000)),
        ("+2020-1-1", Value(18_262 * 86_400_000)),
        (" 2020-1-1", Nothing),
        ("+10000-01-01", Nothing),
        ("2020-01-01T00:00:01.2345Z", Value(18_262 * 86_400_000 + 1_234)),
        ("2020-01-01T23:59:60.5", Value(18_263 * 86_400_000 + 500)),
    ] {
        assert_eq!(milliseconds(text), expected, "{text:?}");
    }
}

#[test]
fn times() {
    for (text, nanoseconds) in [
        ("12:34:56", Some(45_296_000_000_000)),
        ("12:34:56.789", Some(45_296_789_000_000)),
        ("1:23", Some(4_980_000_000_000)),
        ("01:23 PM", Some(48_180_000_000_000)),
        ("12:00 AM", Some(0)),
        ("12:00:01 pM", Some(43_201_000_000_000)),
        ("0:30 AM", None),
        ("13:00 PM", None),
        ("01:23  PM", None),
        ("01:23PM", None),
        ("23:59:60", Some(86_400_000_000_000)),
        ("23:59:60.999999999", Some(86_400_999_999_999)),
        ("23:59:61", None),
        ("24:00:00", None),
        ("12:34:56.", None),
        ("12:34:56.1234567899999", Some(45_296_123_456_789)),
        (" 12:34:56 ", Some(45_296_000_000_000)),
        ("12:34:5", None),
        ("123456", Some(123_456)),
        ("-5", Some(-5)),
        ("+5", Some(5)),
        (" 5", None),
        ("-9223372036854775808", Some(i64::MIN)),
        ("9223372036854775808", None),
        ("", None),
        ("+", None),
    ] {
        assert_eq!(read_time(text.as_bytes(), Unit::NANOSECOND), nanoseconds, "{text:?}");
    }
    for (text, seconds, milliseconds) in [
        ("12:34:56.789", Some(45_296), Some(45_296_789)),
        ("23:59:60", Some(86_400), Some(86_400_000)),
        ("2147483647", Some(i64::from(i32::MAX)), Some(i64::from(i32::MAX))),
        ("-2147483648", Some(i64::from(i32::MIN)), Some(i64::from(i32::MIN))),
        ("2147483648", None, None),
    ] {
        assert_eq!(read_time(text.as_bytes(), Unit::SECOND), seconds, "{text:?}");
        assert_eq!(read_time(text.as_bytes(), Unit::MILLISECOND), milliseconds, "{text:?}");
    }
}

#[test]
fn timestamps() {
    let read = |text: &str, unit, east| read_timestamp(text.as_bytes(), unit, Fixed(east));
    let midnight = 18_262 * 86_400;
    for (text, expected) in [
        ("2020-01-01", Value(midnight)),
        ("2020-01-01T00:00:01", Value(midnight + 1)),
        ("2020-01-01t00:00:01z", Value(midnight + 1)),
        ("2020-01-01 000001", Value(midnight + 1)),
        ("2020-01-01 000001.5", Nothing),
        ("2020-01-01 00:00", Nothing),
        ("2020-01-01 00:00:00.", Nothing),
        ("2020-01-01 00:00:00.Z", Nothing),
        ("2020-01-01_00:00:00", Nothing),
        (" 2020-01-01", Nothing),
        ("2020-1-1", Nothing),
        ("20200101", Nothing),
        ("2020-01-01T23:59:60", Value(midnight + 86_399)),
        ("2020-01-01T24:00:00", Nothing),
        ("2020-01-01T00:00:00+01:00", Value(midnight - 3600)),
        ("2020-01-01T00:00:00-0130", Value(midnight + 5400)),
        ("2020-01-01T00:00:00 +01", Value(midnight - 3600)),
        ("2020-01-01T00:00:00\u{2003}+01", Value(midnight - 3600)),
        ("2020-01-01T00:00:00+1", Nothing),
        ("2020-01-01T00:00:00+1:00", Nothing),
        ("2020-01-01T00:00:00+00:99", Value(midnight - 5940)),
        ("2020-01-01T00:00:00+23:60", Nothing),
        ("2020-01-01T00:00:00 Z", Nothing),
        ("2020-01-01T00:00:00 UTC", Value(midnight)),
        ("2020-01-01T00:00:00 GMT", Value(midnight)),
        ("2020-01-01T00:00:00America/New_York", Elsewhere),
        ("2020-01-01T00:00:00 Etc/GMT+2", Elsewhere),
        ("2020-13-01T00:00:00 Etc/GMT+2", Nothing),
        ("2020-01-01T00:00:00 America New York", Nothing),
        ("", Nothing),
    ] {
        assert_eq!(read(text, Unit::SECOND, 0), expected, "{text:?}");
    }
    assert_eq!(read("2020-01-01", Unit::SECOND, 7200), Value(midnight - 7200));
    assert_eq!(read("2020-01-01T00:00:00Z", Unit::SECOND, 7200), Value(midnight));
    // Fractions are cut; a leap second is the first of the next day if the unit is fine enough.
    let long = "2020-01-01T00:00:00.123456789987654321+00:00";
    for (unit, fraction) in
        [(Unit::MILLISECOND, 123), (Unit::MICROSECOND, 123_456), (Unit::NANOSECOND, 123_456_789)]
    {
        assert_eq!(read(long, unit, 0), Value(midnight * unit.per_second() + fraction));
        let leap = Value((midnight + 86_400) * unit.per_second());
        assert_eq!(read("2020-01-01T23:59:60", unit, 0), leap);
    }
    for (text, expected) in [
        ("1677-09-21T00:12:43.145224192", Value(i64::MIN)),
        ("1677-09-21T00:12:43.145224191", Nothing),
        ("2262-04-11T23:47:16.854775807", Value(i64::MAX)),
        ("2262-04-11T23:47:16.854775808", Nothing),
        ("0000-01-01", Nothing),
    ] {
        assert_eq!(read(text, Unit::NANOSECOND, 0), expected, "{text:?}");
    }
    assert_eq!(read("0000-01-01", Unit::MICROSECOND, 0), Value(-719_528 * 86_400_000_000));
}

/// Only white space may stand between a time and its offset, and between a number and its unit.
#[test]
fn white_space_is_unicodes() {
    for c in '\0'..='\u{3100}' {
        let text = format!("2020-01-01T00:00:00{c}+01:00");
        let read: Said<i64> = read_timestamp(text.as_bytes(), Unit::SECOND, Fixed::UTC);
        assert_eq!(matches!(read, Value(_)), c.is_whitespace(), "{text:?}");
        let text = format!("1{c}day");
        let read = read_interval(text.as_bytes(), IntervalKind::MonthDayNano);
        assert_eq!(read.is_some(), c.is_whitespace() || c.is_ascii_digit(), "{text:?}");
    }
}

/// Fractions of every length end with their digits.
#[test]
fn fractions() {
    for digits in 1..24 {
        for (zone, east) in [("", 0), ("Z", 0), ("+00:01", 60), ("x", -1)] {
            let fraction: String = (0..digits).map(|i| char::from(b'1' + i % 9)).collect();
            let nanoseconds: i64 = format!("{fraction:0<9.9}").parse().expect("nine digits");
            let text = format!("1970-01-01T00:01:00.{fraction}{zone}");
            let expected =
                if east < 0 { Nothing } else { Value((60 - i64::from(east)) * 1_000_000_000 + nanoseconds) };
            let read: Said<i64> = read_timestamp(text.as_bytes(), Unit::NANOSECOND, Fixed::UTC);
            assert_eq!(read, expected, "{text}");
        }
    }
}
