//! What the CPU path does with vector units: the one place that asks which instructions there are.
//!
//! The one idea: every function here is safe and total, with a plain-Rust twin in `plain.rs` that defines it; which
//! twin runs is decided by [`VectorLevel`]. Loops that the compiler vectorises by itself are `vectorise.rs`'s.

#![allow(unsafe_code)]

use super::bitmap::Bits;
use super::vectorise::{Loop, VectorLevel, gathers, vectorised};

#[cfg(target_arch = "x86_64")]
mod bytes;
#[cfg(target_arch = "x86_64")]
mod compress;
#[cfg(target_arch = "x86_64")]
mod gather;
mod plain;

pub(crate) use super::count::count_ones;
pub(crate) use plain::POSITIONS;

/// How many bytes ahead a column is asked for: by itself, a processor does so only within a page of 4 KiB.
pub(crate) const AHEAD: usize = 4096;

/// Says that the memory `ahead` bytes behind a value will be read soon, as much as the value has. There need not be any.
#[inline(always)]
pub(crate) fn prefetch<T>(value: &T, ahead: usize) {
    #[cfg(target_arch = "x86_64")]
    for line in (ahead..ahead + size_of::<T>()).step_by(64) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a hint: it takes any address, and reads nothing that anybody sees.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(value).cast::<i8>().wrapping_add(line)) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (value, ahead);
}

/// Sets each of `words` to what `combine` makes of it and the word of `bits`, of which the first is number `first`.
pub(crate) fn read_words(bits: Bits, first: usize, words: &mut [u64], combine: impl Fn(u64, u64) -> u64) {
    struct Read<'a, F>(Bits<'a>, usize, &'a mut [u64], F);
    impl<F: Fn(u64, u64) -> u64> Loop for Read<'_, F> {
        type Output = ();
        #[inline(always)]
        fn run(self) {
            let Read(bits, first, words, combine) = self;
            let (bytes, shift) = bits.parts();
            // Words that are whole and have a ninth byte: two loads a byte apart, shifted, hold all 64 rows.
            let bytes = bytes.get(first * 8..).unwrap_or_default();
            let whole = (bits.len() / 64).saturating_sub(first).min(bytes.len().saturating_sub(1) / 8);
            let (fast, rest) = words.split_at_mut(whole.min(words.len()));
            let low = bytes.as_chunks::<8>().0.iter();
            let high = bytes.get(1..).unwrap_or_default().as_chunks::<8>().0.iter();
            for (word, (low, high)) in fast.iter_mut().zip(low.zip(high)) {
                let bits = u64::from_le_bytes(*low) >> shift | u64::from_le_bytes(*high) << (8 - shift);
                *word = combine(*word, bits);
            }
            let first = first + fast.len();
            rest.iter_mut().enumerate().for_each(|(i, word)| *word = combine(*word, bits.word(first + i)));
        }
    }
    vectorised(Read(bits, first, words, combine));
}

/// Writes the values whose bits are 1, in order, and returns how many; `words` has a bit a value, none past the last.
/// Stops where `out` is full.
pub(crate) fn compress<const W: usize>(values: &[[u8; W]], words: &[u64], out: &mut [[u8; W]]) -> usize {
    compress_at(VectorLevel::widest(), values, words, out)
}

