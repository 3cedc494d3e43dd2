//! A mask prepared once, for any number of arrays.

use arrow_schema::DataType;

use super::{admit, admit_all};
use crate::{Array, Batch, Error, Result, Stream, cpu, gpu};

/// Which rows a filter keeps: the mask read and counted once, then applied to as many arrays as there are.
///
/// ```
/// use bowstring::{Stream, compute::Selection, exchange::{from_arrow, to_arrow}};
/// # fn main() -> bowstring::Result<()> {
/// let stream = Stream::cpu();
/// let mask = from_arrow(&arrow_array::BooleanArray::from(vec![Some(true), None, Some(true)]))?;
/// let values = from_arrow(&arrow_array::Int32Array::from(vec![1, 2, 3]))?;
/// let selection = Selection::new(&mask, &stream)?;
/// assert_eq!(selection.len(), 2);
/// let kept = to_arrow(&selection.filter(&values)?)?;
/// assert_eq!(kept.as_ref(), &arrow_array::Int32Array::from(vec![1, 3]));
/// # Ok(())
/// # }
/// ```
pub struct Selection {
    way: Way,
    rows: usize,
    stream: Stream,
}

/// A selection as each kind of device keeps it.
enum Way {
    Cpu(cpu::selection::Selection),
    Gpu(gpu::Selection),
}

impl Selection {
    /// Keeps the rows that `mask`, an array of booleans, has true; null is not.
    ///
    /// Synchronises, once: how many rows are kept is data. Everything after it is asynchronous but for the byte
    /// totals of strings.
    pub fn new(mask: &Array, stream: &Stream) -> Result<Selection> {
        let _current = stream.enter()?;
        let mask = &*admit("filter", mask, stream)?;
        check_mask(mask)?;
        let way = match stream.as_gpu() {
            None => Way::Cpu(cpu::selection::Selection::of_mask(mask, stream.device().host_pool())?),
            Some(_) => Way::Gpu(gpu::Selection::new(mask, stream)?),
        };
        Ok(Selection { way, rows: mask.len(), stream: stream.clone() })
    }

    /// How many rows are kept.
    pub fn len(&self) -> usize {
        match &self.way {
            Way::Cpu(selection) => selection.len(),
            Way::Gpu(selection) => selection.len(),
        }
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The kept rows of an array that is as long as the mask. Where all are, that is the array itself; buffers that
    /// rows only point into (dictionaries, the data of views) are shared.
    pub fn filter(&self, values: &Array) -> Result<Array> {
        let mut kept = self.filter_columns(&[values])?;
        kept.pop().ok_or_else(|| Error::invalid("filter", "no array"))
    }

    /// The kept rows of every column.
    pub fn filter_batch(&self, batch: &Batch) -> Result<Batch> {
        check_rows(batch.len(), self.rows)?;
        let columns: Vec<&Array> = batch.columns().iter().collect();
        batch.like()(self.filter_columns(&columns)?, self.len())
    }

    fn filter_columns(&self, columns: &[&Array]) -> Result<Vec<Array>> {
        let _current = self.stream.enter()?;
        let columns = admit_all("filter", columns, &self.stream)?;
        let columns: Vec<&Array> = columns.iter().map(|column| &**column).collect();
        columns.iter().try_for_each(|column| check_rows(column.len(), self.rows))?;
        match &self.way {
            Way::Cpu(selection) => {
                let pool = self.stream.device().host_pool();
                cpu::threads::among_threads(self.rows >= cpu::selection::PARALLEL, |_| {
                    columns.iter().map(|column| cpu::filter::filter(column, selection, pool)).collect()
                })
            }
            Way::Gpu(selection) => selection.filter(&columns, &self.stream),
        }
    }
}

pub(super) fn check_mask(mask: &Array) -> Result<()> {
    if *mask.data_type() == DataType::Boolean {
        return Ok(());
    }
    Err(Error::invalid("filter", format!("the mask is {}, not Boolean", mask.data_type())))
}

pub(super) fn check_rows(rows: usize, mask: usize) -> Result<()> {
    if rows == mask {
        return Ok(());
    }
    Err(Error::invalid("filter", format!("{rows} rows and a mask of {mask}")))
}
