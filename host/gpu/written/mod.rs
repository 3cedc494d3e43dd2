//! Values as text on a GPU: a launch to read, and for what is hard to read a second; two and sums in between to write.

mod read;
mod write;
mod zone;

pub(crate) use read::{Unread, read};
pub(crate) use write::write;
pub(crate) use zone::cast_zoned;
