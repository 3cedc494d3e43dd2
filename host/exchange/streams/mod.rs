//! C streams of arrays and batches in both directions: foreign streams become iterators, iterators become
//! streams.

mod export;
mod import;
#[cfg(all(test, shuttle))]
mod model_tests;
mod turns;

pub(super) use export::{EINVAL, EIO, anywhere, code, placed, rows_of, words};
pub use export::{export_batches, export_host_batches, export_host_stream, export_stream};
pub use import::{ArrayReader, import_batches, import_host_batches, import_host_stream, import_stream};
pub use turns::Turns;
