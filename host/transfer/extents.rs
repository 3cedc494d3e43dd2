//! Extents that only the device knows: where a foreign string's bytes end, how long a view's data is. Nobody looks at them
//! until a copy, or a kernel that has to stay inside, must know; then the host looks once, at all of them together.
//!
//! The one idea: which numbers say so is the arrays' business (`array/extents.rs`). Here they are put one behind the other,
//! and read.

use super::block::{BlockLayout, gather};
use crate::array::{Array, Buffer, number};
use crate::pass::{Pass, Pending, Region};
use crate::{Error, Result};

/// Goes on with a pass once the extents of all its arrays are known: at once, or when those that only the device knows have
/// been read.
pub(super) fn sized(
    mut pass: Pass,
    arrays: Vec<Array>,
    then: impl FnOnce(Pass, &[Array]) -> Result<Vec<Array>> + Send + 'static,
) -> Result<Pending<Vec<Array>>> {
    let numbers: Vec<Buffer> = arrays.iter().flat_map(Array::unread_extents).collect();
    if numbers.is_empty() {
        return Ok(Pending::known(then(pass, &arrays)));
    }
    let extents = Numbers::of(&mut pass, &numbers)?;
    let region = extents.region.clone();
    pass.read_later(&[&region], move |pass, words| {
        let mut values = extents.values(words).into_iter();
        then(pass, &with_extents(arrays, &mut |_| values.next().ok_or_else(unread))?)
    })
}

/// The arrays, all extents known once `read` has read the numbers that say so.
pub(super) fn with_extents(
    arrays: Vec<Array>,
    read: &mut dyn FnMut(&Buffer) -> Result<i64>,
) -> Result<Vec<Array>> {
    arrays.into_iter().map(|array| Ok(array.with_extents(read)?.unwrap_or(array))).collect()
}

fn unread() -> Error {
    Error::out_of_spec("array.buffers", "nothing says how long a buffer is")
}

/// Numbers, one behind the other in a region, and where each is.
struct Numbers {
    region: Region,
    /// Where it begins in the region, and its width.
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

/// The arrays, all extents known: the host looks at those that only the device knows, once.
pub(crate) fn sized_arrays(pass: &mut Pass, arrays: Vec<Array>) -> Result<Vec<Array>> {
    let numbers: Vec<Buffer> = arrays.iter().flat_map(Array::unread_extents).collect();
    if numbers.is_empty() {
        return Ok(arrays);
    }
    let extents = Numbers::of(pass, &numbers)?;
    let mut values = extents.values(&pass.read(&extents.region)?).into_iter();
    with_extents(arrays, &mut |_| values.next().ok_or_else(unread))
}

/// The same buffers of bytes, those after an array's first one, all extents known: the host looks at those that only the device
/// knows, once.
pub(crate) fn sized_buffers(pass: &mut Pass, buffers: &[Buffer]) -> Result<Vec<Buffer>> {
    let numbers: Vec<Buffer> = buffers.iter().filter_map(Buffer::extent_at).cloned().collect();
    if numbers.is_empty() {
        return Ok(buffers.to_vec());
    }
    let extents = Numbers::of(pass, &numbers)?;
    let mut values = extents.values(&pass.read(&extents.region)?).into_iter();
    let known = buffers.iter().enumerate().map(|(i, buffer)| match buffer.extent_at() {
        Some(_) => buffer.sized(i + 1, values.next().ok_or_else(unread)?),
        None => Ok(buffer.clone()),
    });
    known.collect()
}
