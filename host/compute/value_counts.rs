//! The `value_counts` operation: how often each value occurs.

use super::arrays::unnamed;
use super::query::Query;
use crate::expr::{count_all, nth};
use crate::{DeviceArray, DeviceBatch, Pending, Stream};

/// Counts how often each value of an array occurs. Returns a batch of the columns `values`, the distinct
/// values in the order of their first rows, and `counts`, Int64. Nulls are counted as well. See
/// [`group`](super::group) for when rows are equal.
///
/// ```
/// use bowstring::{Stream, compute::value_counts, exchange::{batch_to_arrow, from_arrow}};
/// # fn main() -> bowstring::Result<()> {
/// let values = from_arrow(&arrow_array::StringArray::from(vec![Some("b"), None, Some("b")]))?;
/// let counted = batch_to_arrow(&value_counts(&values, &Stream::cpu()).wait()?)?;
/// let values = arrow_array::StringArray::from(vec![Some("b"), None]);
/// assert_eq!(counted.column(0).as_ref(), &values as &dyn arrow_array::Array);
/// assert_eq!(counted.column(1).as_ref(), &arrow_array::Int64Array::from(vec![2, 1]));
/// # Ok(())
/// # }
/// ```
pub fn value_counts(values: &DeviceArray, stream: &Stream) -> Pending<DeviceBatch> {
    Pending::begun(|| {
        let batch = unnamed(vec![values.clone()])?;
        let query = Query::new().group_by([nth(0).alias("values")]);
        Ok(query.aggregate([count_all().alias("counts")]).run_once(&batch, stream))
    })
}
