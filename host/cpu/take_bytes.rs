//! Take of strings and bytes with offsets, in three steps: the lengths, the start of each chunk's bytes, and
//! the bytes. Other ranges of bytes are copied by the same steps.

use crate::array::{Buffer, DeviceArray, Parts};
use crate::device::{HostPool, interrupt};
use crate::{Error, Result};

use super::bitmap::Bits;
use super::indices::{Indices, Width, index};
use super::memory::LOOK;
use super::selection::PARALLEL;
use super::{intrinsics, memory, rows};
use crate::threads::{among_threads, each_part};

/// Sources of at most this many bytes fit a core's own caches and need no prefetch.
const NEAR: usize = 1 << 20;

/// Adds the buffers of the taken rows to `parts`; offsets have `O` bytes.
pub(crate) fn take<const O: usize>(
    array: &DeviceArray,
    indices: &Indices,
    pool: &HostPool,
    parts: &mut Parts,
) -> Result<()> {
    match indices.values() {
        Width::Narrow(values) => take_width::<O, 4>(array, indices, values, pool, parts),
        Width::Wide(values) => take_width::<O, 8>(array, indices, values, pool, parts),
    }
}

/// The inputs that all chunks share.
struct Source<'a, const O: usize, const I: usize> {
    offsets: &'a [[u8; O]],
    data: &'a [u8],
    indices: &'a [[u8; I]],
    limit: u64,
    valid: Option<Bits<'a>>,
}

/// The starts of a chunk's rows in the source, and their ends in the result, counted from the chunk's first
/// byte.
pub(crate) type Rows<'a, const O: usize> = (&'a mut [[u8; O]], &'a mut [[u8; O]]);

fn take_width<const O: usize, const I: usize>(
    array: &DeviceArray,
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
    let measure = |first: usize, rows: Rows<'_, O>| match source.measure(first, rows) {
        Some(size) => size.map_err(Some),
        None => Err(None),
    };
    match gathered(source.data, indices.len(), pool, measure, || rows::too_long(array))? {
        Ok(buffers) => parts.buffers = buffers,
        Err(Some(error)) => return Err(error),
        // An index is out of bounds.
        Err(None) => return all.check(array.len()),
    }
    Ok(())
}

