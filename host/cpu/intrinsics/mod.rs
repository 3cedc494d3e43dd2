//! Explicit use of vector units by the CPU path: the only place that checks which instructions a machine has.
//!
//! The one idea: every function here is safe and total, and a twin in plain Rust in `plain.rs` defines it;
//! [`VectorLevel`] decides which of the two runs. Loops that the compiler vectorises by itself are in
//! `vectorise.rs`.

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

/// The distance in bytes at which a column is prefetched: the processor's own prefetcher stops at a page of 4
/// KiB.
pub(crate) const AHEAD: usize = 4096;

/// Prefetches memory of a value's size, `ahead` bytes after the value. It need not exist.
#[inline(always)]
pub(crate) fn prefetch<T>(value: &T, ahead: usize) {
    #[cfg(target_arch = "x86_64")]
    for line in (ahead..ahead + size_of::<T>()).step_by(64) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a hint: it accepts any address, and reads nothing that the program can observe.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(value).cast::<i8>().wrapping_add(line)) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (value, ahead);
}

/// Combines each of `words` with a word of `bits`, starting at word `first`, and stores what `combine`
/// returns.
pub(crate) fn read_words(bits: Bits, first: usize, words: &mut [u64], combine: impl Fn(u64, u64) -> u64) {
    struct Read<'a, F>(Bits<'a>, usize, &'a mut [u64], F);
    impl<F: Fn(u64, u64) -> u64> Loop for Read<'_, F> {
        type Output = ();
        #[inline(always)]
        fn run(self) {
            let Read(bits, first, words, combine) = self;
            let (bytes, shift) = bits.parts();
            // These words are whole and followed by a ninth byte: two loads a byte apart, shifted, hold all
            // 64 rows.
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

/// Writes the values whose bits are 1, in order, and returns their number. `words` has a bit for each value,
/// and none past the last. Stops if `out` is full.
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

/// Packs the bits under the masks `words`, which are not set past the last of `bits`. They follow `fill` bits
/// (below 64) that the caller writes.
///
/// `out` begins after the word that holds those bits or, if `fill` is 0, with the first word. Returns the
/// bits for the word that is not in `out`, at their positions, and the total number of ones.
pub(crate) fn compact(words: &[u64], bits: Bits, fill: usize, out: &mut [u64]) -> (u64, usize) {
    #[cfg(target_arch = "x86_64")]
    if VectorLevel::widest() >= VectorLevel::Avx2 {
        // SAFETY: the level says that the instructions are there.
        return unsafe { compress::compact_bmi2(words, bits, fill, out) };
    }
    plain::compact(words, bits, fill, out, plain::extract)
}

/// Writes the values at `indices` of four or eight bytes to `out`; unspecified values if `valid` has a 0.
/// Returns `false` if a valid index is `limit` or more.
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

/// Writes the bits at `indices`, as words; 0 if the index is not valid. Returns `false` if a valid index is
/// `limit` or more.
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

/// Writes the positions of the ones in at most 64 words, in order, and returns their number.
pub(crate) fn positions(words: &[u64], out: &mut [u16; POSITIONS]) -> usize {
    assert!(words.len() <= 64);
    #[cfg(target_arch = "x86_64")]
    if VectorLevel::widest() == VectorLevel::Avx512 {
        // SAFETY: the level says that the instructions are there.
        return unsafe { compress::positions_avx512(words, out) };
    }
    plain::positions(words, out)
}

/// Copies `data[start..start + len]` for each start and length, end to end, and returns the total bytes;
/// `None` if a range is out of bounds of `data`, or `out` is too short. The starts of `next` are prefetched.
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

/// Copies the bytes of the rows whose bits in `words` are 1; `offsets` has one more than rows. Returns the
/// total bytes; `None` if offsets exceed `data`, or `out` is too short.
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

/// Writes the starts of the rows whose bits are 1, and their ends when copied end to end. Returns their total
/// bytes. `offsets` has one more than rows, and the outputs have a place for each kept row. `None` if an
/// offset decreases or exceeds `extent`.
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

/// Copies the bytes of rows from their starts to their ends, end to end; `false` if either is out of bounds.
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

/// Writes the starts of the rows at `indices`, and their ends when copied end to end. Returns their total
/// bytes. Rows that are not `valid` are empty. `None` if an index is out of bounds or an offset exceeds
/// `extent`.
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
