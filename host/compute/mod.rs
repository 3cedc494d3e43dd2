//! L8: the public operations. They check their arguments, choose the engine for the stream's device, and ask
//! it.
//!
//! Every operation takes an array or a batch ([`Columns`]) and, as its last argument, the [`crate::Stream`]
//! that it runs on. It returns a [`crate::Pending`] result. Invalid arguments are detected at once, and
//! [`wait`](crate::Pending::wait) returns the error. Arrays that the stream's device cannot reach are
//! [`crate::Error::Invalid`].
//!
//! An operation that waits for a device, as listed in the table, does not block before `wait`, and not at all
//! if it is awaited. A [`Coalescer`] does not block either, unless it is asked for a batch and not polled. On
//! the CPU, operations run inside the call.
//!
//! | operation | waits for a device | copies |
//! | --- | --- | --- |
//! | [`filter`] | once per batch, for the number of rows | the kept rows |
//! | [`take`] | if lengths or runs depend on the data, or rows of dense unions | the rows at the indices |
//! | [`cast`] | if lengths, text, runs or dictionaries depend on the data | columns whose bits change |
//! | [`null_count`], [`logical_null_count`] | once per batch, if a count is not known | nothing |
//! | [`is_null`], [`is_not_null`] | never | bits; `is_not_null` shares them if possible |
//! | [`fill_null`] | like [`concat()`] and [`take`], never for fixed widths | values that may have nulls |
//! | [`concat()`] | if lengths or runs depend on the data | all parts, if there are several |
//! | [`Coalescer`] | like [`filter`], [`take`], on a GPU [`concat()`] | the rows; on a GPU twice |
//! | [`garbage_collect`] | if a column holds on to much of other rows | such a column |
//! | [`drop_nulls`] | like [`filter`], if there may be nulls | the rows that are not null |
//! | [`filter_where`] | like [`filter`] | the rows for which an [expression](crate::expr) is true |
//! | [`evaluate`] | never, but casts, dictionaries and text may | the results of the expressions |
//! | [`aggregate`] | once per batch, if it reads a column | one row |
//! | [`sort_to_indices`], [`lexsort_to_indices`] | once; for text twice for each 7 equal bytes | nothing |
//! | [`rank`], [`partition`] | like [`sort_to_indices`], and once more; `partition` once | nothing |
//! | [`sort`], [`sort_by`] | like [`sort_to_indices`] and [`take`] | the rows, once |
//! | [`group`] | once per call | nothing |
//! | [`partition_by_hash`], [`HashPartitions::split`] | once, like [`take`] | nothing, the rows |
//! | [`distinct`], [`Query::group_by`] | like [`group`] and [`take`] | the first rows of groups |
//! | [`value_counts`], [`Windows::new`] | like [`group`], and a sort | what they are about, once |
//! | [`zip()`], [`interleave`] | like [`concat()`] and [`take`] | all rows, and those that are taken |
//! | [`JoinTable::new`], [`Matches::pairs`] | once each | the left keys, if they are dictionaries or runs |
//! | [`join`], [`PreparedJoin`] | like these and [`take`] | the rows of both sides |

mod arrays;
pub mod batches;
mod bound_query;
mod cast;
mod coalesce;
mod compacted;
mod computed;
mod concat;
mod cuts;
mod drop_nulls;
mod evaluated;
mod expressions;
mod fill_null;
mod filter;
mod frames;
mod grouped;
mod groups;
mod hash_partitions;
mod hashes;
mod host_rows;
mod interleave;
mod iterators;
mod join;
mod join_build;
mod join_options;
mod join_probe;
mod join_sides;
mod join_table;
mod long_runs;
mod nullability;
mod nulls;
mod parted_rows;
mod query;
mod scalar;
mod selection;
mod settled;
mod sort;
mod sorting;
mod spill;
mod take;
pub mod tensors;
mod text;
mod value_counts;
mod windows;
mod zip;

pub use crate::array::{Columns, nullable};
pub use bound_query::{BoundQuery, Grouping};
pub use cast::{CastOptions, DurationFormat, FormatOptions, can_cast, cast, check_cast};
pub use coalesce::Coalescer;
pub use compacted::garbage_collect;
pub use concat::concat;
pub use drop_nulls::{DropIf, DropOptions, drop_nulls};
pub use expressions::{aggregate, evaluate, filter_where};
pub use fill_null::fill_null;
pub use filter::filter;
pub use frames::{FrameBound, WindowFrame};
pub use groups::{Groups, distinct, group};
pub use hash_partitions::{HashPartitions, partition_by_hash};
pub use interleave::interleave;
pub use join::{PreparedJoin, Probed, Visited, join};
pub use join_build::{BuiltJoin, JoinBuild};
pub use join_options::{JoinKind, JoinOptions};
pub use join_probe::JoinProbe;
pub use join_table::{JoinTable, Matches, Pairs};
pub use nulls::{is_not_null, is_null, logical_null_count, null_count};
pub use query::Query;
pub use scalar::Scalar;
pub use selection::Selection;
pub use sort::{
    SortColumn, SortOptions, Ties, lexsort_to_indices, partition, rank, sort, sort_by, sort_to_indices,
};
pub use sorting::{Sorted, Sorting};
pub use spill::Spill;
pub use take::{OutOfBounds, TakeOptions, take};
pub use value_counts::value_counts;
pub use windows::Windows;
pub use zip::zip;

use crate::array::Place;
use crate::cpu::Cpu;
use crate::engine::Engine;
use crate::gpu::Gpu;
use crate::{DeviceArray, Error, Pending, Result, Stream, pass};

/// Chooses the engine that runs what is on a stream.
fn engine(stream: &Stream) -> &'static dyn Engine {
    if stream.device().place() == Place::CPU { &Cpu } else { &Gpu }
}

/// Checks that the stream's device can reach the array.
fn reach(operation: &'static str, array: &DeviceArray, stream: &Stream) -> Result<()> {
    let (here, there) = (stream.device().place(), array.place());
    if here.reaches(there) {
        return Ok(());
    }
    Err(Error::invalid(operation, format!("an array on {there} and a stream on {here}")))
}

/// Checks that the stream's device can reach all arrays.
fn reach_all(operation: &'static str, arrays: &[DeviceArray], stream: &Stream) -> Result<()> {
    arrays.iter().try_for_each(|array| reach(operation, array, stream))
}

/// Checks that there are columns, of one length, where the stream is.
fn check_columns(operation: &'static str, columns: &[&DeviceArray], stream: &Stream) -> Result<()> {
    let Some(first) = columns.first() else { return Err(Error::invalid(operation, "no columns")) };
    if let Some(other) = columns.iter().find(|other| other.len() != first.len()) {
        let problem = format!("columns of {} and {} rows", first.len(), other.len());
        return Err(Error::invalid(operation, problem));
    }
    columns.iter().try_for_each(|column| reach(operation, column, stream))
}

/// The columns of a result, which synchronise together.
fn together<C: Columns>(
    frame: C::Frame,
    columns: Vec<Pending<DeviceArray>>,
    rows: usize,
    stream: &Stream,
) -> Pending<C> {
    Pending::begin(stream, async move { C::framed(frame, pass::all(columns).await?, rows) })
}
