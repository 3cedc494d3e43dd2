//! Patterns: the same on every machine, and on the host's own memory.
//!
//! The one idea: only the last `%` is ever gone back to. What comes before it has found its first place, and any other place would
//! leave less to what follows. So a pattern takes as long as the text times itself at most, and no memory.

use super::folds::Fold;

/// Bytes that are found by number.
pub trait Bytes: Copy {
    /// How many.
    fn len(self) -> u64;
    /// Byte `i`, of those there are.
    fn at(self, i: u64) -> u8;
    /// Eight bytes from byte `i` on, the first in the lowest place; zeros behind the last. `i` is [`len`](Bytes::len) at most.
    #[inline(always)]
    fn eight(self, i: u64) -> u64 {
        let left = self.len() - i;
        let (mut bytes, mut at) = (0, 0);
        while at < 8 {
            let byte = if at < left { self.at(i + at) } else { 0 };
            bytes |= u64::from(byte) << (8 * at);
            at += 1;
        }
        bytes
    }
    /// Whether there are none.
    fn is_empty(self) -> bool {
        self.len() == 0
    }
}

impl Bytes for &[u8] {
    #[inline(always)]
    fn len(self) -> u64 {
        <[u8]>::len(self) as u64
    }

    #[inline(always)]
    fn at(self, i: u64) -> u8 {
        self[i as usize]
    }

    #[inline(always)]
    fn eight(self, i: u64) -> u64 {
        let i = i as usize;
        if let Some(eight) = self.get(i..).and_then(|rest| rest.first_chunk()) {
            return u64::from_le_bytes(*eight);
        }
        // The last eight, where there are no more.
        let word = self.last_chunk().map_or_else(|| few(self), |eight| u64::from_le_bytes(*eight));
        let from = self.len().saturating_sub(8);
        word.checked_shr(8 * (i - from) as u32).unwrap_or(0)
    }
}

/// All of fewer than eight bytes, zeros behind them: by loads that overlap where they must.
#[inline(always)]
fn few(bytes: &[u8]) -> u64 {
    let last = 8 * bytes.len() as u32;
    if let (Some(low), Some(high)) = (bytes.first_chunk(), bytes.last_chunk()) {
        return u64::from(u32::from_le_bytes(*low)) | u64::from(u32::from_le_bytes(*high)) << (last - 32);
    }
    let (Some(first), Some(high)) = (bytes.first(), bytes.last()) else { return 0 };
    u64::from(*first) | u64::from(bytes[bytes.len() / 2]) << (last / 16 * 8) | u64::from(*high) << (last - 8)
}

/// A table of [`Fold`]s.
pub trait Folds: Copy {
    /// How many.
    fn count(self) -> u64;
    /// The word of one.
    fn word(self, i: u64) -> u64;

    /// What stands for all characters that are the same where case does not count.
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

/// Whether `needle` is somewhere in `text`.
#[inline(always)]
pub fn contains(text: impl Bytes, needle: impl Bytes) -> bool {
    let len = needle.len();
    if len == 0 {
        return true;
    }
    if len > text.len() {
        return false;
    }
    let first = needle.at(0);
    let (mut at, last) = (0, text.len() - len);
    while at <= last {
        if text.at(at) == first {
            let mut same = 1;
            while same < len && text.at(at + same) == needle.at(same) {
                same += 1;
            }
            if same == len {
                return true;
            }
        }
        at += 1;
    }
    false
}

/// Whether the text is of the pattern; `fold` where case does not count.
#[inline(always)]
pub fn like(text: impl Bytes, pattern: impl Bytes, folds: impl Folds, fold: bool) -> bool {
    let (mut t, mut p) = (0, 0);
    // Where the pattern goes on behind the last `%`, and where in the text it is tried.
    let (mut any, mut from) = (u64::MAX, 0);
    loop {
        let mut matches = false;
        if p < pattern.len() {
            let byte = pattern.at(p);
            if byte == b'%' {
                p += 1;
                (any, from) = (p, t);
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
            // To where the next character begins.
            from += 1;
            while from < text.len() && text.at(from) & 0xc0 == 0x80 {
                from += 1;
            }
            (t, p) = (from, any);
        }
    }
}

/// The character at a byte, and how many bytes it has: those that follow, as far as they are there. What is no UTF-8 is some
/// character.
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
