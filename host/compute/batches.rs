//! The operations over streams of batches: iterators in, iterators out, and nothing done before it is asked for.
//!
//! What a foreign stream gives are such batches ([`exchange::import_batches`]), and
//! [`exchange::export_batches`] makes a stream of the result. The pace is the consumer's:
//! one batch is read for each that is asked for, and where a GPU filters, [`AHEAD`] more, so that the device counts the
//! rows of the next batches while the host waits for those of the first. The first error is the last item.

use std::collections::VecDeque;

use arrow_schema::SchemaRef;

use super::{Aggregates, CastOptions, Predicate, Projection, TakeOptions, cast, filter, nullable, take};
use crate::array::Batches;
use crate::{Array, Batch, Error, Pending, Result, Stream, exchange};

/// How many batches a GPU's filter has begun beyond the one that is asked for.
pub const AHEAD: usize = 2;

/// The rows of each batch where the mask that `mask` finds for it is true: one of its columns ([`column()`]), or the next of
/// another stream ([`in_step`]). Each batch is filtered as by [`filter`].
pub fn filter_batches(
    batches: Batches,
    mut mask: impl FnMut(&Batch) -> Result<Array> + Send + 'static,
    stream: &Stream,
) -> Batches {
    let on = stream.clone();
    ahead(batches, move |batch| Ok(filter(batch, &mask(batch)?, &on)), stream)
}

/// The rows of each batch where a predicate is true that is bound to their schema; each as by
/// [`filter_where`](super::filter_where).
pub fn filter_batches_where(batches: Batches, predicate: Predicate, stream: &Stream) -> Batches {
    let on = stream.clone();
    ahead(batches, move |batch| Ok(predicate.filter(batch, &on)), stream)
}

/// The batches as `filtered` begins to make them, on a GPU some of them before they are asked for.
fn ahead(
    mut batches: Batches,
    mut filtered: impl FnMut(&Batch) -> Result<Pending<Batch>> + Send + 'static,
    stream: &Stream,
) -> Batches {
    let (schema, place) = (batches.schema().clone(), stream.device().place());
    let ahead = if stream.as_gpu().is_some() { AHEAD } else { 0 };
    let mut begin = move || Some(batches.next()?.and_then(|batch| filtered(&batch)));
    let mut under_way: VecDeque<Result<Pending<Batch>>> = VecDeque::new();
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

/// The rows of each batch at the indices that `indices` finds for it; each as by [`take`]. Which of them will have nulls
/// only the indices know, so the fields of every batch are [`nullable`].
pub fn take_batches(
    batches: Batches,
    mut indices: impl FnMut(&Batch) -> Result<Array> + Send + 'static,
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
            Ok(Batch::try_new(to.clone(), columns, rows)?.with_metadata(metadata))
        }),
    )
}

/// Each batch with its columns cast to the types of `to`, by position, under the names of `to`; as by [`cast`].
pub fn cast_batches(
    batches: Batches,
    to: SchemaRef,
    options: &CastOptions<'static>,
    stream: &Stream,
) -> Batches {
    let (options, on, schema) = (options.clone(), stream.clone(), to.clone());
    let casted = move |batch: Result<Batch>| cast(&batch?, &to, &options, &on).wait();
    Batches::new(schema, stream.device().place(), batches.map(casted))
}

/// One row of what the rows of all batches come to, as by [`aggregate`](super::aggregate): every batch is of the schema that the
/// aggregates are bound to. Reads to the end, here and now; on a GPU one batch is begun while another is waited for. A row that fails
/// is one of its batch.
pub fn aggregate_batches(batches: Batches, aggregates: &Aggregates, stream: &Stream) -> Result<Batch> {
    aggregates.of_all(batches, stream)
}

/// What expressions that are bound to the schema come to for each batch, as by [`evaluate`](super::evaluate). Every batch is of the
/// projection's schema.
pub fn evaluate_batches(batches: Batches, projection: Projection, stream: &Stream) -> Batches {
    let (on, schema) = (stream.clone(), projection.schema());
    let to = schema.clone();
    let evaluated = move |batch: Result<Batch>| {
        let made = projection.evaluate(&batch?, &on).wait()?;
        let (columns, metadata, rows) = (made.columns().to_vec(), made.metadata().clone(), made.len());
        Ok(Batch::try_new(to.clone(), columns, rows)?.with_metadata(metadata))
    };
    Batches::new(schema, stream.device().place(), batches.map(evaluated))
}

/// Each batch as it is, once it was found valid, as by [`validate_batch`](crate::exchange::validate_batch): an import that
/// trusts no contents. On a GPU each is downloaded for it.
pub fn validate_batches(batches: Batches, stream: &Stream) -> Batches {
    let (schema, place, stream) = (batches.schema().clone(), batches.place(), stream.clone());
    let validated = move |batch: Result<Batch>| {
        let batch = batch?;
        exchange::validate_batch(&batch, &stream).map(|()| batch)
    };
    Batches::new(schema, place, batches.map(validated))
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
