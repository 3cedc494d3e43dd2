use bowstring_kernels::text::calendar::{DAY, Date, SECONDS, date_of, day_and_second, days_of, holds};

fn is_leap(year: i32) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn last_of(year: i32, month: u32) -> u32 {
    match month {
        2 => 28 + u32::from(is_leap(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Visits every day that chrono has a date for, one after the other.
#[test]
fn days_follow_each_other() {
    let mut date = Date { year: -262_143, month: 1, day: 1 };
    let (first, last) = ((SECONDS.0 / DAY) as i32, (SECONDS.1 / DAY) as i32);
    for day in first..=last {
        assert_eq!(date_of(day), date);
        if date.day < last_of(date.year, date.month) {
            date.day += 1;
        } else if date.month < 12 {
            date = Date { year: date.year, month: date.month + 1, day: 1 };
        } else {
            date = Date { year: date.year + 1, month: 1, day: 1 };
        }
    }
    assert_eq!(date, Date { year: 262_143, month: 1, day: 1 });
}

#[test]
fn dates_of_four_digits_are_the_days_they_are() {
    for year in 0..10_000 {
        for month in 0..14 {
            for day in 0..33 {
                let is = (1..=12).contains(&month) && day >= 1 && day <= last_of(year as i32, month);
                let days = days_of(year, month, day);
                assert_eq!(days.is_some(), is, "{year}-{month}-{day}");
                if let Some(days) = days {
                    assert_eq!(date_of(days), Date { year: year as i32, month, day });
                }
            }
        }
    }
    assert_eq!(days_of(1970, 1, 1), Some(0));
    assert_eq!(days_of(2020, u32::MAX, 1), None);
    assert_eq!(days_of(2020, 1, u32::MAX), None);
}

#[test]
fn seconds_are_of_their_day() {
    for second in [SECONDS.0, -DAY - 1, -DAY, -1, 0, 1, DAY - 1, DAY, SECONDS.1] {
        assert!(holds(second));
        let expected = (second.div_euclid(DAY) as i32, second.rem_euclid(DAY) as u32);
        assert_eq!(day_and_second(second), expected);
    }
    assert!(!holds(SECONDS.0 - 1) && !holds(SECONDS.1 + 1) && !holds(i64::MIN) && !holds(i64::MAX));
}
