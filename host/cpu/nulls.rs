//! Validity bitmaps on the host: counted, inverted, filled.

use super::bitmap::Bits;
use super::memory::values_mut;
use super::simd_wide::{Loop, vectorised};
use crate::Result;
use crate::array::{Bitmap, Buffer};
use crate::device::HostPool;

/// How many of the first `len` rows are valid.
pub(crate) fn count_valid(validity: &Bitmap, len: usize) -> usize {
    Bits::of(validity, len).count()
}

/// The first `len` bits, each the other way, from bit 0 on.
pub(crate) fn inverted(bits: &Bitmap, len: usize, pool: &HostPool) -> Result<Buffer> {
    let from = Bits::of(bits, len);
    let mut memory = pool.alloc(from.words() * 8)?;
    vectorised(Invert { from, to: &mut values_mut(&mut memory)[..from.words()] });
    Ok(memory.freeze(len.div_ceil(8)))
}

/// `len` equal bits.
pub(crate) fn filled(bit: bool, len: usize, pool: &HostPool) -> Result<Buffer> {
    let bytes = len.div_ceil(8);
    let mut memory = pool.alloc(bytes)?;
    memory.bytes_mut()[..bytes].fill(if bit { 0xff } else { 0 });
    Ok(memory.freeze(bytes))
}

struct Invert<'a> {
    from: Bits<'a>,
    to: &'a mut [u64],
}

impl Loop for Invert<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for (i, word) in self.to.iter_mut().enumerate() {
            *word = !self.from.word(i);
        }
    }
}
