//! The `interleave` operation: rows of several arrays or batches.

use arrow_array::UInt64Array;

use super::{Columns, TakeOptions, concat, take};
use crate::exchange::from_arrow;
use crate::{Error, Pending, Stream};

/// Takes rows of several arrays of one type, or batches with the same columns: each of `indices` is the
/// number of one of the parts and a row of it. An index out of bounds is an error, as are no parts.
///
/// All parts are concatenated, and then the rows are taken; see [`concat()`] and [`take`] for how often that
/// synchronises on a GPU.
///
/// ```
/// use arrow_array::StringArray;
/// use bowstring::{Stream, compute::interleave, exchange::{from_arrow, to_arrow}};
/// # fn main() -> bowstring::Result<()> {
/// let parts = [vec!["a", "b"], vec!["c"]].map(|part| from_arrow(&StringArray::from(part)).unwrap());
/// let rows = interleave(&[&parts[0], &parts[1]], &[(1, 0), (0, 1), (1, 0)], &Stream::cpu()).wait()?;
/// assert_eq!(to_arrow(&rows)?.as_ref(), &StringArray::from(vec!["c", "b", "c"]));
/// # Ok(())
/// # }
/// ```
pub fn interleave<C: Columns>(parts: &[&C], indices: &[(usize, usize)], stream: &Stream) -> Pending<C> {
    Pending::begun(|| {
        let mut firsts = vec![0u64];
        for part in parts {
            let end = firsts[firsts.len() - 1].checked_add(part.rows() as u64);
            firsts.push(end.ok_or_else(|| Error::invalid("interleave", "too many rows"))?);
        }
        let place = |(part, row): &(usize, usize)| match parts.get(*part) {
            Some(rows) if *row < rows.rows() => Ok(firsts[*part] + *row as u64),
            _ => Err(Error::invalid("interleave", format!("no row {row} of part {part}"))),
        };
        let places = indices.iter().map(place).collect::<Result<Vec<u64>, Error>>()?;
        let places = stream.upload(&from_arrow(&UInt64Array::from(places))?)?;
        let (all, on) = (concat(parts, stream), stream.clone());
        Ok(Pending::begin(stream, async move {
            let all = all.await?;
            take(&all, &places, &TakeOptions::default(), &on).await
        }))
    })
}
