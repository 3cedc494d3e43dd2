//! Patterns of `LIKE`: the same function on every machine, and on the host's own memory.
//!
//! The one idea: a match only ever backtracks to the last `%`. All pieces before it have found their first
//! position, and any later position would leave less text to the rest of the pattern. The piece after it, up
//! to the next `%`, is tried at one character after the other. Once that has compared too many bytes in vain,
//! the function searches for the piece (`find.rs`) or, if it is the last piece, tries the one position from
//! which it can reach the end of the text. Pieces that have a `_` or an escape, and all pieces if case is
//! ignored, are not searched for: each may take time proportional to the text's length times its own. No
//! pattern takes memory.

use super::bytes::Bytes;
use super::find::find;
use super::folds::Fold;

/// A table of [`Fold`]s.
pub trait Folds: Copy {
    /// Returns the number of runs in the table.
    fn count(self) -> u64;
    /// Returns the word of run `i`.
    fn word(self, i: u64) -> u64;

    /// Returns the character that stands for all characters equal to this one if case is ignored.
    #[inline(always)]
    fn fold(self, character: u32) -> u32 {
        if character < 128 {
            let small = character.wrapping_sub(u32::from(b'a')) < 26;
            return if small { character - 32 } else { character };
        }
        let (mut low, mut high) = (0, self.count());
        while low < high {
            let middle = low + (high - low) / 2;
            if Fold::of(self.word(middle)).last < character { low = middle + 1 } else { high = middle }
        }
        if low == self.count() { character } else { Fold::of(self.word(low)).apply(character) }
    }
}

impl Folds for &[Fold] {
    fn count(self) -> u64 {
        self.len() as u64
    }

    fn word(self, i: u64) -> u64 {
        self[i as usize].word()
    }
}

/// Returns whether the text matches the pattern; `fold` ignores case. `spare` is `SPARE`, except in tests.
#[inline(always)]
pub fn like(text: impl Bytes, pattern: impl Bytes, folds: impl Folds, fold: bool, spare: u64) -> bool {
    let (mut t, mut p) = (0, 0);
    // `any` is the position after the last `%` in the pattern, `from` the position in the text at which the
    // rest is tried, and `left` the number of bytes that may still be compared in vain.
    let (mut any, mut from, mut left) = (u64::MAX, 0, spare as i64);
    loop {
        let mut matches = false;
        if p < pattern.len() {
            let byte = pattern.at(p);
            if byte == b'%' {
                p += 1;
                (any, from, left) = (p, t, spare as i64);
                continue;
            }
            if t < text.len() {
                let (own, own_bytes) = character(text, t);
                if byte == b'_' {
                    (matches, t, p) = (true, t + own_bytes, p + 1);
                } else {
                    // A backslash at the end stands for itself.
                    let taken = u64::from(byte == b'\\' && p + 1 < pattern.len());
                    let (wanted, wanted_bytes) = character(pattern, p + taken);
                    let same = own == wanted || fold && folds.fold(own) == folds.fold(wanted);
                    if same {
                        (matches, t, p) = (true, t + own_bytes, p + taken + wanted_bytes);
                    }
                }
            }
        } else if t >= text.len() {
            return true;
        } else if any == p {
            // The pattern ends with `%`.
            return true;
        }
        if !matches {
            if any == u64::MAX || from >= text.len() {
                return false;
            }
            // Skips to the next character.
            from += 1;
            while from < text.len() && text.at(from) & 0xc0 == 0x80 {
                from += 1;
            }
            left += 2 - (p - any) as i64;
            if left < 0 {
                let piece = Piece::of(pattern, any);
                if piece.end == pattern.len() {
                    let Some(last) = piece.last(text, from) else { return false };
                    from = last;
                } else if piece.plain && !fold {
                    let Some(found) = find(text, from, pattern, any, piece.end, false) else { return false };
                    from = found;
                } else {
                    left = i64::MAX / 2;
                }
            }
            (t, p) = (from, any);
        }
    }
}

/// The part of a pattern between two `%`.
struct Piece {
    end: u64,
    characters: u64,
    /// Whether every byte of the piece stands for itself.
    plain: bool,
}

impl Piece {
    /// Returns the piece that begins at `start`.
    #[inline(always)]
    fn of(pattern: impl Bytes, start: u64) -> Piece {
        let mut piece = Piece { end: start, characters: 0, plain: true };
        while piece.end < pattern.len() {
            let byte = pattern.at(piece.end);
            if byte == b'%' {
                break;
            }
            // A backslash is counted in place of the character that it escapes.
            let taken = byte == b'\\' && piece.end + 1 < pattern.len();
            piece.plain &= byte != b'_' && !taken;
            piece.characters += u64::from(byte & 0xc0 != 0x80);
            piece.end += 1 + u64::from(taken);
        }
        piece
    }

    /// Returns the only position, not before `from`, from which the piece may match the text up to its end.
    #[inline(always)]
    fn last(self, text: impl Bytes, from: u64) -> Option<u64> {
        let (mut at, mut left) = (text.len(), self.characters);
        while left > 0 && at > from {
            at -= 1;
            left -= u64::from(text.at(at) & 0xc0 != 0x80);
        }
        (left == 0).then_some(at)
    }
}

/// Returns the character at a byte, and the number of its bytes, as far as the text has them. Bytes that are
/// not UTF-8 give some character.
#[inline(always)]
fn character(text: impl Bytes, at: u64) -> (u32, u64) {
    let first = u32::from(text.at(at));
    if first < 0xc0 {
        return (first, 1);
    }
    let more = if first < 0xe0 { 1 } else { 2 + u64::from(first >= 0xf0) };
    let mut character = first & (0x3f >> more);
    let mut read = 1;
    while read <= more && at + read < text.len() {
        character = character << 6 | u32::from(text.at(at + read)) & 0x3f;
        read += 1;
    }
    (character, read)
}
