//! Filter of strings and bytes behind offsets: how many bytes each chunk keeps, then every chunk writes its own.
//!
//! A chunk that keeps few rows looks at those only; one that keeps many checks and sums all of its offsets, which
//! vectors do faster than following bits.

use rayon::prelude::*;

use crate::Result;
use crate::array::{Array, Parts};
use crate::device::HostPool;

use super::selection::{Chunk, PARALLEL, Selection};
use super::simd::{self, POSITIONS};
use super::{memory, rows};

/// One row in so many, and a chunk keeps few.
const FEW: usize = 16;

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

    let measure = |chunk| measure(offsets, data.len(), &selection.chunk(chunk));
    let sizes: Vec<usize> = match parallel {
        true => (0..selection.chunks()).into_par_iter().map(measure).collect::<Result<_>>()?,
        false => (0..selection.chunks()).map(measure).collect::<Result<_>>()?,
    };
    // Rows of a chunk do not overlap; those of chunks might, if offsets go back between them.
    let total = sizes.iter().try_fold(0usize, |sum, size| sum.checked_add(*size));
    let Some(total) = total.filter(|total| *total <= data.len()) else {
        return Err(rows::bad_offset(0));
    };

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
    let copy = |(chunk, before, ends, bytes)| copy(offsets, data, &chunk, before, ends, bytes);
    match parallel {
        true => pieces.into_par_iter().for_each(copy),
        false => pieces.into_iter().for_each(copy),
    }
    parts.buffers = vec![out_offsets.freeze((selection.len() + 1) * O), out_bytes.freeze(total)];
    Ok(())
}

fn few(chunk: &Chunk) -> bool {
    chunk.out.len() < chunk.rows.len() / FEW
}

/// Calls `each` with every kept row, up to 64 words' worth at a time.
fn kept_rows(chunk: &Chunk, mut each: impl FnMut(&mut dyn Iterator<Item = usize>)) {
    let mut positions = [0; POSITIONS];
    for (block, words) in chunk.words.chunks(64).enumerate() {
        let kept = simd::positions(words, &mut positions);
        let first = chunk.rows.start + block * 64 * 64;
        each(&mut positions[..kept].iter().map(|position| first + *position as usize));
    }
}

/// The bytes that a chunk keeps. Its rows' offsets are checked here, before anything follows them.
fn measure<const O: usize>(offsets: &[[u8; O]], extent: usize, chunk: &Chunk) -> Result<usize> {
    if !few(chunk) {
        let offsets = &offsets[chunk.rows.start..=chunk.rows.end];
        let ends = (rows::offset(offsets[0]), rows::offset(offsets[chunk.rows.len()]));
        let inside = ends.0 <= ends.1 && ends.1 <= extent;
        let total = simd::kept_bytes(offsets, chunk.words).filter(|_| inside);
        return total.ok_or_else(|| rows::bad_offset(chunk.rows.start));
    }
    let (mut total, mut before, mut bad) = (0, 0, None);
    kept_rows(chunk, |kept| {
        for row in kept {
            let (start, end) = (rows::offset(offsets[row]), rows::offset(offsets[row + 1]));
            if start < before || end < start || end > extent {
                bad = bad.or(Some(row));
                return;
            }
            (total, before) = (total + (end - start), end);
        }
    });
    bad.map_or(Ok(total), |row| Err(rows::bad_offset(row)))
}

/// Writes a chunk's ends and bytes, for both of which there is just the room; `before` bytes come before its first.
fn copy<const O: usize>(
    offsets: &[[u8; O]],
    data: &[u8],
    chunk: &Chunk,
    before: usize,
    ends: &mut [[u8; O]],
    bytes: &mut [u8],
) {
    if !few(chunk) {
        let offsets = &offsets[chunk.rows.start..=chunk.rows.end];
        simd::kept_ends(offsets, chunk.words, before, ends);
        simd::copy_kept(offsets, data, chunk.words, bytes).expect("measured before");
        return;
    }
    let (mut at, mut ends) = (0, ends.iter_mut());
    kept_rows(chunk, |kept| {
        loop {
            let (mut starts, mut lens, mut count) = ([0; 64], [0; 64], 0);
            for row in kept.take(64) {
                starts[count] = rows::offset(offsets[row]);
                lens[count] = rows::offset(offsets[row + 1]) - starts[count];
                count += 1;
            }
            if count == 0 {
                return;
            }
            let mut end = before + at;
            for (len, out) in lens[..count].iter().zip(ends.by_ref()) {
                end += len;
                *out = rows::offset_bytes(end);
            }
            let copied = simd::copy_ranges(data, &starts[..count], &lens[..count], &[], &mut bytes[at..]);
            at += copied.expect("measured before");
        }
    });
}
