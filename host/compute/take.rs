//! The `take` operation: rows selected by index.

use super::{Columns, engine, reach, reach_all};
pub use crate::engine::OutOfBounds;
use crate::{DeviceArray, Pending, Result, Stream};

/// The options of [`take`]. By default, an index out of bounds is an error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TakeOptions {
    /// The result for an index that is out of bounds. The default is an error.
    pub out_of_bounds: OutOfBounds,
}

/// Takes the rows of an array or a batch at `indices`, an array of any integer type. A null index results in
/// a null row. A negative index never counts from the end. Indices into an array of type Null are checked
/// like all others; arrow-rs does not check those. If an index of a batch may be null, or may become null
/// because it is out of bounds, the fields of the result are [`nullable`](super::nullable).
///
/// On a GPU this synchronises only for types whose size the device must compute, and for all columns
/// together: once for strings and lists; once for run-end encoded arrays (for the number of runs) and unions
/// (for the members of a dense one, and for any whose rows may be null), and once more if their values are
/// again of these types, or strings or lists. An index out of bounds is an error for the first caller that
/// waits for the result; until then its row is null. Launches one kernel per width of values, not per column.
/// Copies the rows, but not buffers that rows only point into.
///
/// ```
/// use bowstring::{Stream, compute::{TakeOptions, take}, exchange::{from_arrow, to_arrow}};
/// # fn main() -> bowstring::Result<()> {
/// let values = from_arrow(&arrow_array::StringArray::from(vec!["a", "b", "c"]))?;
/// let indices = from_arrow(&arrow_array::Int64Array::from(vec![Some(2), None, Some(0)]))?;
/// let taken = to_arrow(&take(&values, &indices, &TakeOptions::default(), &Stream::cpu()).wait()?)?;
/// assert_eq!(taken.as_ref(), &arrow_array::StringArray::from(vec![Some("c"), None, Some("a")]));
/// # Ok(())
/// # }
/// ```
pub fn take<C: Columns>(
    values: &C,
    indices: &DeviceArray,
    options: &TakeOptions,
    stream: &Stream,
) -> Pending<C> {
    Pending::begun(|| begin(values, indices, options, stream))
}

fn begin<C: Columns>(
    values: &C,
    indices: &DeviceArray,
    options: &TakeOptions,
    stream: &Stream,
) -> Result<Pending<C>> {
    let _current = stream.enter()?;
    let out_of_bounds = options.out_of_bounds;
    // An uncounted bitmap may contain nulls; counting them would wait for a device.
    let may_be_null = indices.possible_nulls().is_some() || out_of_bounds == OutOfBounds::Null;
    let frame = if may_be_null { values.nullable_frame() } else { values.frame() };
    reach("take", indices, stream)?;
    reach_all("take", values.arrays(), stream)?;
    let len = indices.len();
    let taken = engine(stream).take(values.arrays(), values.rows(), indices, out_of_bounds, stream)?;
    Ok(taken.map(move |taken| C::framed(frame, taken, len)))
}
