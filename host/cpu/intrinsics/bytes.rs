//! Rows of bytes behind offsets, with AVX-512: most are short, and a masked load and store copies up to 64 bytes
//! without a branch on how many.

use std::arch::x86_64::*;

use super::gather::running_sums;
use super::plain;
use crate::cpu::rows::{offset, ones, runs};

/// From this length on the system's copy is faster.
const LONG: usize = 512;

/// Copies `data[from..from + len]` to `out[at..]`; false where either is not there.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,bmi1,bmi2,popcnt,lzcnt")]
fn copy(data: &[u8], from: usize, len: usize, out: &mut [u8], at: usize) -> bool {
    let fits = |start: usize, extent: usize| start <= extent && len <= extent - start;
    if !fits(from, data.len()) || !fits(at, out.len()) {
        return false;
    }
    if len > LONG {
        out[at..at + len].copy_from_slice(&data[from..from + len]);
        return true;
    }
    let mut done = 0;
    // SAFETY: all bytes lie in `data` and `out`, as just checked; what a mask leaves out is not accessed.
    unsafe {
        let (from, to) = (data.as_ptr().add(from), out.as_mut_ptr().add(at));
        while len - done > 64 {
            _mm512_storeu_si512(to.add(done).cast(), _mm512_loadu_si512(from.add(done).cast()));
            done += 64;
        }
        let rest = ones(len - done);
        let bytes = _mm512_maskz_loadu_epi8(rest, from.add(done).cast());
        _mm512_mask_storeu_epi8(to.add(done).cast(), rest, bytes);
    }
    true
}

/// Copies `len` bytes, and some that follow: to save asking how many, as many as vectors hold.
///
/// # Safety
///
/// There must be 64 bytes more than `len` to read at `from`, and to write at `to`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
unsafe fn copy_over(from: *const u8, len: usize, to: *mut u8) {
    // SAFETY: fewer than 64 bytes behind the `len` are accessed.
    unsafe {
        if len <= 32 {
            _mm256_storeu_si256(to.cast(), _mm256_loadu_si256(from.cast()));
        } else if len <= LONG {
            let mut done = 0;
            while done < len {
                _mm512_storeu_si512(to.add(done).cast(), _mm512_loadu_si512(from.add(done).cast()));
                done += 64;
            }
        } else {
            from.copy_to_nonoverlapping(to, len);
        }
    }
}

/// As [`super::copy_ranges`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl,bmi1,bmi2,popcnt,lzcnt")]
pub(super) fn copy_ranges(
    data: &[u8],
    starts: &[usize],
    lens: &[usize],
    next: &[usize],
    out: &mut [u8],
) -> Option<usize> {
    for start in next {
        // Whatever the address is: a prefetch is no access.
        _mm_prefetch::<_MM_HINT_T0>(data.as_ptr().wrapping_add(*start).cast());
    }
    let ends = starts.iter().zip(lens).map(|(start, len)| start.saturating_add(*len));
    let last = ends.fold(0, usize::max);
    let total = lens.iter().fold(0usize, |sum, len| sum.saturating_add(*len));
    let mut at = 0;
    if last.saturating_add(64) <= data.len() && total.saturating_add(64) <= out.len() {
        for (start, len) in starts.iter().zip(lens) {
            // SAFETY: no range ends behind `last`, and all together are `total`; 64 bytes follow both.
            unsafe { copy_over(data.as_ptr().add(*start), *len, out.as_mut_ptr().add(at)) };
            at += len;
        }
        return Some(at);
    }
    for (start, len) in starts.iter().zip(lens) {
        if !copy(data, *start, *len, out, at) {
            return None;
        }
        at += len;
    }
    Some(at)
}

