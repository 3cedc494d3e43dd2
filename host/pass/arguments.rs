//! Converts the parts of arrays into kernel arguments.

use bowstring_kernels::memory::In;
use bowstring_kernels::target::Value;

use crate::array::{Bitmap, Buffer, DeviceArray};

/// The assumed length of a buffer whose extent only the device knows: larger than any address space.
const UNKNOWN_EXTENT: u64 = 1 << 47;

/// A buffer's bytes for kernels that read bitmaps, eight bits per byte. The buffer may start at any address.
pub(crate) fn bytes(buffer: &Buffer) -> BitPointer {
    bits(&Bitmap { buffer: buffer.clone(), offset: 0 })
}

/// A buffer that a kernel reads. The address must have the alignment of `T`, see [`is_aligned`].
pub(crate) fn input<T: Value>(buffer: &Buffer) -> In<T> {
    match buffer.address() {
        0 => In::absent(),
        address => In::new(address as u64, buffer.bytes().map_or(UNKNOWN_EXTENT, |bytes| bytes as u64)),
    }
}

/// A bitmap for kernels: an aligned pointer, and the offset from there in bits.
pub(crate) type BitPointer = (In<u32>, u64);

/// A bitmap that a kernel reads.
pub(crate) fn bits(bitmap: &Bitmap) -> BitPointer {
    let (buffer, offset) = (&bitmap.buffer, bitmap.offset as u64);
    let bytes = buffer.bytes().map_or(UNKNOWN_EXTENT, |bytes| bytes as u64);
    match buffer.address() {
        0 => (In::absent(), 0),
        address => In::bitmap(address as u64, bytes, offset),
    }
}

/// The number of elements that offsets may refer to, in the form that kernels use: see
/// [`bowstring_kernels::ranges::rows::extent`].
#[derive(Clone, Copy)]
pub(crate) struct Reach {
    /// The number of elements, or the width in bits of the number on the device that states it.
    pub limit: u64,
    /// The number, if only the device knows it.
    pub end: In<u32>,
    pub end_offset: u64,
}

impl Reach {
    /// A limit that the host knows.
    pub fn elements(elements: usize) -> Reach {
        Reach { limit: elements as u64, end: In::absent(), end_offset: 0 }
    }

    /// The length of a buffer in bytes, which its producer has vouched for, independent of the offsets.
    pub fn bytes(buffer: &Buffer) -> Reach {
        let Some(number) = buffer.extent_at() else { return Reach::elements(buffer.bytes().unwrap_or(0)) };
        let (end, end_offset) = bytes(number);
        Reach { limit: number.bytes().map_or(0, |bytes| 8 * bytes as u64), end, end_offset }
    }
}

/// An array's validity bitmap for kernels; absent if all rows are valid.
pub(crate) fn validity(array: &DeviceArray) -> BitPointer {
    array.validity().map_or((In::absent(), 0), bits)
}

/// Whether a kernel may read the buffer as values of this alignment.
pub(crate) fn is_aligned(buffer: &Buffer, alignment: usize) -> bool {
    buffer.address().is_multiple_of(alignment)
}
