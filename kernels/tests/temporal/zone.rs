use bowstring_kernels::text::calendar::{DAY, SECONDS};
use bowstring_kernels::text::parse::said::Said::{Nothing, Value};
use bowstring_kernels::text::parse::timestamp::read_timestamp;
use bowstring_kernels::text::unit::Unit;
use bowstring_kernels::text::zone::functions::{
    from_date32, from_date64, from_timestamp, to_date32, to_date64, to_time,
};
use bowstring_kernels::text::zone::table::{Fixed, Span, Zone};

/// Berlin's former local mean time, and the summer of 2020.
const BERLIN: [u64; 4] = [
    Span { from: 0, east: 3208 }.word(),
    Span { from: -2_422_054_408, east: 3600 }.word(),
    Span { from: 1_585_443_600, east: 7200 }.word(),
    Span { from: 1_603_587_600, east: 3600 }.word(),
];

#[test]
fn spans_are_words() {
    for span in [
        Span { from: 0, east: 0 },
        Span { from: -1, east: -1 },
        Span { from: -(1 << 39), east: 86_399 },
        Span { from: (1 << 39) - 1, east: -86_399 },
    ] {
        assert_eq!(Span::of(span.word()), span);
    }
}

#[test]
fn offsets_are_found() {
    let zone = &BERLIN[..];
    for (second, east) in [
        (i64::MIN, 3208),
        (-2_422_054_409, 3208),
        (-2_422_054_408, 3600),
        (1_585_443_599, 3600),
        (1_585_443_600, 7200),
        (1_603_587_599, 7200),
        (1_603_587_600, 3600),
        (SECONDS.1, 3600),
    ] {
        assert_eq!(zone.offset_at_utc(second), east, "{second}");
    }
    let (set_forward, set_back) = (1_585_443_600 + 3600, 1_603_587_600 + 3600);
    for (second, once, for_local) in [
        (set_forward - 1, Some(3600), 3600),
        (set_forward, None, 3600),
        (set_forward + 3599, None, 3600),
        (set_forward + 3600, Some(7200), 7200),
        (set_back - 1, Some(7200), 7200),
        (set_back, None, 3600),
        (set_back + 3599, None, 3600),
        (set_back + 3600, Some(3600), 3600),
        (SECONDS.0, Some(3208), 3208),
    ] {
        assert_eq!(zone.offset_of_local(second), once, "{second}");
        assert_eq!(zone.offset_for_local(second), for_local, "{second}");
    }
    let fixed = Fixed(-60);
    assert_eq!(fixed.offset_at_utc(5), -60);
    assert_eq!((fixed.offset_of_local(5), fixed.offset_for_local(5)), (Some(-60), -60));
}

#[test]
fn texts_of_a_wall_clock_are_read_if_they_are_once() {
    let read = |text: &str| read_timestamp(text.as_bytes(), Unit::SECOND, &BERLIN[..]);
    assert_eq!(read("2020-03-29T01:59:59"), Value(1_585_443_599));
    assert_eq!(read("2020-03-29T02:30:00"), Nothing);
    assert_eq!(read("2020-10-25T02:30:00"), Nothing);
    assert_eq!(read("2020-10-25T02:30:00+02:00"), Value(1_603_585_800));
    assert_eq!(read("2020-10-25T03:00:00"), Value(1_603_591_200));
}

#[test]
fn casts() {
    let zone = &BERLIN[..];
    let (second, millisecond, nanosecond) = (Unit::SECOND, Unit::MILLISECOND, Unit::NANOSECOND);
    // Half an hour before midnight, UTC.
    let late = 18_292 * DAY - 1800;
    assert_eq!(to_date32(late, second, zone), Some(18_292));
    assert_eq!(to_date64(late * 1000, millisecond, zone), Some(18_292 * 86_400_000));
    assert_eq!(to_time(late * 1000 + 7, millisecond, zone, nanosecond), Some(1_800_007_000_000));
    assert_eq!(to_time(late * 1000 + 7, millisecond, zone, second), Some(1800));
    assert_eq!(from_date32(18_292, second, zone), Some(18_292 * DAY - 3600));
    assert_eq!(from_date64(1, millisecond, zone), Some(1 - 3_600_000));
    // A time that clocks show twice means the second one; one that they skip is read with the offset before
    // the change.
    let set_back = 1_603_587_600 + 3600;
    assert_eq!(from_timestamp(set_back, second, second, zone), Some(set_back - 3600));
    let set_forward = 1_585_443_600 + 3600;
    assert_eq!(from_timestamp(set_forward + 60, second, second, zone), Some(set_forward + 60 - 3600));
    // Neither instants nor wall clocks leave the calendar, and no value loses bits.
    for east in [-1, 0, 1] {
        let fixed = Fixed(east);
        assert_eq!(to_date32(SECONDS.1, second, fixed).is_some(), east < 1);
        assert_eq!(to_date32(SECONDS.0, second, fixed).is_some(), east > -1);
        assert!(to_time(SECONDS.0, second, fixed, second).is_some());
        assert_eq!(from_timestamp(SECONDS.0, second, second, fixed).is_some(), east < 1);
        assert_eq!(from_timestamp(SECONDS.1, second, second, fixed).is_some(), east > -1);
        assert_eq!(from_timestamp(i64::MAX, nanosecond, nanosecond, fixed).is_some(), east > -1);
    }
    assert_eq!(to_time(SECONDS.1 + 1, second, zone, second), None);
    assert_eq!(from_timestamp(i64::MAX, second, nanosecond, zone), None);
    assert_eq!(from_date32(i32::MAX, nanosecond, zone), None);
}
