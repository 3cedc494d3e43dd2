//! A column that grows by kept rows of several arrays, written directly to their final place.
//!
//! The one idea: memory for all rows of the column is allocated at the start, so that the filter's own loops
//! append to it. Appended rows count only after the caller has accepted them: a failed append leaves no
//! trace, and the next one overwrites it.

use arrow_schema::DataType;

use crate::array::{Bitmap, Buffer, DeviceArray, Parts, SharedBuffers, Slot, children, layout};
use crate::device::{HostMemory, HostPool, interrupt};
use crate::{Error, Result};

use super::bitmap::Bits;
use super::selection::Selection;
use super::{filter_bytes, intrinsics, memory, rows};

/// A column under construction.
pub(crate) struct Building {
    data_type: DataType,
    /// The most rows that the column can have.
    room: usize,
    /// The validity of the rows; `None` as long as all are valid.
    valid: Option<HostMemory>,
    values: Option<Values>,
    /// Whether all arrays appended so far are known to be valid Arrow data.
    known_valid: bool,
}

enum Values {
    Bits(HostMemory),
    Fixed(HostMemory, usize),
    Bytes { offsets: HostMemory, bytes: HostMemory, width: usize },
    Views(HostMemory, SharedBuffers),
}

impl Building {
    /// Makes a column for at most `room` rows; `None` for types whose rows do not lie entirely in the array's
    /// own buffers.
    pub(crate) fn new(data_type: &DataType, room: usize) -> Option<Building> {
        let flat = children(data_type).is_empty() && !matches!(data_type, DataType::Dictionary(..));
        let slot = layout(data_type).slots().next()?;
        let known = !matches!(slot, Slot::Fixed(width) if !matches!(width, 1 | 2 | 4 | 8 | 16 | 32));
        let data_type = data_type.clone();
        (flat && known).then_some(Building { data_type, room, valid: None, values: None, known_valid: true })
    }

    /// Writes the kept rows of an array of the column's type after the first `at` rows. The capacity must
    /// suffice.
    pub(crate) fn append(
        &mut self,
        array: &DeviceArray,
        selection: &Selection,
        at: usize,
        pool: &HostPool,
    ) -> Result<()> {
        assert_eq!(array.len(), selection.rows());
        self.known_valid &= array.known_valid();
        if self.values.is_none() {
            self.values = Some(self.begun(pool)?);
        }
        self.append_validity(array, selection, at, pool)?;
        let buffer = &array.buffers()[0];
        match self.values.as_mut().expect("begun with the first row") {
            Values::Bits(bits) => {
                write_bits(rows::booleans(array), selection, at, memory::values_mut(bits))?;
            }
            Values::Fixed(values, width) => match width {
                1 => write::<1>(buffer, array.offset(), selection, at, values)?,
                2 => write::<2>(buffer, array.offset(), selection, at, values)?,
                4 => write::<4>(buffer, array.offset(), selection, at, values)?,
                8 => write::<8>(buffer, array.offset(), selection, at, values)?,
                16 => write::<16>(buffer, array.offset(), selection, at, values)?,
                _ => write::<32>(buffer, array.offset(), selection, at, values)?,
            },
            Values::Bytes { offsets, bytes, width } => match width {
                4 => write_bytes::<4>(array, selection, (at, self.room), offsets, bytes, pool)?,
                _ => write_bytes::<8>(array, selection, (at, self.room), offsets, bytes, pool)?,
            },
            Values::Views(views, buffers) => {
                write::<16>(buffer, array.offset(), selection, at, views)?;
                let new = &mut memory::values_mut::<[u8; 16]>(views)[at..at + selection.len()];
                point_at(&array.buffers()[1..], new, buffers);
            }
        }
        Ok(())
    }

    /// Returns the first `len` rows as an array, and resets the column.
    pub(crate) fn finish(&mut self, len: usize) -> Result<DeviceArray> {
        let mut parts = Parts::new(self.data_type.clone(), len);
        if let Some(valid) = self.valid.take() {
            let bitmap = Bitmap { buffer: valid.freeze(len.div_ceil(8)), offset: 0 };
            let nulls = len - Bits::of(&bitmap, len).count()?;
            parts.null_count = Some(nulls);
            parts.validity = (nulls > 0).then_some(bitmap);
        }
        parts.buffers = match self.values.take().expect("finished with at least one row") {
            Values::Bits(bits) => vec![bits.freeze(len.div_ceil(8))],
            Values::Fixed(values, width) => vec![values.freeze(len * width)],
            Values::Bytes { mut offsets, bytes, width } => {
                let used = match width {
                    4 => rows::offset(memory::values_mut::<[u8; 4]>(&mut offsets)[len]),
                    _ => rows::offset(memory::values_mut::<[u8; 8]>(&mut offsets)[len]),
                };
                vec![offsets.freeze((len + 1) * width), bytes.freeze(used)]
            }
            Values::Views(views, buffers) => {
                let views = std::iter::once(views.freeze(len * 16));
                views.chain(buffers.into_buffers()).collect()
            }
        };
        DeviceArray::made(parts, std::mem::replace(&mut self.known_valid, true))
    }

