//! Reads extents that only the device knows: the end of a foreign string's bytes, the length of a view's
//! data. They are read only when a copy, or a kernel that has to stay inside, needs them. Then the host
//! synchronises once for all of them.
//!
//! The one idea: `array/extents.rs` knows which numbers state the extents. This file gathers these numbers
//! and reads them.

use super::block::{BlockLayout, gather};
use crate::array::{Buffer, DeviceArray, number};
use crate::pass::{Pass, Pending, Region};
use crate::{Error, Result};

/// Continues a pass once the extents of all its arrays are known: at once, or after those that only the
/// device knows have been read.
pub(super) fn sized(
    mut pass: Pass,
    arrays: Vec<DeviceArray>,
    then: impl FnOnce(Pass, &[DeviceArray]) -> Result<Vec<DeviceArray>> + Send + 'static,
) -> Pending<Vec<DeviceArray>> {
    let stream = pass.stream().clone();
    Pending::begin(&stream, async move {
        let arrays = sized_arrays(&mut pass, arrays).await?;
        then(pass, &arrays)
    })
}

/// The arrays with all extents known; `read` returns the value of a number.
pub(super) fn with_extents(
    arrays: Vec<DeviceArray>,
    read: &mut dyn FnMut(&Buffer) -> Result<i64>,
) -> Result<Vec<DeviceArray>> {
    arrays.into_iter().map(|array| Ok(array.with_extents(read)?.unwrap_or(array))).collect()
}

fn unread() -> Error {
    Error::out_of_spec("array.buffers", "nothing says how long a buffer is")
}

/// The numbers, gathered in a region, with the place of each.
struct Numbers {
    region: Region,
    /// The offset of each number in the region, and its width.
    places: Vec<(usize, usize)>,
}

impl Numbers {
    fn of(pass: &mut Pass, numbers: &[Buffer]) -> Result<Numbers> {
        let mut block_layout = BlockLayout::default();
        for number in numbers {
            block_layout.piece(Some(number.clone()), number.bytes().unwrap_or(0));
        }
        let total = block_layout.lay_out(usize::MAX)?.total;
        let region = gather(pass, &block_layout, total)?;
        Ok(Numbers {
            region,
            places: block_layout.pieces.iter().map(|piece| (piece.at, piece.bytes)).collect(),
        })
    }

    fn values(&self, words: &[u64]) -> Vec<i64> {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let value = |&(at, width): &(usize, usize)| number(width, bytes.get(at..)?);
        self.places.iter().map_while(value).collect()
    }
}

/// The arrays with all extents known. Those that only the device knows are read once.
pub(crate) async fn sized_arrays(pass: &mut Pass, arrays: Vec<DeviceArray>) -> Result<Vec<DeviceArray>> {
    let numbers: Vec<Buffer> = arrays.iter().flat_map(DeviceArray::unread_extents).collect();
    if numbers.is_empty() {
        return Ok(arrays);
    }
    let extents = Numbers::of(pass, &numbers)?;
    let mut values = extents.values(&pass.read(&[&extents.region]).await?).into_iter();
    with_extents(arrays, &mut |_| values.next().ok_or_else(unread))
}

/// The buffers with all extents known; they are buffers of an array after its first. Extents that only the
/// device knows are read once.
pub(crate) async fn sized_buffers(pass: &mut Pass, buffers: &[Buffer]) -> Result<Vec<Buffer>> {
    let numbers: Vec<Buffer> = buffers.iter().filter_map(Buffer::extent_at).cloned().collect();
    if numbers.is_empty() {
        return Ok(buffers.to_vec());
    }
    let extents = Numbers::of(pass, &numbers)?;
    let mut values = extents.values(&pass.read(&[&extents.region]).await?).into_iter();
    let known = buffers.iter().enumerate().map(|(i, buffer)| match buffer.extent_at() {
        Some(_) => buffer.sized(i + 1, values.next().ok_or_else(unread)?),
        None => Ok(buffer.clone()),
    });
    known.collect()
}