fn compress_at<const W: usize>(
    level: VectorLevel,
    values: &[[u8; W]],
    words: &[u64],
    out: &mut [[u8; W]],
) -> usize {
    assert_eq!(words.len(), values.len().div_ceil(64));
    #[cfg(target_arch = "x86_64")]
    match level {
        // SAFETY: the level says that the instructions are there.
        VectorLevel::Avx512 => return unsafe { compress::compress_avx512(gathers(), values, words, out) },
        // SAFETY: as above.
        VectorLevel::Avx2 => return unsafe { compress::compress_avx2(values, words, out) },
        VectorLevel::Plain => {}
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
    if VectorLevel::widest() >= VectorLevel::Avx2 {
        // SAFETY: the level says that the instructions are there.
        return unsafe { compress::compact_bmi2(words, value, fill, out) };
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
    gather_at(VectorLevel::widest(), gathers(), values, indices, limit, valid, out)
}

fn gather_at<const W: usize, const I: usize>(
    level: VectorLevel,
    gathers: bool,
    values: &[[u8; W]],
    indices: &[[u8; I]],
    limit: u64,
    valid: Option<Bits>,
    out: &mut [[u8; W]],
) -> bool {
    assert!(limit <= values.len() as u64 && indices.len() == out.len());
    #[cfg(target_arch = "x86_64")]
    if level == VectorLevel::Avx512 {
        // SAFETY: the level says that the instructions are there.
        return unsafe { gather::gather(gathers, values, indices, limit, valid, out) };
    }
    let _ = (level, gathers);
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
    gather_bits_at(VectorLevel::widest(), bits, indices, limit, valid, out)
}

fn gather_bits_at<const I: usize>(
    level: VectorLevel,
    bits: Bits,
    indices: &[[u8; I]],
    limit: u64,
    valid: Option<Bits>,
    out: &mut [u64],
) -> bool {
    assert!(limit <= bits.len() as u64 && out.len() == indices.len().div_ceil(64));
    #[cfg(target_arch = "x86_64")]
    if level == VectorLevel::Avx512 {
        // SAFETY: the level says that the instructions are there.
        return unsafe { gather::gather_bits(bits, indices, limit, valid, out) };
    }
    let _ = level;
    plain::gather_bits(bits, indices, limit, valid, out)
}

/// Writes which bits of at most 64 words are 1, in order, and returns how many.
pub(crate) fn positions(words: &[u64], out: &mut [u16; POSITIONS]) -> usize {
    assert!(words.len() <= 64);
    #[cfg(target_arch = "x86_64")]
    if VectorLevel::widest() == VectorLevel::Avx512 {
        // SAFETY: the level says that the instructions are there.
        return unsafe { compress::positions_avx512(words, out) };
    }
    plain::positions(words, out)
}

/// Copies `data[start..start + len]` for each start and length, one behind the other, and returns how many bytes that
/// is; nothing where one of them is not in `data`, or `out` too short. The starts of `next` are about to be asked for.
pub(crate) fn copy_ranges(
    data: &[u8],
    starts: &[usize],
    lens: &[usize],
    next: &[usize],
    out: &mut [u8],
) -> Option<usize> {
    #[cfg(target_arch = "x86_64")]
    if VectorLevel::widest() == VectorLevel::Avx512 {
        // SAFETY: the level says that the instructions are there.
        return unsafe { bytes::copy_ranges(data, starts, lens, next, out) };
    }
    let _ = next;
    plain::copy_ranges(data, starts, lens, out)
}

/// Copies the bytes of the rows whose bits in `words` are 1; there is one more offset than rows. Returns how many bytes
/// those are; nothing where the offsets lead out of `data`, or `out` is too short.
pub(crate) fn copy_kept<const O: usize>(
    offsets: &[[u8; O]],
    data: &[u8],
    words: &[u64],
    out: &mut [u8],
) -> Option<usize> {
    #[cfg(target_arch = "x86_64")]
    if VectorLevel::widest() == VectorLevel::Avx512 {
        // SAFETY: the level says that the instructions are there.
        return unsafe { bytes::copy_kept(offsets, data, words, out) };
    }
    plain::copy_kept(offsets, data, words, out)
}

/// Where the bytes of the rows whose bits are 1 start, where they end if they lie one behind the other, and how many there
/// are; there is one more offset than rows, and a place for each row. Nothing where an offset goes back, or out of `extent`.
pub(crate) fn kept_rows<const O: usize>(
    offsets: &[[u8; O]],
    extent: usize,
    words: &[u64],
    starts: &mut [[u8; O]],
    ends: &mut [[u8; O]],
) -> Option<usize> {
    assert_eq!((offsets.len() - 1).div_ceil(64), words.len());
    assert_eq!(starts.len(), ends.len());
    #[cfg(target_arch = "x86_64")]
    if let (4, VectorLevel::Avx512) = (O, VectorLevel::widest()) {
        let offsets = offsets.as_flattened().as_chunks::<4>().0;
        let starts = starts.as_flattened_mut().as_chunks_mut::<4>().0;
        let ends = ends.as_flattened_mut().as_chunks_mut::<4>().0;
        // SAFETY: the level says that the instructions are there.
        return unsafe { bytes::kept_rows(offsets, extent, words, starts, ends) };
    }
    plain::kept_rows(offsets, extent, words, 0, starts, ends)
}

/// Copies the bytes of rows from where they start to where they end, one behind the other; false where either is not there.
pub(crate) fn copy_rows<const O: usize>(
    data: &[u8],
    starts: &[[u8; O]],
    ends: &[[u8; O]],
    out: &mut [u8],
) -> bool {
    #[cfg(target_arch = "x86_64")]
    if VectorLevel::widest() == VectorLevel::Avx512 {
        // SAFETY: the level says that the instructions are there.
        return unsafe { bytes::copy_rows(data, starts, ends, out) };
    }
    plain::copy_rows(data, starts, ends, out)
}

/// Where the bytes of the rows at `indices` start, where they end if they lie one behind the other, and how many there
/// are; none of a row that is not `valid`. Nothing where an index is out of bounds or an offset out of `extent`.
pub(crate) fn locate<const O: usize, const I: usize>(
    offsets: &[[u8; O]],
    extent: usize,
    indices: &[[u8; I]],
    limit: u64,
    valid: Option<Bits>,
    starts: &mut [[u8; O]],
    ends: &mut [[u8; O]],
) -> Option<usize> {
    assert!(limit < offsets.len() as u64 && starts.len() == indices.len() && ends.len() == indices.len());
    #[cfg(target_arch = "x86_64")]
    if let (4, VectorLevel::Avx512) = (O, VectorLevel::widest()) {
        let offsets = offsets.as_flattened().as_chunks::<4>().0;
        let starts = starts.as_flattened_mut().as_chunks_mut::<4>().0;
        let ends = ends.as_flattened_mut().as_chunks_mut::<4>().0;
        // SAFETY: the level says that the instructions are there.
        return unsafe { gather::locate(offsets, extent, indices, limit, valid, starts, ends) };
    }
    plain::locate(offsets, extent, indices, limit, valid, 0, starts, ends)
}

#[cfg(test)]
mod tests;
