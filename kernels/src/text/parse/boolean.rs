//! Booleans: any prefix of true, yes, false and no; on, off, 1 and 0; in either case, and with Unicode white
//! space around them.

use crate::text::bytes::Bytes;

/// Packs up to five letters into a word, with their number in the highest byte.
const fn word(letters: &[u8]) -> u64 {
    let (mut word, mut i) = ((letters.len() as u64) << 56, 0);
    while i < letters.len() {
        word |= (letters[i] as u64) << (8 * i);
        i += 1;
    }
    word
}

/// Reads a text as a boolean.
#[inline(always)]
pub fn read_boolean<B: Bytes>(text: B) -> Option<bool> {
    let (mut from, mut to) = (0, text.len());
    while from < to {
        let space = space_at(text, from, to);
        if space == 0 {
            break;
        }
        from += space;
    }
    while from < to {
        let space = space_before(text, from, to);
        if space == 0 {
            break;
        }
        to -= space;
    }
    let len = to - from;
    if len == 0 || len > 5 {
        return None;
    }
    let mut said = len << 56;
    for i in 0..5 {
        if i < len {
            let byte = text.at(from + i);
            let large = byte.wrapping_sub(b'A') < 26;
            said |= u64::from(if large { byte + 32 } else { byte }) << (8 * i);
        }
    }
    let begins = |whole: u64| said & !(0xff << 56) == whole & !(!0 << (8 * len));
    let (yes, no) = (const { word(b"yes") }, const { word(b"false") });
    let is_true = len <= 4 && begins(const { word(b"true") })
        || len <= 3 && begins(yes)
        || said == const { word(b"on") }
        || said == const { word(b"1") };
    let is_false = begins(no)
        || len <= 2 && begins(const { word(b"no") })
        || (2..=3).contains(&len) && begins(const { word(b"off") })
        || said == const { word(b"0") };
    (is_true || is_false).then_some(is_true)
}

/// Returns whether a character of two or three bytes, the first in the lowest byte, is white space.
#[inline(always)]
fn is_wide_space(bytes: u32) -> bool {
    match bytes {
        0x85c2 | 0xa0c2 | 0x809ae1 | 0x9f81e2 | 0x8080e3 => true,
        _ => {
            let last = bytes >> 16;
            bytes & 0xffff == 0x80e2
                && ((0x80..=0x8a).contains(&last) || last == 0xa8 || last == 0xa9 || last == 0xaf)
        }
    }
}

/// Returns the length in bytes of the white space at a position; 0 if there is another character.
#[inline(always)]
fn space_at<B: Bytes>(text: B, at: u64, to: u64) -> u64 {
    let first = text.at(at);
    if is_narrow_space(first) {
        return 1;
    }
    let len = if first == 0xc2 { 2 } else { 3 };
    if first < 0xc2 || to - at < len {
        return 0;
    }
    let third = if len == 3 { text.at(at + 2) } else { 0 };
    let bytes = u32::from(first) | u32::from(text.at(at + 1)) << 8 | u32::from(third) << 16;
    if is_wide_space(bytes) { len } else { 0 }
}

/// Returns the length in bytes of the white space that ends before a position; 0 if another character does.
#[inline(always)]
fn space_before<B: Bytes>(text: B, from: u64, to: u64) -> u64 {
    let last = text.at(to - 1);
    if is_narrow_space(last) {
        return 1;
    }
    if last < 0x80 {
        return 0;
    }
    // Text is UTF-8, so no character ends inside another.
    let two = if to - from >= 2 { space_at(text, to - 2, to) } else { 0 };
    if two == 2 {
        return 2;
    }
    let three = if to - from >= 3 { space_at(text, to - 3, to) } else { 0 };
    if three == 3 { 3 } else { 0 }
}

#[inline(always)]
fn is_narrow_space(byte: u8) -> bool {
    byte == b' ' || (0x09..=0x0d).contains(&byte)
}
