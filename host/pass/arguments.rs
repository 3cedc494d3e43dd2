//! What arrays are made of, as kernels take it.

use bowstring_kernels::memory::In;
use bowstring_kernels::target::Value;

use crate::array::{Array, Bitmap, Buffer};

/// What a buffer is taken to hold where its extent is data: more than any address space has.
const UNKNOWN_EXTENT: u64 = 1 << 47;

/// The bytes of a buffer, as kernels take them that read bitmaps of eight bits a byte: they may start anywhere.
pub(crate) fn bytes(buffer: &Buffer) -> BitPointer {
    bits(&Bitmap { buffer: buffer.clone(), offset: 0 })
}

/// A buffer, to be read by a kernel: a typed one must be aligned, see [`is_aligned`].
pub(crate) fn input<T: Value>(buffer: &Buffer) -> In<T> {
    match buffer.address() {
        0 => In::absent(),
        address => In::new(address as u64, buffer.bytes().map_or(UNKNOWN_EXTENT, |bytes| bytes as u64)),
    }
}

/// A bitmap as kernels take it: an aligned pointer and the offset in bits from there.
pub(crate) type BitPointer = (In<u32>, u64);

/// A bitmap, to be read by a kernel.
pub(crate) fn bits(bitmap: &Bitmap) -> BitPointer {
    let (buffer, offset) = (&bitmap.buffer, bitmap.offset as u64);
    let bytes = buffer.bytes().map_or(UNKNOWN_EXTENT, |bytes| bytes as u64);
    match buffer.address() {
        0 => (In::absent(), 0),
        address => In::bitmap(address as u64, bytes, offset),
    }
}

/// How many elements offsets may point into, as kernels take it: see [`bowstring_kernels::ranges::extent`].
#[derive(Clone, Copy)]
pub(crate) struct Reach {
    /// How many, or how many bits the number has that says so.
    pub limit: u64,
    /// The number, where only the device knows it.
    pub end: In<u32>,
    pub end_offset: u64,
}

impl Reach {
    /// So many elements.
    pub fn elements(elements: usize) -> Reach {
        Reach { limit: elements as u64, end: In::absent(), end_offset: 0 }
    }

    /// As many as the buffer has bytes: what whoever made the array has vouched for, whatever offsets say.
    pub fn bytes(buffer: &Buffer) -> Reach {
        let Some(number) = buffer.extent_at() else { return Reach::elements(buffer.bytes().unwrap_or(0)) };
        let (end, end_offset) = bytes(number);
        Reach { limit: number.bytes().map_or(0, |bytes| 8 * bytes as u64), end, end_offset }
    }
}

/// An array's validity as kernels take it: absent where all rows are valid.
pub(crate) fn validity(array: &Array) -> BitPointer {
    array.validity().map_or((In::absent(), 0), bits)
}

/// Whether a kernel may read the buffer as values of this alignment.
pub(crate) fn is_aligned(buffer: &Buffer, alignment: usize) -> bool {
    buffer.address().is_multiple_of(alignment)
}
