//! Gathers with AVX-512, 64 rows at a time: the bounds are checked first, so the loads need no check of their
//! own.

use std::arch::x86_64::*;

use super::plain;
use crate::cpu::bitmap::Bits;
use crate::cpu::indices::index;

/// The largest limit whose indices are non-negative as 32-bit lanes.
const LANE_LIMIT: u64 = 1 << 31;

/// Loads 16 indices of `I` bytes as 32-bit lanes, with the mask of those that are `limit` (at most
/// [`LANE_LIMIT`]) or more.
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

/// The number of bytes of values above which they exceed a core's own caches.
const FAR: usize = 1 << 20;
/// The number of rows by which prefetches run ahead. It exceeds the number of loads that a core can have in
/// flight.
const AHEAD: usize = 64;

/// Prefetches the values of 64 indices. The indices need not be in bounds: a prefetch is not an access.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn ask_for<const I: usize>(base: *const u8, width: usize, indices: Option<&[[u8; I]]>) {
    let Some(indices) = indices else { return };
    if index(indices[63]).wrapping_sub(index(indices[0])) < 1024 {
        return;
    }
    for at in indices {
        _mm_prefetch::<_MM_HINT_T0>(base.wrapping_add((index(*at) as usize).wrapping_mul(width)).cast());
    }
}

