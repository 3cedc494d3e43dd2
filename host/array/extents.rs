//! Where buffers end that only their device can tell: a foreign string's bytes, which the C interface gives no size for, and
//! the data of views, whose sizes may be in device memory.
//!
//! The one idea: the number that says so is found once, when the array is made, and stays with the buffer. It is what the
//! producer has vouched for. No other number is: the last offset of a slice is an inner one of the whole, and may be
//! anything. So nothing below this file looks for it again, and slicing cannot lose it.

use super::{Array, Buffer, Parts, Slot, layout};
use crate::{Error, Result};

/// What the largest address spaces hold.
const MAX_BYTES: usize = 1 << 57;

/// Whether there can be a buffer there: the upper half of the address space is nobody's here, and no machine has so much
/// that one could be as long.
pub(crate) fn fits(address: usize, bytes: usize) -> bool {
    bytes <= MAX_BYTES && address.checked_add(bytes).is_some_and(|end| end <= isize::MAX as usize)
}

/// Says of every buffer of unknown extent what says how long it is: the array's rows, or its last offset. The parts fit
/// together.
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
                // No row sees any of them.
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
    /// The same buffer; where nothing says how long it is and `other` is the same memory, as long as that.
    pub(crate) fn ending_as(self, other: &Buffer) -> Buffer {
        match (other.bytes(), other.extent_at()) {
            _ if !self.is_unbound() || self.address() != other.address() => self,
            (Some(bytes), _) => self.with_bytes(bytes),
            (None, Some(number)) => self.said_by(number.clone()),
            (None, None) => self,
        }
    }

    /// The same buffer, an array's buffer `i`, once somebody has read the number that says how long it is.
    pub(crate) fn sized(&self, i: usize, number: i64) -> Result<Buffer> {
        let bytes = usize::try_from(number).ok().filter(|bytes| fits(self.address(), *bytes));
        match bytes.filter(|bytes| *bytes == 0 || self.address() != 0) {
            Some(bytes) => Ok(self.with_bytes(bytes)),
            None => Err(Error::out_of_spec(format!("array.buffers[{i}]"), format!("{number} bytes"))),
        }
    }
}

/// What a number that says how long a buffer is holds; `None` where there are fewer bytes than that.
pub(crate) fn number(width: usize, bytes: &[u8]) -> Option<i64> {
    match width {
        4 => Some(i32::from_ne_bytes(*bytes.first_chunk()?).into()),
        _ => Some(i64::from_ne_bytes(*bytes.first_chunk()?)),
    }
}

impl Array {
    /// The numbers that say how long buffers are whose extent is not known, in the order in which
    /// [`with_extents`](Array::with_extents) asks for them.
    pub(crate) fn unread_extents(&self) -> Vec<Buffer> {
        let own = self.buffers().iter().filter(|_| !self.is_empty()).filter_map(Buffer::extent_at).cloned();
        let below = self.children().iter().chain(self.dictionary()).flat_map(Array::unread_extents);
        own.chain(below).collect()
    }

    /// The array with all extents known, where some were not; `read` reads the numbers that say so.
    pub(crate) fn with_extents(&self, read: &mut dyn FnMut(&Buffer) -> Result<i64>) -> Result<Option<Array>> {
        let mut parts: Option<Parts> = None;
        let mut changed = || self.parts().clone();
        for (i, buffer) in self.buffers().iter().enumerate() {
            let Some(number) = buffer.extent_at() else { continue };
            // No row sees any of an empty array's.
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
        Ok(parts.map(|parts| Array::of(parts, self.known_valid())))
    }
}
