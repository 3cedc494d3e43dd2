//! What the CPU path does with vector units: the one place that asks which instructions there are.
//!
//! The one idea: every function here is safe and total, with a plain-Rust twin in `plain.rs` that defines it; which
//! twin runs is decided once, from what the processor says. Loops that the compiler vectorises by itself go through

#![allow(unsafe_code)]

use super::bitmap::Bits;
use super::simd_wide::{Level, Loop, vectorised};

mod plain;
#[cfg(target_arch = "x86_64")]
mod x86;

/// How many bits are 1.
pub(crate) fn count_ones(words: &[u64]) -> usize {
    struct Count<'a>(&'a [u64]);
    impl Loop for Count<'_> {
        type Output = usize;
        #[inline(always)]
        fn run(self) -> usize {
            self.0.iter().map(|word| word.count_ones() as usize).sum()
        }
    }
    vectorised(Count(words))
}

/// Writes the values whose bits are 1, in order, and returns how many; `words` has a bit a value, none past the last.
/// Stops where `out` is full.
pub(crate) fn compress<const W: usize>(values: &[[u8; W]], words: &[u64], out: &mut [[u8; W]]) -> usize {
    compress_at(Level::widest(), values, words, out)
}

fn compress_at<const W: usize>(
    level: Level,
    values: &[[u8; W]],
    words: &[u64],
    out: &mut [[u8; W]],
) -> usize {
    assert_eq!(words.len(), values.len().div_ceil(64));
    #[cfg(target_arch = "x86_64")]
    match level {
        // SAFETY: the level says that the instructions are there.
        Level::Avx512 => return unsafe { x86::compress_avx512(values, words, out) },
        // SAFETY: as above.
        Level::Avx2 => return unsafe { x86::compress_avx2(values, words, out) },
        Level::Plain => {}
    }
    let _ = level;
    plain::compress(values, words, 0, out)
}

/// Moves the bits `value(i) & words[i]` together, behind `fill` (below 64) bits that others write.
///
/// `out` is the words behind the one with those bits, or, where `fill` is 0, from the first on. Returns the bits for
/// the word that is not in `out`, in their places, and how many of all bits are 1.
pub(crate) fn compact(
    words: &[u64],
    value: impl Fn(usize) -> u64,
    fill: usize,
    out: &mut [u64],
) -> (u64, usize) {
    #[cfg(target_arch = "x86_64")]
    if Level::widest() >= Level::Avx2 {
        // SAFETY: the level says that the instructions are there.
        return unsafe { x86::compact_bmi2(words, value, fill, out) };
    }
    plain::compact(words, value, fill, out, plain::extract)
}

/// The values at `indices` of four or eight bytes, for each of which `out` has room; anything where `valid` has a 0.
/// False where an index that is valid is `limit` or more.
pub(crate) fn gather<const W: usize, const I: usize>(
    values: &[[u8; W]],
    indices: &[[u8; I]],
    limit: u64,
    valid: Option<Bits>,
    out: &mut [[u8; W]],
) -> bool {
    assert!(limit <= values.len() as u64 && indices.len() == out.len());
    plain::gather(values, indices, limit, valid, out)
}

/// The bits at `indices`, as words; 0 where `valid` is. False where an index that is valid is `limit` or more.
pub(crate) fn gather_bits<const I: usize>(
    bits: Bits,
    indices: &[[u8; I]],
    limit: u64,
    valid: Option<Bits>,
    out: &mut [u64],
) -> bool {
    assert!(limit <= bits.len() as u64 && out.len() == indices.len().div_ceil(64));
    plain::gather_bits(bits, indices, limit, valid, out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn levels() -> impl Iterator<Item = Level> {
        Level::available().iter().copied()
    }

    fn noise(seed: u64) -> impl Iterator<Item = u64> {
        let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        std::iter::repeat_with(move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        })
    }

    fn compress_agrees<const W: usize>() {
        for len in [0usize, 1, 63, 64, 65, 128, 1000, 4096] {
            for (seed, density) in [(1, 0), (2, 1), (3, 2), (4, 6), (5, 63), (6, 64)] {
                let mut bytes = noise(seed).map(|x| x as u8);
                let values: Vec<[u8; W]> =
                    (0..len).map(|_| std::array::from_fn(|_| bytes.next().unwrap())).collect();
                let mut kept = noise(seed + 9).map(|x| x % 64 < density);
                let kept: Vec<bool> = (0..len).map(|_| kept.next().unwrap()).collect();
                let mut words = vec![0u64; len.div_ceil(64)];
                kept.iter().enumerate().for_each(|(i, k)| words[i / 64] |= u64::from(*k) << (i % 64));
                let expected: Vec<[u8; W]> =
                    values.iter().zip(&kept).filter(|(_, k)| **k).map(|(v, _)| *v).collect();
                for level in levels() {
                    let mut out = vec![[0xAB; W]; expected.len() + 3];
                    let room = expected.len();
                    let written = compress_at(level, &values, &words, &mut out[..room]);
                    assert_eq!(written, room);
                    assert!(out[..room] == expected[..], "{level:?} width {W} len {len} density {density}");
                    assert_eq!(out[room..], [[0xAB; W]; 3], "{level:?} wrote past its part");
                }
            }
        }
    }

    #[test]
    fn every_level_compresses_alike() {
        compress_agrees::<1>();
        compress_agrees::<2>();
        compress_agrees::<4>();
        compress_agrees::<8>();
        compress_agrees::<16>();
        compress_agrees::<32>();
    }

    #[test]
    fn extracting_bits_is_pext() {
        for (value, mask) in noise(3).zip(noise(4)).take(200) {
            let expected = (0..64).filter(|i| mask >> i & 1 != 0).enumerate();
            let expected = expected.fold(0, |all, (k, i)| all | (value >> i & 1) << k);
            assert_eq!(plain::extract(value, mask), expected);
            let mut out = [0];
            let (_, ones) = compact(&[mask], |_| value, 0, &mut out);
            assert_eq!((out[0], ones), (expected, expected.count_ones() as usize));
        }
    }
}
