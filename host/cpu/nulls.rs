//! Validity bitmaps on the host: counted, inverted, filled.

use super::bitmap::Bits;
use super::intrinsics;
use super::memory::values_mut;
use super::threads::{among_threads, each_part};
use crate::Result;
use crate::array::{Bitmap, Buffer};
use crate::device::HostPool;

/// Words that one thread inverts: some microseconds of work, so that handing it over pays.
const PART: usize = (128 << 10) / 8;

/// How many of the first `len` rows are valid.
pub(crate) fn count_valid(validity: &Bitmap, len: usize) -> usize {
    Bits::of(validity, len).count()
}

/// The first `len` bits, each the other way, from bit 0 on. What is past the last is anything.
pub(crate) fn inverted(bits: &Bitmap, len: usize, pool: &HostPool) -> Result<Buffer> {
    let from = Bits::of(bits, len);
    let mut memory = pool.alloc(from.words() * 8)?;
    let to = &mut values_mut::<u64>(&mut memory)[..from.words()];
    among_threads(to.len() >= 2 * PART, |_| {
        let parts = to.chunks_mut(PART).enumerate();
        each_part(parts, |(i, to)| intrinsics::read_words(from, i * PART, to, |_, word| !word))
    })?;
    Ok(memory.freeze(len.div_ceil(8)))
}

/// `len` equal bits.
pub(crate) fn filled(bit: bool, len: usize, pool: &HostPool) -> Result<Buffer> {
    let bytes = len.div_ceil(8);
    let mut memory = pool.alloc(bytes)?;
    memory.bytes_mut()[..bytes].fill(if bit { 0xff } else { 0 });
    Ok(memory.freeze(bytes))
}
