//! Bytes of a text, wherever they are.

/// Bytes that are found by number.
pub trait Bytes: Copy {
    /// How many.
    fn len(self) -> u64;
    /// Byte `i`, of those there are.
    fn at(self, i: u64) -> u8;
    /// Eight bytes from byte `i` on, the first in the lowest place; zeros behind the last. `i` is
    /// [`len`](Bytes::len) at most.
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
