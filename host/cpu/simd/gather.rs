//! Gathering with AVX-512: 64 rows at a time, bounds first, then loads that need no check of their own.

use std::arch::x86_64::*;

use super::plain;
use crate::cpu::bitmap::Bits;

/// The largest limit whose indices are non-negative as 32-bit lanes.
const LANE_LIMIT: u64 = 1 << 31;

/// 16 indices of `I` bytes as 32-bit lanes, and which of them are `limit` (at most [`LANE_LIMIT`]) or more.
///
/// # Safety
///
/// 16 indices must be readable at `from`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
unsafe fn sixteen<const I: usize>(from: *const [u8; I], limit: u64) -> (u16, __m512i) {
    // SAFETY: the caller has 16 indices, which are one vector of 4-byte ones or two of 8-byte ones.
    unsafe {
        if I == 4 {
            let lanes = _mm512_loadu_si512(from.cast());
            return (_mm512_cmpge_epu32_mask(lanes, _mm512_set1_epi32(limit as u32 as i32)), lanes);
        }
        let (low, high) = (_mm512_loadu_si512(from.cast()), _mm512_loadu_si512(from.add(8).cast()));
        let limit = _mm512_set1_epi64(limit as i64);
        let outside = [_mm512_cmpge_epu64_mask(low, limit), _mm512_cmpge_epu64_mask(high, limit)];
        let lanes = _mm512_castsi256_si512(_mm512_cvtepi64_epi32(low));
        (u16::from_le_bytes(outside), _mm512_inserti64x4(lanes, _mm512_cvtepi64_epi32(high), 1))
    }
}

/// As [`super::gather`].
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2,popcnt,lzcnt")]
pub(super) fn gather<const W: usize, const I: usize>(
    values: &[[u8; W]],
    indices: &[[u8; I]],
    limit: u64,
    valid: Option<Bits>,
    out: &mut [[u8; W]],
) -> bool {
    if !matches!(W, 4 | 8) || limit > LANE_LIMIT || limit > values.len() as u64 {
        return plain::gather(values, indices, limit, valid, out);
    }
    let mut good = true;
    let base = values.as_ptr();
    for (word, (indices, out)) in indices.chunks(64).zip(out.chunks_mut(64)).enumerate() {
        let mut outside = 0;
        let mut lanes = [_mm512_setzero_si512(); 4];
        if let (64, 64) = (indices.len(), out.len()) {
            for (part, lanes) in lanes.iter_mut().enumerate() {
                // SAFETY: 64 indices are four times 16.
                let (bad, all) = unsafe { sixteen::<I>(indices.as_ptr().add(part * 16), limit) };
                outside |= bad;
                *lanes = all;
            }
        } else {
            outside = 1;
        }
        if outside != 0 {
            let valid = valid.map_or(u64::MAX, |valid| valid.word(word));
            good &= plain::gather_checked(values, indices, limit, valid, out);
            continue;
        }
        for (part, lanes) in lanes.into_iter().enumerate() {
            // SAFETY: all 64 lanes are below the limit, so inside of `values`, and not negative; `out` has 64 places.
            unsafe {
                let to = out.as_mut_ptr().add(part * 16);
                if W == 4 {
                    _mm512_storeu_si512(to.cast(), _mm512_i32gather_epi32::<4>(lanes, base.cast()));
                } else {
                    let low = _mm512_castsi512_si256(lanes);
                    let high = _mm512_extracti64x4_epi64(lanes, 1);
                    _mm512_storeu_si512(to.cast(), _mm512_i32gather_epi64::<8>(low, base.cast()));
                    _mm512_storeu_si512(to.add(8).cast(), _mm512_i32gather_epi64::<8>(high, base.cast()));
                }
            }
        }
    }
    good
}

/// As [`super::gather_bits`]: the four bytes around each bit, shifted.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2,popcnt,lzcnt")]
pub(super) fn gather_bits<const I: usize>(
    bits: Bits,
    indices: &[[u8; I]],
    limit: u64,
    valid: Option<Bits>,
    out: &mut [u64],
) -> bool {
    let (bytes, shift) = bits.parts();
    if bytes.len() < 4 || bytes.len() as u64 * 8 >= LANE_LIMIT || limit > bits.len() as u64 {
        return plain::gather_bits(bits, indices, limit, valid, out);
    }
    let shift = _mm512_set1_epi32(shift as i32);
    // Four bytes from here on are the last that there are.
    let last = _mm512_set1_epi32((bytes.len() - 4) as i32);
    let one = _mm512_set1_epi32(1);
    let mut good = true;
    for (word, (indices, out)) in indices.chunks(64).zip(out).enumerate() {
        let valid = valid.map_or(u64::MAX, |valid| valid.word(word));
        let mut outside = 0;
        let mut taken = 0;
        if indices.len() == 64 {
            for part in 0..4 {
                // SAFETY: 64 indices are four times 16.
                let (bad, lanes) = unsafe { sixteen::<I>(indices.as_ptr().add(part * 16), limit) };
                outside |= bad;
                let bit = _mm512_add_epi32(lanes, shift);
                let byte = _mm512_min_epu32(_mm512_srli_epi32::<3>(bit), last);
                // SAFETY: `byte` is at most `last`, whatever the lane is.
                let four = unsafe { _mm512_i32gather_epi32::<1>(byte, bytes.as_ptr().cast()) };
                let within = _mm512_sub_epi32(bit, _mm512_slli_epi32::<3>(byte));
                let ones = _mm512_test_epi32_mask(four, _mm512_sllv_epi32(one, within));
                taken |= u64::from(ones) << (part * 16);
            }
        } else {
            outside = 1;
        }
        if outside != 0 {
            let mut word = [0];
            good &= plain::gather_bits_checked(bits, indices, limit, valid, &mut word);
            [taken] = word;
        }
        *out = taken & valid;
    }
    good
}
