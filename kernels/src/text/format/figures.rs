//! Numbers as digits, eight at a time.
//!
//! The one idea: the digits are computed in a word's bytes, all at once, and written from there. Nothing is
//! ever indexed.

use super::sink::Sink;
use crate::text::digits::{Digits, EIGHT, ZEROS, count_of_digits, eight, eight_of_number};

/// Returns the two digits of a number below 100.
#[inline(always)]
pub(super) fn two(number: u32) -> u64 {
    let tens = (number * 103) >> 10;
    u64::from((tens | (number - 10 * tens) << 8) + 0x3030)
}

/// Returns the four digits of a number below 10000.
#[inline(always)]
pub(super) fn four(number: u32) -> u64 {
    let hundreds = number / 100;
    two(hundreds) | two(number - 100 * hundreds) << 16
}

/// Writes the digits of a number, at least one: of its first eight digits those after the leading zeros, and
/// all digits of every later eight.
#[inline(always)]
pub(super) fn put_number<S: Sink>(number: u64, sink: &mut S) {
    // Wide divisions take a GPU many instructions, and most numbers need none.
    let narrow = number as u32;
    let (rest, low) = match number >> 32 {
        0 => (u64::from(narrow / EIGHT as u32), narrow % EIGHT as u32),
        _ => number.split_eight(),
    };
    let (high, middle) = if rest < EIGHT { (0, rest as u32) } else { rest.split_eight() };
    let first = if high > 0 { high as u32 } else { middle };
    put_significant(if rest > 0 { first } else { low }, sink);
    if high > 0 {
        sink.put_all(eight_of_number(middle), 8);
    }
    if rest > 0 {
        sink.put_all(eight_of_number(low), 8);
    }
}

/// Writes the digits of a number below 10^8, without leading zeros.
#[inline(always)]
pub(super) fn put_significant<S: Sink>(number: u32, sink: &mut S) {
    if S::ONLY_COUNTS {
        return sink.put_all(0, count_of_digits(number));
    }
    let digits = eight(number);
    // Zero has a digit, too: its last one.
    let zeros = (digits | 1 << 56).trailing_zeros() / 8;
    sink.put_all((digits | ZEROS) >> (8 * zeros), 8 - zeros);
}

/// Writes the digits of a number, after a minus if it is negative.
#[inline(always)]
pub(super) fn put_signed<S: Sink>(number: i64, sink: &mut S) {
    if number < 0 {
        sink.put(b'-');
    }
    put_number(number.unsigned_abs(), sink);
}

/// Writes a point and a number of the nine digits of a number below 10^9.
#[inline(always)]
pub(super) fn put_fraction<S: Sink>(number: u32, figures: u32, sink: &mut S) {
    let most = number / 10;
    sink.put(b'.');
    sink.put_all(eight_of_number(most), if figures < 8 { figures } else { 8 });
    if figures == 9 {
        sink.put(b'0' + (number - 10 * most) as u8);
    }
}
