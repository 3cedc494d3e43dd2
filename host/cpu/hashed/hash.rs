//! The hashes of words and of bytes.

/// Hashes the first `len` bytes; `None` if there are fewer.
#[inline(always)]
pub(super) fn of_bytes(seed: u64, bytes: &[u8], len: usize) -> Option<u64> {
    let mut hash = seed ^ (len as u64).rotate_left(32);
    if len > bytes.len() {
        return None;
    }
    let mut at = 0;
    // A text without bytes takes a step too.
    loop {
        let sixteen = first_bytes(&bytes[at..], (len - at).min(16));
        hash = mixed(hash ^ sixteen as u64, hash.rotate_left(25) ^ (sixteen >> 64) as u64);
        at += 16;
        if at >= len {
            return Some(hash);
        }
    }
}

/// The first bytes, at most 16, as a number.
#[inline(always)]
pub(super) fn first_bytes(bytes: &[u8], len: usize) -> u128 {
    match bytes.first_chunk::<16>() {
        Some(sixteen) => u128::from_le_bytes(*sixteen) & lowest(len),
        None => {
            let mut sixteen = [0; 16];
            sixteen[..len].copy_from_slice(&bytes[..len]);
            u128::from_le_bytes(sixteen)
        }
    }
}

/// Multiplies two words, of which every bit has a part in the result.
#[inline(always)]
pub(super) fn mixed(one: u64, other: u64) -> u64 {
    // A word that is zero takes no part of the other away.
    let wide = u128::from(one ^ 0xe703_7ed1_a0b4_28db) * u128::from(other ^ 0x8ebc_6af0_9c88_c6e3);
    (wide as u64) ^ (wide >> 64) as u64
}

/// Spreads the bits of a word over all bits.
#[inline(always)]
pub(super) fn fold(word: u64) -> u64 {
    let wide = u128::from(word) * 0xf39c_c060_5ced_c835;
    (wide as u64) ^ (wide >> 64) as u64
}

/// A mask of the lowest bytes, at most 16. To read it is faster than to shift by a number of two words.
#[inline(always)]
pub(super) fn lowest(bytes: usize) -> u128 {
    const MASKS: [u128; 17] = {
        let (mut masks, mut i) = ([0; 17], 1);
        while i < 17 {
            masks[i] = masks[i - 1] << 8 | 0xff;
            i += 1;
        }
        masks
    };
    MASKS[bytes]
}
