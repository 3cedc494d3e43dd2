//! L2: what the data is. An [`Array`] is a data type, a length and an offset, buffers with their owners, children
//! and a dictionary, on one device; it knows nothing of drivers, and following its addresses is up to the device.
//!
//! The one idea of this file: an array is made of parts that have been looked at. Here, above what looks at them, is how.

mod batch;
mod batches;
mod buffer;
mod columns;
mod extents;
pub(crate) mod layout;
pub(crate) mod nesting;
mod parts;
mod place;
mod side;
mod validate;

pub use batch::{Batch, Metadata};
pub(crate) use batch::{columns_are_of, rows_of};
pub use batches::Batches;
pub use buffer::{Bitmap, Buffer, Owner};
pub use columns::{Columns, nullable};
pub(crate) use extents::{fits, number};
pub(crate) use layout::{Layout, Slot, children, forbids_nulls, layout, null_member, says_null};
pub use parts::{Array, Parts};
pub use place::{Place, Ready};
pub(crate) use side::{Side, outside};
pub(crate) use validate::well_formed;

use crate::Result;

impl Array {
    /// An array of these parts, where they fit together: see the checks in `validate.rs`. No device memory is read. From here
    /// on every buffer says how long it is, or which number on its device does: see `extents.rs`.
    pub fn try_new(mut parts: Parts) -> Result<Array> {
        validate::structure(&parts)?;
        extents::bind(&mut parts)?;
        if parts.validity.is_none() {
            parts.null_count = Some(0);
        }
        Ok(Array::of(parts, false))
    }

    /// An array that an operation of ours made. `valid` where its contents are valid Arrow data; an operation that only
    /// moves rows keeps them so. Flat parts of our own making fit together; with children it is as well to look.
    #[inline]
    pub(crate) fn made(parts: Parts, valid: bool) -> Result<Array> {
        if cfg!(debug_assertions) || !parts.children.is_empty() {
            validate::structure(&parts)?;
        }
        Ok(Array::of(parts, valid))
    }
}
