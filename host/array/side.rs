//! What a test of text is tried on.

use super::{Array, Bitmap};
use crate::Error;

/// One side of a test of text.
#[derive(Clone, Copy)]
pub(crate) enum Side<'a> {
    Column(&'a Array),
    /// The same for all rows.
    Same(&'a [u8]),
    /// Some that ascend.
    List(&'a [&'a [u8]]),
}

impl<'a> Side<'a> {
    /// Which rows are valid; `None` where all are known to be.
    pub fn nulls(self) -> Option<&'a Bitmap> {
        match self {
            Side::Column(column) => column.possible_nulls(),
            Side::Same(_) | Side::List(_) => None,
        }
    }
}

/// A row of text whose bytes would lie outside of their buffer.
pub(crate) fn outside(row: usize) -> Error {
    Error::out_of_spec("text", format!("row {row} is not inside of its buffer"))
}
