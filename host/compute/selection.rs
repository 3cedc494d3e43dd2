//! A mask that is prepared once and applied to any number of arrays.

use arrow_schema::DataType;

use super::{Columns, engine, reach, reach_all};
use crate::engine::Selected;
use crate::{DeviceArray, Error, Pending, Result, Stream};

/// The rows that a filter keeps. The mask is read and counted once, and can then be applied to any number of
/// arrays.
///
/// ```
/// use bowstring::{Stream, compute::Selection, exchange::{from_arrow, to_arrow}};
/// # fn main() -> bowstring::Result<()> {
/// let stream = Stream::cpu();
/// let mask = from_arrow(&arrow_array::BooleanArray::from(vec![Some(true), None, Some(true)]))?;
/// let values = from_arrow(&arrow_array::Int32Array::from(vec![1, 2, 3]))?;
/// let selection = Selection::of_mask(&mask, &stream).wait()?;
/// assert_eq!(selection.len(), 2);
/// let kept = to_arrow(&selection.filter(&values).wait()?)?;
/// assert_eq!(kept.as_ref(), &arrow_array::Int32Array::from(vec![1, 3]));
/// # Ok(())
/// # }
/// ```
pub struct Selection {
    selected: Box<dyn Selected>,
    /// The length of the mask.
    rows: usize,
    stream: Stream,
}

impl Selection {
    /// Selects the rows for which `mask`, a boolean array, is true. Null is not true.
    ///
    /// On a GPU the first [`wait`](Pending::wait) synchronises, because the number of kept rows depends on
    /// the data. [`filter`](Selection::filter) may synchronise again.
    pub fn of_mask(mask: &DeviceArray, stream: &Stream) -> Pending<Selection> {
        Pending::begun(|| {
            let _current = stream.enter()?;
            reach("filter", mask, stream)?;
            check_mask("filter", mask)?;
            let selected = engine(stream).select(mask, stream)?;
            Ok(Selection::of(selected, mask.len(), stream))
        })
    }

    /// Wraps a selection among so many rows.
    pub(super) fn of(
        selected: Pending<Box<dyn Selected>>,
        rows: usize,
        stream: &Stream,
    ) -> Pending<Selection> {
        let stream = stream.clone();
        selected.map(move |selected| Ok(Selection { selected, rows, stream }))
    }

    /// The number of rows that the selection keeps.
    pub fn len(&self) -> usize {
        self.selected.len()
    }

    /// Whether the selection keeps no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Filters an array or a batch that is as long as the mask. If the selection keeps all rows, the input
    /// itself is returned. Buffers that rows only point into (dictionaries, the data of views) are shared.
    ///
    /// On a GPU, [`wait`](Pending::wait) synchronises once for text, lists and the like, for booleans, and
    /// for all arrays that may have nulls (lists of runs take more). Numbers that have no validity bitmap do
    /// not synchronise.
    pub fn filter<C: Columns>(&self, values: &C) -> Pending<C> {
        Pending::begun(|| self.begin(values))
    }

    fn begin<C: Columns>(&self, values: &C) -> Result<Pending<C>> {
        let _current = self.stream.enter()?;
        check_rows(values, self.rows)?;
        reach_all("filter", values.arrays(), &self.stream)?;
        let (frame, rows) = (values.frame(), self.len());
        let kept = self.selected.filter(values.arrays(), &self.stream)?;
        Ok(kept.map(move |kept| C::framed(frame, kept, rows)))
    }
}

pub(super) fn check_mask(operation: &'static str, mask: &DeviceArray) -> Result<()> {
    if *mask.data_type() == DataType::Boolean {
        return Ok(());
    }
    Err(Error::invalid(operation, format!("the mask is {}, not Boolean", mask.data_type())))
}

/// Checks that every array is as long as the mask.
pub(super) fn check_rows<C: Columns>(values: &C, mask: usize) -> Result<()> {
    let other =
        values.arrays().iter().map(DeviceArray::len).chain([values.rows()]).find(|rows| *rows != mask);
    match other {
        None => Ok(()),
        Some(rows) => Err(Error::invalid("filter", format!("{rows} rows and a mask of {mask}"))),
    }
}
