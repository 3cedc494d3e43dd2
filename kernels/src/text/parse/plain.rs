//! Numbers in the usual form: an optional sign, digits, an optional point; at most 16 characters.
//!
//! The one idea: such a text is two words. Once it is moved to their end, with leading zeros and without the
//! point, all digits are checked and summed at once, whatever their number. Without a loop, a processor does
//! not predict lengths, and a GPU's lanes do not diverge.

use crate::target::HOST;
use crate::text::bytes::Bytes;
use crate::text::digits::{EIGHT, ZEROS, number_of_eight};

/// A word with `'.'` in every byte.
const POINTS: u64 = 0x2e2e_2e2e_2e2e_2e2e;

/// A number in the usual form: its sign, its digits, and how many of them follow the point.
#[derive(Clone, Copy)]
pub(super) struct Plain {
    pub negative: bool,
    pub digits: u64,
    pub behind: u32,
}

/// Reads a text as a number in the usual form; `None` for any other text. The number may have a point if
/// `POINT`.
#[inline(always)]
pub(super) fn plain<const POINT: bool>(text: impl Bytes) -> Option<Plain> {
    if text.is_empty() || text.len() > 16 {
        return None;
    }
    let len = text.len() as u32;
    if HOST && !POINT && len <= 8 {
        return short(text.eight(0), len);
    }
    let (low, high) = (text.eight(0), if len > 8 { text.eight(8) } else { 0 });
    let negative = low as u8 == b'-';
    let signed = u32::from(negative || low as u8 == b'+');
    let (missing, zeros) = (16 - len, 16 - len + signed);
    let bits = missing % 8 * 8;
    let (low, high) =
        if missing < 8 { (low << bits, high << bits | low >> 1 >> (63 - bits)) } else { (0, low << bits) };
    // One of the leading zeros replaces the sign.
    let (low, high) =
        if zeros < 8 { (zeros_below(low, zeros), high) } else { (ZEROS, zeros_below(high, zeros & 7)) };
    let (low, high, behind) = if POINT { without_point(low, high) } else { (low, high, None) };
    let digits = u64::from(number_of_eight(low)?) * EIGHT + u64::from(number_of_eight(high)?);
    let any = len > signed + u32::from(behind.is_some());
    any.then_some(Plain { negative, digits, behind: behind.unwrap_or(0) })
}

/// Reads an optional sign and digits in one word.
#[inline(always)]
fn short(text: u64, len: u32) -> Option<Plain> {
    let negative = text as u8 == b'-';
    let signed = u32::from(negative || text as u8 == b'+');
    if len == signed {
        return None;
    }
    let digits = number_of_eight(zeros_below(text << (64 - 8 * len), 8 - len + signed))?;
    Some(Plain { negative, digits: digits.into(), behind: 0 })
}

/// Replaces the first bytes of a word, fewer than eight, by zeros.
#[inline(always)]
fn zeros_below(word: u64, bytes: u32) -> u64 {
    let kept = !0 << (8 * bytes);
    word & kept | ZEROS & !kept
}

/// Removes the first point from two words and prepends a zero instead; also returns how many bytes follow the
/// point.
#[inline(always)]
fn without_point(low: u64, high: u64) -> (u64, u64, Option<u32>) {
    let (in_low, in_high) = (first_point(low), first_point(high));
    let in_front = low << 8 | u64::from(b'0');
    if in_low != 0 {
        let above = !0 << in_low.trailing_zeros() << 1;
        return (low & above | in_front & !above, high, Some(15 - in_low.trailing_zeros() / 8));
    }
    if in_high != 0 {
        let above = !0 << in_high.trailing_zeros() << 1;
        let high = high & above | (high << 8 | low >> 56) & !above;
        return (in_front, high, Some(7 - in_high.trailing_zeros() / 8));
    }
    (low, high, None)
}

/// Returns the highest bit of the first byte that is a point; higher bits may be set, too.
#[inline(always)]
fn first_point(word: u64) -> u64 {
    let word = word ^ POINTS;
    word.wrapping_sub(0x0101_0101_0101_0101) & !word & 0x8080_8080_8080_8080
}
