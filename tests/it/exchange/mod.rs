//! Tests import and export of arrays, batches and streams, well formed and not.

mod arrow;
mod async_devices;
mod async_export;
mod async_import;
mod async_threads;
mod checked;
mod contents;
mod dlpack;
pub mod foreign;
pub mod foreign_async;
pub mod foreign_schema;
pub mod foreign_sender;
pub mod foreign_stream;
pub mod foreign_tensor;
mod fuzz;
mod hostile;
mod places;
mod rounds;
mod samples;
mod streams;
mod structs;
mod trust;
