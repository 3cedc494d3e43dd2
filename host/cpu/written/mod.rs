//! Conversions between values and text on the host: the functions that a GPU's lanes run, applied to parts of
//! the rows.

mod read;
mod write;

pub(crate) use read::{Read, read};
pub(crate) use write::write;
