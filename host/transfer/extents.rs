//! Extents that only the device knows: where a foreign string's bytes end is its last offset, how long a view's data is may
//! be in device memory too. Nobody looks at them until a copy, or a kernel that has to stay inside, must know; then the
//! host looks once, at all of them together.

use super::block::{Plan, gather};
use crate::array::{Array, Buffer, Slot};
use crate::pass::{Pass, Pending, Region};
use crate::{Error, Result};

/// Goes on with a pass once the extents of all its arrays are known: at once, or when those that only the device knows have
/// been read.
pub(super) fn sized(
    mut pass: Pass,
    arrays: Vec<Array>,
    then: impl FnOnce(Pass, &[Array], Vec<usize>) -> Result<Vec<Array>> + Send + 'static,
) -> Result<Pending<Vec<Array>>> {
    let ends = unknown_ends(&arrays);
    if ends.is_empty() {
        return Ok(Pending::known(then(pass, &arrays, vec![])));
    }
    let (region, places) = gathered(&mut pass, &ends)?;
    pass.read_later(&region, move |pass, words| {
        let sizes = values(&ends, &places, words)?;
        then(pass, &arrays, sizes)
    })
}

/// Where an extent is that is not known: the last offset of an array, or the size of a view's data.
pub(super) struct End {
    pub at: Buffer,
    width: usize,
}

impl End {
    /// What is there.
    pub fn read(&self, bytes: &[u8]) -> Result<usize> {
        let size = match (self.width, bytes) {
            (4, [a, b, c, d, ..]) => i64::from(i32::from_ne_bytes([*a, *b, *c, *d])),
            (_, [a, b, c, d, e, f, g, h, ..]) => i64::from_ne_bytes([*a, *b, *c, *d, *e, *f, *g, *h]),
            _ => -1,
        };
        usize::try_from(size).map_err(|_| Error::out_of_spec("array.buffers", format!("offset {size}")))
    }
}

/// All that a copy of the arrays must know, in the order in which [`Plan::array`] wants their values.
pub(super) fn unknown_ends(arrays: &[Array]) -> Vec<End> {
    fn add(array: &Array, ends: &mut Vec<End>) {
        if !array.is_empty() {
            if let ([Some(Slot::Offsets(width)), Some(Slot::Bytes)], [offsets, bytes]) =
                (array.layout().slots, array.buffers())
                && bytes.bytes().is_none()
            {
                let at = offsets.slice((array.offset() + array.len()) * width, Some(width));
                ends.push(End { at, width });
            }
            ends.extend(sizes(array.buffers()));
        }
        array.children().iter().chain(array.dictionary()).for_each(|child| add(child, ends));
    }
    let mut ends = vec![];
    arrays.iter().for_each(|array| add(array, &mut ends));
    ends
}

/// The sizes of those buffers whose device knows them.
fn sizes(buffers: &[Buffer]) -> impl Iterator<Item = End> {
    buffers.iter().filter_map(|buffer| Some(End { at: buffer.extent_at()?, width: 8 }))
}

/// Puts what ends say one behind another, in a region; and where each is.
fn gathered(pass: &mut Pass, ends: &[End]) -> Result<(Region, Vec<usize>)> {
    let mut plan = Plan::default();
    for end in ends {
        plan.piece(Some(end.at.clone()), end.width);
    }
    let total = plan.lay_out(usize::MAX)?.total;
    let region = gather(pass, &plan, total)?;
    Ok((region, plan.pieces.iter().map(|piece| piece.at).collect()))
}

fn values(ends: &[End], places: &[usize], words: &[u64]) -> Result<Vec<usize>> {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    ends.iter().zip(places).map(|(end, at)| end.read(&bytes[*at..])).collect()
}

/// The same buffers, all extents known: the host looks at those that only the device knows, once.
pub(crate) fn sized_buffers(pass: &mut Pass, buffers: &[Buffer]) -> Result<Vec<Buffer>> {
    let ends: Vec<End> = sizes(buffers).collect();
    if ends.is_empty() {
        return Ok(buffers.to_vec());
    }
    let (region, places) = gathered(pass, &ends)?;
    let mut sizes = values(&ends, &places, &pass.read(&region)?)?.into_iter();
    let known = buffers.iter().map(|buffer| match buffer.extent_at() {
        Some(_) => buffer.slice(0, sizes.next()),
        None => buffer.clone(),
    });
    Ok(known.collect())
}
