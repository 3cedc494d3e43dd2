//! AVX2, BMI2 and AVX-512.

use std::arch::x86_64::*;

use super::plain;
use crate::cpu::rows::ones;

#[target_feature(enable = "bmi1,bmi2,popcnt,lzcnt")]
pub(super) fn compact_bmi2(
    words: &[u64],
    value: impl Fn(usize) -> u64,
    fill: usize,
    out: &mut [u64],
) -> (u64, usize) {
    plain::compact(words, value, fill, out, |value, mask| _pext_u64(value, mask))
}

/// The lanes of a vector of `64 / W` values that `keep` has ones for, moved together.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi2,bmi2")]
fn compress_lanes<const W: usize>(keep: u64, vector: __m512i) -> __m512i {
    match W {
        1 => _mm512_maskz_compress_epi8(keep, vector),
        2 => _mm512_maskz_compress_epi16(keep as u32, vector),
        4 => _mm512_maskz_compress_epi32(keep as u16, vector),
        8 => _mm512_maskz_compress_epi64(keep as u8, vector),
        // Wider values are two or four lanes each.
        16 => _mm512_maskz_compress_epi64((_pdep_u64(keep, 0x55) * 3) as u8, vector),
        32 => _mm512_maskz_compress_epi64((_pdep_u64(keep, 0x11) * 15) as u8, vector),
        _ => unreachable!("no such width"),
    }
}

/// 64 rows are `W` vectors. Each is compressed in a register and stored whole: what is written too much is
/// overwritten by the next, and where there is no room for that, a masked store ends with the part.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi2,bmi1,bmi2,popcnt,lzcnt")]
pub(super) fn compress_avx512<const W: usize>(
    values: &[[u8; W]],
    words: &[u64],
    out: &mut [[u8; W]],
) -> usize {
    if !matches!(W, 1 | 2 | 4 | 8 | 16 | 32) {
        return plain::compress(values, words, 0, out);
    }
    let lanes = 64 / W;
    let mask = ones(lanes);
    let whole = values.len() / 64;
    let mut at = 0;
    for (values, word) in values.chunks_exact(64).zip(words) {
        if *word == 0 {
            continue;
        }
        let from = values.as_ptr().cast::<__m512i>();
        if at + 64 <= out.len() {
            for part in 0..W {
                let keep = *word >> (part * lanes) & mask;
                // SAFETY: 64 values of `W` bytes are `W` vectors. The parts before this one have written at most
                // `part * lanes` values behind the first `at`, so a whole vector still ends within the 64.
                unsafe {
                    let packed = compress_lanes::<W>(keep, _mm512_loadu_si512(from.add(part)));
                    _mm512_storeu_si512(out.as_mut_ptr().add(at).cast(), packed);
                }
                at += keep.count_ones() as usize;
            }
        } else {
            for part in 0..W {
                let keep = *word >> (part * lanes) & mask;
                let kept = (keep.count_ones() as usize).min(out.len() - at);
                // SAFETY: the load as above; the store writes the bytes of `kept` values, and that many fit.
                unsafe {
                    let packed = compress_lanes::<W>(keep, _mm512_loadu_si512(from.add(part)));
                    let bytes = ones(kept * W);
                    _mm512_mask_storeu_epi8(out.as_mut_ptr().add(at).cast(), bytes, packed);
                }
                at += kept;
            }
        }
    }
    plain::compress(&values[whole * 64..], &words[whole..], at, out)
}

/// For each 8-bit mask, the 4-byte lanes that it keeps, moved together.
static LANES: [[u32; 8]; 256] = {
    let mut table = [[0; 8]; 256];
    let mut mask = 0;
    while mask < 256 {
        let (mut lane, mut at) = (0, 0);
        while lane < 8 {
            if mask >> lane & 1 != 0 {
                table[mask][at] = lane;
                at += 1;
            }
            lane += 1;
        }
        mask += 1;
    }
    table
};

/// Widths of 4 bytes and more by permuting 4-byte lanes, narrower ones in plain code.
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt,lzcnt")]
pub(super) fn compress_avx2<const W: usize>(values: &[[u8; W]], words: &[u64], out: &mut [[u8; W]]) -> usize {
    if !matches!(W, 4 | 8 | 16) {
        return plain::compress(values, words, 0, out);
    }
    let lanes = 32 / W;
    let mask = ones(lanes);
    let mut at = 0;
    let mut done = 0;
    for (values, word) in values.chunks_exact(64).zip(words) {
        if at + 64 > out.len() {
            break;
        }
        done += 1;
        if *word == 0 {
            continue;
        }
        let from = values.as_ptr().cast::<__m256i>();
        for part in 0..2 * W {
            let keep = *word >> (part * lanes) & mask;
            let narrow = match W {
                8 => _pdep_u64(keep, 0x55) * 3,
                16 => _pdep_u64(keep, 0x11) * 15,
                _ => keep,
            };
            // SAFETY: 64 values of `W` bytes are `2 * W` vectors; the table has a row for every 8-bit mask; the
            // parts before have written at most `part * lanes` values behind the first `at`, so a whole vector still
            // ends within the 64 that there is room for.
            unsafe {
                let order = _mm256_loadu_si256(LANES[narrow as usize & 255].as_ptr().cast());
                let packed = _mm256_permutevar8x32_epi32(_mm256_loadu_si256(from.add(part)), order);
                _mm256_storeu_si256(out.as_mut_ptr().add(at).cast(), packed);
            }
            at += keep.count_ones() as usize;
        }
    }
    plain::compress(&values[done * 64..], &words[done..], at, out)
}
