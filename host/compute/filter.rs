//! The `filter` operation: rows selected by a mask.

use super::selection::{check_mask, check_rows};
use super::{Columns, engine, reach, reach_all};
use crate::{DeviceArray, Pending, Result, Stream};

/// Keeps the rows for which `mask` is true; null is not true. The mask must be as long as the values;
/// arrow-rs also accepts a shorter one and drops the rows beyond it. To filter several arrays by one mask,
/// prepare a [`Selection`](super::Selection).
///
/// On a GPU the first [`wait`](Pending::wait) synchronises, once for all columns, because the number of kept
/// rows depends on the data. (Lists of run-end encoded arrays synchronise once more, for the number of
/// remaining runs.) Copies the kept rows, except for buffers that rows only point into. If all rows are kept,
/// nothing is copied.
///
/// ```
/// use bowstring::{DeviceArray, DeviceBatch, Stream, compute::filter};
/// use arrow_array::{ArrayRef, BooleanArray, Int32Array, RecordBatch};
/// # use std::sync::Arc;
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let stream = Stream::cpu();
/// let mask: ArrayRef = Arc::new(BooleanArray::from(vec![Some(true), None, Some(true)]));
/// let values: ArrayRef = Arc::new(Int32Array::from(vec![1, 2, 3]));
/// let rows = DeviceBatch::try_from(&RecordBatch::try_from_iter([("n", values.clone())])?)?;
/// let (mask, values) = (DeviceArray::try_from(&mask)?, DeviceArray::try_from(&values)?);
///
/// let kept = ArrayRef::try_from(&filter(&values, &mask, &stream).wait()?)?;
/// assert_eq!(kept.as_ref(), &Int32Array::from(vec![1, 3]));
/// assert_eq!(filter(&rows, &mask, &stream).wait()?.len(), 2);
/// # Ok(())
/// # }
/// ```
pub fn filter<C: Columns>(values: &C, mask: &DeviceArray, stream: &Stream) -> Pending<C> {
    Pending::begun(|| begin(values, mask, stream))
}

fn begin<C: Columns>(values: &C, mask: &DeviceArray, stream: &Stream) -> Result<Pending<C>> {
    let _current = stream.enter()?;
    reach("filter", mask, stream)?;
    check_mask("filter", mask)?;
    check_rows(values, mask.len())?;
    reach_all("filter", values.arrays(), stream)?;
    let (frame, kept) = (values.frame(), engine(stream).filter(values.arrays(), mask, stream)?);
    Ok(kept.map(|kept| C::framed(frame, kept.columns, kept.rows)))
}
