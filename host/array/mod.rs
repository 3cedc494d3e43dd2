//! L2: arrays, without drivers or kernels. A [`DeviceArray`] is a data type, a length and an offset, buffers
//! with their owners, children and a dictionary, on one device. Only the device may follow its addresses.
//!
//! The one idea of this file: an array is made of parts that have been checked. This file has the
//! constructors that check them.

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

pub use batch::{DeviceBatch, Metadata};
pub(crate) use batch::{columns_are_of, rows_of};
pub use batches::Batches;
pub(crate) use buffer::SharedBuffers;
pub use buffer::{Bitmap, Buffer, Owner};
pub use columns::{Columns, nullable};
pub(crate) use extents::{fits, number};
pub(crate) use layout::{
    Layout, Slot, any_part, children, forbids_nulls, is_list, large_list_of, layout, null_member, says_null,
};
pub use parts::{DeviceArray, Parts};
pub use place::{Place, Ready};
pub(crate) use side::{Side, all_inside, outside};
pub(crate) use validate::{has_bad_parameter, well_formed};

use arrow_schema::DataType;

use crate::Result;

impl DeviceArray {
    /// Creates an array of these parts, if they fit together; `validate.rs` has the checks. Reads no device
    /// memory. Afterwards every buffer knows its length, or the number on its device that states it: see
    /// `extents.rs`.
    pub fn try_new(mut parts: Parts) -> Result<DeviceArray> {
        validate::structure(&parts)?;
        extents::bind(&mut parts)?;
        if parts.validity.is_none() {
            parts.null_count = Some(0);
        }
        Ok(DeviceArray::of(parts, false))
    }

    /// Creates an array that one of our operations produced. Pass `valid` if its contents are valid Arrow
    /// data; an operation that only moves rows keeps its input's flag. Flat parts of our own making always
    /// fit together, so only arrays with children are checked.
    #[inline]
    pub(crate) fn made(parts: Parts, valid: bool) -> Result<DeviceArray> {
        if cfg!(debug_assertions) || !parts.children.is_empty() {
            validate::structure(&parts)?;
        }
        Ok(DeviceArray::of(parts, valid))
    }

    /// Creates an array of row numbers, groups or ranks.
    pub(crate) fn uint32(numbers: Buffer, len: usize) -> Result<DeviceArray> {
        DeviceArray::made(Parts { buffers: vec![numbers], ..Parts::new(DataType::UInt32, len) }, true)
    }

    /// The same buffers under another type. All text is valid as bytes, and values of fixed width may have
    /// any bits.
    pub(crate) fn reinterpreted(&self, to: &DataType) -> Result<DeviceArray> {
        if self.data_type() == to {
            return Ok(self.clone());
        }
        let mut parts = self.clone().into_parts();
        parts.data_type = to.clone();
        DeviceArray::made(parts, self.known_valid())
    }
}
