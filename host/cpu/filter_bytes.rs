//! Filter of strings and bytes behind offsets: how many bytes each chunk keeps, then every chunk writes its own.

use rayon::prelude::*;

use crate::Result;
use crate::array::{Array, Parts};
use crate::device::HostPool;

use super::selection::{Chunk, PARALLEL, Selection};
use super::{memory, rows};

/// Adds the buffers of the kept rows to `parts`; offsets have `O` bytes.
pub(crate) fn filter<const O: usize>(
    array: &Array,
    selection: &Selection,
    pool: &HostPool,
    parts: &mut Parts,
) -> Result<()> {
    let offsets = rows::offsets::<O>(array);
    let data = memory::bytes(&array.buffers()[1]);
    let parallel = selection.rows() >= PARALLEL;

    let measure = |chunk| measure(offsets, selection.chunk(chunk), data.len());
    let sizes: Vec<usize> = match parallel {
        true => (0..selection.chunks()).into_par_iter().map(measure).collect::<Result<_>>()?,
        false => (0..selection.chunks()).map(measure).collect::<Result<_>>()?,
    };
    // Rows do not overlap, so the sum is at most what there is, and fits the offsets.
    let total: usize = sizes.iter().sum();

    let mut out_offsets = pool.alloc((selection.len() + 1) * O)?;
    let mut out_bytes = pool.alloc(total)?;
    let (first, mut ends) =
        memory::values_mut::<[u8; O]>(&mut out_offsets)[..selection.len() + 1].split_at_mut(1);
    first[0] = rows::offset_bytes(0);
    let mut bytes = &mut out_bytes.bytes_mut()[..total];
    let mut before = 0;
    let mut pieces = Vec::with_capacity(sizes.len());
    for (chunk, size) in sizes.iter().enumerate() {
        let chunk = selection.chunk(chunk);
        let (own_ends, rest) = ends.split_at_mut(chunk.out.len());
        let (own_bytes, rest_bytes) = bytes.split_at_mut(*size);
        (ends, bytes) = (rest, rest_bytes);
        pieces.push((chunk, before, own_ends, own_bytes));
        before += size;
    }
    match parallel {
        true => pieces.into_par_iter().for_each(|(chunk, before, ends, bytes)| {
            copy(offsets, data, chunk, before, ends, bytes);
        }),
        false => pieces.into_iter().for_each(|(chunk, before, ends, bytes)| {
            copy(offsets, data, chunk, before, ends, bytes);
        }),
    }
    parts.buffers = vec![out_offsets.freeze((selection.len() + 1) * O), out_bytes.freeze(total)];
    Ok(())
}

/// The bytes that a chunk keeps. Its rows' offsets are checked here, before anything follows them.
fn measure<const O: usize>(offsets: &[[u8; O]], chunk: Chunk, extent: usize) -> Result<usize> {
    let mut total = 0;
    let mut before = 0;
    for (i, word) in chunk.words.iter().enumerate() {
        let mut word = *word;
        while word != 0 {
            let row = chunk.rows.start + i * 64 + word.trailing_zeros() as usize;
            let range = rows::range(offsets, row, extent)?;
            if range.start < before {
                return Err(rows::bad_offset(row));
            }
            before = range.end;
            total += range.len();
            word &= word - 1;
        }
    }
    Ok(total)
}

/// Writes a chunk's ends and bytes; `before` bytes come before its first.
fn copy<const O: usize>(
    offsets: &[[u8; O]],
    data: &[u8],
    chunk: Chunk,
    before: usize,
    ends: &mut [[u8; O]],
    bytes: &mut [u8],
) {
    let (mut at, mut ends) = (0, ends.iter_mut());
    for (i, word) in chunk.words.iter().enumerate() {
        rows::runs(*word, |start, len| {
            let first = chunk.rows.start + i * 64 + start;
            let from = rows::offset(offsets[first]);
            for end in &offsets[first + 1..=first + len] {
                let end = rows::offset(*end) - from + at + before;
                *ends.next().expect("an end for every kept row") = rows::offset_bytes(end);
            }
            let len = rows::offset(offsets[first + len]) - from;
            bytes[at..at + len].copy_from_slice(&data[from..from + len]);
            at += len;
        });
    }
}
