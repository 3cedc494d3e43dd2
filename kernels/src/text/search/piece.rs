//! The pieces of a pattern, each between two `%`, and the search for one.
//!
//! The one idea: the search of `find.rs`, but by characters, which may be escaped in the pattern, and which
//! may equal characters of other lengths if case is ignored. So the search counts no characters but keeps the
//! positions of those that it compares, and moves them one character at a time. Each position moves over the
//! text a few times at most.

use crate::text::bytes::Bytes;

/// A piece without `%`.
pub(super) struct Piece {
    pub start: u64,
    pub end: u64,
    characters: u64,
    /// Whether it has a `_`.
    pub has_any: bool,
    /// Whether every byte of it stands for itself.
    pub is_plain: bool,
}

impl Piece {
    /// Returns the piece that begins at `start`.
    #[inline(always)]
    pub fn of(pattern: impl Bytes, start: u64) -> Piece {
        let mut piece = Piece { start, end: start, characters: 0, has_any: false, is_plain: true };
        while piece.end < pattern.len() {
            let byte = pattern.at(piece.end);
            if byte == b'%' {
                break;
            }
            // A backslash is counted in place of the character that it escapes.
            let escapes = is_escape(pattern, piece.end);
            piece.has_any |= byte == b'_';
            piece.is_plain &= byte != b'_' && !escapes;
            piece.characters += u64::from(byte & 0xc0 != 0x80);
            piece.end += 1 + u64::from(escapes);
        }
        piece
    }

    /// Returns the only position, not before `from`, from which the piece may match the text up to its end.
    #[inline(always)]
    pub fn last(self, text: impl Bytes, from: u64) -> Option<u64> {
        let (mut at, mut left) = (text.len(), self.characters);
        while left > 0 && at > from {
            at -= 1;
            left -= u64::from(text.at(at) & 0xc0 != 0x80);
        }
        (left == 0).then_some(at)
    }

    /// Searches for the first place from `at` on at which the text has the piece, which MUST have no `_` and
    /// end before the pattern does. Returns the positions after it in the text and in the pattern.
    #[inline(always)]
    pub fn find(
        self,
        text: impl Bytes,
        mut at: u64,
        pattern: impl Bytes,
        characters: impl Characters,
    ) -> Option<(u64, u64)> {
        // The search of `find.rs`, where each number of characters is kept as a position in the text: `same`
        // as `text_at`, the first character that has not matched; `largest + alike` and `other + alike` as
        // `largest_at` and `other_at`; and `largest + period` as `period_end`.
        let (mut text_at, mut pattern_at) = (at, self.start);
        let (mut largest, mut largest_at) = (at, at);
        let mut period_end = characters.after(text, at, 1);
        let (mut other, mut other_at) = (period_end, period_end);
        loop {
            loop {
                // Bytes that are not UTF-8 may lead past the `%` after the piece.
                let byte = if pattern_at < pattern.len() { pattern.at(pattern_at) } else { b'%' };
                if byte == b'%' {
                    return Some((text_at, pattern_at));
                }
                // A later position leaves even less text.
                if text_at >= text.len() {
                    return None;
                }
                let escape = u64::from(byte == b'\\' && pattern_at + 1 < pattern.len());
                let (own, own_bytes) = characters.of(text, text_at);
                let (wanted, wanted_bytes) = characters.of(pattern, pattern_at + escape);
                if own != wanted {
                    break;
                }
                (text_at, pattern_at) =
                    (text_at + u64::from(own_bytes), pattern_at + escape + u64::from(wanted_bytes));
            }
            while other_at <= text_at {
                let (of_largest, largest_bytes) = characters.of(text, largest_at);
                let (of_other, other_bytes) = characters.of(text, other_at);
                (largest_at, other_at) =
                    (largest_at + u64::from(largest_bytes), other_at + u64::from(other_bytes));
                if of_largest < of_other {
                    (largest, largest_at) = (other, other);
                    other = characters.after(text, other, 1);
                    (other_at, period_end) = (other, other);
                } else if of_largest > of_other {
                    (largest_at, other, period_end) = (largest, other_at, other_at);
                } else if largest_at == period_end {
                    (largest_at, other) = (largest, other_at);
                }
            }
            // The period applies to all these characters if those before the largest suffix repeat with it,
            // too.
            let (mut first, mut second) =
                (at, characters.after(text, at, characters.between(text, largest, period_end)));
            while first < largest && largest <= second {
                let ((one, one_bytes), (two, two_bytes)) =
                    (characters.of(text, first), characters.of(text, second));
                if one != two {
                    break;
                }
                (first, second) = (first + u64::from(one_bytes), second + u64::from(two_bytes));
            }
            if first >= largest {
                let period = characters.between(text, largest, period_end);
                at = characters.after(text, at, period);
                if text_at >= at {
                    pattern_at = characters.before(pattern, pattern_at, self.start, period);
                } else {
                    (text_at, pattern_at) = (at, self.start);
                }
                if other > period_end {
                    largest = period_end;
                    largest_at = characters.after(text, largest_at, period);
                    period_end = characters.after(text, period_end, period);
                    continue;
                }
            } else {
                // Moves by `largest.max(other.min(same - largest)) + 1`.
                let mut suffix = largest;
                while at < largest || at < other && suffix < text_at {
                    suffix = characters.after(text, suffix, 1);
                    at = characters.after(text, at, 1);
                }
                at = characters.after(text, at, 1);
                (text_at, pattern_at) = (at, self.start);
            }
            (largest, largest_at) = (at, at);
            period_end = characters.after(text, at, 1);
            (other, other_at) = (period_end, period_end);
        }
    }
}

/// Whether a byte of a pattern escapes the next one. A backslash at the end stands for itself.
#[inline(always)]
pub(super) fn is_escape(pattern: impl Bytes, at: u64) -> bool {
    pattern.at(at) == b'\\' && at + 1 < pattern.len()
}

/// The characters that a search compares.
pub(super) trait Characters: Copy {
    /// Returns a number that equal characters share, for the character at a byte, which MUST exist, and the
    /// number of the character's bytes.
    fn of(self, bytes: impl Bytes, at: u64) -> (u32, u32);

    /// Returns the position that is a number of characters after another, at most the end.
    #[inline(always)]
    fn after(self, bytes: impl Bytes, mut at: u64, mut count: u64) -> u64 {
        while count > 0 && at < bytes.len() {
            at += u64::from(self.of(bytes, at).1);
            count -= 1;
        }
        at
    }

    /// Returns the number of characters between two positions.
    #[inline(always)]
    fn between(self, bytes: impl Bytes, mut from: u64, to: u64) -> u64 {
        let mut count = 0;
        while from < to {
            from += u64::from(self.of(bytes, from).1);
            count += 1;
        }
        count
    }

    /// Returns the position in a pattern that is a number of characters before another, at least `start`.
    #[inline(always)]
    fn before(self, pattern: impl Bytes, mut at: u64, start: u64, mut count: u64) -> u64 {
        while count > 0 && at > start {
            at -= 1;
            while at > start && pattern.at(at) & 0xc0 == 0x80 {
                at -= 1;
            }
            // A backslash that ends a character is itself escaped. Another character is escaped if an odd
            // number of backslashes precedes it.
            let mut escapes = u64::from(pattern.at(at) == b'\\');
            if escapes == 0 {
                while at > start + escapes && pattern.at(at - escapes - 1) == b'\\' {
                    escapes += 1;
                }
            }
            at -= (escapes % 2).min(at - start);
            count -= 1;
        }
        at
    }
}
