//! Sorting on a device: words for each key, and placements by the digits in which they differ.
//!
//! The one idea: see [`bowstring_kernels::sort`]. The host looks once, at the bits in which the words of each
//! key differ, and launches a placement for every eight of them, from the last key to the first. Keys that do
//! not differ, and the upper bits of small numbers, cost nothing.
//!
//! Nested columns are first replaced by numbers and text: see [`nested`].
//!
//! Memory for a row: 4 or 8 bytes for each word of a key, and up to 32 for its order and what is in work.

pub(crate) mod digits;
mod groups;
pub(crate) mod keys;
mod nested;
mod order;
mod ties;

use arrow_schema::SortOptions;

use crate::array::DeviceArray;
use crate::engine::Ties;
use crate::pass::Pending;
use crate::{Result, Stream};
use groups::{partition_flat, rank_flat};
pub(crate) use nested::{flat, flat_columns, ranked_sides};
use order::ordered;
pub(crate) use order::row_numbers;

/// Returns the rows of columns of one length in their order, the first `limit` of them, as UInt32. It reads
/// once, and as often as it takes to replace dictionaries, runs and nested types.
pub(crate) fn sort_to_indices(
    columns: &[(&DeviceArray, SortOptions)],
    limit: Option<usize>,
    stream: &Stream,
) -> Result<Pending<DeviceArray>> {
    let columns: Vec<_> = columns.iter().map(|(values, options)| ((*values).clone(), *options)).collect();
    let on = stream.clone();
    Ok(Pending::begin(stream, async move {
        let rows = columns.first().map_or(0, |(values, _)| values.len());
        ordered(&flat(&columns, &on).await?, rows, limit, &on).await
    }))
}

/// Returns the rank of each row, as UInt32, from 1 on. It reads as often as a sort, a take of the values, and
/// once more.
pub(crate) fn rank(
    values: &DeviceArray,
    options: SortOptions,
    ties: Ties,
    stream: &Stream,
) -> Result<Pending<DeviceArray>> {
    let (values, on) = (values.clone(), stream.clone());
    Ok(Pending::begin(stream, async move {
        let rows = values.len();
        rank_flat(&flat(&[(values, options)], &on).await?, rows, ties, &on).await
    }))
}

/// Returns the rows, as UInt32, that differ from the row before them in any column, and the first row. It
/// reads once, and as often as it takes to replace dictionaries, runs and nested types.
pub(crate) fn partition(columns: &[DeviceArray], stream: &Stream) -> Result<Pending<DeviceArray>> {
    let (columns, on) = (columns.to_vec(), stream.clone());
    Ok(Pending::begin(stream, async move {
        let rows = columns.first().map_or(0, DeviceArray::len);
        partition_flat(&flat_columns(&columns, &on).await?, rows, &on).await
    }))
}
