use super::text;
use bowstring_kernels::text::calendar::SECONDS;
use bowstring_kernels::text::format::date::{write_date32, write_date64};
use bowstring_kernels::text::format::duration::write_duration;
use bowstring_kernels::text::format::sink::{Length, Sink};
use bowstring_kernels::text::format::time::write_time;
use bowstring_kernels::text::format::timestamp::{write_timestamp, write_zoned};
use bowstring_kernels::text::parse::date::read_date32;
use bowstring_kernels::text::parse::said::Said::Value;
use bowstring_kernels::text::parse::time::read_time;
use bowstring_kernels::text::parse::timestamp::read_timestamp;
use bowstring_kernels::text::unit::Unit;
use bowstring_kernels::text::zone::table::Fixed;

const UNITS: [Unit; 4] = [Unit::SECOND, Unit::MILLISECOND, Unit::MICROSECOND, Unit::NANOSECOND];

#[test]
fn dates() {
    for (days, expected) in [
        (0, Some("1970-01-01")),
        (18_292, Some("2020-01-31")),
        (-719_528, Some("0000-01-01")),
        (-719_529, Some("-0001-12-31")),
        (2_932_897, Some("+10000-01-01")),
        (-96_465_292, Some("-262143-01-01")),
        (-96_465_293, None),
        (95_026_236, Some("+262142-12-31")),
        (95_026_237, None),
        (i32::MIN, None),
    ] {
        assert_eq!(text(|s| write_date32(days, s)).as_deref(), expected, "{days}");
    }
    assert_eq!(text(|s| write_date64(-1, s)).as_deref(), Some("1969-12-31T23:59:59.999"));
    assert_eq!(text(|s| write_date64(86_400_000, s)).as_deref(), Some("1970-01-02T00:00:00"));
    assert_eq!(text(|s| write_date64(i64::MAX, s)), None);
}

#[test]
fn times() {
    for (value, unit, expected) in [
        (45_296, Unit::SECOND, Some("12:34:56")),
        (86_400, Unit::SECOND, None),
        (-1, Unit::SECOND, None),
        (1, Unit::MILLISECOND, Some("00:00:00.001")),
        (-1, Unit::MILLISECOND, None),
        (1_000, Unit::MICROSECOND, Some("00:00:00.001")),
        (1_001, Unit::MICROSECOND, Some("00:00:00.001001")),
        (1_001_000, Unit::NANOSECOND, Some("00:00:00.001001")),
        (86_399_999_999_999, Unit::NANOSECOND, Some("23:59:59.999999999")),
        // Only 32 bits of the seconds count.
        (((1 << 32) + 5) * 1_000_000_000, Unit::NANOSECOND, Some("00:00:05")),
        ((-(1 << 32) + 5) * 1_000_000, Unit::MICROSECOND, Some("00:00:05")),
    ] {
        assert_eq!(text(|s| write_time(value, unit, s)).as_deref(), expected, "{value}");
    }
}

#[test]
fn timestamps() {
    let moment = 1_580_474_096;
    assert_eq!(text(|s| write_timestamp(moment, Unit::SECOND, s)).as_deref(), Some("2020-01-31T12:34:56"));
    let fine = moment * 1_000_000_000 + 789;
    let written = text(|s| write_timestamp(fine, Unit::NANOSECOND, s));
    assert_eq!(written.as_deref(), Some("2020-01-31T12:34:56.000000789"));
    for (east, expected) in [
        (0, "2020-01-31T12:34:56Z"),
        (3600, "2020-01-31T13:34:56+01:00"),
        (-34_200, "2020-01-31T03:04:56-09:30"),
        // Seconds of an offset are rounded.
        (-2_670, "2020-01-31T11:50:26-00:45"),
        (1_172, "2020-01-31T12:54:28+00:20"),
    ] {
        assert_eq!(text(|s| write_zoned(moment, Unit::SECOND, Fixed(east), s)).as_deref(), Some(expected));
    }
    for (second, east, fits) in [
        (SECONDS.0, 0, true),
        (SECONDS.0 - 1, 0, false),
        (SECONDS.0, -1, false),
        (SECONDS.1, 0, true),
        (SECONDS.1 + 1, 0, false),
        (SECONDS.1, 1, false),
    ] {
        assert_eq!(text(|s| write_zoned(second, Unit::SECOND, Fixed(east), s)).is_some(), fits);
        if east == 0 {
            assert_eq!(text(|s| write_timestamp(second, Unit::SECOND, s)).is_some(), fits);
        }
    }
}

#[test]
fn durations() {
    for (value, unit, expected) in [
        (0, Unit::NANOSECOND, "P0D"),
        (1, Unit::SECOND, "PT1S"),
        (-1_500, Unit::MILLISECOND, "-PT1.5S"),
        (1_000_010, Unit::MICROSECOND, "PT1.00001S"),
        (1, Unit::NANOSECOND, "PT0.000000001S"),
        (i64::MIN, Unit::NANOSECOND, "-PT9223372036.854775808S"),
        (i64::MIN, Unit::MICROSECOND, "-PT9223372036854.775808S"),
        (i64::MIN, Unit::MILLISECOND, "<invalid>"),
        (-i64::MAX, Unit::MILLISECOND, "-PT9223372036854775.807S"),
        (i64::MAX / 1000, Unit::SECOND, "PT9223372036854775S"),
        (i64::MAX / 1000 + 1, Unit::SECOND, "<invalid>"),
        (100_000_000, Unit::SECOND, "PT100000000S"),
    ] {
        assert_eq!(text(|s| write_duration(value, unit, s)).as_deref(), Some(expected));
    }
}

/// Written text is read as the same value; the steps cover all digits.
#[test]
fn there_and_back() {
    for day in (-719_528..2_932_897).step_by(37) {
        let written = text(|s| write_date32(day, s)).expect("a date");
        assert_eq!(read_date32(written.as_bytes()), Value(day));
    }
    for unit in UNITS {
        let second = unit.per_second();
        let mut value = -2_000_000_000 * second;
        while value < 4_000_000_000 * second {
            let written = text(|s| write_timestamp(value, unit, s)).expect("an instant");
            assert_eq!(read_timestamp(written.as_bytes(), unit, Fixed::UTC), Value(value));
            let zoned = text(|s| write_zoned(value, unit, Fixed(-12_600), s)).expect("an instant");
            assert_eq!(read_timestamp(zoned.as_bytes(), unit, Fixed::UTC), Value(value));
            value += 1_234_567 * second + 987_654_321 % second;
        }
        let mut value = 0;
        while value < 86_400 * second {
            let written = text(|s| write_time(value, unit, s)).expect("a time");
            assert_eq!(read_time(written.as_bytes(), unit), Some(value));
            value += 17 * second + 1_001_001 % second;
        }
    }
}

/// The computed length of a text is the number of bytes that are put.
#[test]
fn lengths() {
    for value in [i64::MIN, -1_234_567_890_123, -1, 0, 1, 999, 1_580_474_096_789_012_345, i64::MAX] {
        for unit in UNITS {
            let mut length = Length(0);
            write_timestamp(value, unit, &mut length);
            write_duration(value, unit, &mut length);
            let both = text(|s| {
                write_timestamp(value, unit, s);
                write_duration(value, unit, s)
            });
            assert_eq!(length.0 as usize, both.expect("a duration").len());
        }
    }
    let mut length = Length(0);
    length.put(b'x');
    assert_eq!(length, Length(1));
}
