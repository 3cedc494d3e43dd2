//! Compaction of the values that a mask keeps, with AVX-512, AVX2 and BMI2.

use std::arch::x86_64::*;
use std::mem::MaybeUninit;

use super::plain::{self, POSITIONS};
use crate::cpu::bitmap::Bits;
use crate::cpu::rows::ones;

#[target_feature(enable = "bmi1,bmi2,popcnt,lzcnt")]
pub(super) fn compact_bmi2(words: &[u64], bits: Bits, fill: usize, out: &mut [u64]) -> (u64, usize) {
    plain::compact(words, bits, fill, out, |value, mask| _pext_u64(value, mask))
}

/// For each 4-bit mask, the permutation that packs the pairs of 8-byte lanes that it keeps.
static PAIRS: [[u64; 8]; 16] = {
    let mut table = [[0; 8]; 16];
    let mut mask = 0;
    while mask < 16 {
        let (mut pair, mut at) = (0, 0);
        while pair < 4 {
            if mask >> pair & 1 != 0 {
                table[mask][at] = 2 * pair;
                table[mask][at + 1] = 2 * pair + 1;
                at += 2;
            }
            pair += 1;
        }
        mask += 1;
    }
    table
};

/// Packs the lanes of a vector of `64 / W` values whose bits in `keep` are 1.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi2,bmi2")]
fn compress_lanes<const W: usize>(keep: u64, vector: __m512i) -> __m512i {
    match W {
        1 => _mm512_maskz_compress_epi8(keep, vector),
        2 => _mm512_maskz_compress_epi16(keep as u32, vector),
        4 => _mm512_maskz_compress_epi32(keep as u16, vector),
        8 => _mm512_maskz_compress_epi64(keep as u8, vector),
        // Four values in a vector have only 16 masks, so a table holds a permutation for each, which is
        // faster.
        16 => {
            // SAFETY: each row of the table is a vector.
            let order = unsafe { _mm512_loadu_si512(PAIRS[keep as usize & 15].as_ptr().cast()) };
            _mm512_permutexvar_epi64(order, vector)
        }
        32 => _mm512_maskz_compress_epi64((_pdep_u64(keep, 0x11) * 15) as u8, vector),
        _ => unreachable!("no such width"),
    }
}

/// Returns the number of kept values in a word below which picking them one by one beats compressing `W`
/// vectors.
const fn few<const W: usize>() -> usize {
    match W {
        1 | 2 => 0,
        4 => 5,
        8 => 10,
        16 => 40,
        _ => 20,
    }
}

/// Returns the number of set bits in at most 64 words, and the mask of the words that are not 0.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vpopcntdq,popcnt")]
fn census(words: &[u64]) -> (usize, u64) {
    let (mut kept, mut used) = (_mm512_setzero_si512(), 0);
    for (i, words) in words.chunks(8).enumerate().take(8) {
        // SAFETY: as many words are loaded as there are.
        let words = unsafe { _mm512_maskz_loadu_epi64(ones(words.len()) as u8, words.as_ptr().cast()) };
        kept = _mm512_add_epi64(kept, _mm512_popcnt_epi64(words));
        used |= u64::from(_mm512_test_epi64_mask(words, words)) << (i * 8);
    }
    (_mm512_reduce_add_epi64(kept) as usize, used)
}

/// Handles 64 words at a time, each block by its kind: nothing kept, everything, only full and empty words,
/// few rows, or any.
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2,avx512vpopcntdq,bmi1,bmi2,popcnt,lzcnt"
)]
pub(super) fn compress_avx512<const W: usize>(
    gathers: bool,
    values: &[[u8; W]],
    words: &[u64],
    out: &mut [[u8; W]],
) -> usize {
    if !matches!(W, 1 | 2 | 4 | 8 | 16 | 32) {
        return plain::compress(values, words, 0, out);
    }
    let whole = values.len() / 64;
    let mut at = 0;
    for (values, words) in values[..whole * 64].chunks(64 * 64).zip(words[..whole].chunks(64)) {
        let (kept, used) = census(words);
        if kept == 0 {
            continue;
        }
        let count = used.count_ones() as usize;
        if kept == count * 64 && out.len() - at >= kept {
            for (values, _) in values.chunks_exact(64).zip(words).filter(|(_, word)| **word != 0) {
                out[at..at + 64].copy_from_slice(values);
                at += 64;
            }
        } else if kept < count * few::<W>() && out.len() - at >= kept {
            at += pick(gathers, values, words, used, &mut out[at..]);
        } else {
            at += compress_block(values, words, &mut out[at..]);
        }
    }
    plain::compress(&values[whole * 64..], &words[whole..], at, out)
}

/// Compresses 64 rows, which are `W` vectors. Each vector is compressed in a register and stored whole; the
/// next store overwrites the excess. If `out` has no room for that, a masked store ends with the part.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi2,bmi1,bmi2,popcnt,lzcnt")]
fn compress_block<const W: usize>(values: &[[u8; W]], words: &[u64], out: &mut [[u8; W]]) -> usize {
    let lanes = 64 / W;
    let mask = ones(lanes);
    let mut at = 0;
    for (values, word) in values.chunks_exact(64).zip(words) {
        if *word == 0 {
            continue;
        }
        let from = values.as_ptr().cast::<__m512i>();
        if at + 64 <= out.len() {
            for part in 0..W {
                let keep = *word >> (part * lanes) & mask;
                // SAFETY: 64 values of `W` bytes are `W` vectors. The parts before this one have written at
                // most `part * lanes` values after the first `at`, so a whole vector still ends within the
                // 64.
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
                    _mm512_mask_storeu_epi8(out.as_mut_ptr().add(at).cast(), ones(kept * W), packed);
                }
                at += kept;
            }
        }
    }
    at
}

