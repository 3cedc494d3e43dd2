//! The groups of some rows.

use crate::{DeviceArray, DeviceBatch};

/// The groups of some rows.
#[derive(Clone, Debug)]
pub(in crate::compute) struct Partial {
    /// The keys of each group.
    pub keys: DeviceBatch,
    /// The states of each group.
    pub states: Vec<DeviceArray>,
    /// The rows that are kept, in their order.
    pub kept: Vec<DeviceBatch>,
}

impl Partial {
    /// The number of rows in memory.
    pub fn rows(&self) -> usize {
        self.keys.len() + self.kept.iter().map(DeviceBatch::len).sum::<usize>()
    }
}
