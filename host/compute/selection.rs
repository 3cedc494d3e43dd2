//! A mask that is prepared once and applied to any number of arrays.

use arrow_schema::DataType;

use super::{Columns, admit, reach_all};
use crate::{DeviceArray, Error, Pending, Result, Stream, cpu, gpu};

/// The rows that a filter keeps. The mask is read and counted once, and can then be applied to any number of
/// arrays.
///
/// ```
/// use bowstring::{Stream, compute::Selection, exchange::{from_arrow, to_arrow}};
/// # fn main() -> bowstring::Result<()> {
/// let stream = Stream::cpu();
/// let mask = from_arrow(&arrow_array::BooleanArray::from(vec![Some(true), None, Some(true)]))?;
/// let values = from_arrow(&arrow_array::Int32Array::from(vec![1, 2, 3]))?;
/// let selection = Selection::new(&mask, &stream)?;
/// assert_eq!(selection.len(), 2);
/// let kept = to_arrow(&selection.filter(&values).wait()?)?;
/// assert_eq!(kept.as_ref(), &arrow_array::Int32Array::from(vec![1, 3]));
/// # Ok(())
/// # }
/// ```
pub struct Selection {
    way: Way,
    rows: usize,
    stream: Stream,
}

/// A selection in the form that the CPU or a GPU uses.
pub(super) enum Way {
    Cpu(cpu::selection::Selection),
    Gpu(gpu::Selection),
}

impl Selection {
    /// Selects the rows for which `mask`, a boolean array, is true. Null is not true.
    ///
    /// Synchronises, once, because the number of kept rows depends on the data. All later work is
    /// asynchronous, except for the total lengths of strings.
    pub fn new(mask: &DeviceArray, stream: &Stream) -> Result<Selection> {
        let _current = stream.enter()?;
        let mask = &*admit("filter", mask, stream)?;
        check_mask(mask)?;
        let way = match stream.as_gpu() {
            None => Way::Cpu(cpu::selection::Selection::of_mask(mask, stream.device().host_pool())?),
            Some(_) => Way::Gpu(gpu::Selection::new(gpu::Source::Array(mask), stream)?),
        };
        Ok(Selection { way, rows: mask.len(), stream: stream.clone() })
    }

    /// Wraps a selection that was already computed.
    pub(super) fn of(way: Way, rows: usize, stream: &Stream) -> Selection {
        Selection { way, rows, stream: stream.clone() }
    }

    /// The number of rows that the selection keeps.
    pub fn len(&self) -> usize {
        match &self.way {
            Way::Cpu(selection) => selection.len(),
            Way::Gpu(selection) => selection.len(),
        }
    }

    /// Whether the selection keeps no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Filters an array or a batch that is as long as the mask. If the selection keeps all rows, the input
    /// itself is returned. Buffers that rows only point into (dictionaries, the data of views) are shared.
    pub fn filter<C: Columns>(&self, values: &C) -> Pending<C> {
        Pending::begun(|| self.begin(values))
    }

    fn begin<C: Columns>(&self, values: &C) -> Result<Pending<C>> {
        let _current = self.stream.enter()?;
        check_rows(values, self.rows)?;
        reach_all("filter", values.arrays(), &self.stream)?;
        match &self.way {
            Way::Cpu(selection) => {
                let large = self.rows >= cpu::selection::PARALLEL;
                let kept = cpu::threads::among_threads(large, |_| kept(values, selection, &self.stream));
                Ok(Pending::known(kept))
            }
            Way::Gpu(selection) => {
                let columns: Vec<&DeviceArray> = values.arrays().iter().collect();
                let (frame, rows) = (values.frame(), self.len());
                let kept = selection.filter(&columns, &self.stream)?;
                Ok(kept.map(move |kept| C::framed(frame, kept, rows)))
            }
        }
    }
}

/// Filters the columns on the host.
pub(super) fn kept<C: Columns>(
    values: &C,
    selection: &cpu::selection::Selection,
    stream: &Stream,
) -> Result<C> {
    let pool = stream.device().host_pool();
    values.each(values.frame(), selection.len(), |column| {
        cpu::filter::filter(&*admit("filter", column, stream)?, selection, pool)
    })
}

pub(super) fn check_mask(mask: &DeviceArray) -> Result<()> {
    if *mask.data_type() == DataType::Boolean {
        return Ok(());
    }
    Err(Error::invalid("filter", format!("the mask is {}, not Boolean", mask.data_type())))
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
