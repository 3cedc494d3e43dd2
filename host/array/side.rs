//! The operands of text tests.

use super::{Bitmap, DeviceArray};
use crate::Error;

/// One operand of a text test.
#[derive(Clone, Copy)]
pub(crate) enum Side<'a> {
    Column(&'a DeviceArray),
    /// The same value in all rows.
    Same(&'a [u8]),
    /// A list of values in ascending order.
    List(&'a [&'a [u8]]),
}

impl<'a> Side<'a> {
    /// The validity bitmap; `None` if all rows are known to be valid.
    pub fn nulls(self) -> Option<&'a Bitmap> {
        match self {
            Side::Column(column) => column.possible_nulls(),
            Side::Same(_) | Side::List(_) => None,
        }
    }
}

/// The error for a row of text whose bytes are outside of their buffer.
pub(crate) fn outside(row: usize) -> Error {
    Error::out_of_spec("text", format!("row {row} is not inside of its buffer"))
}
