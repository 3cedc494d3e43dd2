//! Patterns of `LIKE`: the same function on every machine, and on the host's own memory.
//!
//! The one idea: a match only ever backtracks to the last `%`. All pieces before it have found their first
//! position, and any later position would leave less text to the rest of the pattern. The piece after it, up
//! to the next `%`, is tried at one character after the other. Once that has compared too many bytes in vain,
//! the function searches for the piece (`find.rs`, or `piece.rs` if case or an escape matters). If it is the
//! last piece, the function tries the one position from which it can reach the end of the text. Pieces that
//! have a `_` are not searched for: each may take time proportional to the text's length times its own. No
//! pattern takes memory.

use super::find::find;
use super::folds::Fold;
use super::piece::{Characters, Piece, is_escape};
use crate::text::bytes::Bytes;

/// A table of [`Fold`]s.
pub trait Folds: Copy {
    /// Returns the number of runs in the table.
    fn count(self) -> u32;
    /// Returns the word of run `i`.
    fn word(self, i: u32) -> u64;

    /// Returns the character that stands for all characters equal to this one if case is ignored.
    #[inline(always)]
    fn fold(self, character: u32) -> u32 {
        if character < 128 {
            let small = character.wrapping_sub(u32::from(b'a')) < 26;
            return if small { character - 32 } else { character };
        }
        let (mut low, mut high) = (0, self.count());
        while low < high {
            let middle = (low + high) / 2;
            if Fold::of(self.word(middle)).last < character { low = middle + 1 } else { high = middle }
        }
        if low == self.count() { character } else { Fold::of(self.word(low)).apply(character) }
    }
}

impl Folds for &[Fold] {
    fn count(self) -> u32 {
        self.len() as u32
    }

    fn word(self, i: u32) -> u64 {
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
                    (matches, t, p) = (true, t + u64::from(own_bytes), p + 1);
                } else {
                    let taken = u64::from(is_escape(pattern, p));
                    let (wanted, wanted_bytes) = character(pattern, p + taken);
                    let same = own == wanted || fold && folds.fold(own) == folds.fold(wanted);
                    if same {
                        (matches, t, p) =
                            (true, t + u64::from(own_bytes), p + taken + u64::from(wanted_bytes));
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
                } else if piece.is_plain && !fold {
                    let Some(found) = find(text, from, pattern, any, piece.end, false) else { return false };
                    from = found;
                } else if piece.has_any {
                    left = i64::MAX / 2;
                } else {
                    let Some(end) = piece.find(text, from, pattern, Case { folds, fold }) else {
                        return false;
                    };
                    (t, p) = end;
                    continue;
                }
            }
            (t, p) = (from, any);
        }
    }
}

/// Characters, compared without case if `fold`.
#[derive(Clone, Copy)]
struct Case<F> {
    folds: F,
    fold: bool,
}

impl<F: Folds> Characters for Case<F> {
    #[inline(always)]
    fn of(self, bytes: impl Bytes, at: u64) -> (u32, u32) {
        let (character, read) = character(bytes, at);
        (if self.fold { self.folds.fold(character) } else { character }, read)
    }
}

/// Returns the character at a byte, and the number of its bytes, as far as the text has them. Bytes that are
/// not UTF-8 give some character.
#[inline(always)]
fn character(text: impl Bytes, at: u64) -> (u32, u32) {
    let first = u32::from(text.at(at));
    if first < 0xc0 {
        return (first, 1);
    }
    let more = if first < 0xe0 { 1 } else { 2 + u32::from(first >= 0xf0) };
    let mut character = first & (0x3f >> more);
    let mut read = 1;
    while read <= more && at + u64::from(read) < text.len() {
        character = character << 6 | u32::from(text.at(at + u64::from(read))) & 0x3f;
        read += 1;
    }
    (character, read)
}
