//! What an array's rows are made of, as far as moving them goes: which bytes of its buffers they have, and what becomes of
//! its children.

use arrow_schema::{DataType, UnionMode};

use crate::array::{Array, Buffer, Slot};

/// What becomes of an array's children when its rows are moved.
pub(crate) enum Children {
    /// Each row has its own: they move along.
    Along,
    /// Rows say where theirs are: they stay where they are.
    Shared,
    /// Offsets or a size say which belong to a row.
    Ranges,
    /// Several rows share one: which are left is to be found first.
    Runs,
}

/// What becomes of the children of a type.
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

/// Whether an array's rows are ranges of what lies below them.
pub(crate) fn has_ranges(array: &Array) -> bool {
    matches!(array.data_type(), DataType::FixedSizeList(..))
        || array.layout().slots().any(|slot| matches!(slot, Slot::Offsets(_)))
}

/// The part of a fixed-width buffer that an array's rows are in.
pub(crate) fn rows_of(array: &Array, buffer: &Buffer, width: usize) -> Buffer {
    buffer.slice(array.offset() * width, Some(array.len() * width))
}

/// The offsets of an array's rows, of which there is one at least.
pub(crate) fn offsets_of(array: &Array, width: usize) -> Buffer {
    array.buffers()[0].slice(array.offset() * width, Some((array.len() + 1) * width))
}

/// The bytes of a row, for slots where every row has as many.
pub(crate) fn fixed_width(slot: Slot) -> Option<usize> {
    match slot {
        Slot::Fixed(width) => Some(width),
        Slot::Views => Some(16),
        Slot::Bits | Slot::Offsets(_) | Slot::Bytes => None,
    }
}

/// The largest power of two, at most 16, that divides both a value's width and where the values are: what kernels may
/// load at once. Foreign memory may start anywhere.
pub(crate) fn unit(width: usize, address: usize) -> usize {
    1 << (width | 16 | address).trailing_zeros()
}
