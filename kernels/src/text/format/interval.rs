//! Intervals as text, in the format that arrow-cast writes.

use super::figures::{put_fraction, put_number, put_signed};
use super::sink::Sink;
use crate::text::bytes::pack;
use crate::text::unit::{IntervalKind, Unit};

/// Writes an interval, and returns true.
#[inline(always)]
pub fn write_interval<S: Sink>(value: i128, kind: IntervalKind, sink: &mut S) -> bool {
    let (low, high) = (value as u64, (value >> 64) as i64);
    if kind == IntervalKind::YearMonth {
        let months = low as i32;
        put_signed(i64::from(months.div_euclid(12)), sink);
        sink.put_all(const { pack(b" years ") }, 7);
        put_number(months.rem_euclid(12) as u64, sink);
        put_word(const { pack(b"mons") }, 4, sink);
        return true;
    }
    let day_time = kind == IntervalKind::DayTime;
    let months = if day_time { 0 } else { low as i32 };
    let days = if day_time { low as i32 } else { (low >> 32) as i32 };
    let (rest, unit) =
        if day_time { (i64::from((low >> 32) as i32), Unit::MILLISECOND) } else { (high, Unit::NANOSECOND) };
    let mut parts = Parts { sink, any: false };
    parts.put(i64::from(months), const { pack(b"mons") }, 4);
    parts.put(i64::from(days), const { pack(b"days") }, 4);
    let (seconds, part) = unit.split_toward_zero(rest);
    let (minutes, second) = (seconds / 60, seconds % 60);
    let (hours, minutes) = (minutes / 60, minutes % 60);
    parts.put(hours, const { pack(b"hours") }, 5);
    parts.put(minutes, const { pack(b"mins") }, 4);
    let any = parts.any;
    if second != 0 || part != 0 {
        parts.begin();
        if second < 0 || part < 0 {
            sink.put(b'-');
        }
        put_number(second.unsigned_abs(), sink);
        let nanoseconds = (part.unsigned_abs() as u32).wrapping_mul(unit.nanoseconds() as u32);
        put_fraction(nanoseconds, 3 * unit.cuts(), sink);
        put_word(const { pack(b"secs") }, 4, sink);
    } else if !any {
        sink.put_all(const { pack(b"0 secs") }, 6);
    }
    true
}

/// A list of parts with a space between them.
struct Parts<'a, S> {
    sink: &'a mut S,
    any: bool,
}

impl<S: Sink> Parts<'_, S> {
    /// Writes the space, if a part precedes.
    #[inline(always)]
    fn begin(&mut self) {
        if self.any {
            self.sink.put(b' ');
        }
        self.any = true;
    }

    /// Writes a number and its unit, unless the number is 0.
    #[inline(always)]
    fn put(&mut self, number: i64, name: u64, len: u32) {
        if number != 0 {
            self.begin();
            put_signed(number, self.sink);
            put_word(name, len, self.sink);
        }
    }
}

/// Writes a space and a word.
#[inline(always)]
fn put_word<S: Sink>(name: u64, len: u32, sink: &mut S) {
    sink.put_all(name << 8 | u64::from(b' '), len + 1);
}
