//! Population counts with AVX-512, AVX2, and in plain Rust.
//!
//! The loops are written with intrinsics because the compiler turned a plain loop over words into gathers,
//! which took four times as long on AMD's processors.

#![allow(unsafe_code)]

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

use super::vectorise::VectorLevel;

/// Counts the set bits of words.
pub(crate) fn count_ones(words: &[u64]) -> usize {
    // SAFETY: the same memory; every byte is a value.
    count_bits(unsafe { std::slice::from_raw_parts(words.as_ptr().cast(), size_of_val(words)) })
}

/// Counts the set bits of bytes.
pub(crate) fn count_bits(bytes: &[u8]) -> usize {
    count_bits_at(VectorLevel::widest(), bytes)
}

fn count_bits_at(level: VectorLevel, bytes: &[u8]) -> usize {
    match level {
        // SAFETY: the level says that the instructions are there.
        #[cfg(target_arch = "x86_64")]
        VectorLevel::Avx512 => unsafe { avx512(bytes) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        VectorLevel::Avx2 => unsafe { avx2(bytes) },
        VectorLevel::Plain => plain(bytes),
    }
}

#[inline(always)]
fn plain(bytes: &[u8]) -> usize {
    let (words, rest) = bytes.as_chunks::<8>();
    let words = words.iter().map(|word| u64::from_le_bytes(*word).count_ones() as usize);
    words.sum::<usize>() + rest.iter().map(|byte| byte.count_ones() as usize).sum::<usize>()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vpopcntdq,bmi2,popcnt")]
fn avx512(bytes: &[u8]) -> usize {
    // Four accumulators, so that the loop waits only for its loads.
    let mut sums = [_mm512_setzero_si512(); 4];
    let (blocks, rest) = bytes.as_chunks::<256>();
    for block in blocks {
        for (i, sum) in sums.iter_mut().enumerate() {
            // SAFETY: a block is four vectors.
            let vector = unsafe { _mm512_loadu_si512(block.as_ptr().add(i * 64).cast()) };
            *sum = _mm512_add_epi64(*sum, _mm512_popcnt_epi64(vector));
        }
    }
    for (part, sum) in rest.chunks(64).zip(&mut sums) {
        // SAFETY: as many bytes are loaded as there are.
        let vector = unsafe { _mm512_maskz_loadu_epi8(u64::MAX >> (64 - part.len()), part.as_ptr().cast()) };
        *sum = _mm512_add_epi64(*sum, _mm512_popcnt_epi64(vector));
    }
    let [a, b, c, d] = sums;
    _mm512_reduce_add_epi64(_mm512_add_epi64(_mm512_add_epi64(a, b), _mm512_add_epi64(c, d))) as usize
}

/// Looks up the count of each half byte in a table.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,popcnt")]
fn avx2(bytes: &[u8]) -> usize {
    let table = _mm256_setr_epi8(
        0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4, 0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4,
    );
    let (zero, low_half) = (_mm256_setzero_si256(), _mm256_set1_epi8(15));
    let mut sums = [zero; 2];
    let (blocks, rest) = bytes.as_chunks::<64>();
    for block in blocks {
        for (i, sum) in sums.iter_mut().enumerate() {
            // SAFETY: a block is two vectors.
            let vector = unsafe { _mm256_loadu_si256(block.as_ptr().add(i * 32).cast()) };
            let low = _mm256_shuffle_epi8(table, _mm256_and_si256(vector, low_half));
            let high = _mm256_shuffle_epi8(table, _mm256_and_si256(_mm256_srli_epi16::<4>(vector), low_half));
            *sum = _mm256_add_epi64(*sum, _mm256_sad_epu8(_mm256_add_epi8(low, high), zero));
        }
    }
    let mut lanes = [0u64; 4];
    // SAFETY: four lanes are a vector.
    unsafe { _mm256_storeu_si256(lanes.as_mut_ptr().cast(), _mm256_add_epi64(sums[0], sums[1])) };
    lanes.iter().sum::<u64>() as usize + plain(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_level_counts_alike() {
        let bytes: Vec<u8> =
            (1..=3000u64).map(|i| (i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8).collect();
        for len in [0, 1, 7, 8, 9, 31, 32, 63, 64, 65, 255, 256, 257, 300, 511, 512, 1000, 3000] {
            let bytes = &bytes[3000 - len..];
            let expected: usize =
                bytes.iter().map(|byte| (0..8).filter(|bit| byte >> bit & 1 == 1).count()).sum();
            for level in VectorLevel::available() {
                assert_eq!(count_bits_at(*level, bytes), expected, "{level:?} {len}");
            }
        }
    }
}
