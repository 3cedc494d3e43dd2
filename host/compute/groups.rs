//! Groups of equal rows, wherever they are.

use super::{Columns, TakeOptions, check_columns, engine, take};
pub use crate::engine::Groups;
use crate::rules::check_rows;
use crate::{DeviceArray, Error, Pending, Stream};

/// Numbers the groups of equal rows in columns of one length, in the order of their first rows. Two rows are
/// equal if all their values are; nulls are equal to each other. Floats are equal if their bits are, as in
/// arrow-rs: -0.0 and 0.0 are two groups. No columns, columns of different lengths, and more rows than
/// `u32::MAX`, or on devices than 2^30, are an error.
///
/// Nested keys are compared by the ranks of what is inside, which are sorted for that.
///
/// ```
/// use bowstring::{Stream, compute::group, exchange::{from_arrow, to_arrow}};
/// # fn main() -> bowstring::Result<()> {
/// let values = from_arrow(&arrow_array::StringArray::from(vec!["b", "a", "b"]))?;
/// let groups = group(&[values], &Stream::cpu()).wait()?;
/// assert_eq!(to_arrow(groups.ids())?.as_ref(), &arrow_array::UInt32Array::from(vec![0, 1, 0]));
/// assert_eq!(to_arrow(groups.firsts())?.as_ref(), &arrow_array::UInt32Array::from(vec![0, 1]));
/// # Ok(())
/// # }
/// ```
pub fn group(columns: &[DeviceArray], stream: &Stream) -> Pending<Groups> {
    Pending::begun(|| {
        let _current = stream.enter()?;
        check_columns("group", &columns.iter().collect::<Vec<_>>(), stream)?;
        check_rows("group", columns[0].len())?;
        engine(stream).group(columns, stream)
    })
}

/// Keeps the first of equal rows of an array or a batch, in their order. See [`group`] for when rows are
/// equal. More rows than `u32::MAX`, or on devices than 2^30, are an error.
///
/// ```
/// use bowstring::{Stream, compute::distinct, exchange::{from_arrow, to_arrow}};
/// # fn main() -> bowstring::Result<()> {
/// let values = from_arrow(&arrow_array::Int32Array::from(vec![Some(2), None, Some(1), Some(2), None]))?;
/// let distinct = to_arrow(&distinct(&values, &Stream::cpu()).wait()?)?;
/// assert_eq!(distinct.as_ref(), &arrow_array::Int32Array::from(vec![Some(2), None, Some(1)]));
/// # Ok(())
/// # }
/// ```
pub fn distinct<C: Columns + Clone>(values: &C, stream: &Stream) -> Pending<C> {
    let groups = group(values.arrays(), stream);
    let (values, on) = (values.clone(), stream.clone());
    Pending::begun(|| {
        let _current = stream.enter()?;
        Ok(Pending::begin(stream, async move {
            let groups = groups.await.map_err(|error| match error {
                Error::Unsupported { what, device, .. } => {
                    Error::Unsupported { operation: "distinct", what, device }
                }
                other => other,
            })?;
            take(&values, groups.firsts(), &TakeOptions::default(), &on).await
        }))
    })
}

impl Groups {
    /// The group of each row, as UInt32: numbers from 0 on.
    pub fn ids(&self) -> &DeviceArray {
        &self.ids
    }

    /// The first row of each group, as UInt32. They ascend.
    pub fn firsts(&self) -> &DeviceArray {
        &self.firsts
    }

    /// The number of groups.
    pub fn len(&self) -> usize {
        self.firsts.len()
    }

    /// Whether there are no groups, because there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
