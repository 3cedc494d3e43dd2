//! Access to the bytes of a text, wherever they are stored.

/// Bytes that are accessed by index.
pub trait Bytes: Copy {
    /// Returns the number of bytes.
    fn len(self) -> u64;
    /// Returns byte `i`, which MUST exist.
    fn at(self, i: u64) -> u8;
    /// Returns eight bytes from byte `i` on, the first in the lowest place, with zeros after the last. `i` is
    /// at most [`len`](Bytes::len).
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
    /// Returns whether the text has no bytes.
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
        // Loads the last eight bytes if fewer than eight remain.
        let word = self.last_chunk().map_or_else(|| few(self), |eight| u64::from_le_bytes(*eight));
        let from = self.len().saturating_sub(8);
        word.checked_shr(8 * (i - from) as u32).unwrap_or(0)
    }
}

/// Loads all of fewer than eight bytes, followed by zeros. Loads overlap if necessary.
#[inline(always)]
fn few(bytes: &[u8]) -> u64 {
    let last = 8 * bytes.len() as u32;
    if let (Some(low), Some(high)) = (bytes.first_chunk(), bytes.last_chunk()) {
        return u64::from(u32::from_le_bytes(*low)) | u64::from(u32::from_le_bytes(*high)) << (last - 32);
    }
    let (Some(first), Some(high)) = (bytes.first(), bytes.last()) else { return 0 };
    u64::from(*first) | u64::from(bytes[bytes.len() / 2]) << (last / 16 * 8) | u64::from(*high) << (last - 8)
}

/// Packs ASCII text into a word.
pub(super) const fn pack(text: &[u8]) -> u64 {
    let (mut word, mut at) = (0, text.len());
    while at > 0 {
        at -= 1;
        word = word << 8 | text[at] as u64;
    }
    word
}
