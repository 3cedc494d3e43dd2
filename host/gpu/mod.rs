//! L6: the operations on a GPU, in the vocabulary of [`Pass`](crate::pass::Pass).
//!
//! What only moves data is dispatched on the layout table: bits, fixed widths, offsets, children. Columns of equal width
//! travel in one launch, described by a table in device memory. Whatever the host must know (how many rows a filter
//! keeps, null counts, byte totals) is computed first, for all columns and all levels of nesting, and read in one go.

pub(crate) mod cast;
mod filter;
mod filter_values;
pub(crate) mod map;
mod nulls;
mod ranges;
mod ranges_below;
mod selection;
mod take;
mod take_tables;

pub(crate) use filter::filter;
pub(crate) use nulls::{filled, is_null, null_counts, with_null_counts_checked};
pub(crate) use selection::Selection;
pub(crate) use take::take;

use arrow_schema::DataType;
use bowstring_kernels::memory::{In, Out};

use crate::Result;
use crate::array::{Array, Bitmap, Buffer, Parts, Slot};
use crate::pass::{Pass, Region, bits, input, is_aligned};

/// Numbers that kernels leave for the host, read together at the end: sums, which start at zero, and behind them first rows
/// that something is wrong with, which start beyond all rows.
struct Status {
    region: Region,
    /// How many sums have places.
    used: usize,
    /// The place of the next fault.
    next_fault: usize,
}

impl Status {
    /// Room for numbers.
    fn new(pass: &mut Pass, sums: usize, faults: usize) -> Result<Status> {
        let region = match faults {
            0 => pass.zeroed(sums * 8)?,
            _ => pass.upload(&[vec![0; sums], vec![u64::MAX; faults]].concat())?,
        };
        Ok(Status { region, used: 0, next_fault: sums })
    }

    /// The places of `count` sums, one behind the other.
    fn take(&mut self, count: usize) -> (usize, Out<u64>) {
        let first = self.used;
        self.used += count;
        assert!(self.used * 8 <= self.region.bytes(), "there is room for every number");
        (first, self.region.out().skip(first as u64))
    }

    /// The place of a fault.
    fn fault(&mut self) -> (usize, Out<u64>) {
        let place = self.next_fault;
        self.next_fault += 1;
        assert!(self.next_fault * 8 <= self.region.bytes(), "there is room for every fault");
        (place, self.region.out().skip(place as u64))
    }
}

/// How many arrays there are in this one: no level needs more than a few numbers for each.
fn nodes(array: &Array) -> usize {
    1 + array.children().iter().chain(array.dictionary()).map(nodes).sum::<usize>()
}

/// How many of these move along with an array's rows.
fn along(array: &Array) -> usize {
    match children_of(array.data_type()) {
        Some(Children::Along) => 1 + array.children().iter().map(along).sum::<usize>(),
        _ => 1,
    }
}

/// The part of a fixed-width buffer that an array's rows are in.
fn rows_of(array: &Array, buffer: &Buffer, width: usize) -> Buffer {
    buffer.slice(array.offset() * width, Some(array.len() * width))
}

/// The bytes of a row, for slots where every row has as many.
fn fixed_width(slot: Slot) -> Option<usize> {
    match slot {
        Slot::Fixed(width) => Some(width),
        Slot::Views => Some(16),
        Slot::Bits | Slot::Offsets(_) | Slot::Bytes => None,
    }
}

/// The bytes of as many rows of an array's buffers of fixed width.
fn row_bytes(array: &Array, rows: usize) -> impl Iterator<Item = usize> + use<> {
    array
        .layout()
        .slots
        .into_iter()
        .flatten()
        .filter_map(fixed_width)
        .map(move |width| rows.saturating_mul(width))
}

/// The largest power of two, at most 16, that divides both a value's width and where the values are: what kernels may
/// load at once. Foreign memory may start anywhere.
fn unit(width: usize, addresses: &[usize]) -> usize {
    let all = addresses.iter().fold(width | 16, |all, address| all | address);
    1 << all.trailing_zeros()
}

/// A buffer as kernels read it, copied to where it is aligned if it is not.
fn aligned(pass: &mut Pass, buffer: &Buffer, alignment: usize) -> Result<In<u8>> {
    if is_aligned(buffer, alignment) {
        return Ok(input(buffer));
    }
    // Bytes are bits, eight each, and bits may start anywhere.
    let bytes = buffer.bytes().ok_or_else(|| pass.unsupported("a misaligned buffer of unknown extent"))?;
    let copy = pass.output(bytes)?;
    nulls::copy_bits(pass, bits(&Bitmap { buffer: buffer.clone(), offset: 0 }), 8 * bytes, &copy)?;
    Ok(copy.input())
}

/// An array's validity from its first bit on, as C structs want it beside buffers that begin with the first row: shared
/// where that is a byte's first.
fn validity_from_start(pass: &mut Pass, array: &Array) -> Result<Option<Bitmap>> {
    let Some(validity) = array.validity() else { return Ok(None) };
    if validity.offset.is_multiple_of(8) {
        let buffer = validity.buffer.slice(validity.offset / 8, None);
        return Ok(Some(Bitmap { buffer, offset: 0 }));
    }
    let copy = pass.zeroed(array.len().div_ceil(8))?;
    nulls::copy_bits(pass, bits(validity), array.len(), &copy)?;
    Ok(Some(Bitmap { buffer: copy.buffer(), offset: 0 }))
}

/// An array that other passes made, as a part of what this pass makes, which has read it: one event for the whole.
fn part_of(pass: &Pass, array: Array) -> Result<Array> {
    let mut parts = array.into_parts();
    parts.ready = pass.parts(DataType::Null, 0).ready;
    parts.children = parts.children.into_iter().map(|child| part_of(pass, child)).collect::<Result<_>>()?;
    parts.dictionary = parts.dictionary.map(|values| part_of(pass, values)).transpose()?;
    Array::try_new(parts)
}

/// No rows, like those of `array`; what rows point into is shared.
fn empty_like(array: &Array, pass: &Pass) -> Result<Array> {
    let mut parts = pass.parts(array.data_type().clone(), 0);
    parts.buffers = array.buffers().iter().map(|_| Buffer::empty()).collect();
    parts.children = array.children().iter().map(|child| empty_like(child, pass)).collect::<Result<_>>()?;
    parts.dictionary = array.dictionary().map(|values| empty_like(values, pass)).transpose()?;
    Array::try_new(parts)
}

/// What becomes of an array's children when its rows are moved.
enum Children {
    /// Each row has its own: they move along.
    Along,
    /// Rows say where theirs are: they stay where they are.
    Shared,
    /// Offsets or a size say which belong to a row.
    Ranges,
}

/// What becomes of the children of a type; `None` where rows cannot be moved one by one.
fn children_of(data_type: &DataType) -> Option<Children> {
    use arrow_schema::UnionMode;
    match data_type {
        DataType::Struct(_) | DataType::Union(_, UnionMode::Sparse) => Some(Children::Along),
        DataType::List(_) | DataType::LargeList(_) | DataType::Map(..) | DataType::FixedSizeList(..) => {
            Some(Children::Ranges)
        }
        DataType::RunEndEncoded(..) => None,
        _ => Some(Children::Shared),
    }
}

/// The parts with the validity of the values.
fn nulls_of(pass: &mut Pass, values: &Array, parts: Parts) -> Result<Parts> {
    let validity = validity_from_start(pass, values)?;
    Ok(Parts { validity, null_count: values.known_null_count(), ..parts })
}
