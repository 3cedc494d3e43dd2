//! Upper bounds on the memory that arrow-select allocates to concatenate arrays, as `cast_bytes.rs` has them
//! for casts.
//!
//! The one idea: rows are copied once, into buffers that may have grown by doubling; they never exceed three
//! times their final bytes. Elements that rows point into are shared (views), or concatenated whole
//! (dictionaries, the items of list views).

use arrow_schema::{DataType, UnionMode};

use super::cast_bytes::{Rows, copy, width};
use super::{run_ends, spans};
use crate::DeviceArray;

/// The memory of an array in arrow-select, without its rows.
const ARRAY: usize = 512;
/// The memory of a dictionary's value while equal ones are merged: its slot in a hash table that is at most
/// half full, its address, its new key, and its origin.
const VALUE: usize = 192;

/// Returns a bound for concatenating these arrays. They must be valid and of one type.
pub(crate) fn of_concat(arrays: &[DeviceArray]) -> usize {
    use DataType::*;
    let Some(first) = arrays.first() else { return 0 };
    let sum = |of: &dyn Fn(&DeviceArray) -> usize| {
        arrays.iter().fold(0, |sum: usize, array| sum.saturating_add(of(array)))
    };
    let rows = sum(&DeviceArray::len);
    if rows > i64::MAX as usize {
        // Only rows that take no memory can be this many; arrow-rs cannot count them.
        return usize::MAX;
    }
    if *first.data_type() == Null {
        return arrays.len().saturating_mul(ARRAY);
    }
    let bytes = |bytes: usize| bytes.saturating_mul(3);
    let own = bytes(rows.saturating_mul(width(first.data_type())))
        .saturating_add(rows / 2)
        .saturating_add(arrays.len().saturating_mul(ARRAY) + 1024);
    let below =
        |part: &dyn Fn(&DeviceArray) -> DeviceArray| of_concat(&arrays.iter().map(part).collect::<Vec<_>>());
    let children = |part: &dyn Fn(&DeviceArray, usize) -> usize| {
        (0..first.children().len()).fold(0, |sum: usize, i| sum.saturating_add(part(first, i)))
    };
    let nested = match first.data_type() {
        Utf8 | LargeUtf8 | Binary | LargeBinary => bytes(sum(&|array| spans::of(array).total)),
        Utf8View | BinaryView => sum(&|array| array.buffers().len().saturating_mul(64)),
        List(_) | LargeList(_) | Map(..) => below(&items),
        ListView(_) | LargeListView(_) => below(&|array| array.children()[0].clone()),
        FixedSizeList(..) | Struct(_) | Union(_, UnionMode::Sparse) => {
            children(&|_, i| below(&|array| array.child_rows(i).unwrap_or(array.children()[i].clone())))
        }
        Union(_, UnionMode::Dense) => {
            children(&|_, i| bytes(sum(&|array| copy(&Rows::any(&array.children()[i], array.len(), None)))))
        }
        RunEndEncoded(..) => {
            let runs: Vec<DeviceArray> = arrays.iter().map(run_ends::values).collect();
            let ends = runs.iter().fold(0, |sum: usize, runs| sum.saturating_add(runs.len()));
            bytes(ends.saturating_mul(8)).saturating_add(of_concat(&runs))
        }
        Dictionary(..) => {
            let values: Vec<DeviceArray> =
                arrays.iter().filter_map(DeviceArray::dictionary).cloned().collect();
            // A dictionary that all arrays have in common, as slices of one array do, is shared.
            let one = values.iter().all(|of| of.children().is_empty() && of.is_same_memory(&values[0]));
            let values = &values[..if one { 1 } else { values.len() }];
            let each = values.iter().fold(128, |sum: usize, of| sum.saturating_add(of.len()));
            of_concat(values).saturating_add(each.saturating_mul(VALUE))
        }
        _ => 0,
    };
    own.saturating_add(nested)
}

/// Returns the items that the rows of a list or map array cover.
fn items(array: &DeviceArray) -> DeviceArray {
    let items = &array.children()[0];
    let of_rows = spans::first(array).map(|first| items.slice(first, spans::of(array).total));
    of_rows.and_then(Result::ok).unwrap_or_else(|| items.clone())
}
