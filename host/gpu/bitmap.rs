//! Bitmaps that kernels make of others. A buffer's bytes are such a bitmap too, so what is misaligned is copied here.

use bowstring_kernels::bitmap::{COMBINE, Combine};
use bowstring_kernels::memory::{In, Out};

use crate::Result;
use crate::array::{Array, Bitmap, Buffer, Parts};
use crate::pass::{BitPointer, Pass, Region, bits, bytes, input, is_aligned};

/// The places of `COMBINE`'s entries.
const COPY: usize = 0;
const NOT: usize = 1;
const AND: usize = 2;

const NONE: BitPointer = (In::absent(), 0);

/// Copies bits to the start of a region.
pub(crate) fn copy_bits(pass: &mut Pass, from: BitPointer, len: usize, target: &Region) -> Result<()> {
    combine(pass, COPY, from, NONE, len, target)
}

/// The opposite of each bit.
pub(crate) fn not(pass: &mut Pass, from: BitPointer, len: usize, target: &Region) -> Result<()> {
    combine(pass, NOT, from, NONE, len, target)
}

/// The bits that both have set.
pub(crate) fn and(
    pass: &mut Pass,
    left: BitPointer,
    right: BitPointer,
    len: usize,
    target: &Region,
) -> Result<()> {
    combine(pass, AND, left, right, len, target)
}

fn combine(
    pass: &mut Pass,
    entry: usize,
    (left, left_offset): BitPointer,
    (right, right_offset): BitPointer,
    len: usize,
    target: &Region,
) -> Result<()> {
    if len == 0 {
        return Ok(());
    }
    let len = len as u64;
    let args =
        Combine { left, left_offset, right, right_offset, len, target: target.out(), nulls: Out::absent() };
    pass.launch(&COMBINE[entry], &args)
}

/// A buffer as kernels read it, copied to where it is aligned if it is not.
pub(crate) fn aligned(pass: &mut Pass, buffer: &Buffer, alignment: usize) -> Result<In<u8>> {
    if is_aligned(buffer, alignment) {
        return Ok(input(buffer));
    }
    let len = buffer.bytes().ok_or_else(|| pass.unsupported("a misaligned buffer of unknown extent"))?;
    let copy = pass.output(len)?;
    copy_bits(pass, bytes(buffer), 8 * len, &copy)?;
    Ok(copy.input())
}

/// An array's validity from its first bit on, as C structs want it beside buffers that begin with the first row: shared
/// where that is a byte's first.
pub(crate) fn validity_from_start(pass: &mut Pass, array: &Array) -> Result<Option<Bitmap>> {
    let Some(validity) = array.validity() else { return Ok(None) };
    if validity.offset.is_multiple_of(8) {
        let buffer = validity.buffer.slice(validity.offset / 8, None);
        return Ok(Some(Bitmap { buffer, offset: 0 }));
    }
    let copy = pass.zeroed(array.len().div_ceil(8))?;
    copy_bits(pass, bits(validity), array.len(), &copy)?;
    Ok(Some(Bitmap { buffer: copy.buffer(), offset: 0 }))
}

/// The parts with the validity that the pass has written, or else that of the values.
pub(crate) fn nulls_or(
    pass: &mut Pass,
    written: Option<&Region>,
    values: &Array,
    parts: Parts,
) -> Result<Parts> {
    let Some(written) = written else { return nulls_of(pass, values, parts) };
    let validity = Some(Bitmap { buffer: written.buffer(), offset: 0 });
    Ok(Parts { validity, null_count: None, ..parts })
}

/// The parts with the validity of the values.
pub(crate) fn nulls_of(pass: &mut Pass, values: &Array, parts: Parts) -> Result<Parts> {
    let validity = validity_from_start(pass, values)?;
    Ok(Parts { validity, null_count: values.known_null_count(), ..parts })
}
