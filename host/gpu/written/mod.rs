//! Conversions between values and text on a GPU. Reading takes one launch, and a second for texts that are
//! hard to read; writing takes two launches with sums in between.

mod read;
mod write;
mod zone;

pub(crate) use read::{Unread, read};
pub(crate) use write::write;
pub(crate) use zone::cast_zoned;
