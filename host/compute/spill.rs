//! The place of rows that wait because a device has no room for them.

use std::fmt;
use std::sync::Arc;

use super::arrays::bytes_of;
use crate::array::Place;
use crate::{DeviceArray, Error, Result};

/// Keeps the rows that an operation spills. Without one they stay in host memory.
///
/// An operation is done with rows when it drops the arrays, whose buffers may be a mapped file's: then their
/// owners say when the file is not needed any more.
pub trait Spill: fmt::Debug + Send + Sync {
    /// Moves columns, which are in host memory and of any lengths, to another place that the host reads.
    /// Returns the same columns there. They take `bytes` bytes.
    fn spill(&self, columns: Vec<DeviceArray>, bytes: usize) -> Result<Vec<DeviceArray>>;
}

/// Spills columns, if there is a place for them.
pub(super) fn moved(columns: Vec<DeviceArray>, spill: Option<&Arc<dyn Spill>>) -> Result<Vec<DeviceArray>> {
    let Some(spill) = spill else { return Ok(columns) };
    let shape = |column: &DeviceArray| (column.data_type().clone(), column.len());
    let shapes: Vec<_> = columns.iter().map(shape).collect();
    let bytes = columns.iter().map(bytes_of).sum();
    let moved = spill.spill(columns, bytes)?;
    if moved.iter().map(shape).ne(shapes) || moved.iter().any(|column| column.place() != Place::CPU) {
        return Err(Error::invalid("spill", "the place of spilled rows has returned other columns"));
    }
    Ok(moved)
}
