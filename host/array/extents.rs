//! Buffers whose length only their device knows: the bytes of a foreign string, for which the C interface has
//! no size, and the data of views, whose sizes may be in device memory.
//!
//! The one idea: the number that states the length is located once, when the array is created, and stays with
//! the buffer. The producer vouches for this number only. The last offset of a slice, by contrast, is an
//! inner offset of the whole array, and may be anything. So code below this file never looks for it again,
//! and slicing cannot lose it.

use super::{Buffer, DeviceArray, Parts, Slot, layout};
use crate::{Error, Result};

/// An upper bound for the size of any address space.
const MAX_BYTES: usize = 1 << 57;

/// Whether a buffer can exist there: no buffer is in the upper half of the address space, and none is longer
/// than any machine's memory.
pub(crate) fn fits(address: usize, bytes: usize) -> bool {
    bytes <= MAX_BYTES && address.checked_add(bytes).is_some_and(|end| end <= isize::MAX as usize)
}

/// Binds every buffer of unknown extent to its length: from the array's rows, or as the address of its last
/// offset. The parts fit together.
pub(super) fn bind(parts: &mut Parts) -> Result<()> {
    let (end, layout) = (parts.offset + parts.len, layout(&parts.data_type));
    if let Some(bits) = &mut parts.validity
        && bits.buffer.is_unbound()
    {
        bits.buffer = bits.buffer.with_bytes((bits.offset + parts.len).div_ceil(8));
    }
    let mut offsets = None;
    for (slot, buffer) in layout.slots().zip(&mut parts.buffers) {
        if buffer.is_unbound() {
            *buffer = match slot.bytes_for(end) {
                Some(bytes) => buffer.with_bytes(bytes),
                // No row refers to any of the bytes.
                None if parts.len == 0 => buffer.with_bytes(0),
                None => buffer.said_by(offsets.take().unwrap_or_else(Buffer::empty)),
            };
        }
        if let (Slot::Offsets(width), 1..) = (slot, parts.len) {
            offsets = Some(buffer.slice(end * width, Some(width)));
        }
    }
    match parts.buffers.iter().position(Buffer::is_unbound) {
        None => Ok(()),
        Some(i) => {
            Err(Error::out_of_spec(format!("array.buffers[{i}]"), "a view's data has no known extent"))
        }
    }
}

impl Buffer {
    /// The same buffer. If its extent is unbound and `other` is the same memory, it takes the extent of
    /// `other`.
    pub(crate) fn ending_as(self, other: &Buffer) -> Buffer {
        match (other.bytes(), other.extent_at()) {
            _ if !self.is_unbound() || self.address() != other.address() => self,
            (Some(bytes), _) => self.with_bytes(bytes),
            (None, Some(number)) => self.said_by(number.clone()),
            (None, None) => self,
        }
    }

    /// The same buffer, buffer `i` of an array, after `number` has been read as its length.
    pub(crate) fn sized(&self, i: usize, number: i64) -> Result<Buffer> {
        let bytes = usize::try_from(number).ok().filter(|bytes| fits(self.address(), *bytes));
        match bytes.filter(|bytes| *bytes == 0 || self.address() != 0) {
            Some(bytes) => Ok(self.with_bytes(bytes)),
            None => Err(Error::out_of_spec(format!("array.buffers[{i}]"), format!("{number} bytes"))),
        }
    }
}

/// Decodes a length of `width` bytes; `None` if `bytes` is too short.
pub(crate) fn number(width: usize, bytes: &[u8]) -> Option<i64> {
    match width {
        4 => Some(i32::from_ne_bytes(*bytes.first_chunk()?).into()),
        _ => Some(i64::from_ne_bytes(*bytes.first_chunk()?)),
    }
}

impl DeviceArray {
    /// The numbers that state the lengths of buffers of unknown extent, in the order in which
    /// [`with_extents`](DeviceArray::with_extents) asks for them.
    pub(crate) fn unread_extents(&self) -> Vec<Buffer> {
        let own = self.buffers().iter().filter(|_| !self.is_empty()).filter_map(Buffer::extent_at).cloned();
        let below = self.children().iter().chain(self.dictionary()).flat_map(DeviceArray::unread_extents);
        own.chain(below).collect()
    }

    /// The array with all extents known; `None` if they already were. `read` returns the value of a number
    /// from `unread_extents`.
    pub(crate) fn with_extents(
        &self,
        read: &mut dyn FnMut(&Buffer) -> Result<i64>,
    ) -> Result<Option<DeviceArray>> {
        let mut parts: Option<Parts> = None;
        let mut changed = || self.parts().clone();
        for (i, buffer) in self.buffers().iter().enumerate() {
            let Some(number) = buffer.extent_at() else { continue };
            // No row of an empty array refers to any of the bytes.
            let known =
                if self.is_empty() { buffer.with_bytes(0) } else { buffer.sized(i, read(number)?)? };
            parts.get_or_insert_with(&mut changed).buffers[i] = known;
        }
        for (i, child) in self.children().iter().enumerate() {
            let known = child.with_extents(read).map_err(|error| error.inside(&format!("children[{i}]")))?;
            if let Some(known) = known {
                parts.get_or_insert_with(&mut changed).children[i] = known;
            }
        }
        if let Some(values) = self.dictionary()
            && let Some(known) = values.with_extents(read).map_err(|error| error.inside("dictionary"))?
        {
            parts.get_or_insert_with(&mut changed).dictionary = Some(known);
        }
        Ok(parts.map(|parts| DeviceArray::of(parts, self.known_valid())))
    }
}
