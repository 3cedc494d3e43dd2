//! Iterators over the batches of a stream.

use std::collections::VecDeque;

use arrow_schema::SchemaRef;

use crate::array::Batches;
use crate::{DeviceBatch, Pending, Result};

/// The results of `begin` for each batch, of which `ahead` are begun before they are requested.
pub(super) fn each_ahead(
    mut batches: Batches,
    ahead: usize,
    mut begin: impl FnMut(&DeviceBatch) -> Result<Pending<DeviceBatch>> + Send + 'static,
) -> impl Iterator<Item = Result<DeviceBatch>> + Send {
    let mut next = move || Some(batches.next()?.and_then(|batch| begin(&batch)));
    let mut under_way: VecDeque<Result<Pending<DeviceBatch>>> = VecDeque::new();
    let mut open = true;
    std::iter::from_fn(move || {
        while open && under_way.len() <= ahead {
            let next = next();
            open = matches!(next, Some(Ok(_)));
            under_way.extend(next);
        }
        Some(under_way.pop_front()?.and_then(Pending::wait))
    })
}

/// The batch under the schema of its stream, whose nullability may differ from its own.
pub(super) fn under(schema: &SchemaRef, batch: &DeviceBatch) -> Result<DeviceBatch> {
    let made = DeviceBatch::try_new(schema.clone(), batch.columns().to_vec(), batch.len())?;
    Ok(made.with_metadata(batch.metadata().clone()))
}

/// The batches of an iterator that is made when the first is requested.
pub(super) fn made_later<I: Iterator<Item = Result<DeviceBatch>>>(
    make: impl FnOnce() -> Result<I>,
) -> impl Iterator<Item = Result<DeviceBatch>> {
    std::iter::once_with(make).flat_map(|made| {
        let (made, error) = made.map_or_else(|error| (None, Some(error)), |made| (Some(made), None));
        error.into_iter().map(Err).chain(made.into_iter().flatten())
    })
}
