//! The rows that are folded.

use crate::array::{Buffer, DeviceArray};
use crate::cpu::bitmap::Bits;
use crate::cpu::rows;
use crate::device::{HostMemory, HostPool};

/// Rows with their groups, and the values of a fold.
pub(super) struct Rows<'a> {
    pub ids: &'a [u32],
    pub groups: usize,
    pub values: Option<&'a DeviceArray>,
    pub valid: Option<Bits<'a>>,
    pub pool: &'a HostPool,
}

/// The states as a buffer, and the bytes.
pub(super) type Folded = (Buffer, Option<HostMemory>);

impl Rows<'_> {
    /// The values from the first row on. Without any, all are zero.
    pub fn values<const W: usize>(&self) -> &[[u8; W]] {
        self.values.map_or(&[], |values| rows::values(&values.buffers()[0], values.offset(), values.len()))
    }
}
