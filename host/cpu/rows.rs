//! Access to the rows of host arrays: their parts of buffers, as plain bytes without alignment.
//!
//! The one idea: a value is `[u8; W]`, which needs no alignment. So foreign buffers are read in place, and
//! one function serves all types of a width.

use std::ops::Range;

use crate::array::{Buffer, DeviceArray};
use crate::{Error, Result};

use super::bitmap::Bits;
use super::memory;

/// The number of rows that one thread takes at a time.
pub(crate) const CHUNK: usize = 16 * 1024;

/// Returns `len` values of `W` bytes, from row `offset` of a buffer on.
pub(crate) fn values<const W: usize>(buffer: &Buffer, offset: usize, len: usize) -> &[[u8; W]] {
    if len == 0 {
        return &[];
    }
    let all = memory::plain::<[u8; W]>(memory::bytes(buffer)).expect("bytes are always aligned");
    &all[offset..offset + len]
}

/// Returns the offsets of an array that has them as its first buffer: one more than its rows.
pub(crate) fn offsets<const O: usize>(array: &DeviceArray) -> &[[u8; O]] {
    if array.is_empty() {
        return &[[0; O]];
    }
    values(&array.buffers()[0], array.offset(), array.len() + 1)
}

/// Returns the validity of the rows; `None` if all are known to be valid.
pub(crate) fn validity(array: &DeviceArray) -> Option<Bits<'_>> {
    let bitmap = array.possible_nulls()?;
    Some(Bits::of(bitmap, array.len()))
}

/// Returns the values of an array of booleans.
pub(crate) fn booleans(array: &DeviceArray) -> Bits<'_> {
    Bits::new(memory::bytes(&array.buffers()[0]), array.offset(), array.len())
}

/// Reads an offset of 4 or 8 bytes. Negative ones become larger than any extent.
#[inline(always)]
pub(crate) fn offset<const O: usize>(bytes: [u8; O]) -> usize {
    match O {
        4 => i32::from_le_bytes(std::array::from_fn(|i| bytes[i])) as usize,
        _ => i64::from_le_bytes(std::array::from_fn(|i| bytes[i])) as usize,
    }
}

/// Returns the bytes of an offset.
#[inline(always)]
pub(crate) fn offset_bytes<const O: usize>(offset: usize) -> [u8; O] {
    let bytes = (offset as u64).to_le_bytes();
    std::array::from_fn(|i| bytes[i])
}

/// Adds `by` to each of the offsets.
pub(crate) fn shift<const O: usize>(offsets: &mut [[u8; O]], by: usize) {
    if by > 0 {
        offsets.iter_mut().for_each(|at| *at = offset_bytes(by + offset(*at)));
    }
}

/// Returns the largest offset of `O` bytes.
pub(crate) const fn largest_offset<const O: usize>() -> usize {
    if O == 4 { i32::MAX as usize } else { i64::MAX as usize }
}

/// Returns the elements of row `row`; an error if they exceed the `extent` that the offsets point into.
#[inline(always)]
pub(crate) fn range<const O: usize>(offsets: &[[u8; O]], row: usize, extent: usize) -> Result<Range<usize>> {
    let (start, end) = (offset(offsets[row]), offset(offsets[row + 1]));
    if start <= end && end <= extent { Ok(start..end) } else { Err(bad_offset(row)) }
}

/// Makes the error for offsets that decrease, or exceed what they point into.
#[cold]
pub(crate) fn bad_offset(row: usize) -> Error {
    Error::out_of_spec("array.buffers[0]", format!("the offsets of row {row} go back or out of bounds"))
}

/// Returns a word whose lowest `n` bits are set, `n <= 64`.
#[inline(always)]
pub(crate) fn ones(n: usize) -> u64 {
    if n >= 64 { u64::MAX } else { (1 << n) - 1 }
}

/// Calls `run(start, len)` for each run of ones in `word`, lowest first.
#[inline(always)]
pub(crate) fn runs(mut word: u64, mut run: impl FnMut(usize, usize)) {
    let mut base = 0;
    while word != 0 {
        let skip = word.trailing_zeros() as usize;
        word >>= skip;
        let len = word.trailing_ones() as usize;
        run(base + skip, len);
        if base + skip + len >= 64 {
            return;
        }
        word >>= len;
        base += skip + len;
    }
}

/// Sets bits `start..end`, which may span words.
pub(crate) fn set(words: &mut [u64], start: usize, end: usize) {
    if start >= end {
        return;
    }
    let (first, last) = (start / 64, (end - 1) / 64);
    let (head, tail) = (u64::MAX << (start % 64), ones((end - 1) % 64 + 1));
    if first == last {
        words[first] |= head & tail;
    } else {
        words[first] |= head;
        words[first + 1..last].fill(u64::MAX);
        words[last] |= tail;
    }
}

/// Makes the error for a result that exceeds the offsets of its type.
pub(crate) fn too_long(array: &DeviceArray) -> Error {
    Error::too_long("take", "the elements of the result", array.data_type())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_and_set_are_inverse() {
        for word in [0, 1, u64::MAX, 1 << 63, 0xF0F0_0000_FFFF_0001, u64::MAX << 1, u64::MAX >> 1] {
            let mut back = [0];
            runs(word, |start, len| set(&mut back, start, start + len));
            assert_eq!(back[0], word);
        }
        let mut wide = [0; 4];
        set(&mut wide, 60, 200);
        assert_eq!(wide, [0xF << 60, u64::MAX, u64::MAX, 0xFF]);
    }

    #[test]
    fn negative_offsets_are_out_of_any_extent() {
        assert!(offset((-1i32).to_le_bytes()) > usize::MAX / 2);
        assert!(offset((-1i64).to_le_bytes()) > usize::MAX / 2);
        assert_eq!(offset::<4>(offset_bytes(77)), 77);
        assert_eq!(offset::<8>(offset_bytes(1 << 40)), 1 << 40);
    }
}