/// Copies ranges of bytes, one for each row, to the buffers of a column with offsets. `measure` writes the
/// starts and the ends of the rows from a number on, and returns their bytes. The inner error is that of the
/// first rows for which it fails.
pub(crate) fn gathered<const O: usize, E: Send>(
    data: &[u8],
    rows: usize,
    pool: &HostPool,
    measure: impl Fn(usize, Rows<'_, O>) -> std::result::Result<usize, E> + Sync,
    too_long: impl Fn() -> Error,
) -> Result<std::result::Result<Vec<Buffer>, E>> {
    let large = rows >= PARALLEL;
    let mut offsets = pool.alloc((rows + 1) * O)?;
    let (first, ends) = memory::values_mut::<[u8; O]>(&mut offsets)[..rows + 1].split_at_mut(1);
    first[0] = rows::offset_bytes(0);
    // The starts are kept for the second pass: reading them again would miss the cache again.
    let mut starts = pool.alloc(rows * O)?;
    let starts = &mut memory::values_mut::<[u8; O]>(&mut starts)[..rows];

    let measure = |(chunk, rows): (usize, Rows<O>)| measure(chunk * rows::CHUNK, rows);
    let sizes: Vec<std::result::Result<usize, E>> = among_threads(large, |large| {
        let chunks = starts.chunks_mut(rows::CHUNK).zip(ends.chunks_mut(rows::CHUNK)).enumerate();
        match large {
            true => each_part(chunks, measure),
            false => Ok(chunks.map(measure).collect()),
        }
    })?;
    let mut total = 0usize;
    let mut pieces = Vec::with_capacity(sizes.len());
    for size in sizes {
        let size = match size {
            Ok(size) => size,
            Err(error) => return Ok(Err(error)),
        };
        pieces.push((total, size));
        total = total.checked_add(size).ok_or_else(&too_long)?;
    }
    if total > rows::largest_offset::<O>() {
        return Err(too_long());
    }

    let mut out_bytes = pool.alloc(total)?;
    let mut bytes = &mut out_bytes.bytes_mut()[..total];
    let mut work = Vec::with_capacity(pieces.len());
    for (rows, (before, size)) in starts.chunks(rows::CHUNK).zip(ends.chunks_mut(rows::CHUNK)).zip(pieces) {
        let (own, rest) = bytes.split_at_mut(size);
        bytes = rest;
        work.push((rows, before, own));
    }
    let copy = |((starts, ends), before, bytes)| copy(data, starts, ends, before, bytes);
    among_threads(large, |large| match large {
        true => each_part(work, copy)?.into_iter().collect::<Result<()>>(),
        false => work.into_iter().try_for_each(copy),
    })?;
    Ok(Ok(vec![offsets.freeze((rows + 1) * O), out_bytes.freeze(total)]))
}

impl<const O: usize, const I: usize> Source<'_, O, I> {
    /// Writes the starts and ends of the rows from `first` on, and returns their bytes; `None` if an index is
    /// out of bounds. Ends that do not fit wrap; the caller detects that from the sum.
    fn measure(&self, first: usize, (starts, ends): Rows<O>) -> Option<Result<usize>> {
        let valid = self.valid.map(|valid| valid.slice(first, ends.len()));
        let indices = &self.indices[first..first + ends.len()];
        let extent = self.data.len();
        let total = intrinsics::locate(self.offsets, extent, indices, self.limit, valid, starts, ends);
        if total.is_some() {
            return total.map(Ok);
        }
        // Something is wrong, so finding out what may take long.
        let alive = |i: usize| valid.is_none_or(|valid| valid.get(i));
        for (_, at) in indices.iter().enumerate().filter(|(i, _)| alive(*i)) {
            let index = index(*at);
            if index >= self.limit {
                return None;
            }
            if let Err(error) = rows::range(self.offsets, index as usize, extent) {
                return Some(Err(error));
            }
        }
        unreachable!("nothing is wrong with rows {first} and following")
    }
}

/// Copies rows from their starts to their ends, and rebases the ends from the first of these rows to the
/// first row of all. Source and destination must exist.
pub(crate) fn copy<const O: usize>(
    data: &[u8],
    all_starts: &[[u8; O]],
    ends: &mut [[u8; O]],
    before: usize,
    bytes: &mut [u8],
) -> Result<()> {
    if data.len() <= NEAR && bytes.len() <= LOOK {
        assert!(intrinsics::copy_rows(data, all_starts, ends, bytes), "measured before");
        rows::shift(ends, before);
        return Ok(());
    }
    let (mut at, mut last, mut looked) = (0, 0, 0);
    let mut next = block_of(all_starts, 0);
    for (block, ends) in ends.chunks_mut(64).enumerate() {
        let starts = next;
        next = block_of(all_starts, (block + 1) * 64);
        let ahead = all_starts.len().saturating_sub((block + 1) * 64).min(64);
        let mut lens = [0; 64];
        for (len, end) in lens.iter_mut().zip(ends.iter_mut()) {
            let here = rows::offset(*end);
            (*len, last) = (here - last, here);
            *end = rows::offset_bytes(before + here);
        }
        let (starts, lens) = (&starts[..ends.len()], &lens[..ends.len()]);
        let copied = intrinsics::copy_ranges(data, starts, lens, &next[..ahead], &mut bytes[at..]);
        at += copied.expect("measured before");
        if at - looked > LOOK {
            interrupt::check()?;
            looked = at;
        }
    }
    Ok(())
}

/// Returns up to 64 starts from `first` on.
fn block_of<const O: usize>(starts: &[[u8; O]], first: usize) -> [usize; 64] {
    let mut block = [0; 64];
    let starts = starts.get(first..).unwrap_or_default();
    block.iter_mut().zip(starts).for_each(|(out, start)| *out = rows::offset(*start));
    block
}