/// The AVX-512 version of [`super::gather`].
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2,popcnt,lzcnt")]
pub(super) fn gather<const W: usize, const I: usize>(
    gathers: bool,
    values: &[[u8; W]],
    indices: &[[u8; I]],
    limit: u64,
    valid: Option<Bits>,
    out: &mut [[u8; W]],
) -> bool {
    if !matches!(W, 4 | 8 | 16) || limit > LANE_LIMIT || limit > values.len() as u64 {
        return plain::gather(values, indices, limit, valid, out);
    }
    let far = size_of_val(values) > FAR;
    if (W == 16 || !gathers) && !far {
        return load_near(values, indices, limit, valid, out);
    }
    let mut good = true;
    let base = values.as_ptr();
    for (word, out) in out.chunks_mut(64).enumerate() {
        let first = word * 64;
        if far {
            ask_for(base.cast(), W, indices.get(first + AHEAD..first + AHEAD + 64));
        }
        let indices = &indices[first..first + out.len()];
        let mut outside = 0;
        let mut lanes = [_mm512_setzero_si512(); 4];
        let whole = indices.as_array::<64>().zip(out.as_mut_array::<64>());
        if whole.is_some() {
            for (part, lanes) in lanes.iter_mut().enumerate() {
                // SAFETY: 64 indices are four times 16.
                let (bad, all) = unsafe { sixteen::<I>(indices.as_ptr().add(part * 16), limit) };
                outside |= bad;
                *lanes = all;
            }
        }
        let Some((indices, out)) = whole.filter(|_| outside == 0) else {
            let valid = valid.map_or(u64::MAX, |valid| valid.word(word));
            good &= plain::gather_checked(values, indices, limit, valid, out);
            continue;
        };
        if W == 16 || !gathers {
            // SAFETY: all 64 indices are below the limit, so inside of `values`.
            unsafe { plain::load(values, indices, out) };
            continue;
        }
        for (part, lanes) in lanes.into_iter().enumerate() {
            // SAFETY: all 64 lanes are below the limit, so inside of `values`, and not negative; `out` has 64
            // places.
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

/// The rows of one block of [`load_near`]: enough to hide the overhead of a call, and few enough that both
/// passes find the indices in the nearest cache.
const NEAR_ROWS: usize = 1024;

/// As [`super::gather`], by plain loads, for values that need no prefetch.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2,popcnt,lzcnt")]
fn load_near<const W: usize, const I: usize>(
    values: &[[u8; W]],
    indices: &[[u8; I]],
    limit: u64,
    valid: Option<Bits>,
    out: &mut [[u8; W]],
) -> bool {
    let mut good = true;
    for (i, (indices, out)) in indices.chunks(NEAR_ROWS).zip(out.chunks_mut(NEAR_ROWS)).enumerate() {
        let (sixteens, rest) = indices.as_chunks::<16>();
        // SAFETY: 16 indices each.
        let outside =
            sixteens.iter().fold(0, |bad, from| bad | unsafe { sixteen::<I>(from.as_ptr(), limit) }.0);
        if outside == 0 && rest.iter().all(|at| index(*at) < limit) {
            // SAFETY: all are below the limit, so inside of `values`.
            unsafe { plain::load(values, indices, out) };
        } else {
            let valid = valid.map(|valid| valid.slice(i * NEAR_ROWS, out.len()));
            good &= plain::gather(values, indices, limit, valid, out);
        }
    }
    good
}

/// The AVX-512 version of [`super::locate`], for offsets of four bytes.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2,popcnt,lzcnt")]
pub(super) fn locate<const I: usize>(
    offsets: &[[u8; 4]],
    extent: usize,
    indices: &[[u8; I]],
    limit: u64,
    valid: Option<Bits>,
    starts: &mut [[u8; 4]],
    ends: &mut [[u8; 4]],
) -> Option<usize> {
    if limit > LANE_LIMIT {
        return plain::locate(offsets, extent, indices, limit, valid, 0, starts, ends);
    }
    let (mut before, mut total) = (_mm512_setzero_si512(), _mm512_setzero_si512());
    let zero = _mm512_setzero_si512();
    let extent_lanes = _mm512_set1_epi32(extent.min(i32::MAX as usize) as i32);
    let mut even = [0u32; 16];
    even.iter_mut().zip(0..).for_each(|(lane, i)| *lane = 2 * i);
    // SAFETY: 16 lanes are a vector.
    let even = unsafe { _mm512_loadu_si512(even.as_ptr().cast()) };
    let odd = _mm512_add_epi32(even, _mm512_set1_epi32(1));
    let base = offsets.as_ptr().cast::<i64>();
    let far = size_of_val(offsets) > FAR;
    let whole = indices.len() / 64 * 64;
    for first in (0..whole).step_by(16) {
        let part = first % 64;
        if far && part == 0 {
            ask_for(base.cast(), 4, indices.get(first + AHEAD..first + AHEAD + 64));
        }
        let alive = valid.map_or(u64::MAX, |valid| valid.word(first / 64)) >> part;
        // SAFETY: 16 more indices exist, and as many places. A row that is alive is below the limit, so it
        // and the next offset are in `offsets`; rows that are not alive are not read.
        unsafe {
            let (bad, lanes) = sixteen::<I>(indices.as_ptr().add(first), limit);
            if bad & alive as u16 != 0 {
                return None;
            }
            let (low, high) = (_mm512_castsi512_si256(lanes), _mm512_extracti64x4_epi64(lanes, 1));
            let low = _mm512_mask_i32gather_epi64::<4>(zero, alive as u8, low, base);
            let high = _mm512_mask_i32gather_epi64::<4>(zero, (alive >> 8) as u8, high, base);
            let from = _mm512_permutex2var_epi32(low, even, high);
            let to = _mm512_permutex2var_epi32(low, odd, high);
            let lens = _mm512_sub_epi32(to, from);
            if _mm512_cmpgt_epu32_mask(from, to) | _mm512_cmpgt_epu32_mask(to, extent_lanes) != 0 {
                return None;
            }
            // Ends that do not fit wrap, but the total does not.
            total = _mm512_add_epi64(total, _mm512_and_si512(lens, _mm512_set1_epi64(0xFFFF_FFFF)));
            total = _mm512_add_epi64(total, _mm512_srli_epi64::<32>(lens));
            let all = _mm512_add_epi32(running_sums(lens), before);
            _mm512_storeu_si512(starts.as_mut_ptr().add(first).cast(), from);
            _mm512_storeu_si512(ends.as_mut_ptr().add(first).cast(), all);
            before = _mm512_permutexvar_epi32(_mm512_set1_epi32(15), all);
        }
    }
    let total = _mm512_reduce_add_epi64(total) as usize;
    let valid = valid.map(|valid| valid.slice(whole, indices.len() - whole));
    let (starts, ends) = (&mut starts[whole..], &mut ends[whole..]);
    plain::locate(offsets, extent, &indices[whole..], limit, valid, total, starts, ends)
}

/// Returns the inclusive prefix sums of the lanes.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn running_sums(lanes: __m512i) -> __m512i {
    let zero = _mm512_setzero_si512();
    let sums = _mm512_add_epi32(lanes, _mm512_alignr_epi32::<15>(lanes, zero));
    let sums = _mm512_add_epi32(sums, _mm512_alignr_epi32::<14>(sums, zero));
    let sums = _mm512_add_epi32(sums, _mm512_alignr_epi32::<12>(sums, zero));
    _mm512_add_epi32(sums, _mm512_alignr_epi32::<8>(sums, zero))
}

/// The AVX-512 version of [`super::gather_bits`]: it loads the four bytes around each bit, and shifts.
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
    // The last position from which four bytes can be loaded.
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
