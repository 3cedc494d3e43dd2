//! What a test of text is tried on.

use super::{Array, Bitmap};

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
