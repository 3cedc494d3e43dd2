//! Bitmaps that kernels derive from other bitmaps. A misaligned buffer is copied here too: its bytes are a
//! bitmap of eight bits each.

use bowstring_kernels::memory::{In, Out};
use bowstring_kernels::reduce::bitmap::{COMBINE, Combine};

use crate::Result;
use crate::array::{Bitmap, Buffer, DeviceArray, Parts};
use crate::pass::{BitPointer, Pass, Region, bits, bytes, input, is_aligned};

/// Indices into `COMBINE`'s entries.
const COPY: usize = 0;
const NOT: usize = 1;
const AND: usize = 2;

const NONE: BitPointer = (In::absent(), 0);

/// Copies bits to the start of a region.
pub(crate) fn copy_bits(pass: &mut Pass, from: BitPointer, len: usize, target: &Region) -> Result<()> {
    combine(pass, COPY, from, NONE, len, target)
}

/// Writes the complement of each bit.
pub(crate) fn not(pass: &mut Pass, from: BitPointer, len: usize, target: &Region) -> Result<()> {
    combine(pass, NOT, from, NONE, len, target)
}

/// Writes the intersection of two bitmaps.
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

/// Returns a buffer as kernels read it; copies it first if its address is not a multiple of `alignment`.
pub(crate) fn aligned(pass: &mut Pass, buffer: &Buffer, alignment: usize) -> Result<In<u8>> {
    if is_aligned(buffer, alignment) {
        return Ok(input(buffer));
    }
    let len = buffer.bytes().ok_or_else(|| pass.unsupported("a misaligned buffer of unknown extent"))?;
    let copy = pass.output(len)?;
    copy_bits(pass, bytes(buffer), 8 * len, &copy)?;
    Ok(copy.input())
}

/// Returns an array's validity from its first row on, without a bit offset: C structs want that beside
/// buffers that begin with the first row. Shares the bitmap if the first row's bit is the first of a byte,
/// else copies it.
pub(crate) fn validity_from_start(pass: &mut Pass, array: &DeviceArray) -> Result<Option<Bitmap>> {
    let Some(validity) = array.validity() else { return Ok(None) };
    if validity.offset.is_multiple_of(8) {
        let buffer = validity.buffer.slice(validity.offset / 8, None);
        return Ok(Some(Bitmap { buffer, offset: 0 }));
    }
    let copy = pass.zeroed(array.len().div_ceil(8))?;
    copy_bits(pass, bits(validity), array.len(), &copy)?;
    Ok(Some(Bitmap { buffer: copy.buffer(), offset: 0 }))
}

/// Gives the parts the validity that the pass has written, or else that of the values.
pub(crate) fn nulls_or(
    pass: &mut Pass,
    written: Option<&Region>,
    values: &DeviceArray,
    parts: Parts,
) -> Result<Parts> {
    let Some(written) = written else { return nulls_of(pass, values, parts) };
    let validity = Some(Bitmap { buffer: written.buffer(), offset: 0 });
    Ok(Parts { validity, null_count: None, ..parts })
}

/// Gives the parts the validity of the values.
pub(crate) fn nulls_of(pass: &mut Pass, values: &DeviceArray, parts: Parts) -> Result<Parts> {
    let validity = validity_from_start(pass, values)?;
    Ok(Parts { validity, null_count: values.known_null_count(), ..parts })
}
