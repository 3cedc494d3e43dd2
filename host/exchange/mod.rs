//! L5: zero-copy exchange of arrays with other libraries.

#![allow(unsafe_code)]

mod arrow;
mod async_streams;
mod contents;
mod dlpack;
mod export;
mod extents;
mod guard;
mod import;
mod nodes;
mod streams;
mod validate;

pub use crate::device::Lent;
pub(crate) use arrow::lacks_nulls;
pub use arrow::{batch_from_arrow, batch_to_arrow, from_arrow, from_arrow_data, to_arrow, to_arrow_data};
pub use async_streams::{
    AsyncBatchReader, AsyncExport, export_async_batches, export_async_iterator, import_async_batches,
};
pub(crate) use dlpack::has_booleans_on_a_device;
pub use dlpack::{export_dlpack, import_dlpack};
pub use export::{export_array, export_batch, export_host_array, export_host_batch};
pub(crate) use extents::read as read_ends;
pub(crate) use guard::{counted, guarded};
pub use import::{
    import_array, import_batch, import_field, import_host_array, import_host_batch, import_schema,
};
pub use streams::{
    ArrayReader, Turns, export_batches, export_host_batches, export_host_stream, export_stream,
    import_batches, import_host_batches, import_host_stream, import_stream,
};
pub use validate::{validate, validate_batch, validate_on};
