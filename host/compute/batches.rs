//! The operations over streams of batches: they take and return iterators, and work only when a batch is
//! requested.
//!
//! [`exchange::import_batches`] turns a foreign stream into such an iterator, and
//! [`exchange::export_batches`] turns the result into a stream. The consumer sets the pace: one batch is read
//! for each that is requested. If a GPU filters, two more batches are read, so that the device counts the
//! rows of the next batches while the host waits for those of the first. The first error is the last
//! item.

use std::sync::Arc;

use arrow_schema::SchemaRef;

use super::iterators::{each_ahead, made_later, under};
use super::join::without_rows;
use super::{
    CastOptions, JoinBuild, JoinOptions, JoinProbe, SortOptions, Sorting, TakeOptions, cast, engine, filter,
    join, nullable, take,
};
use crate::array::Batches;
use crate::pass::block_on;
use crate::{DeviceArray, DeviceBatch, Error, Result, Stream, exchange};

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

/// Sorts the rows of all batches by columns, which it knows by their numbers: the first `limit` rows, or all.
/// See [`Sorting`] for rows that take more than `memory` bytes.
pub fn sort_batches(
    batches: Batches,
    by: &[(usize, SortOptions)],
    limit: Option<usize>,
    memory: Option<usize>,
    stream: &Stream,
) -> Batches {
    let (schema, on) = (batches.schema().clone(), stream.clone());
    let mut sorting = Sorting::new(by, stream).limited(limit, memory);
    let to = schema.clone();
    let made = made_later(move || {
        for batch in batches {
            entered(&on, sorting.push(&batch?))?;
        }
        let mut sorted = entered(&on, sorting.finish())?;
        let on = on.clone();
        Ok(std::iter::from_fn(move || entered(&on, sorted.next()).transpose()))
    });
    Batches::new(schema, stream.device().place(), made.map(move |batch| under(&to, &batch?)))
}

/// Joins two streams by columns, which it knows by their numbers. The left stream is read first. See
/// [`JoinBuild`] for left rows that take more than `memory` bytes, and [`join`] for the result.
pub fn join_batches(
    [left, right]: [Batches; 2],
    on: [&[usize]; 2],
    options: &JoinOptions,
    memory: Option<usize>,
    stream: &Stream,
) -> Result<Batches> {
    let schemas = [left.schema().clone(), right.schema().clone()];
    let [no_left, no_right] = schemas.each_ref().map(|schema| without_rows(schema, stream));
    let (no_left, no_right) = (no_left?, no_right?);
    let of = |columns: &[usize], batch: &DeviceBatch| -> Result<Vec<DeviceArray>> {
        columns.iter().map(|number| column(*number)(batch)).collect()
    };
    let [left_on, right_on] = on.map(<[usize]>::to_vec);
    let none =
        join(&no_left, &no_right, (&of(&left_on, &no_left)?, &of(&right_on, &no_right)?), options, stream);
    let schema = none.wait()?.schema().clone();
    let mut build = JoinBuild::new(options, stream).limited(memory);
    let (to, on) = (schema.clone(), stream.clone());
    let made = made_later(move || {
        for batch in std::iter::once(Ok(no_left)).chain(left) {
            let batch = batch?;
            entered(&on, build.push(&batch, &of(&left_on, &batch)?))?;
        }
        let built = Arc::new(entered(&on, build.finish(1))?);
        let (mut probe, mut right) = (JoinProbe::new(&built, &schemas[1], &on), Some(right));
        let on = on.clone();
        let mut rows = move || loop {
            if let Some(rows) = entered(&on, probe.next())? {
                return Ok(Some(rows));
            }
            match right.as_mut().and_then(Iterator::next).transpose()? {
                Some(batch) => entered(&on, probe.push(&batch, &of(&right_on, &batch)?))?,
                None if right.take().is_some() => probe.end()?,
                None => return Ok(None),
            }
        };
        Ok(std::iter::from_fn(move || rows().transpose()))
    });
    Ok(Batches::new(schema, stream.device().place(), made.map(move |batch| under(&to, &batch?))))
}

/// Runs an operation on a stream, and blocks until it ends. The device is current only meanwhile: the sources
/// of batches may be foreign code, which relies on its own.
fn entered<T>(stream: &Stream, operation: impl Future<Output = Result<T>>) -> Result<T> {
    let _current = stream.enter()?;
    block_on(operation)
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
