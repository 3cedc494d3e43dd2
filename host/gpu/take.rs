//! Take: values by indices, columns of equal width in one launch. Everything but an error is known beforehand, so
//! nothing is waited for: an index out of range surfaces when somebody waits for the result. Only how much strings and
//! lists have is data: where there are some, the host looks at the totals of all of them, once, and at the null counts. How many runs
//! there will be, and how many rows the members of a union, is data too: those arrays are taken by themselves when that look
//! is over.

use super::indices::{Outside, index_width};
use super::parts::{empty_like, nulls};
use super::structure::unions::no_null;
use super::take_tables::Plan;
use crate::array::Array;
use crate::pass::{Pass, Pending};
use crate::{Error, Result, Stream};

/// The rows of columns of `rows` rows at `indices`. Where rows are ranges, the result synchronises once when it is waited
/// for, and where they are runs or a union's again, see [`structure`](super::structure); else it is there.
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
    // Where there is no row to take, all are null, if the indices have nothing else to say.
    let planned = if rows == 0 { &[] } else { columns };
    let mut plan = Plan::new(indices, rows, outside, take_one)?;
    for column in planned {
        plan.add(&pass, column)?;
    }
    let taken = plan.launch(&mut pass)?;
    let gpu = pass.gpu().clone();
    let counters = taken.granted.counters().clone();
    if taken.reads {
        return pass.read_later(&[&counters], move |mut pass, words| {
            taken.indices.check(&gpu, words)?;
            let built = taken.build(&mut pass, words)?;
            pass.finish()?;
            Ok(built)
        });
    }
    let built = match rows {
        0 => {
            // Nothing of a result is there to wait for later. Synchronises, to be sure.
            if !outside.is_null() {
                taken.indices.check(&gpu, &pass.read(&counters)?)?;
            }
            let of_nulls = |column: &&Array| {
                let data_type = column.data_type();
                nulls(&mut pass, data_type, Some(column), indices.len())?.ok_or_else(no_null)
            };
            columns.iter().map(of_nulls).collect::<Result<_>>()?
        }
        _ => {
            if !outside.is_null() {
                let indices = taken.indices.clone();
                pass.keep_for_checks(&indices.array);
                pass.report(&counters, move |words| indices.check(&gpu, words))?;
            }
            taken.build(&mut pass, &[])?
        }
    };
    pass.finish()?;
    Ok(Pending::known(Ok(built)))
}

/// The rows of one array. Synchronises where a take does.
pub(crate) fn take_one(array: &Array, indices: &Array, outside: Outside, stream: &Stream) -> Result<Array> {
    let taken = take(&[array], array.len(), indices, outside, stream)?.wait()?;
    taken.into_iter().next().ok_or_else(|| Error::invalid("take", "no array"))
}
