//! Filter of strings and bytes with offsets: first the bytes that each chunk keeps are counted, then every
//! chunk writes its own.
//!
//! A filter that keeps few rows reads only their offsets; one that keeps many reads all offsets, which
//! vectors do faster than following bits. Rows are copied one by one, except under masks that keep long runs:
//! those are copied a run at a time.

use crate::Result;
use crate::array::{DeviceArray, Parts};
use crate::device::HostPool;

use super::intrinsics::{self, POSITIONS};
use super::selection::{Chunk, PARALLEL, Selection};
use super::{memory, rows, take_bytes};
use crate::threads::{among_threads, each_part};

/// A filter that keeps fewer than one row in so many reads only the kept rows.
const FEW: usize = 16;
/// The average length of runs of kept rows from which copying whole runs pays off.
const NEIGHBOURS: usize = 6;

/// A chunk of the rows, with its part of the result.
struct Piece<'a, const O: usize> {
    chunk: Chunk<'a>,
    /// The starts of the kept rows, stored because finding them again would miss the cache again.
    starts: &'a mut [[u8; O]],
    /// The ends of the kept rows, counted from the chunk's first byte until the bytes are copied.
    ends: &'a mut [[u8; O]],
    few: bool,
    /// The bytes that the chunk keeps.
    size: usize,
}

/// Adds the buffers of the kept rows to `parts`; offsets have `O` bytes.
pub(crate) fn filter<const O: usize>(
    array: &DeviceArray,
    selection: &Selection,
    pool: &HostPool,
    parts: &mut Parts,
) -> Result<()> {
    let offsets = rows::offsets::<O>(array);
    let data = memory::bytes(&array.buffers()[1]);
    let large = selection.rows() >= PARALLEL;

    let mut out_offsets = pool.alloc((selection.len() + 1) * O)?;
    let (first, mut ends) =
        memory::values_mut::<[u8; O]>(&mut out_offsets)[..selection.len() + 1].split_at_mut(1);
    first[0] = rows::offset_bytes(0);
    let few = selection.len() < selection.rows() / FEW;
    let mut starts = pool.alloc(selection.len() * O)?;
    let mut starts = memory::values_mut::<[u8; O]>(&mut starts);
    let mut pieces: Vec<Piece<O>> = Vec::with_capacity(selection.chunks());
    for chunk in (0..selection.chunks()).map(|chunk| selection.chunk(chunk)) {
        let (own_ends, rest) = ends.split_at_mut(chunk.out.len());
        let (own_starts, rest_starts) = starts.split_at_mut(chunk.out.len());
        (ends, starts) = (rest, rest_starts);
        pieces.push(Piece { chunk, starts: own_starts, ends: own_ends, few, size: 0 });
    }

    let measure = |piece: &mut Piece<O>| piece.measure(offsets, data.len());
    among_threads(large, |large| match large {
        true => each_part(&mut pieces, measure)?.into_iter().collect::<Result<()>>(),
        false => pieces.iter_mut().try_for_each(measure),
    })?;
    // Rows of one chunk cannot overlap; those of different chunks might, if offsets decrease between them.
    let total = pieces.iter().try_fold(0usize, |sum, piece| sum.checked_add(piece.size));
    let most = data.len().min(rows::largest_offset::<O>());
    let Some(total) = total.filter(|total| *total <= most) else {
        return Err(rows::bad_offset(0));
    };

    let mut out_bytes = pool.alloc(total)?;
    let mut bytes = &mut out_bytes.bytes_mut()[..total];
    let mut before = 0;
    let work = pieces.into_iter().map(|piece| {
        let (own, rest) = std::mem::take(&mut bytes).split_at_mut(piece.size);
        bytes = rest;
        before += piece.size;
        (before - piece.size, piece, own)
    });
    let copy =
        |(before, piece, bytes): (usize, Piece<O>, &mut [u8])| piece.copy(offsets, data, before, bytes);
    let work: Vec<_> = work.collect();
    among_threads(large, |large| match large {
        true => each_part(work, copy)?.into_iter().collect::<Result<()>>(),
        false => work.into_iter().try_for_each(copy),
    })?;
    parts.buffers = vec![out_offsets.freeze((selection.len() + 1) * O), out_bytes.freeze(total)];
    Ok(())
}

/// Writes the starts of a chunk's kept rows, and their ends when copied end to end. Returns their bytes.
pub(crate) fn locate<const O: usize>(
    offsets: &[[u8; O]],
    extent: usize,
    chunk: &Chunk,
    starts: &mut [[u8; O]],
    ends: &mut [[u8; O]],
) -> Result<usize> {
    let rows = chunk.rows.clone();
    let (first, last) = (rows::offset(offsets[rows.start]), rows::offset(offsets[rows.end]));
    let size = intrinsics::kept_rows(&offsets[rows.start..=rows.end], extent, chunk.words, starts, ends);
    // A size above the distance from the first offset to the last means that rows overlap.
    let inside = |size: &usize| first <= last && last <= extent && *size <= last - first;
    size.filter(inside).ok_or_else(|| rows::bad_offset(rows.start))
}

impl<const O: usize> Piece<'_, O> {
    /// Computes the bytes that the chunk keeps.
    fn measure(&mut self, offsets: &[[u8; O]], extent: usize) -> Result<()> {
        let rows = self.chunk.rows.clone();
        if !self.few {
            self.size = locate(offsets, extent, &self.chunk, self.starts, self.ends)?;
            return Ok(());
        }
        let mut out = self.starts.iter_mut().zip(self.ends.iter_mut());
        let (mut total, mut before, mut bad) = (0, 0, None);
        let mut positions = [0; POSITIONS];
        for (block, words) in self.chunk.words.chunks(64).enumerate() {
            let kept = intrinsics::positions(words, &mut positions);
            // `positions` comes first, because `zip` takes from its left side before it finds the right one
            // exhausted.
            for (position, (out_start, out_end)) in positions[..kept].iter().zip(out.by_ref()) {
                let row = rows.start + block * 64 * 64 + *position as usize;
                let (start, end) = (rows::offset(offsets[row]), rows::offset(offsets[row + 1]));
                if start < before || end < start || end > extent {
                    bad = bad.or(Some(row));
                    break;
                }
                total += end - start;
                before = end;
                (*out_start, *out_end) = (rows::offset_bytes(start), rows::offset_bytes(total));
            }
        }
        self.size = total;
        bad.map_or(Ok(()), |row| Err(rows::bad_offset(row)))
    }

    /// Writes the chunk's ends and bytes, for which the memory fits exactly; `before` bytes precede its
    /// first.
    fn copy(self, offsets: &[[u8; O]], data: &[u8], before: usize, bytes: &mut [u8]) -> Result<()> {
        if self.few || bytes.len() > memory::LOOK {
            return take_bytes::copy(data, self.starts, self.ends, before, bytes);
        }
        let (rows, words) = (self.chunk.rows, self.chunk.words);
        let runs: u32 = words.iter().map(|word| (word & !(word << 1)).count_ones()).sum();
        let copied = match self.ends.len() < runs as usize * NEIGHBOURS {
            true => intrinsics::copy_rows(data, self.starts, self.ends, bytes),
            false => {
                let offsets = &offsets[rows.start..=rows.end];
                intrinsics::copy_kept(offsets, data, words, bytes) == Some(bytes.len())
            }
        };
        if !copied {
            return Err(rows::bad_offset(rows.start));
        }
        rows::shift(self.ends, before);
        Ok(())
    }
}
