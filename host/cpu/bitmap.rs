//! Bitmaps that start at any bit of any byte, read 64 rows at a time.

use super::{count, memory};
use crate::Result;
use crate::array::Bitmap;
use crate::threads::{among_threads, each_part};

/// The bits of some rows. Foreign memory is neither aligned nor padded, so nothing outside of them is read.
#[derive(Clone, Copy)]
pub(crate) struct Bits<'a> {
    bytes: &'a [u8],
    /// The position of the first row's bit in the first byte, below 8.
    shift: u32,
    len: usize,
}

impl<'a> Bits<'a> {
    /// Returns the first `len` rows of a bitmap.
    pub(crate) fn of(bitmap: &'a Bitmap, len: usize) -> Bits<'a> {
        Bits::new(memory::bytes(&bitmap.buffer), bitmap.offset, len)
    }

    /// Returns `len` rows, from bit `offset` of `bytes` on.
    pub(crate) fn new(bytes: &'a [u8], offset: usize, len: usize) -> Bits<'a> {
        let end = (offset + len).div_ceil(8);
        let start = (offset / 8).min(end);
        Bits { bytes: &bytes[start..end], shift: (offset % 8) as u32, len }
    }

    /// Returns the number of rows.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Returns the bytes, and the position of the first row's bit in the first of them.
    pub(crate) fn parts(&self) -> (&'a [u8], u32) {
        (self.bytes, self.shift)
    }

    /// Returns the number of words of 64 rows, the last of which may be partial.
    pub(crate) fn words(&self) -> usize {
        self.len.div_ceil(64)
    }

    /// Returns rows `64 * i .. 64 * i + 64`, the first in the lowest bit; bits past the end are zero.
    #[inline(always)]
    pub(crate) fn word(&self, i: usize) -> u64 {
        let start = i * 8;
        match self.bytes.get(start..start + 9) {
            Some(nine) => {
                let low = u64::from_le_bytes(nine[..8].try_into().expect("eight bytes"));
                // Shifts in two steps, because a shift by 64 is not allowed.
                let high = (u64::from(nine[8]) << 1) << (63 - self.shift);
                ((low >> self.shift) | high) & self.inside(i)
            }
            None => self.last_word(i),
        }
    }

    /// Returns the words that begin at a byte and lie inside the memory: none if the first row does not. The
    /// last may have bits past the end.
    pub(crate) fn whole_words(&self) -> &'a [[u8; 8]] {
        if self.shift == 0 { self.bytes.as_chunks().0 } else { &[] }
    }

    /// Reads a word that has fewer than nine bytes left.
    #[inline(never)]
    fn last_word(&self, i: usize) -> u64 {
        let mut bytes = [0; 16];
        let rest = self.bytes.get(i * 8..).unwrap_or(&[]);
        bytes[..rest.len()].copy_from_slice(rest);
        (u128::from_le_bytes(bytes) >> self.shift) as u64 & self.inside(i)
    }

    /// Returns the mask of rows that exist in word `i`.
    #[inline(always)]
    fn inside(&self, i: usize) -> u64 {
        match self.len - (i * 64).min(self.len) {
            0 => 0,
            rows @ 1..64 => !0 >> (64 - rows),
            _ => !0,
        }
    }

    /// Returns rows `start .. start + len`.
    pub(crate) fn slice(&self, start: usize, len: usize) -> Bits<'a> {
        assert!(start + len <= self.len, "rows inside the bits");
        Bits::new(self.bytes, self.shift as usize + start, len)
    }

    /// Returns whether the bit of row `i` is set.
    #[inline(always)]
    pub(crate) fn get(&self, i: usize) -> bool {
        debug_assert!(i < self.len, "a row inside the bits");
        let bit = self.shift as usize + i;
        (self.bytes[bit / 8] >> (bit % 8)) & 1 == 1
    }

    /// Returns the number of set bits.
    pub(crate) fn count(&self) -> Result<usize> {
        // Counts whole bytes, then subtracts the foreign bits of the first and the last, so that the vector
        // loop starts at the first byte.
        let (Some(first), Some(last)) = (self.bytes.first(), self.bytes.last()) else { return Ok(0) };
        let end = (self.shift as usize + self.len) % 8;
        let before = first & !(0xff << self.shift);
        let behind = if end == 0 { 0 } else { last >> end };
        Ok(count_ones(self.bytes)? - (before.count_ones() + behind.count_ones()) as usize)
    }
}

/// The bytes that one thread counts. They take some microseconds, which outweighs the cost of handing them
/// over.
const PART: usize = 512 << 10;

/// Counts the set bits of whole bytes.
fn count_ones(bytes: &[u8]) -> Result<usize> {
    if bytes.len() < 2 * PART {
        return Ok(count::count_bits(bytes));
    }
    let counts = among_threads(true, |_| each_part(bytes.chunks(PART), count::count_bits))?;
    Ok(counts.into_iter().sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes bytes without a regular pattern, which might hide a mistake.
    fn noise(len: usize) -> Vec<u8> {
        let mut state = 0x9e37_79b9_7f4a_7c15u64;
        (0..len)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 56) as u8
            })
            .collect()
    }

    #[test]
    fn words_and_counts_are_those_of_single_bits() {
        let bytes = noise(100);
        let bit = |i: usize| bytes[i / 8] >> (i % 8) & 1 == 1;
        for offset in [0, 1, 7, 8, 31, 32, 33, 63, 64, 65] {
            for len in [0, 1, 2, 7, 8, 9, 31, 63, 64, 65, 71, 72, 73, 127, 128, 129, 500, 800 - offset] {
                let bits = Bits::new(&bytes, offset, len);
                assert_eq!(
                    bits.count().unwrap(),
                    (offset..offset + len).filter(|i| bit(*i)).count(),
                    "{offset}+{len}"
                );
                for word in 0..bits.words() + 2 {
                    for row in 0..64 {
                        let i = word * 64 + row;
                        let expected = i < len && bit(offset + i);
                        assert_eq!(bits.word(word) >> row & 1 == 1, expected, "{offset}+{len}: {i}");
                    }
                }
                if len > 10 {
                    let part = bits.slice(9, len - 10);
                    assert_eq!(
                        part.count().unwrap(),
                        (offset + 9..offset + len - 1).filter(|i| bit(*i)).count()
                    );
                }
            }
        }
    }

    #[test]
    fn one_thread_and_many_count_alike() {
        let bytes = noise(2 * PART + 4321);
        for len in [0, 1, 1000, bytes.len()] {
            let expected: usize = bytes[..len].iter().map(|byte| byte.count_ones() as usize).sum();
            assert_eq!(count_ones(&bytes[..len]).unwrap(), expected);
        }
    }
}
