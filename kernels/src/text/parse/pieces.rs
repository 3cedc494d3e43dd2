//! Parts of texts of dates and times: digits, eight at a time, and whitespace.
//!
//! The one idea: a word holds eight bytes, the first in the lowest place. XOR with `'0'` turns digits into
//! their values, and one addition sets the highest bit of each byte that was not a digit.

use crate::text::bytes::Bytes;
use crate::text::digits::digit;

/// Returns the highest bit of each byte that is not a digit, for bytes XORed with `'0'`.
#[inline(always)]
pub(super) fn no_digits(word: u64) -> u64 {
    (((word & 0x7f7f_7f7f_7f7f_7f7f) + 0x7676_7676_7676_7676) | word) & 0x8080_8080_8080_8080
}

/// Returns byte `i` of a word.
#[inline(always)]
pub(super) fn byte(word: u64, i: u32) -> u32 {
    (word >> (8 * i)) as u32 & 0xff
}

/// Returns the eight bytes from `at` on, in a text of at least eight bytes. Bytes past the end, at most
/// seven, are 0.
#[inline(always)]
pub(super) fn padded(text: impl Bytes, at: u64) -> u64 {
    let over = (at + 8).saturating_sub(text.len());
    text.eight(at - over) >> (8 * over)
}

/// A part of a text.
#[derive(Clone, Copy)]
pub(super) struct Part<B> {
    text: B,
    from: u64,
    len: u64,
}

impl<B: Bytes> Part<B> {
    /// Returns the whole text as a part.
    #[inline(always)]
    pub(super) fn all(text: B) -> Part<B> {
        Part { text, from: 0, len: text.len() }
    }

    /// Returns the part of a text from byte `from` on.
    #[inline(always)]
    pub(super) fn after(text: B, from: u64) -> Part<B> {
        Part { text, from, len: text.len() - from }
    }

    /// Returns the first `len` bytes of this part.
    #[inline(always)]
    pub(super) fn first(self, len: u64) -> Part<B> {
        Part { len, ..self }
    }

    /// Returns this part without the ASCII whitespace around it.
    #[inline(always)]
    pub(super) fn trimmed(mut self) -> Part<B> {
        while self.len > 0 && self.at(0).is_ascii_whitespace() {
            self.from += 1;
            self.len -= 1;
        }
        while self.len > 0 && self.at(self.len - 1).is_ascii_whitespace() {
            self.len -= 1;
        }
        self
    }
}

impl<B: Bytes> Bytes for Part<B> {
    #[inline(always)]
    fn len(self) -> u64 {
        self.len
    }

    #[inline(always)]
    fn at(self, i: u64) -> u8 {
        self.text.at(self.from + i)
    }

    #[inline(always)]
    fn eight(self, i: u64) -> u64 {
        let (eight, left) = (self.text.eight(self.from + i), self.len - i);
        if left < 8 { eight & !(!0 << (8 * left)) } else { eight }
    }
}

/// Returns the length in bytes of the character at a byte if Unicode calls it white space, otherwise 0.
#[inline(always)]
pub(super) fn space_at(text: impl Bytes, at: u64) -> u64 {
    let first = text.at(at);
    if first < 0x80 {
        return u64::from(first == b' ' || first.wrapping_sub(9) < 5);
    }
    if at + 1 >= text.len() {
        return 0;
    }
    if first == 0xc2 {
        let second = text.at(at + 1);
        return if second == 0x85 || second == 0xa0 { 2 } else { 0 };
    }
    if first.wrapping_sub(0xe1) > 2 || at + 2 >= text.len() {
        return 0;
    }
    let character = u32::from(first & 0xf) << 12
        | u32::from(text.at(at + 1) & 0x3f) << 6
        | u32::from(text.at(at + 2) & 0x3f);
    let is = character == 0x1680
        || character.wrapping_sub(0x2000) < 11
        || character.wrapping_sub(0x2028) < 2
        || character == 0x202f
        || character == 0x205f
        || character == 0x3000;
    if is { 3 } else { 0 }
}

/// Reads the text as an integer: an optional sign, then digits. Returns `None` also if the magnitude exceeds
/// the limit, which is at most that of 64 bits; with a minus, the limit plus one is valid.
#[inline(always)]
pub(super) fn integer(text: impl Bytes, limit: u64) -> Option<i64> {
    let len = text.len();
    if len == 0 {
        return None;
    }
    let negative = text.at(0) == b'-';
    let mut at = u64::from(negative || text.at(0) == b'+');
    if at == len {
        return None;
    }
    let mut magnitude = 0;
    while at < len {
        magnitude = push(magnitude, text.at(at))?;
        at += 1;
    }
    signed(magnitude, negative, limit)
}

/// Appends a digit to a number; `None` if the byte is not a digit, or if the number would exceed the signed
/// 64-bit range by more than one.
#[inline(always)]
pub(super) fn push(magnitude: u64, byte: u8) -> Option<u64> {
    let digit = digit(byte);
    (digit < 10 && magnitude <= i64::MAX as u64 / 10)
        .then(|| magnitude.wrapping_mul(10).wrapping_add(u64::from(digit)))
}

/// Applies a sign to a magnitude; `None` if that exceeds the limit, or with a minus the limit plus one.
#[inline(always)]
pub(super) fn signed(magnitude: u64, negative: bool, limit: u64) -> Option<i64> {
    let value = if negative { magnitude.wrapping_neg() } else { magnitude };
    (magnitude <= limit + u64::from(negative)).then_some(value as i64)
}
