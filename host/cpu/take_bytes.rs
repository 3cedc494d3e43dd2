//! Take of strings and bytes behind offsets: the lengths, where each chunk's bytes then begin, and the bytes.

use rayon::prelude::*;

use crate::Result;
use crate::array::{Array, Parts};
use crate::device::HostPool;

use super::bitmap::Bits;
use super::indices::{Indices, Width, index};
use super::selection::PARALLEL;
use super::take::{CHUNK, too_long};
use super::{memory, rows};

/// Adds the buffers of the taken rows to `parts`; offsets have `O` bytes.
pub(crate) fn take<const O: usize>(
    array: &Array,
    indices: &Indices,
    pool: &HostPool,
    parts: &mut Parts,
) -> Result<()> {
    match indices.values() {
        Width::Narrow(values) => take_width::<O, 4>(array, indices, values, pool, parts),
        Width::Wide(values) => take_width::<O, 8>(array, indices, values, pool, parts),
    }
}

/// What does not change from chunk to chunk.
struct Source<'a, const O: usize, const I: usize> {
    offsets: &'a [[u8; O]],
    data: &'a [u8],
    indices: &'a [[u8; I]],
    limit: u64,
    valid: Option<Bits<'a>>,
}

fn take_width<const O: usize, const I: usize>(
    array: &Array,
    all: &Indices,
    indices: &[[u8; I]],
    pool: &HostPool,
    parts: &mut Parts,
) -> Result<()> {
    let source = Source {
        offsets: rows::offsets::<O>(array),
        data: memory::bytes(&array.buffers()[1]),
        indices,
        limit: all.limit(array.len()),
        valid: all.valid(),
    };
    let rows = indices.len();
    let parallel = rows >= PARALLEL;
    let mut offsets = pool.alloc((rows + 1) * O)?;
    let (first, ends) = memory::values_mut::<[u8; O]>(&mut offsets)[..rows + 1].split_at_mut(1);
    first[0] = rows::offset_bytes(0);

    let measure = |(chunk, ends): (usize, &mut [[u8; O]])| source.measure(chunk * CHUNK, ends);
    let sizes: Vec<Option<Result<usize>>> = match parallel {
        true => ends.par_chunks_mut(CHUNK).enumerate().map(measure).collect(),
        false => ends.chunks_mut(CHUNK).enumerate().map(measure).collect(),
    };
    let mut total = 0usize;
    let mut pieces = Vec::with_capacity(sizes.len());
    for size in sizes {
        let Some(size) = size else { return all.check(array.len()) };
        let size = size?;
        pieces.push((total, size));
        total = total.checked_add(size).ok_or_else(|| too_long(array))?;
    }
    if total > rows::largest_offset::<O>() {
        return Err(too_long(array));
    }

    let mut out_bytes = pool.alloc(total)?;
    let mut bytes = &mut out_bytes.bytes_mut()[..total];
    let mut work = Vec::with_capacity(pieces.len());
    for ((chunk, ends), (before, size)) in ends.chunks_mut(CHUNK).enumerate().zip(pieces) {
        let (own, rest) = bytes.split_at_mut(size);
        bytes = rest;
        work.push((chunk * CHUNK, before, ends, own));
    }
    let copy = |(first, before, ends, bytes)| source.copy(first, before, ends, bytes);
    match parallel {
        true => work.into_par_iter().for_each(copy),
        false => work.into_iter().for_each(copy),
    }
    parts.buffers = vec![offsets.freeze((rows + 1) * O), out_bytes.freeze(total)];
    Ok(())
}

impl<const O: usize, const I: usize> Source<'_, O, I> {
    fn valid(&self, row: usize) -> bool {
        self.valid.is_none_or(|valid| valid.get(row))
    }

    /// Writes where rows from `first` on end, counted from the first, and returns the last end; `None` where an index
    /// is out of bounds. Ends that do not fit wrap: the caller sees from the sum that they are of no use.
    fn measure(&self, first: usize, ends: &mut [[u8; O]]) -> Option<Result<usize>> {
        let mut total = 0usize;
        for (i, end) in ends.iter_mut().enumerate() {
            if self.valid(first + i) {
                let index = index(self.indices[first + i]);
                if index >= self.limit {
                    return None;
                }
                match rows::range(self.offsets, index as usize, self.data.len()) {
                    Ok(range) => total += range.len(),
                    Err(error) => return Some(Err(error)),
                }
            }
            *end = rows::offset_bytes(total);
        }
        Some(Ok(total))
    }

    /// Writes the bytes of rows from `first` on, and their ends as counted from the very first row.
    fn copy(&self, first: usize, before: usize, ends: &mut [[u8; O]], bytes: &mut [u8]) {
        let mut at = 0;
        for (i, end) in ends.iter_mut().enumerate() {
            let len = rows::offset(*end) - at;
            if len > 0 {
                let from = rows::offset(self.offsets[index(self.indices[first + i]) as usize]);
                bytes[at..at + len].copy_from_slice(&self.data[from..from + len]);
                at += len;
            }
            *end = rows::offset_bytes(before + at);
        }
    }
}
