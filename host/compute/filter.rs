//! The rows that a mask keeps.

use super::selection::{check_mask, check_rows};
use super::{admit, admit_all};
use crate::cpu::selection::PARALLEL;
use crate::cpu::threads::among_threads;
use crate::pass::Pending;
use crate::{Array, Batch, Error, Result, Stream, cpu, gpu};

/// The rows of `values` where `mask` is true; null is not. The mask is as long as the values; arrow-rs takes a shorter one,
/// and leaves out the rows beyond it. Who filters several arrays by one mask prepares a
/// [`Selection`](super::Selection). Synchronises, once.
pub fn filter(values: &Array, mask: &Array, stream: &Stream) -> Result<Array> {
    if stream.as_gpu().is_some() {
        let _current = stream.enter()?;
        return filter_later(values, mask, stream)?.wait();
    }
    let (mask, values) = (&*admit("filter", mask, stream)?, &*admit("filter", values, stream)?);
    check(&[values], mask)?;
    among_threads(mask.len() >= PARALLEL, |_| {
        let pool = stream.device().host_pool();
        cpu::filter::filter(values, &cpu::selection::Selection::of_mask(mask, pool)?, pool)
    })
}

/// As [`filter`], without waiting for the device to know how many rows there are.
pub fn filter_later(values: &Array, mask: &Array, stream: &Stream) -> Result<Pending<Array>> {
    let columns = filter_columns(&[values], mask, stream)?;
    Ok(columns.map(|(mut columns, _)| columns.pop().ok_or_else(|| Error::invalid("filter", "no array"))))
}

/// The rows of every column where `mask` is true, the mask read once. Synchronises, once.
pub fn filter_batch(batch: &Batch, mask: &Array, stream: &Stream) -> Result<Batch> {
    let _current = stream.enter()?;
    filter_batch_later(batch, mask, stream)?.wait()
}

/// As [`filter_batch`], without waiting for the device to know how many rows there are.
pub fn filter_batch_later(batch: &Batch, mask: &Array, stream: &Stream) -> Result<Pending<Batch>> {
    check_rows(batch.len(), mask.len())?;
    let columns: Vec<&Array> = batch.columns().iter().collect();
    let like = batch.like();
    Ok(filter_columns(&columns, mask, stream)?.map(|(columns, rows)| like(columns, rows)))
}

/// The kept rows of each column, and how many they are.
fn filter_columns(columns: &[&Array], mask: &Array, stream: &Stream) -> Result<Pending<(Vec<Array>, usize)>> {
    let _current = stream.enter()?;
    let (mask, columns) = (&*admit("filter", mask, stream)?, admit_all("filter", columns, stream)?);
    let columns: Vec<&Array> = columns.iter().map(|column| &**column).collect();
    check(&columns, mask)?;
    if stream.as_gpu().is_some() {
        return Ok(gpu::filter(&columns, mask, stream)?.map(|filtered| Ok((filtered.columns, filtered.rows))));
    }
    Ok(Pending::known(among_threads(mask.len() >= PARALLEL, |_| {
        let pool = stream.device().host_pool();
        let selection = cpu::selection::Selection::of_mask(mask, pool)?;
        let kept = columns.iter().map(|column| cpu::filter::filter(column, &selection, pool));
        Ok((kept.collect::<Result<_>>()?, selection.len()))
    })))
}

fn check(columns: &[&Array], mask: &Array) -> Result<()> {
    check_mask(mask)?;
    columns.iter().try_for_each(|column| check_rows(column.len(), mask.len()))
}
