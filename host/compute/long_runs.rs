//! Runs of several parts that are one array for a while. Together the parts may have more rows than the ends
//! of their runs can number, although the result has few enough.

use arrow_schema::DataType;

use super::arrays::lengthened;
use super::{CastOptions, Columns, cast, concat};
use crate::{DeviceArray, Pending, Result, Stream};

/// Concatenates parts as [`concat()`] does, for an operation that takes some of the rows. Ends of runs become
/// longer if they are too short for all rows; [`shortened`] undoes that.
pub(super) fn concat_long<C: Columns>(parts: &[&C], stream: &Stream) -> Pending<C> {
    let arrays = |i: usize| parts.iter().filter_map(move |part| part.arrays().get(i)).collect::<Vec<_>>();
    let columns = parts.first().map_or(0, |part| part.arrays().len());
    if !(0..columns).any(|i| are_too_many(&arrays(i))) {
        return concat(parts, stream);
    }
    let (parts, on) = (parts.iter().copied().cloned().collect::<Vec<C>>(), stream.clone());
    Pending::begin(stream, async move {
        let mut long = vec![];
        for part in &parts {
            let mut arrays = vec![];
            for array in part.arrays() {
                arrays.push(lengthened(array, &on).await?);
            }
            long.push(part.with_arrays(arrays, part.rows())?);
        }
        concat(&long.iter().collect::<Vec<_>>(), &on).await
    })
}

/// Returns rows with the types that those of a part had before [`concat_long`]. More rows than the ends of
/// runs can number are an error.
pub(super) async fn shortened<C: Columns>(rows: C, like: &C, stream: &Stream) -> Result<C> {
    let is_same = |(row, like): (&DeviceArray, &DeviceArray)| row.data_type() == like.data_type();
    if rows.arrays().iter().zip(like.arrays()).all(is_same) {
        return Ok(rows);
    }
    let mut arrays = vec![];
    for (array, like) in rows.arrays().iter().zip(like.arrays()) {
        arrays.push(as_before(array, like.data_type(), stream).await?);
    }
    rows.with_arrays(arrays, rows.rows())
}

/// Returns an array of the type that it had before.
pub(super) async fn as_before(array: &DeviceArray, of: &DataType, stream: &Stream) -> Result<DeviceArray> {
    let strict = CastOptions { safe: false, ..CastOptions::default() };
    match array.data_type() == of {
        true => Ok(array.clone()),
        false => cast(array, of, &strict, stream).await,
    }
}

/// Whether ends of runs cannot number the rows of all these arrays of one type, at any depth but inside of
/// unions. Items that no list has count as well.
fn are_too_many(arrays: &[&DeviceArray]) -> bool {
    let Some(first) = arrays.first() else { return false };
    let most = match first.data_type() {
        DataType::Union(..) => return false,
        DataType::RunEndEncoded(ends, _) => match ends.data_type() {
            DataType::Int16 => i16::MAX as usize,
            DataType::Int32 => i32::MAX as usize,
            _ => usize::MAX,
        },
        _ => usize::MAX,
    };
    let rows = arrays.iter().map(|array| array.len()).fold(0, usize::saturating_add);
    let inside = |i: usize| arrays.iter().filter_map(|array| array.children().get(i)).collect::<Vec<_>>();
    rows > most
        || (0..first.children().len()).any(|i| are_too_many(&inside(i)))
        || are_too_many(&arrays.iter().filter_map(|array| array.dictionary()).collect::<Vec<_>>())
}
