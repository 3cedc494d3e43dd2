//! The rows that a mask keeps.

use super::Selection;
use crate::{Array, Batch, Result, Stream};

/// The rows of `values` where `mask` is true; null is not. Who filters several arrays by one mask prepares a
/// [`Selection`]. Synchronises, once: see there.
pub fn filter(values: &Array, mask: &Array, stream: &Stream) -> Result<Array> {
    Selection::new(mask, stream)?.filter(values)
}

/// The rows of every column where `mask` is true, the mask read once.
pub fn filter_batch(batch: &Batch, mask: &Array, stream: &Stream) -> Result<Batch> {
    Selection::new(mask, stream)?.filter_batch(batch)
}
