//! Rows of bytes described by offsets, with AVX-512. Most rows are short, and a masked load and store copies
//! up to 64 bytes without a branch on their number.

use std::arch::x86_64::*;

use super::gather::running_sums;
use super::plain;
use crate::cpu::rows::{offset, ones, runs};

/// The length above which the standard library's copy is faster.
const LONG: usize = 512;

/// Copies `data[from..from + len]` to `out[at..]`; `false` if either range is out of bounds.
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

/// Copies `len` bytes, and up to 64 that follow: whole vectors avoid a branch on the exact number.
///
/// # Safety
///
/// At least `len + 64` bytes must be readable at `from`, and writable at `to`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
unsafe fn copy_over(from: *const u8, len: usize, to: *mut u8) {
    // SAFETY: fewer than 64 bytes after the `len` are accessed.
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

/// The AVX-512 version of [`super::copy_ranges`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl,bmi1,bmi2,popcnt,lzcnt")]
pub(super) fn copy_ranges(
    data: &[u8],
    starts: &[usize],
    lens: &[usize],
    next: &[usize],
    out: &mut [u8],
) -> Option<usize> {
    for start in next {
        // Any address will do: a prefetch is not an access.
        _mm_prefetch::<_MM_HINT_T0>(data.as_ptr().wrapping_add(*start).cast());
    }
    let ends = starts.iter().zip(lens).map(|(start, len)| start.saturating_add(*len));
    let last = ends.fold(0, usize::max);
    let total = lens.iter().fold(0usize, |sum, len| sum.saturating_add(*len));
    let mut at = 0;
    if last.saturating_add(64) <= data.len() && total.saturating_add(64) <= out.len() {
        for (start, len) in starts.iter().zip(lens) {
            // SAFETY: no range ends after `last`, and all together are `total`; 64 bytes follow both.
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

/// The AVX-512 version of [`super::copy_kept`].
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
                    // Runs of few rows rarely have more than 64 bytes. A branch on 32 would be unpredictable,
                    // so there is none.
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

/// The AVX-512 version of [`super::kept_rows`], for offsets of four bytes. It compresses starts and lengths,
/// and sums the lengths within the vector.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,bmi1,bmi2,popcnt,lzcnt")]
pub(super) fn kept_rows(
    offsets: &[[u8; 4]],
    extent: usize,
    words: &[u64],
    starts: &mut [[u8; 4]],
    ends: &mut [[u8; 4]],
) -> Option<usize> {
    let whole = (offsets.len() - 1) / 64;
    let last_lane = _mm512_set1_epi32(15);
    let extent_lanes = _mm512_set1_epi32(extent.min(i32::MAX as usize) as i32);
    let (mut before, mut total) = (_mm512_setzero_si512(), _mm512_setzero_si512());
    let (mut at, mut bad) = (0, 0);
    for (i, word) in words[..whole].iter().enumerate().filter(|(_, word)| **word != 0) {
        for part in 0..4 {
            let keep = (*word >> (part * 16)) as u16;
            // SAFETY: there is one more offset than rows.
            let (start, end) = unsafe {
                let from = offsets.as_ptr().add(i * 64 + part * 16);
                (_mm512_loadu_si512(from.cast()), _mm512_loadu_si512(from.add(1).cast()))
            };
            bad |= keep & (_mm512_cmpgt_epu32_mask(start, end) | _mm512_cmpgt_epu32_mask(end, extent_lanes));
            let lens = _mm512_maskz_compress_epi32(keep, _mm512_sub_epi32(end, start));
            let start = _mm512_maskz_compress_epi32(keep, start);
            // Ends that do not fit wrap, but the total does not.
            total = _mm512_add_epi64(total, _mm512_and_si512(lens, _mm512_set1_epi64(0xFFFF_FFFF)));
            total = _mm512_add_epi64(total, _mm512_srli_epi64::<32>(lens));
            let sums = running_sums(lens);
            let all = _mm512_add_epi32(sums, before);
            before = _mm512_add_epi32(before, _mm512_permutexvar_epi32(last_lane, sums));
            let room = starts.len() - at;
            let kept = (keep.count_ones() as usize).min(room);
            // SAFETY: whole vectors where there are 16 places, else no more than there are.
            unsafe {
                let (to_starts, to_ends) = (starts.as_mut_ptr().add(at), ends.as_mut_ptr().add(at));
                if room >= 16 {
                    _mm512_storeu_si512(to_starts.cast(), start);
                    _mm512_storeu_si512(to_ends.cast(), all);
                } else {
                    _mm512_mask_storeu_epi32(to_starts.cast(), ones(kept) as u16, start);
                    _mm512_mask_storeu_epi32(to_ends.cast(), ones(kept) as u16, all);
                }
            }
            at += kept;
        }
    }
    if bad != 0 {
        return None;
    }
    let total = _mm512_reduce_add_epi64(total) as usize;
    let (starts, ends) = (&mut starts[at..], &mut ends[at..]);
    plain::kept_rows(&offsets[whole * 64..], extent, &words[whole..], total, starts, ends)
}

/// The AVX-512 version of [`super::copy_rows`]. Most rows are short, so each writes a whole vector, and the
/// next row overwrites the excess.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,bmi1,bmi2,popcnt,lzcnt")]
pub(super) fn copy_rows<const O: usize>(
    data: &[u8],
    starts: &[[u8; O]],
    ends: &[[u8; O]],
    out: &mut [u8],
) -> bool {
    let whole = |extent: usize| extent.checked_sub(64);
    let (Some(last_from), Some(last_to)) = (whole(data.len()), whole(out.len())) else {
        return plain::copy_rows(data, starts, ends, out);
    };
    let (mut at, mut good) = (0, true);
    for (from, end) in starts.iter().zip(ends) {
        let (from, end) = (offset(*from), offset(*end));
        let len = end.wrapping_sub(at);
        if len <= 32 && from <= last_from && at <= last_to {
            // SAFETY: 64 bytes follow in both.
            unsafe {
                let vector = _mm256_loadu_si256(data.as_ptr().add(from).cast());
                _mm256_storeu_si256(out.as_mut_ptr().add(at).cast(), vector);
            }
        } else if len <= 64 && from <= last_from && at <= last_to {
            // SAFETY: as above.
            unsafe {
                let vector = _mm512_loadu_si512(data.as_ptr().add(from).cast());
                _mm512_storeu_si512(out.as_mut_ptr().add(at).cast(), vector);
            }
        } else {
            good &= copy(data, from, len, out, at);
        }
        at = end;
    }
    good
}
