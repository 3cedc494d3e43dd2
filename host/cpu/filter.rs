//! Filter on host memory: keeps the rows of an array that a [`Selection`] selects.
//!
//! The one idea: filtering depends on slots, not on types. A row's own part of a buffer (a bit, a fixed
//! number of bytes, a view) moves with the row. Elements that rows point into (view data, dictionaries, the
//! children of list views and dense unions) are shared. Ranges described by offsets are filtered recursively,
//! by the ranges of the kept rows.

use std::ops::Range;

use arrow_schema::{DataType, UnionMode};

use crate::array::{Bitmap, Buffer, DeviceArray, Parts, Slot};
use crate::device::{HostMemory, HostPool, interrupt};
use crate::{Error, Result};

use super::bitmap::Bits;
use super::ranges::Ranges;
use super::selection::Selection;
use super::{filter_bytes, intrinsics, memory, ranges, rows, run_ends, take};

/// The words of a selection between two checks for an interrupt.
const WORDS: usize = 1024;

/// Keeps the rows of `array` that `selection` selects. The array must be readable by the host and have as
/// many rows as the selection.
pub(crate) fn filter(array: &DeviceArray, selection: &Selection, pool: &HostPool) -> Result<DeviceArray> {
    assert_eq!(array.len(), selection.rows());
    if selection.len() == selection.rows() {
        return Ok(array.clone());
    }
    if selection.len() == 0 {
        return array.slice(0, 0);
    }
    let mut parts = Parts::new(array.data_type().clone(), selection.len());
    if let Some(valid) = rows::validity(array) {
        let (buffer, ones) = filter_bits(valid, selection, pool)?;
        parts.null_count = Some(selection.len() - ones);
        parts.validity = (ones < selection.len()).then_some(Bitmap { buffer, offset: 0 });
    }
    match array.data_type() {
        DataType::Utf8 | DataType::Binary => filter_bytes::filter::<4>(array, selection, pool, &mut parts)?,
        DataType::LargeUtf8 | DataType::LargeBinary => {
            filter_bytes::filter::<8>(array, selection, pool, &mut parts)?;
        }
        DataType::List(_) | DataType::Map(..) => filter_lists::<4>(array, selection, pool, &mut parts)?,
        DataType::LargeList(_) => filter_lists::<8>(array, selection, pool, &mut parts)?,
        DataType::FixedSizeList(_, size) => {
            let size = usize::try_from(*size).unwrap_or(0);
            let child = array.child_rows(0)?;
            parts.children = vec![match ranges::dense(&child) {
                true => filter(&child, &repeat(selection, size, pool)?, pool)?,
                false => take::take_ranges(&child, &items(selection, size, pool)?, pool)?,
            }];
        }
        DataType::RunEndEncoded(..) => {
            parts.children = take::take_runs(array, run_ends::kept(array, selection, pool)?, pool)?;
        }
        data_type => {
            filter_slots(array, selection, pool, &mut parts)?;
            let by_row = matches!(data_type, DataType::Struct(_) | DataType::Union(_, UnionMode::Sparse));
            parts.children = match by_row {
                true => (0..array.children().len())
                    .map(|i| filter(&array.child_rows(i)?, selection, pool))
                    .collect::<Result<_>>()?,
                false => array.children().to_vec(),
            };
            parts.dictionary = array.dictionary().cloned();
        }
    }
    DeviceArray::made(parts, array.known_valid())
}

/// Filters the buffers that have a part for every row; variadic buffers are shared.
fn filter_slots(
    array: &DeviceArray,
    selection: &Selection,
    pool: &HostPool,
    parts: &mut Parts,
) -> Result<()> {
    let mut buffers = array.buffers().iter();
    for (slot, buffer) in array.layout().slots().zip(buffers.by_ref()) {
        parts.buffers.push(match slot {
            Slot::Bits => filter_bits(rows::booleans(array), selection, pool)?.0,
            Slot::Fixed(width) => filter_rows(buffer, array.offset(), width, selection, pool)?,
            Slot::Views => filter_rows(buffer, array.offset(), 16, selection, pool)?,
            Slot::Offsets(_) | Slot::Bytes => unreachable!("types with offsets have their own way"),
        });
    }
    parts.buffers.extend(buffers.cloned());
    Ok(())
}

