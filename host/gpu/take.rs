//! Take: values by indices, with columns of equal width in one launch. Output sizes are known beforehand, so
//! the call does not wait: an index out of range surfaces when the result is waited for. Strings and lists
//! are the exception: the host reads the totals of all of them once, together with the null counts. The
//! number of runs, and of rows in a union's members, is data too; the host takes such arrays separately after
//! that read.

use super::indices::{Outside, index_width};
use super::parts::{empty_like, nulls};
use super::structure::unions::no_null;
use super::take_tables::Plan;
use crate::array::Array;
use crate::pass::{Pass, Pending};
use crate::{Error, Result, Stream};

/// Takes the rows at `indices` from columns of `rows` rows. If rows are ranges, it reads numbers once; for
/// runs and unions it reads more, see [`structure`](super::structure). Otherwise the result is known at once.
pub(crate) fn take(
    columns: &[&Array],
    rows: usize,
    indices: &Array,
    outside: Outside,
    stream: &Stream,
) -> Result<Pending<Vec<Array>>> {
    let mut pass = Pass::begin("take", stream)?;
    pass.input(indices)?;
    for column in columns {
        pass.input(column)?;
    }
    if indices.is_empty() {
        index_width(indices.data_type())?;
        let taken = columns.iter().map(|column| empty_like(&pass, column)).collect::<Result<_>>()?;
        pass.finish()?;
        return Ok(Pending::known(Ok(taken)));
    }
    // With no row to take from, every row is null, provided that the indices are null or may be out of
    // bounds.
    let planned = if rows == 0 { &[] } else { columns };
    let mut plan = Plan::new(indices, rows, outside, take_one)?;
    for column in planned {
        plan.add(&pass, column)?;
    }
    let taken = plan.launch(&mut pass)?;
    let gpu = pass.gpu().clone();
    let counters = taken.granted.counters().clone();
    let without_rows: Vec<Array> =
        if rows == 0 { columns.iter().copied().cloned().collect() } else { vec![] };
    Ok(Pending::begin(stream, async move {
        let mut words = vec![];
        // Without rows the result depends on no launch that could report the error later.
        if taken.reads || rows == 0 && !outside.is_null() {
            words = pass.read(&[&counters]).await?;
            taken.indices.check(&gpu, &words)?;
        } else if !outside.is_null() {
            let indices = taken.indices.clone();
            pass.keep_for_checks(&indices.array);
            pass.report(&counters, move |words| indices.check(&gpu, words))?;
        }
        let of_nulls = |pass: &mut Pass, column: &Array| {
            nulls(pass, column.data_type(), Some(column), taken.indices.len())?.ok_or_else(no_null)
        };
        let built = match rows {
            0 => without_rows.iter().map(|column| of_nulls(&mut pass, column)).collect::<Result<_>>()?,
            _ => taken.build(&mut pass, &words).await?,
        };
        pass.finish()?;
        Ok(built)
    }))
}

/// Takes rows of one array, as [`take`] does.
pub(crate) fn take_one(
    array: &Array,
    indices: &Array,
    outside: Outside,
    stream: &Stream,
) -> Result<Pending<Array>> {
    let taken = take(&[array], array.len(), indices, outside, stream)?;
    Ok(taken.map(|taken| taken.into_iter().next().ok_or_else(|| Error::invalid("take", "no array"))))
}
