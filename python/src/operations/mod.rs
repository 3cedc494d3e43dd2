//! The operations of the Python module.
//!
//! Each operation takes any array or batch with an Arrow interface and runs where the data is. It uses the
//! device's default stream unless the caller passes another, and lets other Python threads run meanwhile.

mod casts;
mod concatenation;
mod groups;
mod join_table;
mod nulls;
mod order;
mod partitions;
mod select;
mod streams;
mod windowed;

pub use casts::{cast, cast_array};
pub use concatenation::concat;
pub use groups::{GroupBy, join, unique, value_counts};
pub use join_table::JoinTable;
pub use nulls::{drop_null, fill_null, is_null, is_valid, logical_null_count, null_count};
pub use order::{rank, sort, sort_indices};
pub use partitions::{partition, partition_by_hash};
pub use select::{filter, strided, take};
pub use streams::ReaderGroupBy;
pub use windowed::{Windows, windows};
