//! The `zip` operation: rows of one of two arrays or batches.

use super::computed::chosen;
use super::long_runs::{concat_long, shortened};
use super::{Columns, reach, reach_all};
use crate::compute::selection::check_mask;
use crate::{DeviceArray, Error, Pending, Stream};

/// Returns, for each row, that of `truthy` if `mask` is true there, or else that of `falsy`, also where
/// `mask` is null. Both have as many rows as the Boolean mask, and the same type or columns.
///
/// The rows of both are concatenated, and then taken; see [`concat()`](super::concat()) and
/// [`take`](super::take()) for how often that synchronises on a GPU.
///
/// ```
/// use arrow_array::{BooleanArray, StringArray};
/// use bowstring::{Stream, compute::zip, exchange::{from_arrow, to_arrow}};
/// # fn main() -> bowstring::Result<()> {
/// let mask = from_arrow(&BooleanArray::from(vec![Some(true), Some(false), None]))?;
/// let truthy = from_arrow(&StringArray::from(vec!["a", "b", "c"]))?;
/// let falsy = from_arrow(&StringArray::from(vec![Some("x"), None, Some("z")]))?;
/// let zipped = to_arrow(&zip(&mask, &truthy, &falsy, &Stream::cpu()).wait()?)?;
/// assert_eq!(zipped.as_ref(), &StringArray::from(vec![Some("a"), None, Some("z")]));
/// # Ok(())
/// # }
/// ```
pub fn zip<C: Columns>(mask: &DeviceArray, truthy: &C, falsy: &C, stream: &Stream) -> Pending<C> {
    Pending::begun(|| {
        let _current = stream.enter()?;
        check_mask("zip", mask)?;
        if let Some(rows) = [truthy.rows(), falsy.rows()].into_iter().find(|rows| *rows != mask.len()) {
            return Err(Error::invalid("zip", format!("a mask of {} rows for {rows}", mask.len())));
        }
        reach("zip", mask, stream)?;
        [truthy, falsy].into_iter().try_for_each(|rows| reach_all("zip", rows.arrays(), stream))?;
        let both = concat_long(&[truthy, falsy], stream);
        let (mask, like, on) = (mask.clone(), truthy.clone(), stream.clone());
        Ok(Pending::begin(
            stream,
            async move { shortened(chosen(both, &mask, &on).await?, &like, &on).await },
        ))
    })
}
