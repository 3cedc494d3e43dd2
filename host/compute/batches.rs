//! The operations over streams of batches: they take and return iterators, and work only when a batch is
//! requested.
//!
//! [`exchange::import_batches`] turns a foreign stream into such an iterator, and
//! [`exchange::export_batches`] turns the result into a stream. The consumer sets the pace: one batch is read
//! for each that is requested. If a GPU filters, [`AHEAD`] more batches are read, so that the device counts
//! the rows of the next batches while the host waits for those of the first. The first error is the last
//! item.

use std::collections::VecDeque;

use arrow_schema::SchemaRef;

use super::{Aggregates, CastOptions, Predicate, Projection, TakeOptions, cast, filter, nullable, take};
use crate::array::Batches;
use crate::{DeviceArray, DeviceBatch, Error, Pending, Result, Stream, exchange};

/// The number of batches that a filter on a GPU begins in advance.
pub const AHEAD: usize = 2;

/// Filters each batch as by [`filter`]. `mask` returns the mask for a batch: one of its columns
/// ([`column()`]), or the next item of another stream ([`in_step`]).
pub fn filter_batches(
    batches: Batches,
    mut mask: impl FnMut(&DeviceBatch) -> Result<DeviceArray> + Send + 'static,
    stream: &Stream,
) -> Batches {
    let on = stream.clone();
    ahead(batches, move |batch| Ok(filter(batch, &mask(batch)?, &on)), stream)
}

/// Filters each batch by a predicate that is bound to its schema, as by
/// [`filter_where`](super::filter_where).
pub fn filter_batches_where(batches: Batches, predicate: Predicate, stream: &Stream) -> Batches {
    let on = stream.clone();
    ahead(batches, move |batch| Ok(predicate.filter(batch, &on)), stream)
}

/// The results of `filtered`; on a GPU it begins some of them before they are requested.
fn ahead(
    mut batches: Batches,
    mut filtered: impl FnMut(&DeviceBatch) -> Result<Pending<DeviceBatch>> + Send + 'static,
    stream: &Stream,
) -> Batches {
    let (schema, place) = (batches.schema().clone(), stream.device().place());
    let ahead = if stream.as_gpu().is_some() { AHEAD } else { 0 };
    let mut begin = move || Some(batches.next()?.and_then(|batch| filtered(&batch)));
    let mut under_way: VecDeque<Result<Pending<DeviceBatch>>> = VecDeque::new();
    let mut open = true;
    let filtered = std::iter::from_fn(move || {
        while open && under_way.len() <= ahead {
            let next = begin();
            open = matches!(next, Some(Ok(_)));
            under_way.extend(next);
        }
        Some(under_way.pop_front()?.and_then(Pending::wait))
    });
    Batches::new(schema, place, filtered)
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
            let taken = take(&batch, &indices(&batch)?, &options, &on).wait()?;
            let (columns, metadata, rows) = (taken.columns().to_vec(), taken.metadata().clone(), taken.len());
            Ok(DeviceBatch::try_new(to.clone(), columns, rows)?.with_metadata(metadata))
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

/// Aggregates the rows of all batches into one row, as by [`aggregate`](super::aggregate). Every batch must
/// have the schema that the aggregates are bound to. Reads the stream to its end inside the call; on a GPU
/// one batch is begun while another is waited for. The row number in an error counts from the start of its
/// batch.
pub fn aggregate_batches(batches: Batches, aggregates: &Aggregates, stream: &Stream) -> Result<DeviceBatch> {
    aggregates.of_all(batches, stream)
}

/// Evaluates expressions for each batch, as by [`evaluate`](super::evaluate). Every batch must have the
/// projection's schema.
pub fn evaluate_batches(batches: Batches, projection: Projection, stream: &Stream) -> Batches {
    let (on, schema) = (stream.clone(), projection.schema());
    let to = schema.clone();
    let evaluated = move |batch: Result<DeviceBatch>| {
        let made = projection.evaluate(&batch?, &on).wait()?;
        let (columns, metadata, rows) = (made.columns().to_vec(), made.metadata().clone(), made.len());
        Ok(DeviceBatch::try_new(to.clone(), columns, rows)?.with_metadata(metadata))
    };
    Batches::new(schema, stream.device().place(), batches.map(evaluated))
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
