//! The operations over streams of batches: iterators in, iterators out, and nothing done before it is asked for.
//!
//! What a foreign stream gives is such an iterator ([`exchange::import_batches`]), and
//! [`exchange::export_batches`] makes a stream of the result. Who pulls decides the pace:
//! one batch is read for each that is asked for, and where a GPU filters, [`AHEAD`] more, so that the device counts the
//! rows of the next batches while the host waits for those of the first. The first error is the last item.

use std::collections::VecDeque;

use arrow_schema::SchemaRef;

use super::{CastOptions, TakeOptions, cast_batch, filter_batch_later, nullable, take_batch};
use crate::pass::Pending;
use crate::{Array, Batch, Error, Result, Stream, exchange};

/// How many batches a GPU's filter has begun beyond the one that is asked for.
pub const AHEAD: usize = 2;

/// The rows of each batch where the mask that `mask` finds for it is true: one of its columns, or the next of another
/// stream (see [`in_step`]). Each batch is filtered as by [`filter_batch`](super::filter_batch).
pub fn filter_batches<B, M>(
    batches: B,
    mut mask: M,
    stream: &Stream,
) -> impl Iterator<Item = Result<Batch>> + use<B, M>
where
    B: Iterator<Item = Result<Batch>>,
    M: FnMut(&Batch) -> Result<Array>,
{
    let on = stream.clone();
    let mut begun = batches.map(move |batch| {
        let batch = batch?;
        filter_batch_later(&batch, &mask(&batch)?, &on)
    });
    let ahead = if stream.as_gpu().is_some() { AHEAD } else { 0 };
    let mut under_way: VecDeque<Result<Pending<Batch>>> = VecDeque::new();
    let mut open = true;
    let filtered = std::iter::from_fn(move || {
        while open && under_way.len() <= ahead {
            let next = begun.next();
            open = matches!(next, Some(Ok(_)));
            under_way.extend(next);
        }
        Some(under_way.pop_front()?.and_then(Pending::wait))
    });
    until_error(filtered)
}

/// The rows of each batch at the indices that `indices` finds for it; each as by [`take_batch`]. Which of them will have nulls
/// only the indices know, so the fields of every batch are [`nullable`].
pub fn take_batches<B, I>(
    batches: B,
    mut indices: I,
    options: &TakeOptions,
    stream: &Stream,
) -> impl Iterator<Item = Result<Batch>> + use<B, I>
where
    B: Iterator<Item = Result<Batch>>,
    I: FnMut(&Batch) -> Result<Array>,
{
    let (options, stream) = (*options, stream.clone());
    until_error(batches.map(move |batch| {
        let batch = batch?;
        let taken = take_batch(&batch, &indices(&batch)?, &options, &stream)?;
        let (schema, metadata) = (nullable(taken.schema()), taken.metadata().clone());
        let rows = taken.len();
        Ok(Batch::try_new(schema, taken.columns().to_vec(), rows)?.with_metadata(metadata))
    }))
}

/// Each batch with its columns cast to the types of `to`, by position, under the names of `to`; as by
/// [`cast_batch`].
pub fn cast_batches<B: Iterator<Item = Result<Batch>>>(
    batches: B,
    to: SchemaRef,
    options: &CastOptions<'static>,
    stream: &Stream,
) -> impl Iterator<Item = Result<Batch>> + use<B> {
    let (options, stream) = (options.clone(), stream.clone());
    until_error(batches.map(move |batch| cast_batch(&batch?, &to, &options, &stream)))
}

/// Each batch as it is, once it was found valid, as by [`validate_batch`](crate::exchange::validate_batch): an import that
/// trusts no contents. On a GPU each is downloaded for it.
pub fn validate_batches<B: Iterator<Item = Result<Batch>>>(
    batches: B,
    stream: &Stream,
) -> impl Iterator<Item = Result<Batch>> + use<B> {
    let stream = stream.clone();
    until_error(batches.map(move |batch| {
        let batch = batch?;
        exchange::validate_batch(&batch, &stream).map(|()| batch)
    }))
}

/// Each array as it is, once it was found valid, as by [`validate_on`](crate::exchange::validate_on).
pub fn validate_arrays<A: Iterator<Item = Result<Array>>>(
    arrays: A,
    stream: &Stream,
) -> impl Iterator<Item = Result<Array>> + use<A> {
    let stream = stream.clone();
    until_error(arrays.map(move |array| {
        let array = array?;
        exchange::validate_on(&array, &stream).map(|()| array)
    }))
}

/// Column number `index` of each batch.
pub fn column(index: usize) -> impl FnMut(&Batch) -> Result<Array> {
    move |batch| {
        let found = batch.columns().get(index);
        found
            .cloned()
            .ok_or_else(|| Error::invalid("column", format!("column {index} of {}", batch.columns().len())))
    }
}

/// An array for each batch from an iterator beside it, which must not end before the batches do.
pub fn in_step(mut arrays: impl Iterator<Item = Result<Array>>) -> impl FnMut(&Batch) -> Result<Array> {
    move |_| {
        let next = arrays.next();
        next.unwrap_or_else(|| Err(Error::invalid("stream", "the arrays ended before the batches")))
    }
}

/// The items up to the first error, that one included; the source is let go of then.
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
