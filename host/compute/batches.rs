//! The operations over streams of batches: they take and return iterators, and work only when a batch is
//! requested.
//!
//! [`exchange::import_batches`] turns a foreign stream into such an iterator, and
//! [`exchange::export_batches`] turns the result into a stream. The consumer sets the pace: one batch is read
//! for each that is requested. If a GPU filters, two more batches are read, so that the device counts the
//! rows of the next batches while the host waits for those of the first. The first error is the last
//! item.

use std::collections::VecDeque;

use arrow_schema::SchemaRef;

use super::{CastOptions, TakeOptions, cast, engine, filter, nullable, take};
use crate::array::Batches;
use crate::{DeviceArray, DeviceBatch, Error, Pending, Result, Stream, exchange};

/// Filters each batch as by [`filter`]. `mask` returns the mask for a batch: one of its columns
/// ([`column()`]), or the next item of another stream ([`in_step`]).
pub fn filter_batches(
    batches: Batches,
    mut mask: impl FnMut(&DeviceBatch) -> Result<DeviceArray> + Send + 'static,
    stream: &Stream,
) -> Batches {
    let (schema, place, on) = (batches.schema().clone(), stream.device().place(), stream.clone());
    let filtered = move |batch: &DeviceBatch| Ok(filter(batch, &mask(batch)?, &on));
    Batches::new(schema, place, each_ahead(batches, engine(stream).batches_ahead(), filtered))
}

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

/// Takes rows of each batch as by [`take`], at the indices that `indices` returns for it. The indices
/// determine which rows are null, so the fields of every batch are [`nullable`].
pub fn take_batches(
    batches: Batches,
    mut indices: impl FnMut(&DeviceBatch) -> Result<DeviceArray> + Send + 'static,
    options: &TakeOptions,
    stream: &Stream,
) -> Batches {
    let (options, on, schema) = (*options, stream.clone(), nullable(batches.schema()));
    let to = schema.clone();
    Batches::new(
        schema,
        stream.device().place(),
        batches.map(move |batch| {
            let batch = batch?;
            under(&to, &take(&batch, &indices(&batch)?, &options, &on).wait()?)
        }),
    )
}

/// Casts the columns of each batch to the types of `to`, by position, as by [`cast`]. The results have the
/// names of `to`.
pub fn cast_batches(
    batches: Batches,
    to: SchemaRef,
    options: &CastOptions<'static>,
    stream: &Stream,
) -> Batches {
    let (options, on, schema) = (options.clone(), stream.clone(), to.clone());
    let casted = move |batch: Result<DeviceBatch>| cast(&batch?, &to, &options, &on).wait();
    Batches::new(schema, stream.device().place(), batches.map(casted))
}

/// Validates each batch, as by [`validate_batch`](crate::exchange::validate_batch), and passes it on
/// unchanged. Use this for imports from untrusted producers. On a GPU each batch is downloaded for it.
pub fn validate_batches(batches: Batches, stream: &Stream) -> Batches {
    let (schema, place, stream) = (batches.schema().clone(), batches.place(), stream.clone());
    let validated = move |batch: Result<DeviceBatch>| {
        let batch = batch?;
        exchange::validate_batch(&batch, &stream).map(|()| batch)
    };
    Batches::new(schema, place, batches.map(validated))
}

/// Validates each array, as by [`validate_on`](crate::exchange::validate_on), and passes it on unchanged.
pub fn validate_arrays<A: Iterator<Item = Result<DeviceArray>>>(
    arrays: A,
    stream: &Stream,
) -> impl Iterator<Item = Result<DeviceArray>> + use<A> {
    let stream = stream.clone();
    until_error(arrays.map(move |array| {
        let array = array?;
        exchange::validate_on(&array, &stream).map(|()| array)
    }))
}

/// Selects column number `index` of each batch.
pub fn column(index: usize) -> impl FnMut(&DeviceBatch) -> Result<DeviceArray> {
    move |batch| {
        let found = batch.columns().get(index);
        found
            .cloned()
            .ok_or_else(|| Error::invalid("column", format!("column {index} of {}", batch.columns().len())))
    }
}

/// Supplies one array per batch from a second iterator, which must not end before the batches do.
pub fn in_step(
    mut arrays: impl Iterator<Item = Result<DeviceArray>>,
) -> impl FnMut(&DeviceBatch) -> Result<DeviceArray> {
    move |_| {
        let next = arrays.next();
        next.unwrap_or_else(|| Err(Error::invalid("stream", "the arrays ended before the batches")))
    }
}

/// The items up to and including the first error; the source is dropped then.
fn until_error<T>(items: impl Iterator<Item = Result<T>>) -> impl Iterator<Item = Result<T>> {
    let mut source = Some(items);
    std::iter::from_fn(move || {
        let next = source.as_mut()?.next();
        if !matches!(next, Some(Ok(_))) {
            source = None;
        }
        next
    })
}
