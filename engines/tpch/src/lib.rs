//! TPC-H without downloads: tables made at any scale factor, in memory or as Parquet files, and the 22 queries with
//! the specification's validation parameters.
//!
//! Rows are those of the specification's own generator; a table's partitions are runs of it, in order, so that all of
//! them together are the same table whatever their number.

mod files;
mod memory;
mod queries;
mod table;

pub use files::{register_parquet, write_parquet};
pub use memory::{in_memory, register_in_memory};
pub use queries::{QUERIES, query};
pub use table::{Scale, Table};

/// Rows of a batch in memory: what DataFusion's own scans give by default.
pub const BATCH_ROWS: usize = 8192;
