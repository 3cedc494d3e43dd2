//! The operands of text tests.

use super::{Bitmap, DeviceArray};
use crate::{Error, Result};

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

/// The error that a kernel has reported: the first row that is [`outside`], or `u64::MAX`.
pub(crate) fn all_inside(words: &[u64]) -> Result<()> {
    match words[0] {
        u64::MAX => Ok(()),
        row => Err(outside(row as usize)),
    }
}