    /// Allocates memory for the column's rows.
    fn begun(&self, pool: &HostPool) -> Result<Values> {
        let room = |width: usize| pool.alloc(self.room.saturating_add(1).saturating_mul(width));
        Ok(match layout(&self.data_type).slots().next() {
            Some(Slot::Bits) => Values::Bits(pool.alloc(self.room.div_ceil(64) * 8)?),
            Some(Slot::Offsets(width)) => {
                let mut offsets = room(width)?;
                offsets.bytes_mut()[..width].fill(0);
                Values::Bytes { offsets, bytes: pool.alloc(0)?, width }
            }
            Some(Slot::Views) => Values::Views(room(16)?, SharedBuffers::default()),
            Some(Slot::Fixed(width)) => Values::Fixed(room(width)?, width),
            Some(Slot::Bytes) | None => unreachable!("no type begins with these"),
        })
    }

    fn append_validity(
        &mut self,
        array: &DeviceArray,
        selection: &Selection,
        at: usize,
        pool: &HostPool,
    ) -> Result<()> {
        let valid = rows::validity(array);
        if valid.is_none() && self.valid.is_none() {
            return Ok(());
        }
        if self.valid.is_none() {
            let mut bits = memory::zeroed(self.room.div_ceil(64) * 8, pool)?;
            rows::set(memory::values_mut(&mut bits), 0, at);
            self.valid = Some(bits);
        }
        let bits = memory::values_mut(self.valid.as_mut().expect("just made"));
        match valid {
            Some(valid) => write_bits(valid, selection, at, bits),
            None => {
                rows::set(bits, at, at + selection.len());
                Ok(())
            }
        }
    }
}

/// Writes the kept bits after the first `at`.
fn write_bits(bits: Bits, selection: &Selection, at: usize, words: &mut [u64]) -> Result<()> {
    for chunk in (0..selection.chunks()).map(|chunk| selection.chunk(chunk)) {
        interrupt::check()?;
        if chunk.out.is_empty() {
            continue;
        }
        let start = at + chunk.out.start;
        // The shared first word keeps the bits that earlier appends wrote.
        let others = words[start / 64] & rows::ones(start % 64);
        let out = &mut words[start.div_ceil(64)..];
        let bits = bits.slice(chunk.rows.start, chunk.rows.len());
        let (ours, _) = intrinsics::compact(chunk.words, bits, start % 64, out);
        if !start.is_multiple_of(64) {
            words[start / 64] = others | ours;
        }
    }
    Ok(())
}

fn write<const W: usize>(
    buffer: &Buffer,
    offset: usize,
    selection: &Selection,
    at: usize,
    memory: &mut HostMemory,
) -> Result<()> {
    let values = rows::values::<W>(buffer, offset, selection.rows());
    let out = &mut memory::values_mut::<[u8; W]>(memory)[at..at + selection.len()];
    selection.write(1, out, &|chunk, out| {
        intrinsics::compress(&values[chunk.rows], chunk.words, out);
    })
}

/// Appends offsets of `O` bytes, and the bytes. Their memory grows to what the whole column will need if
/// later rows have the same average length.
fn write_bytes<const O: usize>(
    array: &DeviceArray,
    selection: &Selection,
    (at, room): (usize, usize),
    offsets: &mut HostMemory,
    bytes: &mut HostMemory,
    pool: &HostPool,
) -> Result<()> {
    let from = rows::offsets::<O>(array);
    let data = memory::bytes(&array.buffers()[1]);
    let ends = &mut memory::values_mut::<[u8; O]>(offsets)[at..at + selection.len() + 1];
    let mut used = rows::offset(ends[0]);
    let most = (0..selection.chunks()).map(|chunk| selection.chunk(chunk).out.len()).max().unwrap_or(0);
    let mut starts = pool.alloc(most * O)?;
    for chunk in (0..selection.chunks()).map(|chunk| selection.chunk(chunk)) {
        interrupt::check()?;
        let starts = &mut memory::values_mut::<[u8; O]>(&mut starts)[..chunk.out.len()];
        let ends = &mut ends[1..][chunk.out.clone()];
        let end = used + filter_bytes::locate(from, data.len(), &chunk, starts, ends)?;
        if end > rows::largest_offset::<O>() {
            return Err(Error::too_long("coalesce", "the elements of the result", array.data_type()));
        }
        if end > bytes.bytes().len() {
            let expected = end as u128 * room as u128 / (at + chunk.out.end).max(1) as u128;
            let expected = usize::try_from(expected).unwrap_or(end).min(4 * end);
            // Adds a little more than the average requires, and room for whole vector stores.
            let mut more = pool.alloc(expected + expected / 16 + 64)?;
            memory::copy(&bytes.bytes()[..used], &mut more.bytes_mut()[..used])?;
            *bytes = more;
        }
        if !intrinsics::copy_rows(data, starts, ends, &mut bytes.bytes_mut()[used..end]) {
            return Err(rows::bad_offset(chunk.rows.start));
        }
        rows::shift(ends, used);
        used = end;
    }
    Ok(())
}

/// Makes views into an array's own buffers point into the same buffers within the list of all; inline views
/// do not change.
fn point_at(own: &[Buffer], views: &mut [[u8; 16]], all: &mut SharedBuffers) {
    let word = |view: &[u8; 16], i: usize| u32::from_le_bytes(std::array::from_fn(|byte| view[i * 4 + byte]));
    let is_long = |view: &[u8; 16]| word(view, 0) > 12;
    if !views.iter().any(is_long) {
        return;
    }
    let base = all.place(own);
    if base > 0 {
        for view in views.iter_mut().filter(|view| is_long(view)) {
            let buffer = word(view, 2).wrapping_add(base as u32);
            view[8..12].copy_from_slice(&buffer.to_le_bytes());
        }
    }
}
