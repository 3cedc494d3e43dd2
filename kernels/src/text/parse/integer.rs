//! Integers: an optional sign, digits, and ASCII white space around them.

use super::plain::{Plain, plain};
use crate::text::bytes::Bytes;
use crate::text::digits::{Digits, EIGHT, digit, number_of_eight};

/// Reads a text as the bits of an integer. `most` is the greatest integer of the type, and `least` the
/// magnitude of the least one.
#[inline(always)]
pub fn read_integer<B: Bytes>(text: B, most: u64, least: u64) -> Option<u64> {
    let (mut at, mut end) = (0, text.len());
    if end == 0 {
        return None;
    }
    if let Some(Plain { negative, digits, .. }) = plain::<false>(text) {
        return with_sign(negative, digits, most, least);
    }
    if digit(text.at(end - 1)) > 9 {
        while end > 0 && text.at(end - 1).is_ascii_whitespace() {
            end -= 1;
        }
        if end == 0 || digit(text.at(end - 1)) > 9 {
            return None;
        }
    }
    // The last byte is a digit, so this loop ends.
    while text.at(at).is_ascii_whitespace() {
        at += 1;
    }
    let first = text.at(at);
    let negative = first == b'-';
    at += u64::from(negative || first == b'+');
    let mut magnitude = 0u64;
    while end - at >= 8 && magnitude < u64::MAX / EIGHT {
        magnitude = magnitude * EIGHT + u64::from(number_of_eight(text.eight(at))?);
        at += 8;
    }
    while at < end {
        let digit = u64::from(digit(text.at(at)));
        let more = magnitude.push(digit);
        // Beyond 2^64 the number wraps, to less than the digit that is pushed.
        if digit > 9 || magnitude > u64::MAX / 10 || more < digit {
            return None;
        }
        (magnitude, at) = (more, at + 1);
    }
    with_sign(negative, magnitude, most, least)
}

/// Returns a number's bits if it is within the bounds.
#[inline(always)]
fn with_sign(negative: bool, magnitude: u64, most: u64, least: u64) -> Option<u64> {
    let fits = magnitude <= if negative { least } else { most };
    fits.then(|| if negative { magnitude.wrapping_neg() } else { magnitude })
}