/// Keeps the selected bits. Returns them and the number of set ones.
pub(crate) fn filter_bits(bits: Bits, selection: &Selection, pool: &HostPool) -> Result<(Buffer, usize)> {
    let words = selection.len().div_ceil(64);
    let mut memory = pool.alloc(words * 8)?;
    let ones = selection.write_bits(bits, &mut memory::values_mut(&mut memory)[..words])?;
    Ok((memory.freeze(selection.len().div_ceil(8)), ones))
}

/// Keeps the selected values of `width` bytes; the first row's value is at index `offset`.
fn filter_rows(
    buffer: &Buffer,
    offset: usize,
    width: usize,
    selection: &Selection,
    pool: &HostPool,
) -> Result<Buffer> {
    match width {
        0 => Ok(Buffer::empty()),
        1 => filter_values::<1>(buffer, offset, selection, pool),
        2 => filter_values::<2>(buffer, offset, selection, pool),
        4 => filter_values::<4>(buffer, offset, selection, pool),
        8 => filter_values::<8>(buffer, offset, selection, pool),
        16 => filter_values::<16>(buffer, offset, selection, pool),
        32 => filter_values::<32>(buffer, offset, selection, pool),
        _ => filter_any_width(buffer, offset, width, selection, pool),
    }
}

fn filter_values<const W: usize>(
    buffer: &Buffer,
    offset: usize,
    selection: &Selection,
    pool: &HostPool,
) -> Result<Buffer> {
    let values = rows::values::<W>(buffer, offset, selection.rows());
    let mut memory = pool.alloc(selection.len() * W)?;
    let out = &mut memory::values_mut::<[u8; W]>(&mut memory)[..selection.len()];
    selection.write(1, out, &|chunk, out| {
        intrinsics::compress(&values[chunk.rows], chunk.words, out);
    })?;
    Ok(memory.freeze(selection.len() * W))
}

/// Filters values of a width without a vector loop: one copy for each run of kept rows.
fn filter_any_width(
    buffer: &Buffer,
    offset: usize,
    width: usize,
    selection: &Selection,
    pool: &HostPool,
) -> Result<Buffer> {
    let bytes = selection.len().checked_mul(width).expect("no more than there is");
    let values = &memory::bytes(buffer)[offset * width..(offset + selection.rows()) * width];
    let mut memory = pool.alloc(bytes)?;
    selection.write(width, &mut memory.bytes_mut()[..bytes], &|chunk, out| {
        let (mut at, mut looked) = (0, 0);
        for (i, word) in chunk.words.iter().enumerate() {
            rows::runs(*word, |start, len| {
                let first = chunk.rows.start + i * 64 + start;
                let values = &values[first * width..(first + len) * width];
                out[at..at + values.len()].copy_from_slice(values);
                at += values.len();
            });
            if at - looked > memory::LOOK {
                if interrupt::check().is_err() {
                    return;
                }
                looked = at;
            }
        }
    })?;
    // A chunk that was left because of it is noticed here.
    interrupt::check()?;
    Ok(memory.freeze(bytes))
}

/// Returns a selection of `size` rows for each row.
fn repeat(selection: &Selection, size: usize, pool: &HostPool) -> Result<Selection> {
    let rows = selection.rows() * size;
    let mut bits = memory::zeroed(rows.div_ceil(64) * 8, pool)?;
    let words = memory::values_mut(&mut bits);
    for (i, word) in selection.words().iter().enumerate() {
        if i % WORDS == WORDS - 1 {
            interrupt::check()?;
        }
        rows::runs(*word, |start, len| {
            let first = (i * 64 + start) * size;
            rows::set(words, first, first + len * size);
        });
    }
    Selection::of_own(rows, bits)
}

