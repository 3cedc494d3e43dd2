//! The rows at given indices.

use super::{Columns, admit, reach_all};
use crate::cpu::indices::Indices;
use crate::cpu::selection::PARALLEL;
use crate::cpu::threads::among_threads;
use crate::{Array, Pending, Result, Stream, cpu, gpu};

/// What becomes of an index that is not a row: negative, or the length or more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OutOfBounds {
    /// [`IndexOutOfBounds`](crate::Error::IndexOutOfBounds) with the first such row.
    #[default]
    Error,
    /// A null row.
    Null,
}

/// How to take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TakeOptions {
    /// What becomes of an index that is not a row.
    pub out_of_bounds: OutOfBounds,
}

/// The rows at `indices`, an array of any integer type; a null index is a null row, and a negative one
/// never counts from the end. Indices into an array of type Null are checked as any others are; arrow-rs does not look at
/// those. Where an index of a batch may be null, or become null for being out of bounds, the fields of the result are
/// [`nullable`](super::nullable).
///
/// On a GPU this synchronises only for types whose size the device has to find out: strings and lists, once for all columns; and by
/// themselves arrays of runs (for how many runs that makes) and unions (a dense one's members, and any whose rows may be null), each
/// once, and once more where their values are such again, or strings or lists;
/// an index out of bounds is an error for the first caller that waits for the result, and a null row meanwhile. A launch for each
/// width of values, not for each column. Copies the rows, but not what they only point into.
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
pub fn take<C: Columns>(values: &C, indices: &Array, options: &TakeOptions, stream: &Stream) -> Pending<C> {
    Pending::begun(|| begin(values, indices, options, stream))
}

fn begin<C: Columns>(
    values: &C,
    indices: &Array,
    options: &TakeOptions,
    stream: &Stream,
) -> Result<Pending<C>> {
    let _current = stream.enter()?;
    let null_out_of_bounds = options.out_of_bounds == OutOfBounds::Null;
    // Those of a bitmap that nobody has counted may be null: counting them would wait for a device.
    let may_be_null = indices.possible_nulls().is_some();
    let frame = if may_be_null || null_out_of_bounds { values.nullable_frame() } else { values.frame() };
    let (indices, rows) = (&*admit("take", indices, stream)?, values.rows());
    reach_all("take", values.arrays(), stream)?;
    if stream.as_gpu().is_some() {
        let columns: Vec<&Array> = values.arrays().iter().collect();
        let outside = if null_out_of_bounds { gpu::Outside::Null } else { gpu::Outside::Refused };
        let (taken, len) = (gpu::take(&columns, rows, indices, outside, stream)?, indices.len());
        return Ok(taken.map(move |taken| C::framed(frame, taken, len)));
    }
    Ok(Pending::known(among_threads(indices.len() >= PARALLEL, |_| {
        let pool = stream.device().host_pool();
        let mut prepared = Indices::new(indices, pool)?;
        if null_out_of_bounds {
            prepared = prepared.null_out_of_bounds(rows, pool)?;
        } else if values.arrays().is_empty() {
            prepared.check(rows)?;
        }
        values.each(frame, indices.len(), |column| {
            cpu::take::take(&*admit("take", column, stream)?, &prepared, pool)
        })
    })))
}