/// As [`super::copy_kept`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl,bmi1,bmi2,popcnt,lzcnt")]
pub(super) fn copy_kept<const O: usize>(
    offsets: &[[u8; O]],
    data: &[u8],
    words: &[u64],
    out: &mut [u8],
) -> Option<usize> {
    assert_eq!((offsets.len() - 1).div_ceil(64), words.len());
    let (mut at, mut good) = (0, true);
    for (i, word) in words.iter().enumerate() {
        runs(*word, |start, count| {
            let row = i * 64 + start;
            let from = offset(offsets[row]);
            let bytes = offset(offsets[row + count]).wrapping_sub(from);
            let room = |start: usize, extent: usize| {
                start <= extent && bytes <= extent - start && extent - start - bytes >= 64
            };
            if room(from, data.len()) && room(at, out.len()) {
                // SAFETY: 64 bytes follow the range in `data` and its copy in `out`, as just checked.
                unsafe {
                    let (from, to) = (data.as_ptr().add(from), out.as_mut_ptr().add(at));
                    // A few rows seldom have more; whether they have half of it cannot be foretold.
                    if bytes <= 64 {
                        _mm512_storeu_si512(to.cast(), _mm512_loadu_si512(from.cast()));
                    } else {
                        copy_over(from, bytes, to);
                    }
                }
            } else {
                good = good && copy(data, from, bytes, out, at);
            }
            at = at.wrapping_add(bytes);
        });
    }
    good.then_some(at)
}

/// As [`super::kept_bytes`], for offsets of four bytes.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,bmi1,bmi2,popcnt,lzcnt")]
pub(super) fn kept_bytes(offsets: &[[u8; 4]], words: &[u64]) -> usize {
    let rows = offsets.len() - 1;
    let whole = rows / 64;
    let (mut total, mut sums) = (0usize, _mm512_setzero_si512());
    for (i, word) in words[..whole].iter().enumerate() {
        if *word == 0 || *word == u64::MAX {
            let all = offset(offsets[i * 64 + 64]).wrapping_sub(offset(offsets[i * 64]));
            total = total.wrapping_add(if *word == 0 { 0 } else { all });
            continue;
        }
        for part in 0..4 {
            let keep = (*word >> (part * 16)) as u16;
            // SAFETY: there is one more offset than rows.
            let (start, end) = unsafe {
                let from = offsets.as_ptr().add(i * 64 + part * 16);
                (_mm512_loadu_si512(from.cast()), _mm512_loadu_si512(from.add(1).cast()))
            };
            // Offsets that do not go back are at most 2^31 apart in all, so the sums fit.
            sums = _mm512_mask_add_epi32(sums, keep, sums, _mm512_sub_epi32(end, start));
        }
    }
    let rest = plain::kept_bytes(&offsets[whole * 64..], &words[whole..]);
    total.wrapping_add(_mm512_reduce_add_epi32(sums) as u32 as usize).wrapping_add(rest)
}

/// As [`super::kept_ends`], for offsets of four bytes: lengths compressed, then summed within the vector.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,bmi1,bmi2,popcnt,lzcnt")]
pub(super) fn kept_ends(offsets: &[[u8; 4]], words: &[u64], before: usize, ends: &mut [[u8; 4]]) -> bool {
    let whole = (offsets.len() - 1) / 64;
    let mut before = _mm512_set1_epi32(before as u32 as i32);
    let last_lane = _mm512_set1_epi32(15);
    let (mut at, mut back) = (0, 0);
    for (i, word) in words[..whole].iter().enumerate().filter(|(_, word)| **word != 0) {
        for part in 0..4 {
            let keep = (*word >> (part * 16)) as u16;
            // SAFETY: there is one more offset than rows.
            let (start, end) = unsafe {
                let from = offsets.as_ptr().add(i * 64 + part * 16);
                (_mm512_loadu_si512(from.cast()), _mm512_loadu_si512(from.add(1).cast()))
            };
            back |= keep & _mm512_cmpgt_epi32_mask(start, end);
            let lens = _mm512_maskz_compress_epi32(keep, _mm512_sub_epi32(end, start));
            let all = _mm512_add_epi32(running_sums(lens), before);
            let kept = (keep.count_ones() as usize).min(ends.len() - at);
            // SAFETY: the store writes `kept` ends, and that many fit.
            unsafe {
                _mm512_mask_storeu_epi32(ends.as_mut_ptr().add(at).cast(), ones(kept) as u16, all);
            }
            before = _mm512_permutexvar_epi32(last_lane, all);
            at += kept;
        }
    }
    let before = _mm512_cvtsi512_si32(before) as u32 as usize;
    plain::kept_ends(&offsets[whole * 64..], &words[whole..], before, &mut ends[at..]) && back == 0
}
