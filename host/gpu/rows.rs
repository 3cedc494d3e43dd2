//! The composition of an array's rows, as far as moving them is concerned: the bytes of its buffers that
//! belong to a row, and what becomes of its children.

use arrow_schema::{DataType, UnionMode};
use bowstring_kernels::column::ColumnRow;
use bowstring_kernels::memory::In;

use crate::array::{Bitmap, Buffer, DeviceArray, Slot};
use crate::pass::{bits, input, validity};

/// How an array's children are treated when its rows are moved.
pub(crate) enum Children {
    /// Each row owns one child row: the children move with it.
    Along,
    /// Rows point to their child rows: the children are shared.
    Shared,
    /// Offsets or a fixed size assign a range of child rows to each row.
    Ranges,
    /// Several rows share one child row: the remaining ones must be found first.
    Runs,
}

/// Returns how the children of a type are treated.
pub(crate) fn children_of(data_type: &DataType) -> Children {
    match data_type {
        DataType::Struct(_) | DataType::Union(_, UnionMode::Sparse) => Children::Along,
        DataType::List(_) | DataType::LargeList(_) | DataType::Map(..) | DataType::FixedSizeList(..) => {
            Children::Ranges
        }
        DataType::RunEndEncoded(..) => Children::Runs,
        _ => Children::Shared,
    }
}

/// Returns whether an array's rows are ranges of child elements.
pub(crate) fn has_ranges(array: &DeviceArray) -> bool {
    matches!(array.data_type(), DataType::FixedSizeList(..))
        || array.layout().slots().any(|slot| matches!(slot, Slot::Offsets(_)))
}

/// Returns the part of a fixed-width buffer that holds the array's rows.
pub(crate) fn rows_of(array: &DeviceArray, buffer: &Buffer, width: usize) -> Buffer {
    buffer.slice(array.offset() * width, Some(array.len() * width))
}

/// Describes a column of numbers or booleans to kernels, from its first row on.
pub(crate) fn column_row(column: &DeviceArray) -> ColumnRow {
    let (valid, valid_offset) = match column.possible_nulls() {
        Some(_) => validity(column),
        None => (In::absent(), 0),
    };
    let buffer = &column.buffers()[0];
    let width = column.layout().slots().next().and_then(fixed_width);
    let (values, offset) = match width {
        Some(width) => (input(&rows_of(column, buffer, width)), 0),
        None => {
            let (values, offset) = bits(&Bitmap { buffer: buffer.clone(), offset: column.offset() });
            (values.cast(), offset)
        }
    };
    ColumnRow { values, offset, valid, valid_offset }
}

/// Returns the offsets of the array's rows. An empty array has none, so it must have a row.
pub(crate) fn offsets_of(array: &DeviceArray, width: usize) -> Buffer {
    array.buffers()[0].slice(array.offset() * width, Some((array.len() + 1) * width))
}

/// Returns the bytes of a row, for slots of fixed width.
pub(crate) fn fixed_width(slot: Slot) -> Option<usize> {
    match slot {
        Slot::Fixed(width) => Some(width),
        Slot::Views => Some(16),
        Slot::Bits | Slot::Offsets(_) | Slot::Bytes => None,
    }
}

/// Returns the access width of kernels: the largest power of two, at most 16, that divides both a value's
/// width and its address. Foreign memory may start at any address.
pub(crate) fn unit(width: usize, address: usize) -> usize {
    1 << (width | 16 | address).trailing_zeros()
}
