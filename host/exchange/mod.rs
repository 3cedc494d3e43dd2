//! L4: arrays in and out of other libraries, without copying them.

#![allow(unsafe_code)]

mod arrow;

pub(crate) use arrow::to_arrow_trusted;
pub use arrow::{batch_from_arrow, batch_to_arrow, from_arrow, from_arrow_data, to_arrow, to_arrow_data};
