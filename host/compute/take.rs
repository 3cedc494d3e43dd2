//! The rows at given indices.

use super::{admit, admit_all, nullability};
use crate::pass::Pending;
use crate::{Array, Batch, Error, Result, Stream, cpu, gpu};

/// What becomes of an index that is not a row: negative, or the length or more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OutOfBounds {
    /// [`IndexOutOfBounds`](crate::Error::IndexOutOfBounds) with the first such row.
    #[default]
    Error,
    /// A null row.
    Null,
}

/// How to take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TakeOptions {
    /// What becomes of an index that is not a row.
    pub out_of_bounds: OutOfBounds,
}

/// The rows of `values` at `indices`, an array of any integer type; a null index is a null row, and a negative one
/// never counts from the end. Indices into an array of type Null are checked as any others are; arrow-rs does not look at
/// those. Does not synchronise, but for types whose size the device has to find out: on a GPU an
/// index out of bounds is an error of whoever first waits for the result, and a null row meanwhile.
///
/// ```
/// use bowstring::{Stream, compute::{TakeOptions, take}, exchange::{from_arrow, to_arrow}};
/// # fn main() -> bowstring::Result<()> {
/// let values = from_arrow(&arrow_array::StringArray::from(vec!["a", "b", "c"]))?;
/// let indices = from_arrow(&arrow_array::Int64Array::from(vec![Some(2), None, Some(0)]))?;
/// let taken = to_arrow(&take(&values, &indices, &TakeOptions::default(), &Stream::cpu())?)?;
/// assert_eq!(taken.as_ref(), &arrow_array::StringArray::from(vec![Some("c"), None, Some("a")]));
/// # Ok(())
/// # }
/// ```
pub fn take(values: &Array, indices: &Array, options: &TakeOptions, stream: &Stream) -> Result<Array> {
    let _current = stream.enter()?;
    take_later(values, indices, options, stream)?.wait()
}

/// As [`take`], without waiting for the device to know how long strings and lists are.
pub fn take_later(
    values: &Array,
    indices: &Array,
    options: &TakeOptions,
    stream: &Stream,
) -> Result<Pending<Array>> {
    let taken = take_columns(&[values], values.len(), indices, options, stream)?;
    Ok(taken.map(|mut taken| taken.pop().ok_or_else(|| Error::invalid("take", "no array"))))
}

/// The rows of every column at `indices`: one upload, and a launch for each width of values, not for each column. Where an
/// index may be null, or become null for being out of bounds, the fields of the result are [`nullable`](super::nullable).
pub fn take_batch(batch: &Batch, indices: &Array, options: &TakeOptions, stream: &Stream) -> Result<Batch> {
    let _current = stream.enter()?;
    take_batch_later(batch, indices, options, stream)?.wait()
}

/// As [`take_batch`], without waiting for the device to know how long strings and lists are.
pub fn take_batch_later(
    batch: &Batch,
    indices: &Array,
    options: &TakeOptions,
    stream: &Stream,
) -> Result<Pending<Batch>> {
    let columns: Vec<&Array> = batch.columns().iter().collect();
    let taken = take_columns(&columns, batch.len(), indices, options, stream)?;
    let schema = nullability::of_taken(batch.schema(), indices, options.out_of_bounds == OutOfBounds::Null);
    let (metadata, rows) = (batch.metadata().clone(), indices.len());
    Ok(taken.map(move |columns| Ok(Batch::try_new(schema, columns, rows)?.with_metadata(metadata))))
}

fn take_columns(
    columns: &[&Array],
    len: usize,
    indices: &Array,
    options: &TakeOptions,
    stream: &Stream,
) -> Result<Pending<Vec<Array>>> {
    let _current = stream.enter()?;
    let (columns, indices) = (admit_all("take", columns, stream)?, &*admit("take", indices, stream)?);
    let columns: Vec<&Array> = columns.iter().map(|column| &**column).collect();
    if stream.as_gpu().is_some() {
        return gpu::take(&columns, len, indices, options.out_of_bounds == OutOfBounds::Null, stream);
    }
    let large = indices.len() >= cpu::selection::PARALLEL;
    Ok(Pending::known(cpu::threads::among_threads(large, |_| {
        let pool = stream.device().host_pool();
        let mut prepared = cpu::indices::Indices::new(indices, pool)?;
        if options.out_of_bounds == OutOfBounds::Null {
            prepared = prepared.null_out_of_bounds(len, pool)?;
        } else if columns.is_empty() {
            prepared.check(len)?;
        }
        columns.iter().map(|column| cpu::take::take(column, &prepared, pool)).collect()
    })))
}
