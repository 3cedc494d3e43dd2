//! Substrings of text in host memory. Views are cut where they are; with offsets, the bytes are copied.

use bowstring_kernels::text::substring::{ALL, bounds};

use super::super::bitmap::Bits;
use super::super::selection::PARALLEL;
use super::super::{memory, rows, take_bytes};
use super::layout::{Column, INLINE, Layout, Offsets, Views};
use crate::array::{Buffer, DeviceArray, Parts, outside};
use crate::device::HostPool;
use crate::threads::{among_threads, each_part};
use crate::{Error, Result};

/// Returns at most `count` characters of each text from character `start` on.
pub(crate) fn substring(
    values: &DeviceArray,
    start: i64,
    count: Option<u64>,
    pool: &HostPool,
) -> Result<DeviceArray> {
    let (valid, count) = (rows::validity(values), count.unwrap_or(ALL));
    let mut parts = Parts::new(values.data_type().clone(), values.len());
    parts.validity = values.validity().cloned();
    parts.null_count = values.known_null_count();
    parts.buffers = match Column::of(values) {
        Column::Short(column) => copied(&Texts { column, valid, start, count }, values, pool)?,
        Column::Long(column) => copied(&Texts { column, valid, start, count }, values, pool)?,
        Column::Views(column) => {
            let views = cut(&Texts { column, valid, start, count }, values.len(), pool)?;
            [views].into_iter().chain(values.buffers()[1..].iter().cloned()).collect()
        }
    };
    DeviceArray::made(parts, values.known_valid())
}

/// The texts of a column, and the characters that are wanted of each.
struct Texts<'a, L> {
    column: L,
    valid: Option<Bits<'a>>,
    start: i64,
    count: u64,
}

impl<L: Layout> Texts<'_, L> {
    /// The text of a row, which is empty for a null, and the bytes that are wanted of it.
    #[inline(always)]
    fn row(&self, row: usize) -> Result<(&[u8], usize, usize)> {
        if self.valid.is_some_and(|valid| !valid.get(row)) {
            return Ok((&[], 0, 0));
        }
        let text = self.column.row(row).ok_or_else(|| outside(row))?;
        let (from, to) = bounds(text, self.start, self.count);
        Ok((text, from as usize, to as usize))
    }
}

/// The buffers of a column with offsets.
fn copied<const O: usize>(
    texts: &Texts<'_, Offsets<'_, O>>,
    values: &DeviceArray,
    pool: &HostPool,
) -> Result<Vec<Buffer>> {
    let Offsets { offsets, bytes } = texts.column;
    let measure = |first: usize, (starts, ends): take_bytes::Rows<'_, O>| {
        let mut total = 0;
        for (i, (start, end)) in starts.iter_mut().zip(ends).enumerate() {
            let (_, from, to) = texts.row(first + i)?;
            total += to - from;
            // The start of a null row is not checked, and need not exist.
            let at = if to > from { rows::offset(offsets[first + i]) + from } else { 0 };
            (*start, *end) = (rows::offset_bytes(at), rows::offset_bytes(total));
        }
        Ok(total)
    };
    let too_long = || Error::too_long("substring", "the elements of the result", values.data_type());
    take_bytes::gathered(bytes, values.len(), pool, measure, too_long)?
}

/// The views of the substrings, in the buffers of the texts.
fn cut(texts: &Texts<'_, Views<'_>>, rows: usize, pool: &HostPool) -> Result<Buffer> {
    let mut views = pool.alloc(rows * 16)?;
    let out = &mut memory::values_mut::<[u8; 16]>(&mut views)[..rows];
    let chunks = out.chunks_mut(rows::CHUNK).enumerate();
    let fill = |(chunk, out): (usize, &mut [[u8; 16]])| {
        let mut numbered = (chunk * rows::CHUNK..).zip(out);
        numbered.try_for_each(|(row, out)| view(texts, row).map(|view| *out = view))
    };
    among_threads(rows >= PARALLEL, |large| match large {
        true => each_part(chunks, fill)?.into_iter().collect::<Result<()>>(),
        false => { chunks }.try_for_each(fill),
    })?;
    Ok(views.freeze(rows * 16))
}

#[inline(always)]
fn view(texts: &Texts<'_, Views<'_>>, row: usize) -> Result<[u8; 16]> {
    let (text, from, to) = texts.row(row)?;
    let part = &text[from..to];
    let mut view = [0; 16];
    view[..4].copy_from_slice(&(part.len() as u32).to_le_bytes());
    if part.len() <= INLINE {
        view[4..4 + part.len()].copy_from_slice(part);
        return Ok(view);
    }
    let whole = &texts.column.views[row];
    let place = u32::from_le_bytes([whole[12], whole[13], whole[14], whole[15]]) + from as u32;
    view[4..8].copy_from_slice(&part[..4]);
    view[8..12].copy_from_slice(&whole[8..12]);
    view[12..].copy_from_slice(&place.to_le_bytes());
    Ok(view)
}
