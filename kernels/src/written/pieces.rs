//! What texts of dates and times are made of: digits, eight at a time, and whitespace.
//!
//! The one idea: a word holds eight bytes, the first lowest. Taken against `'0'`, digits become their values, and one addition tells
//! in every byte's highest bit whether it was something else.

use super::Bytes;
use super::digits::digit;

/// Of bytes taken against `'0'`: the highest bit of each that was no digit.
#[inline(always)]
pub(super) fn no_digits(word: u64) -> u64 {
    (((word & 0x7f7f_7f7f_7f7f_7f7f) + 0x7676_7676_7676_7676) | word) & 0x8080_8080_8080_8080
}

/// Byte `i` of a word.
#[inline(always)]
pub(super) fn byte(word: u64, i: u32) -> u32 {
    (word >> (8 * i)) as u32 & 0xff
}

/// The eight bytes from `at`, of a text of at least eight; 0 for those that are not there, of which there are at most seven.
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
    /// All of it.
    #[inline(always)]
    pub(super) fn all(text: B) -> Part<B> {
        Part { text, from: 0, len: text.len() }
    }

    /// Without what is before a byte.
    #[inline(always)]
    pub(super) fn after(text: B, from: u64) -> Part<B> {
        Part { text, from, len: text.len() - from }
    }

    /// Only its first bytes.
    #[inline(always)]
    pub(super) fn first(self, len: u64) -> Part<B> {
        Part { len, ..self }
    }

    /// Without the ASCII whitespace around.
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

/// How many bytes the character at a byte has if it is what Unicode calls white space; else 0.
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

/// What the text says as an integer: a sign if it likes, then digits. `None` also where the magnitude exceeds the limit, which is at
/// most that of 64 bits; one more is fine with a minus.
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

/// A number with another digit; `None` if it is none, or would exceed 64 bits with a sign by more than one.
#[inline(always)]
pub(super) fn push(magnitude: u64, byte: u8) -> Option<u64> {
    let digit = digit(byte);
    (digit < 10 && magnitude <= i64::MAX as u64 / 10)
        .then(|| magnitude.wrapping_mul(10).wrapping_add(u64::from(digit)))
}

/// A magnitude with its sign, if it is at most the limit, or one more with a minus.
#[inline(always)]
pub(super) fn signed(magnitude: u64, negative: bool, limit: u64) -> Option<i64> {
    let value = if negative { magnitude.wrapping_neg() } else { magnitude };
    (magnitude <= limit + u64::from(negative)).then_some(value as i64)
}
