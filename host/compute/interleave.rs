//! The `interleave` operation: rows of several arrays or batches.

use arrow_array::UInt64Array;
use arrow_schema::DataType;

use super::{Columns, TakeOptions, concat, take};
use crate::array::any_part;
use crate::exchange::from_arrow;
use crate::{DeviceArray, Error, Pending, Result, Stream};

/// Takes rows of several arrays of one type, or batches with the same columns: each of `indices` is the
/// number of one of the parts and a row of it. An index out of bounds is an error, as are no parts.
///
/// All parts are concatenated, and then the rows are taken; of dictionaries and runs, the rows of each part
/// are taken first. See [`concat()`] and [`take`] for how often that synchronises on a GPU.
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
        let unknown = |(part, row): &(usize, usize)| parts.get(*part).is_none_or(|rows| *row >= rows.rows());
        if let Some((part, row)) = indices.iter().find(|place| unknown(place)) {
            return Err(Error::invalid("interleave", format!("no row {row} of part {part}")));
        }
        let mut arrays = parts.iter().flat_map(|part| part.arrays());
        let is_encoded =
            |part: &DataType| matches!(part, DataType::Dictionary(..) | DataType::RunEndEncoded(..));
        match arrays.any(|array| any_part(array.data_type(), is_encoded)) {
            true => of_few(parts, indices, stream),
            false => of_all(parts, indices, stream),
        }
    })
}

/// Concatenates the parts, and then takes the rows.
fn of_all<C: Columns>(parts: &[&C], indices: &[(usize, usize)], stream: &Stream) -> Result<Pending<C>> {
    let firsts = firsts(parts.iter().map(|part| part.rows()))?;
    let places = indices.iter().map(|(part, row)| firsts[*part] + *row as u64);
    let (places, all, on) = (uploaded(places.collect(), stream)?, concat(parts, stream), stream.clone());
    Ok(Pending::begin(stream, async move {
        let all = all.await?;
        take(&all, &places, &TakeOptions::default(), &on).await
    }))
}

/// As [`of_all`], for dictionaries and runs: takes the rows of each part first. The keys and the ends then
/// need to number only the values and the rows of those, as in arrow-rs.
fn of_few<C: Columns>(parts: &[&C], indices: &[(usize, usize)], stream: &Stream) -> Result<Pending<C>> {
    let mut picked = vec![vec![]; parts.len()];
    for (part, row) in indices {
        picked[*part].push(*row as u64);
    }
    let firsts = firsts(picked.iter().map(Vec::len))?;
    let mut next = firsts.clone();
    let places = indices.iter().map(|(part, _)| {
        next[*part] += 1;
        next[*part] - 1
    });
    let places = uploaded(places.collect(), stream)?;
    let picked = picked.into_iter().map(|rows| uploaded(rows, stream)).collect::<Result<Vec<_>>>()?;
    let (parts, on) = (parts.iter().copied().cloned().collect::<Vec<C>>(), stream.clone());
    Ok(Pending::begin(stream, async move {
        let mut few = vec![];
        for (part, rows) in parts.iter().zip(&picked) {
            few.push(take(part, rows, &TakeOptions::default(), &on).await?);
        }
        let all = concat(&few.iter().collect::<Vec<_>>(), &on).await?;
        take(&all, &places, &TakeOptions::default(), &on).await
    }))
}

/// The place of each part's first row.
fn firsts(rows: impl Iterator<Item = usize>) -> Result<Vec<u64>> {
    let mut firsts = vec![0u64];
    for rows in rows {
        let end = firsts[firsts.len() - 1].checked_add(rows as u64);
        firsts.push(end.ok_or_else(|| Error::invalid("interleave", "too many rows"))?);
    }
    Ok(firsts)
}

fn uploaded(rows: Vec<u64>, stream: &Stream) -> Result<DeviceArray> {
    stream.upload(&from_arrow(&UInt64Array::from(rows))?)
}
