//! Numbers as digits, eight at a time.
//!
//! The one idea: digits are made in a word's bytes, all at once, and put from there. Nothing is ever indexed.

use super::Sink;
use super::digits::{Digits, ZEROS, eight, eight_of_number};

/// Two digits of a number below 100.
#[inline(always)]
pub(super) fn two(number: u32) -> u64 {
    let tens = (number * 103) >> 10;
    u64::from((tens | (number - 10 * tens) << 8) + 0x3030)
}

/// Four digits of a number below 10000.
#[inline(always)]
pub(super) fn four(number: u32) -> u64 {
    let hundreds = number / 100;
    two(hundreds) | two(number - 100 * hundreds) << 16
}

/// The digits of a number, of which there is at least one: of its first eight those that are no zeros in front, and eight of every other.
#[inline(always)]
pub(super) fn put_number<S: Sink>(number: u64, sink: &mut S) {
    let (rest, low) = number.split_eight();
    let (high, middle) = rest.split_eight();
    let first = if high > 0 { high as u32 } else { middle };
    put_significant(if rest > 0 { first } else { low }, sink);
    if high > 0 {
        sink.put_all(eight_of_number(middle), 8);
    }
    if rest > 0 {
        sink.put_all(eight_of_number(low), 8);
    }
}

/// The digits of a number below 10^8, without zeros before.
#[inline(always)]
pub(super) fn put_significant<S: Sink>(number: u32, sink: &mut S) {
    let digits = eight(number);
    // Zero has a digit, too: its last.
    let zeros = (digits | 1 << 56).trailing_zeros() / 8;
    sink.put_all((digits | ZEROS) >> (8 * zeros), 8 - zeros);
}

/// The digits of a number, after a minus if it is less than 0.
#[inline(always)]
pub(super) fn put_signed<S: Sink>(number: i64, sink: &mut S) {
    if number < 0 {
        sink.put(b'-');
    }
    put_number(number.unsigned_abs(), sink);
}

/// A point and so many of the nine digits of a number below 10^9.
#[inline(always)]
pub(super) fn put_fraction<S: Sink>(number: u32, figures: u32, sink: &mut S) {
    let most = number / 10;
    sink.put(b'.');
    sink.put_all(eight_of_number(most), if figures < 8 { figures } else { 8 });
    if figures == 9 {
        sink.put(b'0' + (number - 10 * most) as u8);
    }
}

/// ASCII as a word.
pub(super) const fn word(text: &[u8]) -> u64 {
    let (mut word, mut at) = (0, text.len());
    while at > 0 {
        at -= 1;
        word = word << 8 | text[at] as u64;
    }
    word
}
