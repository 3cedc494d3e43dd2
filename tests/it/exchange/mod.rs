//! The border: arrays, batches and streams in and out, well formed and not.

mod arrow;
mod contents;
mod dlpack;
pub mod foreign;
mod foreign_schema;
pub mod foreign_stream;
mod foreign_tensor;
mod fuzz;
mod hostile;
mod places;
mod samples;
mod streams;
mod structs;
mod trust;