/// Finds the positions of the values first, then reads the values: no branch depends on a mask, and many
/// loads overlap. `used` is the mask of the words that are not 0.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2,bmi1,bmi2,popcnt,lzcnt")]
fn pick<const W: usize>(
    gathers: bool,
    values: &[[u8; W]],
    words: &[u64],
    used: u64,
    out: &mut [[u8; W]],
) -> usize {
    // Uninitialised, because zeroing eight kilobytes for a few positions would not pay off.
    let mut positions = MaybeUninit::<[u16; POSITIONS]>::uninit();
    // SAFETY: `used` has a bit for each of the at most 64 words that is not 0; as many positions are written
    // as returned.
    let positions = unsafe {
        let kept = write_positions(words, used, positions.as_mut_ptr().cast());
        std::slice::from_raw_parts(positions.as_ptr().cast::<u16>(), kept.min(out.len()))
    };
    let kept = positions.len();
    let base = values.as_ptr();
    let mut at = 0;
    if gathers && (W == 4 || W == 8) {
        for (sixteen, out) in positions.chunks_exact(16).zip(out.chunks_exact_mut(16)) {
            // SAFETY: 16 positions are half a vector; positions are rows of `words`, which has one for each
            // value; `out` has 16 places, that is one or two vectors.
            unsafe {
                let rows = _mm512_cvtepu16_epi32(_mm256_loadu_si256(sixteen.as_ptr().cast()));
                if W == 4 {
                    let picked = _mm512_i32gather_epi32::<4>(rows, base.cast());
                    _mm512_storeu_si512(out.as_mut_ptr().cast(), picked);
                } else {
                    let (low, high) = (_mm512_castsi512_si256(rows), _mm512_extracti64x4_epi64(rows, 1));
                    let picked = _mm512_i32gather_epi64::<8>(low, base.cast());
                    _mm512_storeu_si512(out.as_mut_ptr().cast(), picked);
                    let picked = _mm512_i32gather_epi64::<8>(high, base.cast());
                    _mm512_storeu_si512(out.as_mut_ptr().add(8).cast(), picked);
                }
            }
            at += 16;
        }
    }
    // SAFETY: positions are rows of `words`, as above.
    unsafe { plain::pick(values, &positions[at..], &mut out[at..]) };
    kept
}

/// The AVX-512 version of [`super::positions`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi2,avx512vpopcntdq,bmi1,bmi2,popcnt,lzcnt")]
pub(super) fn positions_avx512(words: &[u64], out: &mut [u16; POSITIONS]) -> usize {
    let words = &words[..words.len().min(64)];
    let (_, used) = census(words);
    // SAFETY: there are at most 64 words, and `out` has the room.
    unsafe { write_positions(words, used, out.as_mut_ptr()) }
}

/// Writes the numbers 0 to 63, compressed by each word that is not 0.
///
/// # Safety
///
/// `used` must have bits only for words that exist, at most 64; `out` must have room for [`POSITIONS`].
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi2,bmi1,bmi2,popcnt,lzcnt")]
unsafe fn write_positions(words: &[u64], mut used: u64, out: *mut u16) -> usize {
    let mut numbers = [0u8; 64];
    numbers.iter_mut().zip(0..).for_each(|(number, i)| *number = i);
    // SAFETY: 64 bytes.
    let numbers = unsafe { _mm512_loadu_si512(numbers.as_ptr().cast()) };
    let mut at = 0;
    while used != 0 {
        let i = used.trailing_zeros() as usize;
        used &= used - 1;
        // SAFETY: the caller's promise; each word gives at most 64 positions, and the room is for 64 more
        // than the words' own.
        unsafe {
            let word = *words.get_unchecked(i);
            let packed = _mm512_maskz_compress_epi8(word, numbers);
            let kept = word.count_ones() as usize;
            let first = _mm512_set1_epi16((i * 64) as i16);
            let to = out.add(at);
            let low = _mm256_cvtepu8_epi16(_mm512_castsi512_si128(packed));
            _mm256_storeu_si256(to.cast(), _mm256_add_epi16(low, _mm512_castsi512_si256(first)));
            if kept > 16 {
                let low = _mm512_cvtepu8_epi16(_mm512_castsi512_si256(packed));
                _mm512_storeu_si512(to.cast(), _mm512_add_epi16(low, first));
                let high = _mm512_cvtepu8_epi16(_mm512_extracti64x4_epi64(packed, 1));
                _mm512_storeu_si512(to.add(32).cast(), _mm512_add_epi16(high, first));
            }
            at += kept;
        }
    }
    at
}

/// For each 8-bit mask, the permutation that packs the 4-byte lanes that it keeps.
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

/// Returns the number of kept values in a word up to which taking them one by one beats permuting `2 * W`
/// vectors. It also reads no more than their cache lines.
const fn few_lanes<const W: usize>() -> u32 {
    match W {
        4 => 2,
        8 => 8,
        _ => 20,
    }
}

/// Compresses widths of 4 bytes and more by permuting 4-byte lanes, and narrower ones in plain code.
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
        if word.count_ones() <= few_lanes::<W>() {
            let mut rest = *word;
            while rest != 0 {
                out[at] = values[rest.trailing_zeros() as usize];
                at += 1;
                rest &= rest - 1;
            }
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
            // SAFETY: 64 values of `W` bytes are `2 * W` vectors; the table has a row for every 8-bit mask;
            // the parts before have written at most `part * lanes` values after the first `at`, so a whole
            // vector still ends within the 64 that there is room for.
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
