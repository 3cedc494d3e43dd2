//! TPC-H without downloads: tables made at any scale factor, in memory or as Parquet files, and the 22
//! queries with the specification's validation parameters.
//!
//! The rows are those of the specification's own generator. A table's partitions are consecutive runs of its
//! rows, so their union is the same table for any number of partitions.

mod files;
mod memory;
mod queries;
mod table;

pub use files::{register_parquet, write_parquet};
pub use memory::{in_memory, register_in_memory};
pub use queries::{QUERIES, query};
pub use table::{Scale, Table};

/// The rows of a batch in memory: the default of DataFusion's own scans.
pub const BATCH_ROWS: usize = 8192;
