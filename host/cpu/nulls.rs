//! Validity bitmaps on the host: counting, inverting, filling.

use super::bitmap::Bits;
use super::intrinsics;
use super::memory::{fill, values_mut};
use crate::Result;
use crate::array::{Bitmap, Buffer};
use crate::device::HostPool;
use crate::threads::{among_threads, each_part};

/// The words that one thread inverts. They take some microseconds, which outweighs the cost of handing them
/// over.
const PART: usize = (128 << 10) / 8;

/// Returns the number of valid rows among the first `len`.
pub(crate) fn count_valid(validity: &Bitmap, len: usize) -> Result<usize> {
    Bits::of(validity, len).count()
}

/// Whether a row is valid.
pub(crate) fn is_valid(validity: &Bitmap, row: usize) -> bool {
    Bits::of(validity, row + 1).get(row)
}

/// Returns the complement of the first `len` bits, from bit 0 on. The bits after them are unspecified.
pub(crate) fn inverted(bits: &Bitmap, len: usize, pool: &HostPool) -> Result<Buffer> {
    let from = Bits::of(bits, len);
    let mut memory = pool.alloc(from.words() * 8)?;
    let to = &mut values_mut::<u64>(&mut memory)[..from.words()];
    if to.len() < 2 * PART {
        intrinsics::read_words(from, 0, to, |_, word| !word);
        return Ok(memory.freeze(len.div_ceil(8)));
    }
    among_threads(true, |_| {
        let parts = to.chunks_mut(PART).enumerate();
        each_part(parts, |(i, to)| intrinsics::read_words(from, i * PART, to, |_, word| !word))
    })?;
    Ok(memory.freeze(len.div_ceil(8)))
}

/// Returns a bitmap of `len` bits that all have the same value.
pub(crate) fn filled(bit: bool, len: usize, pool: &HostPool) -> Result<Buffer> {
    let bytes = len.div_ceil(8);
    let mut memory = pool.alloc(bytes)?;
    fill(&mut memory.bytes_mut()[..bytes], if bit { 0xff } else { 0 })?;
    Ok(memory.freeze(bytes))
}