/// Returns the `size` items of each kept row, as ranges.
fn items(selection: &Selection, size: usize, pool: &HostPool) -> Result<Ranges> {
    let mut items = Ranges::with_room(selection.len(), pool)?;
    let mut pushed = Ok(());
    for (i, word) in selection.words().iter().enumerate() {
        if i % WORDS == WORDS - 1 {
            interrupt::check()?;
        }
        rows::runs(*word, |start, len| {
            let first = (i * 64 + start) * size;
            if pushed.is_ok() {
                pushed = items.push(first..first + len * size);
            }
        });
    }
    pushed.map(|()| items)
}

/// The items that a filter of lists keeps, as input for the filter of the items.
enum KeptItems {
    /// One bit for each item.
    Bits(HostMemory),
    /// Ranges, for items whose type is not [`dense`](super::ranges::dense).
    Ranges(Ranges),
}

/// Returns the items of a child of lists from the first kept one to the last, and one more if there is one. A
/// filter of all rows copies nothing, so the result would keep the items of all other lists.
fn around(kept: Range<usize>, child: &DeviceArray) -> Range<usize> {
    match kept {
        Range { start, end } if end < child.len() => start..end + 1,
        Range { start, end } => start.saturating_sub(1)..end,
    }
}

/// Makes the error for ranges that overlap: these cannot be kept in one pass over the child, and the format
/// forbids them.
#[cold]
fn goes_back(row: usize, to: usize) -> Error {
    Error::out_of_spec("array.buffers[0]", format!("row {row} goes back to {to}"))
}

/// Filters lists with offsets of `O` bytes. Fills in the new offsets, and the child with the rows in the kept
/// ranges. Other items take no memory, except those between these: a slice may be of few lists of many.
fn filter_lists<const O: usize>(
    array: &DeviceArray,
    selection: &Selection,
    pool: &HostPool,
    parts: &mut Parts,
) -> Result<()> {
    let offsets = rows::offsets::<O>(array);
    let child = &array.children()[0];
    let (first, last) = selection.ends();
    let all = rows::range(offsets, first, child.len())?.start..rows::range(offsets, last, child.len())?.end;
    if all.start > all.end {
        return Err(goes_back(last, all.end));
    }
    let seen = around(all.clone(), child);
    let mut kept = match ranges::dense(child) {
        true => KeptItems::Bits(memory::zeroed(seen.len().div_ceil(64) * 8, pool)?),
        false => KeptItems::Ranges(Ranges::with_room(selection.len(), pool)?),
    };
    let mut memory = pool.alloc((selection.len() + 1) * O)?;
    let mut out = memory::values_mut::<[u8; O]>(&mut memory)[..selection.len() + 1].iter_mut();
    let (mut at, mut before) = (0, all.start);
    let mut push = |at: usize| {
        if let Some(slot) = out.next() {
            *slot = rows::offset_bytes(at);
        }
    };
    push(0);
    for (i, word) in selection.words().iter().enumerate() {
        if i % WORDS == WORDS - 1 {
            interrupt::check()?;
        }
        let mut word = *word;
        while word != 0 {
            let row = i * 64 + word.trailing_zeros() as usize;
            let range = rows::range(offsets, row, child.len())?;
            if range.start < before || range.end > all.end {
                return Err(goes_back(row, range.start));
            }
            before = range.end;
            at += range.len();
            push(at);
            match &mut kept {
                KeptItems::Bits(bits) => {
                    let (start, end) = (range.start - seen.start, range.end - seen.start);
                    rows::set(memory::values_mut(bits), start, end);
                }
                KeptItems::Ranges(ranges) => ranges.push(range)?,
            }
            word &= word - 1;
        }
    }
    parts.buffers.push(memory.freeze((selection.len() + 1) * O));
    parts.children = vec![match kept {
        KeptItems::Bits(bits) => {
            let seen = child.slice(seen.start, seen.len())?;
            filter(&seen, &Selection::of_own(seen.len(), bits)?, pool)?
        }
        KeptItems::Ranges(ranges) => take::take_ranges(child, &ranges, pool)?,
    }];
    Ok(())
}
