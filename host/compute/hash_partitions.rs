//! Rows in parts that hashes of their keys choose.

use super::hashes::flat;
use super::{Columns, TakeOptions, check_columns, engine, take};
pub use crate::engine::HashPartitions;
use crate::rules::check_rows;
use crate::{DeviceArray, Error, Pending, Result, Stream};

/// More parts are an error: the host reads a number for each.
const MOST: usize = 1 << 16;

/// Divides rows into up to 65,536 parts by a hash of their keys, which are columns of one length. Rows with
/// equal keys, as [`group`](super::group) says, are in the same part; rows of a part keep their order.
///
/// The hash is the same in every batch and process, on every device, and for the layouts of text,
/// dictionaries and runs; so parts of one table match parts of another if their keys have the same types. It
/// is bowstring's own. Each part is divided further if the number of parts is multiplied: part `i` of two is
/// parts `2 * i` and `2 * i + 1` of four.
///
/// Nested keys are hashed as their parts are, which copies some of these, and waits more often.
///
/// No columns, columns of different lengths, other numbers of parts, and more rows than `u32::MAX` are an
/// error.
///
/// ```
/// use arrow_array::{Int64Array, StringArray};
/// use bowstring::{Stream, compute::partition_by_hash, exchange::{from_arrow, to_arrow}};
/// # fn main() -> bowstring::Result<()> {
/// let stream = Stream::cpu();
/// let keys = from_arrow(&StringArray::from(vec!["a", "b", "a", "c"]))?;
/// let values = from_arrow(&Int64Array::from(vec![1, 2, 3, 4]))?;
/// let partitions = partition_by_hash(&[keys], 2, &stream).wait()?;
/// let parts = partitions.split(&values, &stream).wait()?;
/// assert_eq!(to_arrow(&parts[0])?.as_ref(), &Int64Array::from(vec![1, 3]));
/// assert_eq!(to_arrow(&parts[1])?.as_ref(), &Int64Array::from(vec![2, 4]));
/// # Ok(())
/// # }
/// ```
pub fn partition_by_hash(keys: &[DeviceArray], parts: usize, stream: &Stream) -> Pending<HashPartitions> {
    Pending::begun(|| {
        let _current = stream.enter()?;
        check_columns("partition_by_hash", &keys.iter().collect::<Vec<_>>(), stream)?;
        check_rows("partition_by_hash", keys[0].len())?;
        if !(1..=MOST).contains(&parts) {
            let problem = format!("{parts} parts, which are not from 1 to {MOST}");
            return Err(Error::invalid("partition_by_hash", problem));
        }
        let (keys, on) = (keys.to_vec(), stream.clone());
        Ok(Pending::begin(stream, async move {
            let mut values = Vec::with_capacity(keys.len());
            for key in &keys {
                values.push(flat(key, &on).await?);
            }
            engine(&on).partition_by_hash(&values, parts, &on)?.await
        }))
    })
}

impl HashPartitions {
    /// The number of parts.
    pub fn parts(&self) -> usize {
        self.starts.len() - 1
    }

    /// All rows, part after part, as UInt32.
    pub fn order(&self) -> &DeviceArray {
        &self.order
    }

    /// The place in [`order`](HashPartitions::order) of each part's first row, and the number of all rows.
    pub fn starts(&self) -> &[usize] {
        &self.starts
    }

    /// The rows of a part, which ascend, as UInt32.
    pub fn rows(&self, part: usize) -> Result<DeviceArray> {
        let none = || Error::invalid("partition_by_hash", format!("no part {part} of {}", self.parts()));
        let (first, end) = (self.starts.get(part).ok_or_else(none)?, self.starts.get(part + 1));
        self.order.slice(*first, end.ok_or_else(none)? - first)
    }

    /// Divides an array or a batch of as many rows: returns its parts. They share the memory of one
    /// [`take`], so a part keeps the memory of all.
    pub fn split<C: Columns>(&self, values: &C, stream: &Stream) -> Pending<Vec<C>> {
        let (values, this, on) = (values.clone(), self.clone(), stream.clone());
        Pending::begun(|| {
            let _current = stream.enter()?;
            if values.rows() != this.order.len() {
                let problem = format!("{} rows in parts of {}", values.rows(), this.order.len());
                return Err(Error::invalid("partition_by_hash", problem));
            }
            Ok(Pending::begin(stream, async move {
                let taken = take(&values, &this.order, &TakeOptions::default(), &on).await?;
                let part = |places: &[usize]| {
                    let (first, rows) = (places[0], places[1] - places[0]);
                    taken.each(taken.frame(), rows, |column| column.slice(first, rows))
                };
                this.starts.windows(2).map(part).collect()
            }))
        })
    }
}
