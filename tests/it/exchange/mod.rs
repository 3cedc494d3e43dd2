//! The border: arrays, batches and streams in and out, well formed and not.

mod arrow;
mod foreign;
mod foreign_schema;
mod foreign_stream;
mod hostile;
mod samples;
mod streams;
mod structs;
